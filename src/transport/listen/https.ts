import { concat } from "../../bytes/mod.ts";
import type { Socket } from "node:net";
import { Http1Connection } from "./http1.ts";
import { Http2Connection } from "./http2/connection.ts";
import type { HttpConnection, HttpHandler, HttpLimits, HttpSocket } from "./http.ts";
import type { Account } from "./byte_budget.ts";
import { Ending, flushed } from "./ending.ts";
import type { Flow } from "./flow.ts";
import { Outbox } from "./outbox.ts";
import type { Sender } from "./sender.ts";
import { CHUNK_UNITS, type Reader } from "./read_queue.ts";
import { SharedBounds } from "./shared_bounds.ts";

export interface HttpsLimits extends HttpLimits {
  /** Bytes of answers that a client leaves unread before it is cut off. */
  readonly unreadBytesMax: number;
}

/** A connection whose handshake is done. */
export interface SecureSocket {
  /** In clear text. */
  readonly socket: Socket;
  readonly flow: Flow;
  readonly sender: Sender;
  readonly serverName: string | null;
  /** What both agreed on by ALPN. */
  readonly protocol: string | null;
}

/** What is offered by ALPN, the preferred one first; a client without ALPN gets HTTP/1.1. */
export const HTTPS_PROTOCOLS: readonly string[] = ["h2", "http/1.1"];

/** How often connections are looked at that take too long. */
const SWEEP_MS = 1_000;
/** Input that is read before the time is looked at: a dozen requests, or a hundred small frames. */
const SLICE_BYTES = 2_048;
const NO_BYTES = new Uint8Array(0);

/** Socket and protocol of one client. */
class Link implements HttpSocket, Reader {
  readonly client: string;
  readonly serverName: string | null;
  readonly http: HttpConnection;
  readonly #ending: Ending;
  readonly #socket: Socket;
  readonly #flow: Flow;
  readonly #sender: Sender;
  readonly #unreadBytesMax: number;
  readonly #bounds: SharedBounds;
  readonly #unfinished: Account;
  readonly #unread: Account;
  /** What came in and waits for its slice. */
  #ahead: Uint8Array = NO_BYTES;
  /** The protocol wants no more for now. */
  #isFull = false;
  #isReading = false;
  #toldUnfinished = 0;
  #toldUnsent = 0;

