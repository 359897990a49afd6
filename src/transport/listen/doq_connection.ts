import { getU16, setU16 } from "../../bytes/mod.ts";
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
import type { StreamGate } from "./stream_server.ts";

/** Why a connection is closed (RFC 9250 §4.3). */
export const DoqError = {
  NoError: 0x0,
  ProtocolError: 0x2,
  ExcessiveLoad: 0x4,
} as const;
export type DoqError = typeof DoqError[keyof typeof DoqError];

/** A connection after its handshake. */
export interface DoqClient {
  /** The client's address as text; IPv4-mapped ones as IPv4. */
  readonly client: string;
  /** The server name that the client asked for; `null` without one. */
  readonly serverName: string | null;
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
  /** A whole query with the ID 0; `message` is the handler's. */
  onMessage(exchange: DoqExchange, message: Uint8Array): void;
  /** A handshake failed, took too long, or was the oldest of too many. */
  onHandshakeFailure(): void;
}

/** Bytes of the length before a message (RFC 9250 §4.2). */
const LENGTH_BYTES = 2;

class Exchange implements DoqExchange {
  readonly startedMs: number;
  /** The query is read and its answer not yet written: nothing waits for the client. */
  isOurs = false;
  #ended = false;

  constructor(
    readonly from: Connection,
    private readonly stream: Deno.QuicBidirectionalStream,
    nowMs: number,
  ) {
    this.startedMs = nowMs;
  }

  send(message: Uint8Array, offset: number, length: number): void {
    if (this.#ended) return;
    this.#ended = true;
    this.isOurs = false;
    const frame = new Uint8Array(LENGTH_BYTES + length);
    setU16(frame, 0, length);
    frame.set(message.subarray(offset, offset + length), LENGTH_BYTES);
    void this.#write(frame);
  }

  cancel(): void {
    if (this.#ended) return;
    this.#ended = true;
    void this.#abort();
  }

  async #write(frame: Uint8Array): Promise<void> {
    try {
      const writer = this.stream.writable.getWriter();
      await writer.write(frame);
      await writer.close();
    } catch {
      // The client has gone, or wants no answer any more.
    }
    this.from.forget(this);
  }

  async #abort(): Promise<void> {
    // Fails where the client has reset the stream itself.
    await Promise.allSettled([this.stream.readable.cancel(), this.stream.writable.abort()]);
    this.from.forget(this);
  }

  /** Reads the one message of the stream; `null` if the client broke the rules. */
  async read(): Promise<Uint8Array | null> {
    let bytes: Uint8Array = new Uint8Array(0);
    const reader = this.stream.readable.getReader();
    try {
      for (;;) {
        const { value, done } = await reader.read();
        if (done) break;
        bytes = bytes.length === 0 ? value : joined(bytes, value);
        if (bytes.length < LENGTH_BYTES) continue;
        // More than one message, or more than one can have.
        if (bytes.length > LENGTH_BYTES + getU16(bytes, 0)) return null;
      }
    } finally {
      reader.releaseLock();
    }
    // The end came before the message was whole, or before there was one.
    if (bytes.length < LENGTH_BYTES || bytes.length < LENGTH_BYTES + getU16(bytes, 0)) return null;
    return bytes.subarray(LENGTH_BYTES);
  }
}

/** One connection and the streams that are open on it. */
export class Connection implements DoqClient {
  readonly serverName: string | null;
  readonly #exchanges = new Set<Exchange>();
  #lastQueryMs: number;
  #draining = false;
  #closed = false;
  /** When the last stream ended. */
  endedMs = 0;

  constructor(
    private readonly conn: Deno.QuicConn,
    readonly client: string,
    private readonly handler: DoqHandler,
  ) {
    const { serverName } = conn;
    this.serverName = serverName === undefined || serverName === "" ? null : serverName;
    this.#lastQueryMs = performance.now();
  }

  /** Queries that are being read, wait, or are being answered. */
  get open(): number {
    return this.#exchanges.size;
  }

  /** Takes one stream after the other until the connection ends. */
  async run(): Promise<void> {
    this.handler.onOpen(this);
    try {
      for await (const stream of this.conn.incomingBidirectionalStreams) {
        if (this.#draining) continue; // Whoever asks now, asks again elsewhere.
        const exchange = new Exchange(this, stream, performance.now());
        this.#exchanges.add(exchange);
        void this.#serve(exchange);
      }
    } catch {
      // The connection was lost, or was idle for too long.
    }
    this.close(DoqError.NoError);
  }

  async #serve(exchange: Exchange): Promise<void> {
    let message: Uint8Array | null;
    try {
      message = await exchange.read();
    } catch {
      exchange.cancel(); // The client has reset the stream, or has gone.
      return;
    }
    if (message === null || !isQuery(message)) {
      this.close(DoqError.ProtocolError);
      return;
    }
    if (this.#closed) return;
    this.#lastQueryMs = performance.now();
    exchange.isOurs = true;
    this.handler.onMessage(exchange, message);
  }

  /** Called by a stream of this connection that has ended. */
  forget(exchange: Exchange): void {
    this.#exchanges.delete(exchange);
    this.endedMs = performance.now();
  }

  /** Closes a connection that asks nothing, or whose client keeps a stream from its end. */
  sweep(beforeMs: number): void {
    if (this.#exchanges.size === 0 && this.#lastQueryMs < beforeMs) this.close(DoqError.NoError);
    for (const { isOurs, startedMs } of this.#exchanges) {
      if (!isOurs && startedMs < beforeMs) this.close(DoqError.ExcessiveLoad);
    }
  }

  /** Takes no more queries; those that wait are answered. */
  drain(): void {
    this.#draining = true;
  }

  close(code: DoqError): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#exchanges.clear();
    this.conn.close({ closeCode: code, reason: "" });
  }
}

function joined(a: Uint8Array, b: Uint8Array): Uint8Array {
  const both = new Uint8Array(a.length + b.length);
  both.set(a);
  both.set(b, a.length);
  return both;
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
