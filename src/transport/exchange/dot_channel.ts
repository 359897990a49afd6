import { Buffer } from "node:buffer";
import type { TLSSocket } from "node:tls";
import { getU16, setU16 } from "../../bytes/mod.ts";
import { FrameReader } from "../frames.ts";
import {
  type ChannelEvents,
  type EncryptedQuery,
  QUERIES_PER_CONNECTION_MAX,
  SocketChannel,
} from "./channel.ts";

/** DNS over TLS (RFC 7858): messages behind their lengths, answers found by their ID. */
export class DotChannel extends SocketChannel {
  readonly #frames = new FrameReader();
  /** By the ID on this connection, which is the query's own unless two have the same. */
  readonly #queries = new Map<number, EncryptedQuery>();
  readonly #ids = new Map<EncryptedQuery, number>();
  /** Frames of this turn: they leave together, in one TLS record. */
  #outgoing: Uint8Array[] = [];

  constructor(socket: TLSSocket, events: ChannelEvents) {
    super(socket, events);
    socket.on("data", (chunk: Uint8Array) => this.#read(chunk));
    this.endOn("end", "error", "close");
  }

  override get room(): number {
    return this.isOpen ? QUERIES_PER_CONNECTION_MAX - this.#queries.size : 0;
  }

  override get pending(): number {
    return this.#queries.size;
  }

  override send(query: EncryptedQuery): void {
    query.channel = this;
    const id = this.#freeId(getU16(query.packet, 0));
    this.#queries.set(id, query);
    this.#ids.set(query, id);
    this.silence.asked();
    const { length } = query.packet;
    const frame = new Uint8Array(2 + length);
    setU16(frame, 0, length);
    frame.set(query.packet, 2);
    setU16(frame, 2, id);
    if (this.#outgoing.length === 0) queueMicrotask(() => this.#write());
    this.#outgoing.push(frame);
  }

  override cancel(query: EncryptedQuery): void {
    const id = this.#ids.get(query);
    if (id === undefined) return;
    this.#ids.delete(query);
    this.#queries.delete(id);
  }

  protected override takeAll(): EncryptedQuery[] {
    const queries = [...this.#queries.values()];
    this.#queries.clear();
    this.#ids.clear();
    return queries;
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
    if (this.isOpen) this.socket.write(frames.length === 1 ? frames[0] : Buffer.concat(frames));
  }

  #read(chunk: Uint8Array): void {
    this.#frames.push(chunk);
    for (let frame = this.#frames.next(); frame !== null; frame = this.#frames.next()) {
      const query = frame.length < 2 ? undefined : this.#queries.get(getU16(frame, 0));
      if (query === undefined) continue; // Nobody waits for it any more.
      const packet = frame.slice();
      setU16(packet, 0, getU16(query.packet, 0));
      this.events.onAnswer(query, packet);
    }
    this.silence.heard(this.#queries.size);
  }
}
