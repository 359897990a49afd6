/** What a connection to an encrypted upstream is to whoever sends queries over it. */
import type { TLSSocket } from "node:tls";
import { Silence } from "./silence.ts";

/** A query on its way to an encrypted upstream. */
export interface EncryptedQuery {
  readonly token: number;
  /** The message: this exchange's own bytes. */
  readonly packet: Uint8Array<ArrayBuffer>;
  /** The connection it was sent on, or `null` while it waits for one. */
  channel: Channel | null;
  /** It was on a connection that was lost, and is sent no third time. */
  isAgain: boolean;
}

/** One connection. Queries share it, and answers come in any order. */
export interface Channel {
  /** Queries that it takes beside those on it; 0 for one that is about to close. */
  readonly room: number;
  /** Queries on it. */
  readonly pending: number;
  send(query: EncryptedQuery): void;
  /** Its answer is not wanted any more. */
  cancel(query: EncryptedQuery): void;
  /** Closes a connection that is idle for long, or dead. Called every `SWEEP_MS`. */
  sweep(nowMs: number): void;
  close(): void;
}

/** What becomes of queries on a connection. */
export interface ChannelEvents {
  /** The packet is the taker's own. */
  onAnswer(query: EncryptedQuery, packet: Uint8Array): void;
  /** There will be no answer, and another connection would not change that. */
  onFailure(query: EncryptedQuery, reason: string): void;
  /** There will be no answer on this connection, and on another one there may be. */
  onLost(query: EncryptedQuery): void;
  /** The connection is gone. Queries that were on it are lost after this. */
  onEnd(channel: Channel): void;
}

/** Queries on one connection at a time. */
export const QUERIES_PER_CONNECTION_MAX = 128;
/** How often connections are looked through, while there are any. */
export const SWEEP_MS = 500;

/** A connection whose handshake is done, whichever protocol it speaks. */
export abstract class OpenChannel implements Channel {
  protected isOpen = true;
  protected readonly silence: Silence = new Silence();

  constructor(protected readonly events: ChannelEvents) {}

  abstract readonly room: number;
  abstract readonly pending: number;
  abstract send(query: EncryptedQuery): void;
  abstract cancel(query: EncryptedQuery): void;
  /** Forgets the queries on it, and returns them. */
  protected abstract takeAll(): EncryptedQuery[];
  protected abstract destroy(): void;

  sweep(nowMs: number): void {
    if (this.silence.isOver(nowMs, this.pending)) this.end();
  }

  close(): void {
    this.isOpen = false;
    this.takeAll();
    this.destroy();
  }

  /** The connection is of no more use, or is gone. */
  protected end(): void {
    if (!this.isOpen) return;
    this.isOpen = false;
    const unanswered = this.takeAll();
    this.destroy();
    this.events.onEnd(this);
    for (const query of unanswered) this.events.onLost(query);
  }
}

/** One over a TLS socket. */
export abstract class SocketChannel extends OpenChannel {
  constructor(protected readonly socket: TLSSocket, events: ChannelEvents) {
    super(events);
  }

  protected override destroy(): void {
    this.socket.destroy();
  }

  /** Has any of these events end the connection, and ends one that has gone already. */
  protected endOn(...names: readonly string[]): void {
    for (const name of names) this.socket.on(name, () => this.end());
    if (this.socket.destroyed) queueMicrotask(() => this.end());
  }
}
