/**
 * A member of a cluster: the channel by which members reach each other. Scope: net: members; read:
 * certificates. @module
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
  FRAME_BYTES_MAX,
  type Greeting,
  type PeerState,
} from "./ports.ts";
