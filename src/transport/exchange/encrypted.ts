import { equalBytes } from "../../bytes/mod.ts";
import { invariant, messageOf } from "../../errors.ts";
import { type Channel, type ChannelEvents, type EncryptedQuery, SWEEP_MS } from "./channel.ts";
import { DohChannel } from "./doh_channel.ts";
import { DotChannel } from "./dot_channel.ts";
import { DialError, doesNotSpeak, type TlsTarget } from "./dial.ts";
import type { QuicDialer } from "./quic_dial.ts";
import { dialTls } from "./tls_dial.ts";
import { type ExchangeEvents, lacksSocket, type Sending } from "./udp.ts";

/** Connections to one server at a time. */
export const CONNECTIONS_MAX = 4;
/** Queries for one server that wait for a connection. */
export const WAITING_MAX = 1_024;
/** Pause after an upstream took no connection at any of its addresses. */
const REDIAL_MS = 100;
const HTTPS_PORT = 443;

export type EncryptedTransport = "tls" | "https" | "quic";

/** What each transport offers in its handshake, and is called in messages. */
const PROTOCOLS = {
  tls: ["dot", "DNS over TLS"],
  https: ["h2", "HTTP/2, which DNS over HTTPS goes by"],
  quic: ["doq", "DNS over QUIC"],
} as const satisfies Record<EncryptedTransport, readonly [string, string]>;

/** An upstream over TLS, HTTPS or QUIC. */
export interface EncryptedUpstream {
  readonly transport: EncryptedTransport;
  /** The name or address that its certificate has to cover. */
  readonly serverName: string;
  readonly port: number;
  /** Path and query of the URL; "" but for `https`. */
  readonly path: string;
  /** PEM of the authorities of a private upstream; `null` trusts the public ones. */
  readonly ca: string | null;
  /** Where it is; none, as long as its name has to be looked up. */
  readonly ips: readonly Uint8Array[];
}

/** A server that is asked over TLS, HTTPS or QUIC: its connections, and what waits for one. */
export class EncryptedRemote implements ChannelEvents {
  readonly channels: Channel[] = [];
  readonly #upstream: EncryptedUpstream;
  readonly #target: TlsTarget;
  readonly #owner: RemoteOwner;
  readonly #quic: QuicDialer | null;
  readonly #waiting: EncryptedQuery[] = [];
  readonly #abort = new AbortController();
  #ips: readonly Uint8Array[];
  /** The address that took the last connection stands first. */
  #ipIndex = 0;
  #dials = 0;
  #redialTimer: ReturnType<typeof setTimeout> | undefined;
  /** Of the last connection, to resume (RFC 8446 §2.2). */
  #session: Uint8Array | null = null;

