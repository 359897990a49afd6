import { formatHostPort } from "../addr/mod.ts";
import { encodeHex } from "../bytes/mod.ts";
import type { ClusterConfig } from "../config/mod.ts";
import { log } from "../log.ts";
import { TICK_MS } from "../raft/mod.ts";
import { type Applier, denoRaftDisk, RaftStorage, type Store } from "../store/mod.ts";
import { type ChannelOptions, MemberChannel } from "./channel/channel.ts";
import { Member } from "./member.ts";
import type { ChannelSockets } from "./ports.ts";

export interface OpenMemberOptions {
  readonly config: ClusterConfig;
  readonly version: string;
  readonly isWitness: boolean;
  /** The folder of the store. */
  readonly directory: string;
  readonly store: Store;
  readonly applier: Applier;
  readonly nowMs: () => number;
  readonly onQuestion: ChannelOptions["onQuestion"];
}

/** A member with its channel, which can be started, and stopped in order. */
export interface RunningMember {
  readonly member: Member;
  readonly channel: Pick<MemberChannel, "ask" | "figures" | "listening" | "problems" | "renew">;
  /** Lets the others in, and time pass. Without `sockets` it opens its own. */
  start(sockets?: ChannelSockets | null): Promise<void>;
  stop(): Promise<void>;
}

const MEMBER_NUMBER_BYTES = 4;
const ID_BYTES = 8;

/**
 * Opens what a member keeps beside its store, and its channel; nobody is listened to yet.
 *
 * @throws {SvcError} If the log or the certificates can't be had.
 */
export async function openMember(options: OpenMemberOptions): Promise<RunningMember> {
  const { config, version, isWitness, store, applier, directory, nowMs, onQuestion } = options;
  const { node, members } = config;
  const storage = await RaftStorage.open({
    ...{ store, applier, node, nowMs },
    disk: denoRaftDisk(directory),
    drawNumber: () => drawHex(MEMBER_NUMBER_BYTES),
  });
  const { id: memberId, cluster: clusterId } = storage.member;
  const late: { member: Member | null } = { member: null };
  let channel: MemberChannel;
  try {
    channel = await MemberChannel.open({
      ...{ config, nowMs, onQuestion, chance: Math.random },
      greeting: { version, clusterId, memberId, isWitness },
      monotonicMs: () => performance.now(),
      handler: {
        onFrame: (from, frame) => late.member?.onFrame(from, frame),
        onConnected: (peer) => late.member?.onConnected(peer),
        onDisconnected: (name) => late.member?.onDisconnected(name),
      },
    });
  } catch (error) {
    storage.close();
    throw error;
  }
  const member = new Member({
    ...{ node, version, isWitness, storage, store, applier, channel, nowMs },
    bootstrap: config.bootstrap,
    addresses: new Map(members.map((one) => [one.node, formatHostPort(one.address)])),
    random: () => crypto.getRandomValues(new Uint32Array(1))[0],
    drawId: () => drawHex(ID_BYTES),
  });
  late.member = member;
  let timer: ReturnType<typeof setInterval> | undefined;
  return {
    member,
    channel,
    async start(sockets = null) {
      timer = setInterval(() => member.tick(), TICK_MS);
      log.info("member of a cluster", { node, cluster: clusterId === "" ? "none yet" : clusterId });
      await channel.start(sockets);
    },
    async stop() {
      if (timer !== undefined) await member.stop(); // Handing over takes time, which passes until then.
      else storage.close();
      clearInterval(timer);
      await channel.stop();
    },
  };
}

function drawHex(lengthBytes: number): string {
  return encodeHex(crypto.getRandomValues(new Uint8Array(lengthBytes)));
}
