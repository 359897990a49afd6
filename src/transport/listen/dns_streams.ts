import type { Socket } from "node:net";
import { setImmediate } from "node:timers";
import { setU16 } from "../../bytes/mod.ts";
import { FrameReader } from "../frames.ts";
import type { Account } from "./byte_budget.ts";
import { Ending, flushed } from "./ending.ts";
import type { Flow } from "./flow.ts";
import { CHUNK_UNITS, type Reader, UNIT_BYTES } from "./read_queue.ts";
import type { SharedBounds } from "./shared_bounds.ts";
import { type Sender, UnreadAccount } from "./sender.ts";

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
  /** The query just handed on was over its client's limit. */
  overLimit(): void;
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

/**
 * How long nothing has to come in before a connection ends. The runtime looks at its sockets while it
 * waits for a timer, and hardly ever between two turns.
 */
const REST_MS = 1;
/** How often that is waited for; whoever leaves no pause is found at no rest. */
const RESTS_MAX = 8;
/** How often idle connections are looked for. */
const SWEEP_MS = 1_000;
/** Answers of one read are put together up to this size. */
const GATHER_BYTES = 64 * 1024 + 2;

class Stream implements DnsStream, Reader, Account {
  readonly frames = new FrameReader();
  readonly unread: UnreadAccount;
  waiting = 0;
  lastQueryMs: number;
  /** What `frames` held when that was last told. */
  toldBytes = 0;
  /** There may be whole messages that are not read. */
  isBehind = false;
  /** So many queries wait that no more are read. */
  isFull = false;
  ended = false;
  closed = false;
  /** It ends once nothing of it waits, with the system neither. */
  isLast = false;
  readonly ending: Ending;
  /** Pieces of input so far. */
  chunks = 0;
  restsLeft = RESTS_MAX;
  isWatched = false;
  /** Answers that are to leave together with the end. */
  kept: Uint8Array[] = [];
  keptBytes = 0;

  constructor(
    readonly streams: DnsStreams,
    readonly socket: Socket,
    readonly flow: Flow,
    readonly sender: Sender,
    readonly serverName: string | null,
    nowMs: number,
  ) {
    this.lastQueryMs = nowMs;
    this.unread = new UnreadAccount(socket, sender.network);
    this.ending = new Ending(socket, flow);
  }

  get client(): string {
    return this.sender.address;
  }

  get network(): string {
    return this.sender.network;
  }

  get heldBytes(): number {
    return this.frames.pendingBytes;
  }

  /** Something has not left yet. */
  get isBusy(): boolean {
    const { isWatched, ending, socket } = this;
    return isWatched || socket.writableLength > 0 || (ending.hasBegun && !socket.writableFinished);
  }

  send(message: Uint8Array, offset: number, length: number): void {
    if (!this.closed && !this.ending.hasBegun) this.streams.send(this, message, offset, length);
  }

  settled(): void {
    this.waiting--;
    if (!this.closed) this.streams.afterSettled(this);
  }

  overLimit(): void {
    this.streams.noteOverLimit(this);
  }

  readOn(): boolean {
    return this.streams.readOn(this);
  }

  pause(): void {
    this.flow.pause();
  }

