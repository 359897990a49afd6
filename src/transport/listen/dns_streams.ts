import type { Socket } from "node:net";
import { setU16 } from "../../bytes/mod.ts";
import { FrameReader } from "../frames.ts";

export interface DnsStreamLimits {
  /** Queries of one connection that wait for their answers; then it is not read on. */
  readonly queriesMax: number;
  /** A connection without a whole query for this long is closed. */
  readonly idleMs: number;
  /** Bytes of answers that a client leaves unread before it is cut off. */
  readonly unreadBytesMax: number;
}

/** Where answers go. */
export interface DnsStream {
  /** The client's address as text; IPv4-mapped ones as IPv4. */
  readonly client: string;
  /** The server name that the client asked for in its TLS handshake; `null` without one. */
  readonly serverName: string | null;
  /** Sends a message, now or with the others of this read. */
  send(message: Uint8Array, offset: number, length: number): void;
  /** One query that waited has been answered, or never will be. */
  settled(): void;
}

export interface DnsStreamHandler {
  /**
   * A whole message, which is the handler's only during the call. Returns false when it is done
   * with; true when its answer waits: then `settled` is called once, now or later.
   */
  onMessage(stream: DnsStream, message: Uint8Array): boolean;
  onOpen(stream: DnsStream): void;
}

/** Whether writes may be put together behind our back, or are TLS records that must stay apart. */
export type WritesAs = "bytes" | "records";

/** How often idle connections are looked for. */
const SWEEP_MS = 1_000;
/** Answers of one read are put together up to this size. */
const GATHER_BYTES = 64 * 1024 + 2;

class Stream implements DnsStream {
  readonly frames = new FrameReader();
  waiting = 0;
  lastQueryMs: number;
  ended = false;
  closed = false;

  constructor(
    readonly streams: DnsStreams,
    readonly socket: Socket,
    readonly client: string,
    readonly serverName: string | null,
    nowMs: number,
  ) {
    this.lastQueryMs = nowMs;
  }

  send(message: Uint8Array, offset: number, length: number): void {
    if (!this.closed) this.streams.send(this, message, offset, length);
  }

  settled(): void {
    this.waiting--;
    if (!this.closed) this.streams.afterSettled(this);
  }
}

/**
 * Connections that carry DNS messages behind their length, over TCP or TLS: many queries on each,
 * answers in any order (RFC 7766, RFC 7858 §3.3). The answers of one read leave in one write; over
 * TLS in two, as the last one has a record of its own. There are clients (getdns, and so stubby) that
 * take one message each time their socket has data: what is left of a decrypted record is no data of
 * the socket, so behind the last record they would leave answers lying until the next query. With one
 * answer in the last record, the socket has data until all others are taken.
 */
export class DnsStreams {
  readonly #handler: DnsStreamHandler;
  readonly #limits: DnsStreamLimits;
  readonly #writesAs: WritesAs;
  readonly #streams = new Set<Stream>();
  readonly #gathered = new Uint8Array(GATHER_BYTES);
  #gatheredBytes = 0;
  /** Where the last of the gathered answers begins. */
  #lastOffset = 0;
  /** The connection whose queries are being read: its answers are gathered. */
  #reading: Stream | null = null;
  readonly #sweep: ReturnType<typeof setInterval>;
  #draining = false;

