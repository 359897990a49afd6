/**
 * A member of a cluster: the channel by which members reach each other, and the driver of consensus
 * over it and the store. Changes of this node go to `Member.replicator`; whoever leads takes them, and
 * they are answered once they are applied here. Scope: net: members; read: certificates. @module
 */
export {
  type ChannelFigures,
  type ChannelOptions,
  MemberChannel,
  type PeerFigures,
} from "./channel/channel.ts";
export {
  type Channel,
  type ChannelHandler,
  type ChannelSockets,
  FRAME_BYTES_MAX,
  type Greeting,
  type PeerState,
} from "./ports.ts";
export type { MemberFigures } from "./figures.ts";
export { Member, type MemberOptions } from "./member.ts";
export { openMember, type OpenMemberOptions, type RunningMember } from "./open_member.ts";
export { type Report, stoppedReport } from "./report.ts";
