import { getU16 } from "../../bytes/mod.ts";
import {
  EdnsOption,
  findOption,
  HEADER_BYTES,
  OptionView,
  OptRead,
  OptView,
  QR_BIT,
  readOpt,
  skipName,
} from "../../dns/mod.ts";
import {
  DoqError,
  INTO_ROOM,
  LENGTH_BYTES,
  newRoom,
  type ReadAccount,
  readMessage,
  ROOM_BYTES,
  writeFrame,
} from "../quic_message.ts";
import type { Account } from "./byte_budget.ts";
import type { Sender } from "./sender.ts";
import { CHUNK_UNITS, QUIC_STREAM_UNITS, type Reader } from "./read_queue.ts";
import type { SharedBounds } from "./shared_bounds.ts";
import type { StreamGate } from "./stream_server.ts";

/** A connection after its handshake. */
export interface DoqClient {
  /** The client's address as text; IPv4-mapped ones as IPv4. */
  readonly client: string;
  /** The server name that the client asked for; `null` without one. */
  readonly serverName: string | null;
  /** The query just handed on was over its client's limit. */
  overLimit(): void;
}

/** One query and its answer: a stream of its own. End it by one call, now or later. */
export interface DoqExchange {
  readonly from: DoqClient;
  /** Sends the answer and ends the stream. */
  send(message: Uint8Array, offset: number, length: number): void;
  /** There will be no answer. */
  cancel(): void;
}

export interface DoqHandler extends StreamGate {
  onOpen(from: DoqClient): void;
  /** A whole query with the ID 0; `message` holds it until the exchange ends. */
  onMessage(exchange: DoqExchange, message: Uint8Array): void;
  /** A handshake failed, took too long, or was the oldest of too many. */
  onHandshakeFailure(): void;
}

/** Rooms kept for queries to come; an answer goes out in its query's room where it fits. */
const ROOMS_MAX = 64;
const rooms: Uint8Array<ArrayBuffer>[] = [];

/**
 * What a stream is taken to hold until its query is whole, beside what is read of it: the runtime
 * keeps what comes in behind a gap, and does not say how much that is.
 */
const STREAM_BYTES = 16 * 1024;

class Exchange implements DoqExchange, ReadAccount {
  /** The query is read and its answer not yet written: nothing waits for the client. */
  isOurs = false;
  /** The answer while the client takes it. */
  answerBytes = 0;
  /** Its lock is never released: that would make two errors, and take longer than all of the rest. */
  readonly #reader: ReadableStreamBYOBReader;
  /** Where the query comes in and the answer goes out; `null` while the runtime has it. */
  #room: Uint8Array<ArrayBuffer> | null = null;
  #roomBytes = ROOM_BYTES;
  #ended = false;

  constructor(
    readonly from: Connection,
    private readonly stream: Deno.QuicBidirectionalStream,
    readonly startedMs: number,
    private readonly bounds: SharedBounds,
  ) {
    this.#reader = stream.readable.getReader(INTO_ROOM);
  }

  get unfinishedBytes(): number {
    return this.isOurs || this.#ended ? 0 : STREAM_BYTES + this.#roomBytes;
  }

