import type { Socket } from "node:net";
import { Buffer } from "node:buffer";
import {
  createSecureContext,
  type SecureContext,
  TLSSocket,
  type TLSSocketOptions,
} from "node:tls";
import { Flow } from "./flow.ts";
import type { Sender } from "./sender.ts";
import { HANDSHAKE_UNITS, type Reader } from "./read_turns.ts";
import type { SharedBounds } from "./shared_bounds.ts";
import { type StreamGate, type StreamLimits, StreamServer } from "./stream_server.ts";

/**
 * What a listener shows to clients: PEM, the certificate with its chain, and its private key.
 * Whoever makes one has checked that they can be used; with others handshakes fail.
 */
export interface TlsIdentity {
  readonly cert: Uint8Array;
  readonly key: Uint8Array;
}

export interface TlsLimits extends StreamLimits {
  /** A handshake that takes longer is given up. */
  readonly handshakeMs: number;
  /**
   * Handshakes under way at a time. One more ends the oldest: an honest one takes milliseconds, so
   * whoever holds handshakes open is the first to go.
   */
  readonly handshakesMax: number;
}

/** A connection after its handshake. */
export interface TlsConnection {
  /** In clear text; errors of it are handled. */
  readonly socket: Socket;
  readonly flow: Flow;
  readonly sender: Sender;
  /** The server name that the client asked for; `null` without one. */
  readonly serverName: string | null;
  /** The protocol that both agreed on (ALPN); `null` where the client named none. */
  readonly protocol: string | null;
}

export interface TlsHandler extends StreamGate {
  /** A handshake failed, took too long, or was the oldest of too many. */
  onHandshakeFailure(): void;
}

/** RFC 8996: nothing below TLS 1.2; RFC 7858 and RFC 9113 ask for no more than that. */
const VERSION_MIN = "TLSv1.2";

/** Takes TLS connections on a TCP socket: handshakes within the limits, then the handler's. */
export class TlsListener extends StreamServer {
  readonly #handler: TlsHandler;
  readonly #limits: TlsLimits;
  readonly #onSecure: (connection: TlsConnection) => void;
  readonly #protocols: string[];
  #context: SecureContext | null;
  /** Sockets in a handshake, the oldest first; and those that wait for their turn to begin one. */
  readonly #handshakes = new Set<Socket>();

  /**
   * `identity` may be `null` as long as there is none: connections are closed at once until
   * `renew`. `protocols` are offered by ALPN; a client that names none of them but others is
   * refused, one that names none at all is taken (RFC 7301 §3.2). `onSecure` takes a connection
   * whose handshake is done, and listens to its `data`, `end` and `close`.
   */
  constructor(
    identity: TlsIdentity | null,
    protocols: readonly string[],
    handler: TlsHandler,
    limits: TlsLimits,
    bounds: SharedBounds,
    onSecure: (connection: TlsConnection) => void,
  ) {
    super(handler, limits, bounds, (raw, sender) => this.#enter(raw, sender));
    this.#context = identity === null ? null : contextOf(identity);
    this.#protocols = [...protocols];
    this.#handler = handler;
    this.#limits = limits;
    this.#onSecure = onSecure;
  }

  /** Handshakes under way. */
  get handshakes(): number {
    return this.#handshakes.size;
  }

  /** Shows another certificate in the handshakes to come; connections that stand stay. */
  renew(identity: TlsIdentity): void {
    this.#context = contextOf(identity);
  }

  /** Takes no more connections and ends handshakes; connections that stand are the handler's. */
  override close(): void {
    super.close();
    for (const socket of this.#handshakes) socket.destroy();
  }

  /** Has a handshake begin in its turn: it takes the processor for as long as hundreds of queries. */
  #enter(raw: Socket, sender: Sender): void {
    if (this.#context === null) {
      this.#handler.onHandshakeFailure();
      raw.destroy();
      return;
    }
    raw.pause(); // What the client says waits with the system.
    this.#addHandshake(raw);
    const { turns } = this.bounds;
    const beginning: Reader = {
      readOn: () => {
        raw.off("close", onGone);
        this.#handshakes.delete(raw);
        turns.spend(HANDSHAKE_UNITS);
        this.#shake(raw, sender);
        return false;
      },
      pause: () => {},
    };
    const onGone = () => {
      turns.leave(beginning);
      this.#handshakes.delete(raw);
      this.#handler.onHandshakeFailure();
    };
    raw.on("close", onGone);
    turns.take(beginning, 0);
  }

  #addHandshake(socket: Socket): void {
    const handshakes = this.#handshakes;
    if (handshakes.size >= this.#limits.handshakesMax) {
      for (const oldest of handshakes) {
        oldest.destroy();
        handshakes.delete(oldest);
        break;
      }
    }
    handshakes.add(socket);
  }

  #shake(raw: Socket, sender: Sender): void {
    const context = this.#context;
    if (context === null || raw.destroyed) return;
    const options: TLSSocketOptions & { allowHalfOpen: boolean } = {
      isServer: true,
      secureContext: context,
      ALPNProtocols: this.#protocols,
      allowHalfOpen: true,
    };
    const socket = new TLSSocket(raw, options);
    const handshakes = this.#handshakes;
    let isShaking = true;
    this.#addHandshake(socket);
    const timer = setTimeout(() => socket.destroy(), this.#limits.handshakeMs);
    const end = () => {
      clearTimeout(timer);
      handshakes.delete(socket);
      isShaking = false;
    };
    // Of the network and of whoever is on the other side: `close` follows.
    socket.on("error", () => socket.destroy());
    socket.once("end", () => {
      if (isShaking) socket.destroy(); // Given up; a reset looks like that as well.
    });
    socket.on("close", () => {
      if (isShaking) {
        end();
        this.#handler.onHandshakeFailure();
      }
      raw.destroy();
    });
    socket.once("secure", () => {
      if (!isShaking || socket.destroyed) return;
      end();
      const { servername, alpnProtocol } = socket as { servername?: unknown } & TLSSocket;
      this.#onSecure({
        socket,
        flow: new Flow(socket, raw),
        sender,
        serverName: typeof servername === "string" && servername !== "" ? servername : null,
        protocol: typeof alpnProtocol === "string" ? alpnProtocol : null,
      });
    });
  }
}

function contextOf({ cert, key }: TlsIdentity): SecureContext {
  return createSecureContext({
    cert: Buffer.from(cert),
    key: Buffer.from(key),
    minVersion: VERSION_MIN,
  });
}