  constructor(handler: DnsStreamHandler, limits: DnsStreamLimits, writesAs: WritesAs) {
    this.#handler = handler;
    this.#limits = limits;
    this.#writesAs = writesAs;
    this.#sweep = setInterval(() => this.#closeIdle(), SWEEP_MS);
    Deno.unrefTimer(Number(this.#sweep));
  }

  /** Takes over a connection. */
  add(socket: Socket, client: string, serverName: string | null): void {
    const stream = new Stream(this, socket, client, serverName, performance.now());
    this.#streams.add(stream);
    // Without it, a socket writes one by one what had to wait for a slow client.
    if (this.#writesAs === "records") Object.defineProperty(socket, "_writev", { value: null });
    this.#handler.onOpen(stream);
    socket.on("data", (chunk: Uint8Array) => {
      stream.frames.push(chunk);
      this.#readOn(stream);
    });
    socket.on("end", () => {
      stream.ended = true;
      if (stream.waiting === 0) socket.end();
    });
    socket.on("close", () => {
      stream.closed = true;
      this.#streams.delete(stream);
    });
  }

  /** Takes no more queries; those that wait are answered. */
  drain(): void {
    this.#draining = true;
    clearInterval(this.#sweep);
    for (const { socket, waiting } of this.#streams) {
      socket.pause();
      if (waiting === 0) socket.end();
    }
  }

  close(): void {
    this.drain();
    for (const { socket } of this.#streams) socket.destroy();
  }

  /** Called by a connection of these. */
  send(stream: Stream, message: Uint8Array, offset: number, length: number): void {
    if (this.#reading !== stream) {
      const frame = new Uint8Array(2 + length);
      setU16(frame, 0, length);
      frame.set(message.subarray(offset, offset + length), 2);
      this.#write(stream, frame);
      return;
    }
    if (this.#gatheredBytes + 2 + length > GATHER_BYTES) this.#flush(stream);
    this.#lastOffset = this.#gatheredBytes;
    setU16(this.#gathered, this.#gatheredBytes, length);
    this.#gathered.set(message.subarray(offset, offset + length), this.#gatheredBytes + 2);
    this.#gatheredBytes += 2 + length;
  }

  /** Called by a connection of these. */
  afterSettled(stream: Stream): void {
    const { socket } = stream;
    if (this.#reading === stream) return; // Its answers are gathered; see `#readOn`.
    if (stream.waiting === 0 && (stream.ended || this.#draining)) {
      socket.end();
    } else if (socket.isPaused() && !this.#draining) {
      this.#readOn(stream);
    }
  }

  /** Hands whole messages on, until as many wait as may. */
  #readOn(stream: Stream): void {
    const { socket, frames } = stream;
    const outer = this.#reading;
    // One buffer gathers for all: what is in it is the outer connection's.
    if (outer !== null) this.#flush(outer);
    this.#reading = stream;
    let message = frames.next();
    while (message !== null) {
      stream.lastQueryMs = performance.now();
      // Counted first: it may be settled during the call.
      stream.waiting++;
      if (!this.#handler.onMessage(stream, message)) stream.waiting--;
      if (stream.waiting >= this.#limits.queriesMax || stream.closed) break;
      message = frames.next();
    }
    this.#flush(stream);
    this.#reading = outer;
    if (stream.ended && stream.waiting === 0) socket.end();
    else if (stream.waiting >= this.#limits.queriesMax) socket.pause();
    else if (socket.isPaused()) socket.resume();
  }

  #flush(stream: Stream): void {
    if (this.#gatheredBytes === 0) return;
    const bytes = this.#gathered.slice(0, this.#gatheredBytes);
    this.#gatheredBytes = 0;
    if (this.#writesAs === "bytes" || this.#lastOffset === 0) {
      this.#write(stream, bytes);
      return;
    }
    this.#write(stream, bytes.subarray(0, this.#lastOffset));
    if (!stream.closed) this.#write(stream, bytes.subarray(this.#lastOffset));
  }

  #write(stream: Stream, bytes: Uint8Array): void {
    const { socket } = stream;
    socket.write(bytes);
    if (socket.writableLength <= this.#limits.unreadBytesMax) return;
    stream.closed = true; // What it has asked already is not looked at any more.
    socket.destroy();
  }

  #closeIdle(): void {
    const before = performance.now() - this.#limits.idleMs;
    for (const { socket, lastQueryMs, waiting } of this.#streams) {
      // A client that reads nothing keeps no connection by asking on.
      if (lastQueryMs < before && waiting === 0) socket.destroy();
    }
  }
}