  cut(): void {
    this.closed = true; // What it has asked already is not looked at any more.
    this.socket.destroy();
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
  readonly #bounds: SharedBounds;
  readonly #streams = new Set<Stream>();
  readonly #gathered = new Uint8Array(GATHER_BYTES);
  #gatheredBytes = 0;
  /** Where the last of the gathered answers begins. */
  #lastOffset = 0;
  /** The connection whose queries are being read: its answers are gathered. */
  #reading: Stream | null = null;
  readonly #sweep: ReturnType<typeof setInterval>;
  #isRetiring = false;

  constructor(
    handler: DnsStreamHandler,
    limits: DnsStreamLimits,
    writesAs: WritesAs,
    bounds: SharedBounds,
  ) {
    this.#handler = handler;
    this.#limits = limits;
    this.#writesAs = writesAs;
    this.#bounds = bounds;
    this.#sweep = setInterval(() => this.#closeIdle(), SWEEP_MS);
    Deno.unrefTimer(Number(this.#sweep));
  }

  /** Takes over a connection. */
  add(socket: Socket, flow: Flow, sender: Sender, serverName: string | null): void {
    const stream = new Stream(this, socket, flow, sender, serverName, performance.now());
    const { reads, unfinished, unread } = this.#bounds;
    this.#streams.add(stream);
    unfinished.open(stream);
    unread.open(stream.unread);
    // Without it, a socket writes one by one what had to wait for a slow client.
    if (this.#writesAs === "records") Object.defineProperty(socket, "_writev", { value: null });
    this.#handler.onOpen(stream);
    socket.on("data", (chunk: Uint8Array) => {
      stream.chunks++;
      if (stream.ending.hasBegun) {
        reads.charge(CHUNK_UNITS);
        stream.ending.readOver(chunk.length);
        return;
      }
      stream.frames.push(chunk);
      stream.isBehind = true; // Until its slice, which may be now.
      reads.take(stream, CHUNK_UNITS + chunk.length / UNIT_BYTES);
      stream.frames.keep();
      this.#tellUnfinished(stream);
    });
    socket.on("end", () => {
      stream.ended = true;
      this.#endIfDone(stream);
    });
    socket.on("close", () => {
      stream.closed = true;
      this.#streams.delete(stream);
      reads.leave(stream);
      unfinished.close(stream);
      unread.close(stream.unread);
    });
  }

  /**
   * Ends each connection behind the answers to its next queries: what a client has sent when it hears
   * of the end would be lost, and with the answers it hears of it before it sends more.
   */
  retire(): void {
    this.#isRetiring = true;
    for (const stream of this.#streams) stream.isLast = stream.waiting > 0;
  }

  /** Ends each connection behind the answers to what has come in. */
  drain(): void {
    this.#isRetiring = true;
    for (const stream of this.#streams) {
      stream.isLast = true;
      this.#endIfDone(stream);
    }
  }

  /** Closes every connection, once the last answers have left. */
  async close(): Promise<void> {
    this.drain();
    await flushed(() => [...this.#streams].some(({ isBusy }) => isBusy));
    clearInterval(this.#sweep);
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
    if (this.#reading === stream) return; // Its answers are gathered; see `readOn`.
    if (stream.isFull) {
      stream.isFull = false;
      stream.isBehind = true;
      this.#bounds.reads.ask(stream);
    }
    this.#endIfDone(stream);
  }

  /** Called by a connection of these. */
  noteOverLimit({ network, lastQueryMs }: Stream): void {
    this.#bounds.overLimit.note(network, lastQueryMs);
  }

  /** Called in the slice of a connection: hands whole messages on, until as many wait as may. */
  readOn(stream: Stream): boolean {
    const { flow, frames } = stream;
    const { reads, overLimit } = this.#bounds;
    if (stream.closed || stream.isFull || stream.ending.hasBegun) return false;
    const nowMs = performance.now();
    stream.sender.touch(nowMs);
    const waitMs = overLimit.waitMs(stream.network, nowMs);
    stream.isBehind = waitMs > 0;
    if (stream.isBehind) {
      reads.hold(stream, waitMs);
      return false;
    }
    this.#reading = stream;
    for (let message = frames.next(); message !== null; message = frames.next()) {
      stream.lastQueryMs = nowMs;
      // Counted first: it may be settled during the call.
      stream.waiting++;
      if (!this.#handler.onMessage(stream, message)) stream.waiting--;
      if (this.#isRetiring) stream.isLast = true;
      if (stream.closed) break;
      stream.isFull = stream.waiting >= this.#limits.queriesMax;
      stream.isBehind = !reads.spend(1);
      if (stream.isFull || stream.isBehind) break;
    }
    this.#flush(stream);
    this.#reading = null;
    if (stream.isFull) flow.pause();
    else if (!stream.isBehind) flow.resume();
    this.#endIfDone(stream);
    return stream.isBehind && !stream.isFull;
  }

  #endIfDone(stream: Stream): void {
    const { waiting, isBehind, isFull, ended, isLast } = stream;
    if (waiting > 0 || isBehind || isFull) return;
    if (ended) this.#end(stream);
    else if (isLast) this.#endAtRest(stream);
  }

  /** Ends a connection once nothing more comes in; what does is answered first. */
  #endAtRest(stream: Stream): void {
    if (stream.isWatched || stream.closed || stream.ending.hasBegun) return;
    stream.isWatched = true;
    const { chunks } = stream;
    const look = () => {
      stream.isWatched = false;
      if (stream.closed) return;
      const { waiting, isBehind, isFull } = stream;
      if (waiting > 0 || isBehind || isFull) this.#sendKept(stream); // It may take long.
      else if (stream.chunks === chunks || stream.restsLeft-- === 0) this.#end(stream);
      else this.#endAtRest(stream);
    };
    setTimeout(() => setImmediate(look), REST_MS);
  }

  #end(stream: Stream): void {
    this.#sendKept(stream);
    stream.ending.begin();
  }

  #tellUnfinished(stream: Stream): void {
    const { heldBytes, toldBytes } = stream;
    stream.toldBytes = heldBytes;
    if (heldBytes > toldBytes) this.#bounds.unfinished.grew(heldBytes - toldBytes);
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

  /** The last answers leave together with the end, so that nobody asks on between them. */
  #write(stream: Stream, bytes: Uint8Array): void {
    if (!stream.isLast || stream.keptBytes + bytes.length > GATHER_BYTES) {
      this.#sendKept(stream);
      this.#send(stream, bytes);
      return;
    }
    stream.kept.push(bytes);
    stream.keptBytes += bytes.length;
    this.#endAtRest(stream);
  }

  #sendKept(stream: Stream): void {
    stream.keptBytes = 0;
    for (const bytes of stream.kept.splice(0)) if (!stream.closed) this.#send(stream, bytes);
  }

  #send(stream: Stream, bytes: Uint8Array): void {
    const { socket } = stream;
    socket.write(bytes);
    const { writableLength } = socket;
    if (writableLength > this.#limits.unreadBytesMax) stream.cut();
    else if (writableLength > 0) this.#bounds.unread.grew(bytes.length);
  }

  #closeIdle(): void {
    const nowMs = performance.now();
    const before = nowMs - this.#limits.idleMs;
    for (const { socket, lastQueryMs, waiting, ending } of this.#streams) {
      ending.tick(nowMs);
      // A client that reads nothing keeps no connection by asking on.
      if (lastQueryMs < before && waiting === 0) socket.destroy();
    }
  }
}