  send(message: Uint8Array, offset: number, length: number): void {
    if (this.#ended) return;
    this.#ended = true;
    this.isOurs = false;
    const frameBytes = this.answerBytes = LENGTH_BYTES + length;
    let room = this.#room;
    if (room === null || room.length < frameBytes) room = new Uint8Array(frameBytes);
    this.#room = room;
    writeFrame(room, message.subarray(offset, offset + length));
    void this.#write(room.subarray(0, frameBytes));
  }

  cancel(): void {
    if (this.#ended) return;
    this.#ended = true;
    void this.release();
  }

  async #write(frame: Uint8Array): Promise<void> {
    try {
      const writer = this.stream.writable.getWriter();
      writer.write(frame).catch(ignore); // Where it fails, so does the end.
      await writer.close();
      this.#leaveRoom();
    } catch {
      // The client has gone, or wants no answer any more.
    }
    this.from.forget(this);
  }

  /** Lets go of the stream and of what the runtime holds for it. */
  async release(): Promise<void> {
    const { writable } = this.stream;
    // Fails where the client has reset the stream itself.
    await Promise.allSettled([
      this.#reader.cancel(),
      writable.locked ? null : writable.abort(),
    ]);
    this.from.forget(this);
  }

  /** Reads the one message of the stream; `null` if the client broke the rules, or there is no use. */
  async read(): Promise<Uint8Array | null> {
    const message = await readMessage(this.#reader, rooms.pop() ?? newRoom(), this);
    if (message !== null) this.#room = new Uint8Array(message.buffer);
    return message;
  }

  onRead(): void {
    this.bounds.reads.charge(CHUNK_UNITS);
  }

  onGrown(roomBytes: number, byBytes: number): void {
    this.bounds.unfinished.grew(byBytes);
    this.#roomBytes = roomBytes;
  }

  /** Leaves the room to a query to come. */
  #leaveRoom(): void {
    const room = this.#room;
    this.#room = null;
    if (room?.length === ROOM_BYTES && rooms.length < ROOMS_MAX) rooms.push(room);
  }
}

function ignore(): void {}

/** One connection and the streams that are open on it. */
export class Connection implements DoqClient, Reader {
  readonly serverName: string | null;
  readonly #conn: Deno.QuicConn;
  readonly #sender: Sender;
  readonly #handler: DoqHandler;
  readonly #bounds: SharedBounds;
  readonly #exchanges = new Set<Exchange>();
  readonly #unfinished: Account;
  readonly #unread: Account;
  /** The slice asked for last has come. */
  #hasSlice = false;
  /** Waits for it. */
  #onSlice: (() => void) | null = null;
  #lastQueryMs: number;
  #draining = false;
  #closed = false;
  /** When the last stream ended. */
  endedMs = 0;

  constructor(conn: Deno.QuicConn, sender: Sender, handler: DoqHandler, bounds: SharedBounds) {
    const { serverName } = conn;
    this.#conn = conn;
    this.#sender = sender;
    this.#handler = handler;
    this.#bounds = bounds;
    this.serverName = serverName === undefined || serverName === "" ? null : serverName;
    this.#lastQueryMs = performance.now();
    const { network } = sender;
    const cut = () => this.close(DoqError.ExcessiveLoad);
    const sum = (bytesOf: (exchange: Exchange) => number) =>
      [...this.#exchanges].reduce((bytes, exchange) => bytes + bytesOf(exchange), 0);
    this.#unfinished = {
      network,
      cut,
      get heldBytes() {
        return sum(({ unfinishedBytes }) => unfinishedBytes);
      },
    };
    this.#unread = {
      network,
      cut,
      get heldBytes() {
        return sum(({ answerBytes }) => answerBytes);
      },
    };
  }

  get client(): string {
    return this.#sender.address;
  }

  /** Queries that are being read, wait, or are being answered. */
  get open(): number {
    return this.#exchanges.size;
  }

