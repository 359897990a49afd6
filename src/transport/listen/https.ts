import type { Socket } from "node:net";
import { Http1Connection } from "./http1.ts";
import { Http2Connection } from "./http2/connection.ts";
import type { HttpConnection, HttpHandler, HttpLimits, HttpSocket } from "./http.ts";
import { Outbox } from "./outbox.ts";

export interface HttpsLimits extends HttpLimits {
  /** Bytes of answers that a client leaves unread before it is cut off. */
  readonly unreadBytesMax: number;
}

/** A connection whose handshake is done. */
export interface SecureSocket {
  /** In clear text. */
  readonly socket: Socket;
  readonly client: string;
  readonly serverName: string | null;
  /** What both agreed on by ALPN. */
  readonly protocol: string | null;
}

/** What is offered by ALPN, the preferred one first; a client without ALPN gets HTTP/1.1. */
export const HTTPS_PROTOCOLS: readonly string[] = ["h2", "http/1.1"];

/** How often connections are looked at that take too long. */
const SWEEP_MS = 1_000;
/** A client that does not close its side of an ended connection is cut off after this. */
const LINGER_MS = 2_000;

/** Longest wait at the end for answers to leave. */
const FLUSH_MS_MAX = 500;
const FLUSH_POLL_MS = 5;

/** Socket and protocol of one client. */
class Link implements HttpSocket {
  readonly client: string;
  readonly serverName: string | null;
  readonly http: HttpConnection;
  endedAtMs = 0;
  readonly #socket: Socket;
  readonly #unreadBytesMax: number;

  constructor(
    { socket, client, serverName, protocol }: SecureSocket,
    handler: HttpHandler,
    limits: HttpsLimits,
    out: Outbox,
  ) {
    this.#socket = socket;
    this.client = client;
    this.serverName = serverName;
    this.#unreadBytesMax = limits.unreadBytesMax;
    this.http = protocol === "h2"
      ? new Http2Connection(this, handler, limits, out)
      : new Http1Connection(this, handler, limits, out);
  }

  write(bytes: Uint8Array): void {
    const socket = this.#socket;
    if (socket.destroyed || this.endedAtMs > 0) return;
    socket.write(bytes);
    if (socket.writableLength > this.#unreadBytesMax) socket.destroy();
  }

  end(): void {
    if (this.endedAtMs > 0) return;
    this.endedAtMs = performance.now();
    this.#socket.end();
    this.#socket.resume(); // What still comes is read over, or the close would be a reset.
  }

  pause(): void {
    this.#socket.pause();
  }

  resume(): void {
    this.#socket.resume();
  }

  /** An answer is awaited, or has not left yet. */
  get isBusy(): boolean {
    return this.http.isWaiting || this.#socket.writableLength > 0;
  }

  destroy(): void {
    this.#socket.destroy();
  }
}

/** Serves HTTP/1.1 and HTTP/2 on connections that a TLS listener made. */
export class HttpsServer {
  readonly #handler: HttpHandler;
  readonly #limits: HttpsLimits;
  readonly #links = new Set<Link>();
  readonly #out = new Outbox();
  readonly #sweep: ReturnType<typeof setInterval>;
  #draining = false;

  constructor(handler: HttpHandler, limits: HttpsLimits) {
    this.#handler = handler;
    this.#limits = limits;
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
    const link = new Link(secure, this.#handler, this.#limits, this.#out);
    this.#links.add(link);
    socket.on("data", ({ buffer, byteOffset, length }: Uint8Array) => {
      // A plain view: `slice` of Node's kind shares memory in place of copying it.
      link.http.receive(new Uint8Array(buffer, byteOffset, length));
    });
    socket.on("end", () => link.http.onEnd());
    socket.on("error", () => socket.destroy()); // Resets are part of the network.
    socket.on("close", () => {
      this.#links.delete(link);
      link.http.onClose();
    });
  }

  /** Takes no more requests; those that wait are answered. */
  drain(): void {
    this.#draining = true;
    for (const link of this.#links) link.http.drain();
  }

  /** Closes every connection, once the last answers have left. */
  async close(): Promise<void> {
    this.drain();
    clearInterval(this.#sweep);
    const endsAtMs = performance.now() + FLUSH_MS_MAX;
    while ([...this.#links].some(({ isBusy }) => isBusy) && performance.now() < endsAtMs) {
      await new Promise((resolve) => setTimeout(resolve, FLUSH_POLL_MS));
    }
    for (const link of this.#links) link.destroy();
  }

  #tick(): void {
    const nowMs = performance.now();
    for (const link of this.#links) {
      if (link.endedAtMs === 0) link.http.tick(nowMs);
      else if (nowMs - link.endedAtMs > LINGER_MS) link.destroy();
    }
  }
}