  constructor(
    { socket, flow, sender, serverName, protocol }: SecureSocket,
    handler: HttpHandler,
    limits: HttpsLimits,
    out: Outbox,
    bounds: SharedBounds,
  ) {
    this.#socket = socket;
    this.#flow = flow;
    this.#ending = new Ending(socket, flow);
    this.#sender = sender;
    this.client = sender.address;
    this.serverName = serverName;
    this.#unreadBytesMax = limits.unreadBytesMax;
    this.#bounds = bounds;
    const http = this.http = protocol === "h2"
      ? new Http2Connection(this, handler, limits, out)
      : new Http1Connection(this, handler, limits, out);
    const { network } = sender;
    const cut = () => this.destroy();
    const aheadBytes = () => this.#ahead.length;
    this.#unfinished = {
      network,
      cut,
      get heldBytes() {
        return http.unfinishedBytes + aheadBytes();
      },
    };
    this.#unread = {
      network,
      cut,
      get heldBytes() {
        return http.unsentBytes + socket.writableLength;
      },
    };
    bounds.unfinished.open(this.#unfinished);
    bounds.unread.open(this.#unread);
  }

  /** Takes what came in. */
  push({ buffer, byteOffset, length }: Uint8Array): void {
    const { reads } = this.#bounds;
    if (this.#ending.hasBegun) {
      reads.charge(CHUNK_UNITS);
      this.#ending.readOver(length);
      return;
    }
    // A plain view: `slice` of Node's kind shares memory in place of copying it.
    const chunk = new Uint8Array(buffer, byteOffset, length);
    if (this.#ahead.length === 0) this.#ahead = chunk;
    else this.#ahead = concat(this.#ahead, chunk);
    reads.take(this, CHUNK_UNITS);
    this.#tell();
  }

  readOn(): boolean {
    const { reads, overLimit } = this.#bounds;
    const nowMs = performance.now();
    this.#sender.touch(nowMs);
    const waitMs = overLimit.waitMs(this.#sender.network, nowMs);
    if (waitMs > 0) {
      reads.hold(this, waitMs);
      return false;
    }
    this.#isReading = true;
    let hasTime = true;
    while (this.#ahead.length > 0 && hasTime && !this.#isFull && !this.#ending.hasBegun) {
      const slice = this.#ahead.subarray(0, SLICE_BYTES);
      this.#ahead = this.#ahead.subarray(slice.length);
      hasTime = reads.spend(1 + this.http.receive(slice));
    }
    this.#isReading = false;
    if (this.#ending.hasBegun) this.#ahead = NO_BYTES;
    if (this.#ahead.length > 0) return !this.#isFull;
    this.#ahead = NO_BYTES; // The chunk goes.
    if (!this.#isFull) this.#flow.resume();
    this.#tell();
    return false;
  }

  write(bytes: Uint8Array): void {
    const socket = this.#socket;
    if (socket.destroyed || this.#ending.hasBegun) return;
    socket.write(bytes);
    if (socket.writableLength > this.#unreadBytesMax) socket.destroy();
    else if (socket.writableLength > 0) this.#bounds.unread.grew(bytes.length);
  }

  end(): void {
    if (this.#ending.hasBegun) return;
    this.#bounds.reads.leave(this);
    this.#ending.begin();
  }

  pause(): void {
    this.#flow.pause();
  }

  stopReading(): void {
    this.#isFull = true;
    this.#flow.pause();
  }

  goOnReading(): void {
    this.#isFull = false;
    if (!this.#isReading) this.#bounds.reads.ask(this);
  }

  overLimit(): void {
    this.#bounds.overLimit.note(this.#sender.network, performance.now());
  }

  /** An answer is awaited, or has not left yet. */
  get isBusy(): boolean {
    return this.http.isWaiting || this.#socket.writableLength > 0;
  }

  /** Looks what takes too long; to be called about once a second. */
  tick(nowMs: number): void {
    if (this.#ending.hasBegun) this.#ending.tick(nowMs);
    else this.http.tick(nowMs);
    this.#tell();
  }

  /** The socket is gone. */
  onClose(): void {
    this.#ahead = NO_BYTES;
    const { reads, unfinished, unread } = this.#bounds;
    reads.leave(this);
    unfinished.close(this.#unfinished);
    unread.close(this.#unread);
    this.http.onClose();
  }

  destroy(): void {
    this.#socket.destroy();
  }

  /** Tells what is held more than before. */
  #tell(): void {
    const { unfinished, unread } = this.#bounds;
    const { heldBytes } = this.#unfinished;
    const { unsentBytes } = this.http;
    if (heldBytes > this.#toldUnfinished) unfinished.grew(heldBytes - this.#toldUnfinished);
    if (unsentBytes > this.#toldUnsent) unread.grew(unsentBytes - this.#toldUnsent);
    this.#toldUnfinished = heldBytes;
    this.#toldUnsent = unsentBytes;
  }
}

/** Serves HTTP/1.1 and HTTP/2 on connections that a TLS listener made. */
export class HttpsServer {
  readonly #handler: HttpHandler;
  readonly #limits: HttpsLimits;
  readonly #bounds: SharedBounds;
  readonly #links = new Set<Link>();
  readonly #out = new Outbox();
  readonly #sweep: ReturnType<typeof setInterval>;
  #draining = false;

  constructor(
    handler: HttpHandler,
    limits: HttpsLimits,
    bounds: SharedBounds = new SharedBounds(),
  ) {
    this.#handler = handler;
    this.#limits = limits;
    this.#bounds = bounds;
    this.#sweep = setInterval(() => this.#tick(), SWEEP_MS);
    Deno.unrefTimer(Number(this.#sweep));
  }

  /** Connections at this moment. */
  get connections(): number {
    return this.#links.size;
  }

  /** Serves a connection until it ends. */
  take(secure: SecureSocket): void {
    const { socket } = secure;
    if (this.#draining) {
      socket.destroy();
      return;
    }
    const link = new Link(secure, this.#handler, this.#limits, this.#out, this.#bounds);
    this.#links.add(link);
    socket.on("data", (chunk: Uint8Array) => link.push(chunk));
    socket.on("end", () => link.http.onEnd());
    socket.on("error", () => socket.destroy()); // Resets are part of the network.
    socket.on("close", () => {
      this.#links.delete(link);
      link.onClose();
    });
  }

  /** Requests go on until `drain`, which a client is told of in good time: HTTP has a way to. */
  retire(): void {}

  /** Takes no more requests; those that wait are answered. */
  drain(): void {
    this.#draining = true;
    for (const link of this.#links) link.http.drain();
  }

  /** Closes every connection, once the last answers have left. */
  async close(): Promise<void> {
    this.drain();
    clearInterval(this.#sweep);
    await flushed(() => [...this.#links].some(({ isBusy }) => isBusy));
    for (const link of this.#links) link.destroy();
  }

  #tick(): void {
    const nowMs = performance.now();
    for (const link of this.#links) link.tick(nowMs);
  }
}
