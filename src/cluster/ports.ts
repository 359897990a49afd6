import type { HostPort } from "../addr/mod.ts";

/** Most bytes of one frame: the largest entry of Raft with what a codec puts around it. */
export const FRAME_BYTES_MAX = (1 << 20) + (64 << 10);

/** What a member says of itself before anything else, and again whenever it has changed. */
export interface Greeting {
  /** Of its program. */
  readonly version: string;
  /** The cluster that it is in; empty: in none. */
  readonly clusterId: string;
  /** Of its store: one that was emptied has another (`raft`'s `Configuration`). */
  readonly memberId: string;
  /** Votes, never leads, and answers no DNS. */
  readonly isWitness: boolean;
}

/** A member of the configuration file, as the channel knows it. What it said stays known. */
export interface PeerState {
  /** The member's name, which is its certificate's. */
  readonly name: string;
  /** Whether frames to it can leave. */
  readonly isConnected: boolean;
  /** The last that it said of itself; `null`: nothing since this member started. */
  readonly greeting: Greeting | null;
  /** Why no frames pass although it answers: it speaks another form of the channel. */
  readonly incompatible: string | null;
  /** Why it can't be reached, in words that follow its name; `null`: it is connected. */
  readonly fault: string | null;
}

/**
 * Carries frames between members, each of which is who its certificate says. Frames of one member
 * come in the order they were sent, or are lost; none comes twice, and a greeting comes before the
 * frames that were sent after it.
 */
export interface Channel {
  /**
   * Sends a frame of at most `FRAME_BYTES_MAX`, which nobody may change any more. `false`: the
   * member is not connected, or so much waits for it already that the frame is dropped.
   */
  send(to: string, frame: Uint8Array): boolean;
  /** Every member of the configuration file but this one. */
  peers(): readonly PeerState[];
  /** Has the others know this of this member from now on. */
  greet(greeting: Greeting): void;
}

/** Who a channel is for. None of these may throw. */
export interface ChannelHandler {
  /** The frame is the handler's own. */
  onFrame(from: string, frame: Uint8Array): void;
  /** Frames to it can leave from now on; or, while they can, it said something else of itself. */
  onConnected(peer: PeerState): void;
  onDisconnected(name: string): void;
}

/** Sockets that somebody opened for the channel, and keeps until nobody listens any more. */
export interface ChannelSockets {
  /**
   * A number of the one of an address, that the channel may close.
   *
   * @throws {SvcError} `unavailable`; later there may be one.
   */
  copy(address: HostPort): number;
  /** Refuses connections from now on. */
  close(): void;
}
