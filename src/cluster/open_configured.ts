import { formatHostPort } from "../addr/mod.ts";
import type { ClusterConfig } from "../config/mod.ts";
import { MemberChannel } from "./channel/channel.ts";
import { openMember, type OpenMemberOptions, type RunningMember } from "./open_member.ts";

type Parts = Pick<
  OpenMemberOptions,
  "version" | "isWitness" | "directory" | "store" | "applier" | "nowMs"
>;

export interface ConfiguredOptions extends Parts {
  /**
   * Answers a question of another member, over the channel's port and certificates.
   *
   * @throws Where there is no answer.
   */
  readonly onQuestion: (from: string, question: Uint8Array) => Promise<Uint8Array>;
}

/** A member with the channel that its configuration names. */
export interface ConfiguredMember extends RunningMember {
  readonly channel: MemberChannel;
}

/**
 * Opens the member of `[cluster]`; nobody is listened to yet.
 *
 * @throws {SvcError} If the log or the certificates can't be had.
 */
export async function openConfiguredMember(
  config: ClusterConfig,
  { onQuestion, ...parts }: ConfiguredOptions,
): Promise<ConfiguredMember> {
  const opened: { channel?: MemberChannel } = {};
  const running = await openMember({
    ...parts,
    node: config.node,
    bootstrap: config.bootstrap,
    addresses: new Map(
      config.members.map(({ node, address }) => [node, formatHostPort(address)]),
    ),
    openChannel: async (handler, greeting) =>
      opened.channel = await MemberChannel.open({
        ...{ config, handler, greeting, onQuestion },
        nowMs: parts.nowMs,
        monotonicMs: () => performance.now(),
        chance: Math.random,
      }),
  });
  return { ...running, channel: opened.channel as MemberChannel };
}