  /** `quic` may be `null` for upstreams of other kinds. */
  constructor(upstream: EncryptedUpstream, owner: RemoteOwner, quic: QuicDialer | null) {
    this.#upstream = upstream;
    this.#owner = owner;
    this.#quic = quic;
    this.#ips = upstream.ips;
    const [alpn, protocol] = PROTOCOLS[upstream.transport];
    this.#target = {
      serverName: upstream.serverName,
      port: upstream.port,
      ca: upstream.ca,
      alpn: [alpn],
      protocol,
    };
  }

  get transport(): EncryptedTransport {
    return this.#upstream.transport;
  }

  /** There is nothing of it that could go on: no connection, no query, no timer. */
  get isIdle(): boolean {
    return !this.isInUse && this.#redialTimer === undefined;
  }

  /**
   * Says where it is, once its name was looked up. Open connections stay, and where the last one was
   * made is tried first as long as it is among these.
   */
  set ips(ips: readonly Uint8Array[]) {
    const former = this.#ips[this.#ipIndex];
    this.#ips = ips;
    const index = ips.findIndex((ip) => former !== undefined && equalBytes(ip, former));
    this.#ipIndex = Math.max(0, index);
    this.#dialIfNeeded();
  }

  /** There are connections, or there are to be. */
  get isInUse(): boolean {
    return this.channels.length > 0 || this.#dials > 0 || this.#waiting.length > 0;
  }

  /** Sends a query, or has it wait for a connection. False: too many wait. */
  place(query: EncryptedQuery): boolean {
    const channel = this.#emptiest();
    if (channel !== null) {
      channel.send(query);
      return true;
    }
    if (this.#waiting.length >= WAITING_MAX) return false;
    this.#waiting.push(query);
    this.#dialIfNeeded();
    return true;
  }

  cancel(query: EncryptedQuery): void {
    if (query.channel !== null) {
      query.channel.cancel(query);
      this.#sendWaiting();
      return;
    }
    const at = this.#waiting.indexOf(query);
    if (at >= 0) this.#waiting.splice(at, 1);
  }

  /** Ends every wait for a connection: there will be none, its name can't be looked up. */
  failWaiting(reason: string, isOwn = false): void {
    for (const query of this.#waiting.splice(0)) this.#owner.onFailure(query, reason, isOwn);
  }

  close(): void {
    this.#waiting.length = 0;
    clearTimeout(this.#redialTimer);
    this.#abort.abort();
    for (const channel of this.channels.splice(0)) channel.close();
  }

  onAnswer(query: EncryptedQuery, packet: Uint8Array): void {
    this.#owner.onAnswer(query, packet);
  }

  onFailure(query: EncryptedQuery, reason: string): void {
    this.#owner.onFailure(query, reason);
  }

  onLost(query: EncryptedQuery): void {
    query.channel = null;
    // Closed for idleness just as we sent, or started anew: that is no failure (RFC 7766 §6.2.4).
    const isPlaced = !query.isAgain && this.place(query);
    query.isAgain = true;
    if (!isPlaced) this.#owner.onFailure(query, "closed the connection");
  }

  onEnd(channel: Channel): void {
    const at = this.channels.indexOf(channel);
    if (at >= 0) this.channels.splice(at, 1);
  }

  #emptiest(): Channel | null {
    let best: Channel | null = null;
    for (const channel of this.channels) {
      if (channel.room > 0 && (best === null || channel.room > best.room)) best = channel;
    }
    return best;
  }

  /** One connection is opened at a time: what waits may well fit on it. */
  #dialIfNeeded(): void {
    if (this.#waiting.length === 0 || this.#dials > 0 || this.#redialTimer !== undefined) return;
    if (this.#ips.length === 0 || this.channels.length >= CONNECTIONS_MAX) return;
    this.#dials++;
    void this.#dial().finally(() => {
      this.#dials--;
      this.#dialIfNeeded();
    });
  }

  async #dial(): Promise<void> {
    const ips = this.#ips;
    let reason = "";
    let isOwn = false;
    for (let i = 0; i < ips.length; i++) {
      const index = (this.#ipIndex + i) % ips.length;
      try {
        await this.#connect(ips[index]);
        if (ips === this.#ips) this.#ipIndex = index;
        this.#sendWaiting();
        return;
      } catch (error) {
        reason = messageOf(error);
        isOwn = error instanceof Error && lacksSocket(error.cause);
      }
    }
    if (this.#abort.signal.aborted) return;
    this.#session = null; // It may be what the server stumbles over.
    this.#redialTimer = setTimeout(() => {
      this.#redialTimer = undefined;
      this.#dialIfNeeded();
    }, REDIAL_MS);
    this.failWaiting(reason, isOwn);
  }

  /** @throws {DialError} */
  async #connect(ip: Uint8Array): Promise<void> {
    const { transport, path } = this.#upstream;
    const { signal } = this.#abort;
    if (transport === "quic") {
      invariant(this.#quic !== null, "what upstreams over QUIC need is loaded");
      this.#add(this.#quic.open(await this.#quic.dial(this.#target, ip, signal), this));
      return;
    }
    const onSession = (session: Uint8Array) => this.#session = session;
    const socket = await dialTls(this.#target, ip, this.#session, signal, onSession);
    if (transport === "https" && socket.alpnProtocol !== "h2") {
      socket.destroy();
      throw new DialError(doesNotSpeak(this.#target));
    }
    this.#add(
      transport === "tls"
        ? new DotChannel(socket, this)
        : new DohChannel(socket, authorityOf(this.#target), path, this),
    );
  }

  #add(channel: Channel): void {
    if (this.#abort.signal.aborted) channel.close();
    else this.channels.push(channel);
  }

  /** Sends what waits, as far as there is room. */
  #sendWaiting(): void {
    while (this.#waiting.length > 0) {
      const channel = this.#emptiest();
      if (channel === null) return this.#dialIfNeeded();
      channel.send(this.#waiting.shift()!);
    }
  }
}

/** Takes what comes of a server's queries. */
interface RemoteOwner {
  onAnswer(query: EncryptedQuery, packet: Uint8Array): void;
  onFailure(query: EncryptedQuery, reason: string, isOwn?: boolean): void;
}

/**
 * Queries over TLS (RFC 7858), HTTPS (RFC 8484) and QUIC (RFC 9250). Connections are made when there is something to
 * ask, shared, kept while they are of use, and made anew without losing who waits.
 */
export class EncryptedExchange {
  readonly #owner: RemoteOwner;
  readonly #quic: QuicDialer | null;
  /** All but those that are idle. */
  readonly #inUse = new Set<EncryptedRemote>();
  readonly #byToken = new Map<
    number,
    { readonly remote: EncryptedRemote; readonly query: EncryptedQuery }
  >();
  #sweeper: ReturnType<typeof setInterval> | undefined;

  /** `Quic` may be `null` where no upstream is asked over QUIC: it is loaded only then. */
  constructor(events: ExchangeEvents, Quic: typeof QuicDialer | null) {
    this.#quic = Quic === null ? null : new Quic();
    this.#owner = {
      onAnswer: ({ token }, packet) => events.onPacket(token, packet, packet.length),
      onFailure: ({ token }, reason, isOwn) => {
        this.#byToken.delete(token);
        events.onFailure(token, reason, isOwn);
      },
    };
  }

  /** Connections that are open. */
  get connections(): number {
    let sum = 0;
    for (const { channels } of this.#inUse) sum += channels.length;
    return sum;
  }

  /** There are connections, or there are to be, or one has just ended. */
  get isInUse(): boolean {
    if (this.#quic?.isInUse) return true;
    for (const remote of this.#inUse) if (remote.isInUse) return true;
    return false;
  }

  /** What queries to a server are sent to; nothing is opened before there is one. */
  remote(upstream: EncryptedUpstream): EncryptedRemote {
    return new EncryptedRemote(upstream, this.#owner, this.#quic);
  }

  send(remote: EncryptedRemote, packet: Uint8Array, lengthBytes: number, token: number): Sending {
    // The caller's bytes change, and ours may be sent a second time.
    const query = { token, packet: packet.slice(0, lengthBytes), channel: null, isAgain: false };
    this.#byToken.set(token, { remote, query });
    this.#inUse.add(remote);
    this.#sweeper ??= setInterval(() => this.#sweep(), SWEEP_MS);
    if (remote.place(query)) return "sent";
    this.#byToken.delete(token);
    return "full";
  }

  cancel(token: number): void {
    const sent = this.#byToken.get(token);
    if (sent === undefined) return;
    this.#byToken.delete(token);
    sent.remote.cancel(sent.query);
  }

  close(): void {
    clearInterval(this.#sweeper);
    this.#sweeper = undefined;
    this.#byToken.clear();
    for (const remote of this.#inUse) remote.close();
    this.#inUse.clear();
    this.#quic?.close();
  }

  #sweep(): void {
    const nowMs = performance.now();
    for (const remote of this.#inUse) {
      for (const channel of [...remote.channels]) channel.sweep(nowMs);
      if (remote.isIdle) this.#inUse.delete(remote);
    }
    if (this.#inUse.size > 0) return;
    clearInterval(this.#sweeper);
    this.#sweeper = undefined;
  }
}

/** The host of a URL, with its port unless that is the usual one. */
function authorityOf({ serverName, port }: TlsTarget): string {
  const host = serverName.includes(":") ? `[${serverName}]` : serverName;
  return port === HTTPS_PORT ? host : `${host}:${port}`;
}