  /** Takes one stream after the other until the connection ends. */
  async run(): Promise<void> {
    const { reads, unfinished, unread } = this.#bounds;
    unfinished.open(this.#unfinished);
    unread.open(this.#unread);
    this.#handler.onOpen(this);
    try {
      const streams = this.#conn.incomingBidirectionalStreams.getReader();
      for (;;) {
        const { value: stream, done } = await streams.read();
        if (done) break;
        if (!this.#takesSlice()) await this.#slice();
        if (this.#draining || this.#closed) continue; // Whoever asks now, asks again elsewhere.
        const exchange = new Exchange(this, stream, performance.now(), this.#bounds);
        this.#exchanges.add(exchange);
        unfinished.grew(exchange.unfinishedBytes);
        void this.#serve(exchange);
      }
    } catch {
      // The connection was lost, or was idle for too long.
    }
    this.close(DoqError.NoError);
    reads.leave(this);
    unfinished.close(this.#unfinished);
    unread.close(this.#unread);
  }

  /** Asks for a slice to read another stream in; says whether that is now. */
  #takesSlice(): boolean {
    this.#hasSlice = false;
    this.#bounds.reads.take(this, QUIC_STREAM_UNITS);
    return this.#hasSlice;
  }

  /** Resolves when the slice that was asked for has come. */
  #slice(): Promise<void> {
    return new Promise((resolve) => this.#onSlice = resolve);
  }

  /** Called in the connection's slice. */
  readOn(): boolean {
    const { reads, overLimit } = this.#bounds;
    const waitMs = overLimit.waitMs(this.#sender.network, performance.now());
    if (waitMs > 0 && !this.#closed) reads.hold(this, waitMs);
    else this.#beginSlice();
    return false;
  }

  #beginSlice(): void {
    this.#hasSlice = true;
    this.#onSlice?.();
  }

  /** Streams that are not taken wait with the runtime, up to as many as a client may open. */
  pause(): void {}

  overLimit(): void {
    this.#bounds.overLimit.note(this.#sender.network, this.#lastQueryMs);
  }

  async #serve(exchange: Exchange): Promise<void> {
    let message: Uint8Array | null;
    try {
      message = await exchange.read();
    } catch {
      exchange.cancel(); // The client has reset the stream, or has gone.
      return;
    }
    if (this.#closed) return;
    if (message === null || !isQuery(message)) {
      this.close(DoqError.ProtocolError);
      return;
    }
    this.#lastQueryMs = performance.now();
    this.#sender.touch(this.#lastQueryMs);
    exchange.isOurs = true;
    this.#handler.onMessage(exchange, message);
    if (exchange.answerBytes > 0) this.#bounds.unread.grew(exchange.answerBytes);
  }

  /** Called by a stream of this connection that has ended. */
  forget(exchange: Exchange): void {
    this.#exchanges.delete(exchange);
    this.endedMs = performance.now();
  }

  /**
   * Closes a connection that has asked nothing since `idleMs`, or whose client has kept a stream from
   * its end since `requestMs`, however its bytes come.
   */
  sweep(idleMs: number, requestMs: number): void {
    if (this.#exchanges.size === 0 && this.#lastQueryMs < idleMs) this.close(DoqError.NoError);
    for (const { isOurs, startedMs } of this.#exchanges) {
      if (!isOurs && startedMs < requestMs) this.close(DoqError.ExcessiveLoad);
    }
  }

  /** Takes no more queries; those that wait are answered. */
  drain(): void {
    this.#draining = true;
  }

  close(code: DoqError): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#conn.close({ closeCode: code, reason: "" });
    // Until each of its streams is let go of, the runtime keeps all of the connection.
    for (const exchange of this.#exchanges) void exchange.release();
    this.#exchanges.clear();
    this.#beginSlice();
  }
}

const opt = new OptView();
const option = new OptionView();

/**
 * Says whether a message may be sent over QUIC: it is a query, its ID is 0 (RFC 9250 §4.2.1), and it
 * has no edns-tcp-keepalive option (§5.5.2).
 */
function isQuery(message: Uint8Array): boolean {
  if (message.length < HEADER_BYTES || getU16(message, 0) !== 0) return false;
  if ((getU16(message, 2) & QR_BIT) !== 0) return false;
  const additional = getU16(message, 10);
  // Records before it: whatever it is, the pipeline says what is wrong with it.
  if (additional === 0 || getU16(message, 6) !== 0 || getU16(message, 8) !== 0) return true;
  let at = HEADER_BYTES;
  for (let i = getU16(message, 4); i > 0 && at >= 0; i--) {
    at = skipName(message, at, message.length);
    if (at >= 0) at += 4;
  }
  if (at < 0) return true;
  return readOpt(message, at, message.length, additional, opt) !== OptRead.Found ||
    !findOption(message, opt, EdnsOption.TcpKeepalive, option);
}
