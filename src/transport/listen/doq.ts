import { formatHostPort, formatIp, type HostPort } from "../../addr/mod.ts";
import { equalBytes, equalConstantTime } from "../../bytes/mod.ts";
import { messageOf, SvcError } from "../../errors.ts";
import { DoqError } from "../quic_message.ts";
import { clientOf, ConnectionTable, type Occupancy, type TableLimits } from "./connection_table.ts";
import { Connection, type DoqHandler } from "./doq_connection.ts";
import { PlacedSender, type Sender } from "./sender.ts";
import { CHUNK_UNITS, HANDSHAKE_UNITS, type Reader } from "./read_queue.ts";
import { SharedBounds } from "./shared_bounds.ts";
import type { TlsIdentity } from "./tls.ts";

export interface DoqLimits extends TableLimits {
  /**
   * Streams of one connection at a time, which is: queries. The runtime keeps up to 1.25 MB of what
   * comes in on each, however little of it is read, and has no way to say less.
   */
  readonly queriesMax: number;
  /** A connection without a query for this long is closed. */
  readonly idleMs: number;
  /** The same for one whose client takes longer to send a query, or to take its answer. */
  readonly requestMs: number;
  /** A handshake that takes longer is given up. */
  readonly handshakeMs: number;
  /** Handshakes under way at a time; one more ends the oldest. */
  readonly handshakesMax: number;
}

/** The protocol's name in a handshake (RFC 9250 §4.1.1). */
const ALPN = "doq";
/** How often idle connections are looked for. */
const SWEEP_MS = 1_000;
/** Longest wait for an address in use, and how often it is tried. */
const BIND_MS_MAX = 2_000;
const BIND_AGAIN_MS = 20;
/**
 * Certificates that one endpoint shows in its life. Each stays in memory with the sessions that may
 * be resumed, from 15 KB to about 1 MB, and the runtime has no way to let go of one alone.
 */
export const CERTIFICATES_MAX = 128;
/** Closing a connection drops what was not sent yet: the last answers get this long to leave. */
const LINGER_MS = 100;

/** DNS over QUIC (RFC 9250). Shares its port with no other isolate. */
export class DoqListener {
  readonly #handler: DoqHandler;
  readonly #limits: DoqLimits;
  #endpoint: Deno.QuicEndpoint | null = null;
  /**
   * One a certificate, the last of them shown. A former one must stay referenced: when it is
   * collected, its endpoint forgets the certificate, whichever it shows, takes nobody any more, and
   * ends the process if a handshake is on its way at that moment. Stopping one does the same.
   */
  readonly #listeners: Deno.QuicListener[] = [];
  #identity: TlsIdentity | null;
  readonly #connections = new Set<Connection>();
  /** Connections in a handshake, the oldest first. */
  readonly #handshakes = new Set<Deno.QuicConn>();
  readonly #table: ConnectionTable;
  readonly #bounds: SharedBounds;
  /** Connections that wait to begin a handshake. */
  #beginning = 0;
  readonly #sweep: ReturnType<typeof setInterval>;
  #draining = false;

