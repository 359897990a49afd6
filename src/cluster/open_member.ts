import { encodeHex } from "../bytes/mod.ts";
import { log } from "../log.ts";
import { TICK_MS } from "../raft/mod.ts";
import { type Applier, denoRaftDisk, RaftStorage, type Store } from "../store/mod.ts";
import { Member } from "./member.ts";
import type { Channel, ChannelHandler, Greeting } from "./ports.ts";

/** A channel that is not listening yet. */
export interface OpenChannel extends Channel {
  start(): Promise<void>;
  stop(): Promise<void>;
}

export interface OpenMemberOptions {
  readonly node: string;
  readonly version: string;
  readonly isWitness: boolean;
  readonly bootstrap: boolean;
  readonly addresses: ReadonlyMap<string, string>;
  /** The folder of the store. */
  readonly directory: string;
  readonly store: Store;
  readonly applier: Applier;
  readonly nowMs: () => number;
  readonly openChannel: (handler: ChannelHandler, greeting: Greeting) => Promise<OpenChannel>;
}

/** A member that can be started, and stopped in order. */
export interface RunningMember {
  readonly member: Member;
  /** Lets the others in, and time pass. */
  start(): Promise<void>;
  stop(): Promise<void>;
}

const CLUSTER_ID_BYTES = 8;

/**
 * Opens what a member keeps beside its store, and its channel; nobody is listened to yet.
 *
 * @throws {SvcError} If the log or the certificates can't be had.
 */
export async function openMember(options: OpenMemberOptions): Promise<RunningMember> {
  const { node, version, isWitness, store, applier, directory, nowMs } = options;
  const storage = await RaftStorage.open({
    ...{ store, applier, node, nowMs },
    disk: denoRaftDisk(directory),
    drawNumber: () => drawHex(4),
  });
  const { id: memberId, cluster: clusterId } = storage.member;
  const late: { member: Member | null } = { member: null };
  let channel: OpenChannel;
  try {
    channel = await options.openChannel({
      onFrame: (from, frame) => late.member?.onFrame(from, frame),
      onConnected: (peer) => late.member?.onConnected(peer),
      onDisconnected: (name) => late.member?.onDisconnected(name),
    }, { version, clusterId, memberId, isWitness });
  } catch (error) {
    storage.close();
    throw error;
  }
  const member = new Member({
    ...{ node, version, isWitness, storage, store, applier, channel, nowMs },
    bootstrap: options.bootstrap,
    addresses: options.addresses,
    random: () => crypto.getRandomValues(new Uint32Array(1))[0],
    drawId: () => drawHex(CLUSTER_ID_BYTES),
  });
  late.member = member;
  let timer: ReturnType<typeof setInterval> | undefined;
  return {
    member,
    async start() {
      timer = setInterval(() => member.tick(), TICK_MS);
      await channel.start();
      log.info("member of a cluster", { node, cluster: clusterId === "" ? "none yet" : clusterId });
    },
    async stop() {
      await member.stop(); // It takes time to hand over, so time passes until then.
      clearInterval(timer);
      await channel.stop();
    },
  };
}

function drawHex(lengthBytes: number): string {
  return encodeHex(crypto.getRandomValues(new Uint8Array(lengthBytes)));
}
