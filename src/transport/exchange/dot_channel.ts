import { Buffer } from "node:buffer";
import type { TLSSocket } from "node:tls";
import { getU16, setU16 } from "../../bytes/mod.ts";
import { FrameReader } from "../frames.ts";
import {
  type Channel,
  type ChannelEvents,
  type EncryptedQuery,
  QUERIES_PER_CONNECTION_MAX,
  Silence,
} from "./channel.ts";

/** DNS over TLS (RFC 7858): messages behind their lengths, answers found by their ID. */
export class DotChannel implements Channel {
  readonly #socket: TLSSocket;
  readonly #events: ChannelEvents;
  readonly #frames = new FrameReader();
  /** By the ID on this connection, which is the query's own unless two have the same. */
  readonly #queries = new Map<number, EncryptedQuery>();
  readonly #ids = new Map<EncryptedQuery, number>();
  /** Frames of this turn: they leave together, in one TLS record. */
  #outgoing: Uint8Array[] = [];
  #isOpen = true;
  readonly #silence = new Silence();

  constructor(socket: TLSSocket, events: ChannelEvents) {
    this.#socket = socket;
    this.#events = events;
    const end = () => this.#end();
    socket.on("data", (chunk: Uint8Array) => this.#read(chunk));
    for (const event of ["end", "error", "close"]) socket.on(event, end);
    if (socket.destroyed) queueMicrotask(end);
  }

  get room(): number {
    return this.#isOpen ? QUERIES_PER_CONNECTION_MAX - this.#queries.size : 0;
  }

  get pending(): number {
    return this.#queries.size;
  }

  send(query: EncryptedQuery): void {
    query.channel = this;
    const id = this.#freeId(getU16(query.packet, 0));
    this.#queries.set(id, query);
    this.#ids.set(query, id);
    this.#silence.asked();
    const { length } = query.packet;
    const frame = new Uint8Array(2 + length);
    setU16(frame, 0, length);
    frame.set(query.packet, 2);
    setU16(frame, 2, id);
    if (this.#outgoing.length === 0) queueMicrotask(() => this.#write());
    this.#outgoing.push(frame);
  }

  cancel(query: EncryptedQuery): void {
    const id = this.#ids.get(query);
    if (id === undefined) return;
    this.#ids.delete(query);
    this.#queries.delete(id);
  }

  sweep(nowMs: number): void {
    if (this.#silence.isOver(nowMs, this.#queries.size)) this.#end();
  }

  close(): void {
    this.#isOpen = false;
    this.#queries.clear();
    this.#ids.clear();
    this.#socket.destroy();
  }

  #freeId(wanted: number): number {
    let id = wanted;
    // At most a few hundred of 65,536 are taken.
    while (this.#queries.has(id)) id = crypto.getRandomValues(new Uint16Array(1))[0];
    return id;
  }

  #write(): void {
    const frames = this.#outgoing;
    this.#outgoing = [];
    if (this.#isOpen) this.#socket.write(frames.length === 1 ? frames[0] : Buffer.concat(frames));
  }

  #read(chunk: Uint8Array): void {
    this.#frames.push(chunk);
    for (let frame = this.#frames.next(); frame !== null; frame = this.#frames.next()) {
      const query = frame.length < 2 ? undefined : this.#queries.get(getU16(frame, 0));
      if (query === undefined) continue; // Nobody waits for it any more.
      const packet = frame.slice();
      setU16(packet, 0, getU16(query.packet, 0));
      this.#events.onAnswer(query, packet);
    }
    this.#silence.heard(this.#queries.size);
  }

  #end(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    const unanswered = [...this.#queries.values()];
    this.#queries.clear();
    this.#ids.clear();
    this.#socket.destroy();
    this.#events.onEnd(this);
    for (const query of unanswered) this.#events.onLost(query);
  }
}