  /** `identity` may be `null` as long as there is none: nobody is answered until `renew`. */
  constructor(
    identity: TlsIdentity | null,
    handler: DoqHandler,
    limits: DoqLimits,
    bounds: SharedBounds = new SharedBounds(),
  ) {
    this.#identity = identity;
    this.#handler = handler;
    this.#limits = limits;
    this.#bounds = bounds;
    this.#table = new ConnectionTable(limits);
    this.#sweep = setInterval(() => this.#closeIdle(), SWEEP_MS);
    Deno.unrefTimer(Number(this.#sweep));
  }

  /**
   * Opens a socket of its own; one of `[::]` serves IPv4 as well. An address in use is tried again
   * for `waitMs`: an isolate that is being replaced frees its port within moments.
   *
   * @throws {SvcError} `unavailable`, with the address and what is in the way.
   */
  async listenAt(address: HostPort, waitMs = BIND_MS_MAX): Promise<void> {
    const endsAtMs = performance.now() + waitMs;
    while (this.#endpoint === null) {
      try {
        this.#endpoint = new Deno.QuicEndpoint({
          hostname: formatIp(address.ip),
          port: address.port,
        });
      } catch (error) {
        const isInUse = error instanceof Deno.errors.AddrInUse;
        if (!isInUse || performance.now() > endsAtMs) {
          const where = formatHostPort(address);
          throw new SvcError("unavailable", `doq ${where}: cannot listen: ${messageOf(error)}`);
        }
        await new Promise((resolve) => setTimeout(resolve, BIND_AGAIN_MS));
      }
    }
    if (this.#identity !== null) this.#show(this.#endpoint, this.#identity);
  }

  /** The port listened on. */
  get port(): number {
    return this.#endpoint?.addr.port ?? 0;
  }

  /** Connections at this moment, those in a handshake among them. */
  get connections(): number {
    return this.#connections.size + this.#handshakes.size;
  }

  /** Who has them. */
  get occupancy(): Occupancy {
    return this.#table.occupancy;
  }

  /** Handshakes under way. */
  get handshakes(): number {
    return this.#handshakes.size;
  }

  /**
   * Shows another certificate in the handshakes to come; connections that stand stay. The last of
   * `CERTIFICATES_MAX` is shown and ends the isolate, whose successor starts with it alone.
   *
   * @throws If the identity can't be used; the former one stays.
   */
  renew(identity: TlsIdentity): void {
    const shown = this.#listeners.length > 0 ? this.#identity : null;
    if (shown !== null && isSame(shown, identity)) return;
    if (this.#endpoint !== null) this.#show(this.#endpoint, identity);
    this.#identity = identity;
  }

  /** Takes no more connections and queries; those that wait are answered. */
  drain(): void {
    this.#draining = true;
    clearInterval(this.#sweep);
    for (const conn of this.#handshakes) this.#giveUp(conn, DoqError.NoError);
    for (const connection of this.#connections) connection.drain();
  }

  /** Ends what is left, once the last answers have gone out. */
  async close(): Promise<void> {
    this.drain();
    const since = performance.now() - LINGER_MS;
    const isLeaving = [...this.#connections].some((c) => c.open > 0 || c.endedMs > since);
    if (isLeaving) await new Promise((resolve) => setTimeout(resolve, LINGER_MS));
    for (const connection of this.#connections) connection.close(DoqError.NoError);
    // Never `listener.stop()`: a connection that comes in at that moment would end the process.
    this.#endpoint?.close({ closeCode: DoqError.NoError, reason: "" });
  }

  #show(endpoint: Deno.QuicEndpoint, { cert, key }: TlsIdentity): void {
    const text = new TextDecoder();
    const listener = endpoint.listen({
      cert: text.decode(cert),
      key: text.decode(key),
      alpnProtocols: [ALPN],
      maxIdleTimeout: this.#limits.idleMs,
      maxConcurrentBidirectionalStreams: this.#limits.queriesMax,
      maxConcurrentUnidirectionalStreams: 0, // RFC 9250 §4.2: there is no use for them.
    });
    const shown = this.#listeners.push(listener);
    if (shown === 1) void this.#accept(listener);
    if (shown === CERTIFICATES_MAX) void Promise.reject(wornOut(shown));
  }

  /** Takes connections until the endpoint is closed, whichever certificate it shows by then. */
  async #accept(listener: Deno.QuicListener): Promise<void> {
    for (;;) {
      let incoming: Deno.QuicIncoming;
      try {
        incoming = await listener.incoming();
      } catch (error) {
        if (this.#draining) return;
        throw error; // Nobody would be answered any more: the isolate is replaced.
      }
      this.#bounds.reads.charge(CHUNK_UNITS);
      this.#enter(incoming);
    }
  }

  /** Has a handshake begin in a slice of its own: it takes as long as hundreds of queries. */
  #enter(incoming: Deno.QuicIncoming): void {
    // Its client sends again: to the process that is next, or when there are fewer.
    if (this.#draining || this.#beginning >= this.#limits.handshakesMax) {
      incoming.ignore();
      return;
    }
    this.#beginning++;
    const { reads } = this.#bounds;
    const beginning: Reader = {
      readOn: () => {
        this.#beginning--;
        reads.spend(HANDSHAKE_UNITS);
        if (this.#draining) incoming.ignore();
        else void this.#shake(incoming);
        return false;
      },
      pause: () => {},
    };
    reads.take(beginning, 0);
  }

  async #shake(incoming: Deno.QuicIncoming): Promise<void> {
    let conn: Deno.QuicConn;
    let address: string;
    try {
      // Gives the connection before its handshake, and with it the address: asking `incoming` for
      // that makes it unusable. Nothing is read before the handshake is done. Any other option here
      // would have the listener's certificate shown in place of the endpoint's newest.
      conn = incoming.accept({ zeroRtt: true });
      conn.closed.catch(() => {}); // Lost ones end in `run` or below.
      const { hostname } = conn.remoteAddr;
      address = hostname.startsWith("::ffff:") ? hostname.slice(7) : hostname;
    } catch {
      this.#handler.onHandshakeFailure(); // Gone before it was looked at.
      return;
    }
    if (!this.#handler.admits(address)) {
      conn.handshake.catch(() => {});
      closeConn(conn, DoqError.NoError);
      return;
    }
    const { handshakesMax, handshakeMs } = this.#limits;
    if (this.#handshakes.size >= handshakesMax) {
      for (const oldest of this.#handshakes) {
        this.#giveUp(oldest, DoqError.ExcessiveLoad);
        break;
      }
    }
    const network = clientOf(address);
    const end = () => this.#giveUp(conn, DoqError.ExcessiveLoad);
    const place = this.#table.add(network, end, () => this.#handler.onRefused());
    this.#handshakes.add(conn);
    const timer = setTimeout(end, handshakeMs);
    // One that was given up resolves all the same.
    const isDone = await conn.handshake.then(() => this.#handshakes.has(conn), () => false);
    clearTimeout(timer);
    this.#handshakes.delete(conn);
    if (isDone) await this.#run(conn, new PlacedSender(address, network, this.#table, place));
    else this.#handler.onHandshakeFailure();
    closeConn(conn, DoqError.NoError);
    this.#table.remove(place);
  }

  #giveUp(conn: Deno.QuicConn, code: DoqError): void {
    this.#handshakes.delete(conn);
    closeConn(conn, code);
  }

  async #run(conn: Deno.QuicConn, sender: Sender): Promise<void> {
    const connection = new Connection(conn, sender, this.#handler, this.#bounds);
    this.#connections.add(connection);
    await connection.run();
    this.#connections.delete(connection);
  }

  #closeIdle(): void {
    const nowMs = performance.now();
    const { idleMs, requestMs } = this.#limits;
    for (const connection of this.#connections) connection.sweep(nowMs - idleMs, nowMs - requestMs);
  }
}

function isSame(a: TlsIdentity, b: TlsIdentity): boolean {
  return equalBytes(a.cert, b.cert) && equalConstantTime(a.key, b.key);
}

function wornOut(shown: number): SvcError {
  const why = `doq: ${shown} certificates were shown, and all of them take memory: starting anew`;
  return new SvcError("unavailable", why);
}

function closeConn(conn: Deno.QuicConn, closeCode: DoqError): void {
  conn.close({ closeCode, reason: "" });
}
