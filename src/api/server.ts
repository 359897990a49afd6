import { createPrivateKey, X509Certificate } from "node:crypto";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import {
  createSecureContext,
  type SecureContext,
  TLSSocket,
  type TLSSocketOptions,
} from "node:tls";
import {
  formatHostPort,
  formatIp,
  type HostPort,
  isLoopback,
  parseIp,
  unmapIpv4,
} from "../addr/mod.ts";
import { addressKey } from "../auth/mod.ts";
import { messageOf, SvcError } from "../errors.ts";
import { log } from "../log.ts";
import type { Occupancy } from "../transport/mod.ts";
import type { ApiHandler } from "./app.ts";
import { Connection, type ConnectionLimits } from "./connection.ts";

export interface ApiLimits extends ConnectionLimits {
  /** Over all addresses, those in a TLS handshake among them. */
  readonly connectionsMax: number;
  /** Of one IPv4 address or IPv6 /64, loopback apart. */
  readonly connectionsPerAddressMax: number;
}

export const API_LIMITS: ApiLimits = {
  connectionsMax: 64,
  connectionsPerAddressMax: 16,
  headMs: 10_000,
  requestMs: 30_000,
  unreadMs: 10_000,
  idleMs: 5_000,
  lingerMs: 2_000,
};
/** How often connections are held against the limits of time. */
const CHECK_MS_MAX = 1_000;
/** How long after a failure a listener begins anew. */
const LISTEN_AGAIN_MS = 1_000;
/** RFC 8996: nothing below. */
const TLS_VERSION_MIN = "TLSv1.2";

/** A certificate with its chain, and its private key. */
export interface TlsPem {
  readonly cert: string;
  readonly key: string;
}

/** Sockets that somebody opened for the API, and keeps until nobody listens any more. */
export interface ApiSockets {
  /**
   * A number of one of them, by its place in `listen`, that the server may close.
   *
   * @throws {SvcError} `unavailable`.
   */
  copy(index: number): number;
  close(): void;
}

export interface ApiServerOptions {
  readonly listen: readonly HostPort[];
  /** `null`: the server opens its own. */
  readonly sockets?: ApiSockets | null;
  /** `null`: clear text. */
  readonly tls: TlsPem | null;
  readonly hasToken: boolean;
  readonly handler: ApiHandler;
  readonly limits?: ApiLimits;
}

/** Whoever is connected, from the first packet on. */
interface Guest {
  /** What its address is counted as. */
  readonly key: string;
  /** The connection, or, until the TLS handshake is done, when that is given up. */
  connection: Connection | { readonly handshakeEndsAtMs: number };
  destroy(): void;
}

/** Serves the API over HTTP/1.1 on every address, within the limits. */
export class ApiServer {
  readonly #options: ApiServerOptions;
  readonly #limits: ApiLimits;
  readonly #sockets: ApiSockets | null;
  #servers: Server[] = [];
  #secure: SecureContext | null = null;
  /** The oldest first. */
  readonly #guests = new Set<Guest>();
  #check: ReturnType<typeof setInterval> | undefined;
  #isStopped = false;
  /** Somebody else takes the connections to come. */
  #isRetiring = false;
  /** Connections that were one too many. */
  refused = 0;

  constructor(options: ApiServerOptions) {
    this.#options = options;
    this.#limits = options.limits ?? API_LIMITS;
    this.#sockets = options.sockets ?? null;
  }

  /** Connections at this moment, those in a handshake among them. */
  get connections(): number {
    return this.#guests.size;
  }

  /** How many of the connections that it takes there are, and who has most of them. */
  get occupancy(): Occupancy {
    const held = new Map<string, number>();
    for (const { key } of this.#guests) held.set(key, (held.get(key) ?? 0) + 1);
    let most: Occupancy["most"] = null;
    for (const [client, connections] of held) {
      if (most === null || connections > most.connections) most = { client, connections };
    }
    return { taken: this.#guests.size, max: this.#limits.connectionsMax, most };
  }

  /** What they hold in memory of their own: requests not read yet, answers not taken yet. */
  get bufferedBytes(): number {
    let sum = 0;
    for (const { connection } of this.#guests) {
      if (connection instanceof Connection) sum += connection.bufferedBytes;
    }
    return sum;
  }

  /**
   * Listens on every address, or on none; returns them with the ports that the system gave for 0.
   *
   * @throws {SvcError} `invalid`, for an address beyond loopback without a token or a certificate that
   * can't be used; `unavailable`.
   */
  async start(): Promise<HostPort[]> {
    try {
      return await this.#start();
    } catch (error) {
      await this.stop(0, true); // Whose the sockets are decides what becomes of them.
      throw error;
    }
  }

  async #start(): Promise<HostPort[]> {
    const { listen, hasToken, tls } = this.#options;
    const beyond = listen.filter(({ ip }) => !isLoopback(ip));
    if (beyond.length > 0 && !hasToken) {
      const address = formatHostPort(beyond[0]);
      throw new SvcError(
        "invalid",
        `api.listen: ${address} is beyond loopback: set api.token_sha256 (svc token makes one)`,
      );
    }
    if (beyond.length > 0 && tls === null) {
      log.warn("the API's token crosses the network in clear text: set api.tls_cert and tls_key", {
        listen: beyond.map(formatHostPort),
      });
    }
    if (tls !== null) this.#secure = contextOf(tls);
    const addresses: HostPort[] = [];
    for (const [index, address] of listen.entries()) {
      addresses.push(await this.#listen(address, index));
    }
    return addresses;
  }

  /**
   * Takes a renewed certificate for the handshakes to come.
   *
   * @throws {SvcError} `invalid`, if it can't be used; the former one stays.
   */
  renewTls(tls: TlsPem): void {
    this.#secure = contextOf(tls);
  }

  /**
   * Takes nothing new, lets requests end within the time, then closes what is left. Where somebody
   * else goes on with the sockets, who has just connected is answered first.
   */
  async stop(graceMs: number, hasSuccessor = false): Promise<void> {
    this.#isStopped = !hasSuccessor;
    this.#isRetiring = hasSuccessor;
    const servers = this.#servers;
    this.#servers = [];
    const closed = servers.map((server) =>
      new Promise<void>((resolve) => server.close(() => resolve()))
    );
    if (!hasSuccessor) this.#sockets?.close(); // Or connections would wait there for nobody.
    for (const guest of this.#guests) {
      if (guest.connection instanceof Connection) guest.connection.drain(hasSuccessor);
      else if (!hasSuccessor) guest.destroy();
    }
    const timer = setTimeout(() => {
      for (const guest of this.#guests) guest.destroy();
    }, graceMs);
    await Promise.all(closed);
    clearTimeout(timer);
    clearInterval(this.#check);
    this.#isStopped = true;
  }

  async #listen({ ip, port }: HostPort, index: number): Promise<HostPort> {
    const server = createServer(
      { allowHalfOpen: true, noDelay: true },
      (socket) => this.#admit(socket),
    );
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    server.once("error", reject);
    const place = this.#sockets === null
      ? { host: formatIp(ip), port, ipv6Only: ip.length === 16, exclusive: true }
      : { fd: this.#sockets.copy(index) };
    server.listen(place, resolve);
    try {
      await promise;
    } catch (error) {
      const address = formatHostPort({ ip, port });
      throw new SvcError("unavailable", `api.listen: ${address}: ${messageOf(error)}`);
    }
    server.off("error", reject);
    const bound = { ip, port: (server.address() as AddressInfo).port };
    // Without a free descriptor to accept with, the server gives up: it is begun anew.
    server.on("error", (error) => this.#listenAgain(server, bound, index, error));
    this.#servers.push(server);
    return bound;
  }

  #listenAgain(failed: Server | null, address: HostPort, index: number, error: unknown): void {
    if (this.#isStopped || this.#isRetiring) return;
    log.warn("the API's listener failed and begins anew", { error: messageOf(error) });
    failed?.close();
    this.#servers = this.#servers.filter((server) => server !== failed);
    setTimeout(() => {
      if (this.#isStopped || this.#isRetiring) return;
      this.#listen(address, index).catch((again) => {
        this.#listenAgain(null, address, index, again);
      });
    }, LISTEN_AGAIN_MS);
  }

  /** Takes a connection, in place of one without a request where there are too many. */
  #admit(socket: Socket): void {
    socket.on("error", () => socket.destroy()); // Resets are part of the network.
    const ip = parseIp((socket.remoteAddress ?? "").replace(/%.*$/, ""));
    // Gone before it was accepted: there is nobody to answer.
    if (ip === null || this.#isStopped) {
      socket.destroy();
      return;
    }
    const address = formatIp(unmapIpv4(ip));
    const [key, isLocal] = [addressKey(address), isLoopback(unmapIpv4(ip))];
    const { connectionsMax, connectionsPerAddressMax } = this.#limits;
    const neighbours = isLocal ? [] : [...this.#guests].filter((guest) => guest.key === key);
    const hasRoom = (neighbours.length < connectionsPerAddressMax || this.#makeRoom(neighbours)) &&
      (this.#guests.size < connectionsMax || this.#makeRoom([...this.#guests]));
    if (!hasRoom) {
      this.refused++;
      socket.destroy();
      return;
    }
    const guest: Guest = {
      key,
      connection: { handshakeEndsAtMs: performance.now() + this.#limits.headMs },
      destroy: () => socket.destroy(),
    };
    this.#guests.add(guest);
    const checkMs = Math.min(CHECK_MS_MAX, this.#limits.headMs / 4);
    this.#check ??= setInterval(() => this.#tick(), checkMs);
    socket.once("close", () => this.#guests.delete(guest));
    const serve = (clear: Socket) => {
      const connection = new Connection(clear, address, this.#options.handler, this.#limits);
      if (this.#isRetiring) connection.drain(true);
      guest.connection = connection;
    };
    if (this.#secure === null) serve(socket);
    else shakeHands(socket, this.#secure, serve);
  }

  /**
   * Ends one of these: the oldest that never had a whole request, else the one that has gone without
   * for the longest. Whoever is being answered stays.
   */
  #makeRoom(guests: readonly Guest[]): boolean {
    const others = guests.filter(({ connection }) =>
      !(connection instanceof Connection) || connection.isWithoutRequest
    );
    const sinceMs = ({ connection }: Guest) =>
      connection instanceof Connection && connection.requests > 0 ? connection.sinceMs : -1;
    if (others.length === 0) return false;
    const last = others.reduce((a, b) => sinceMs(b) < sinceMs(a) ? b : a);
    last.destroy();
    this.#guests.delete(last); // Its `close` comes later.
    this.refused++;
    return true;
  }

  #tick(): void {
    const nowMs = performance.now();
    if (this.#guests.size === 0) {
      clearInterval(this.#check);
      this.#check = undefined; // Nobody is held against a limit.
    }
    for (const guest of this.#guests) {
      const { connection } = guest;
      if (connection instanceof Connection) connection.tick(nowMs);
      else if (nowMs >= connection.handshakeEndsAtMs) guest.destroy();
    }
  }
}

/** Speaks TLS; `serve` gets what is behind it. */
function shakeHands(raw: Socket, secureContext: SecureContext, serve: (clear: Socket) => void) {
  const options: TLSSocketOptions & { allowHalfOpen: boolean } = {
    isServer: true,
    secureContext,
    ALPNProtocols: ["http/1.1"],
    allowHalfOpen: true,
  };
  const socket = new TLSSocket(raw, options);
  let isSecure = false;
  socket.on("error", () => socket.destroy());
  socket.once("end", () => {
    if (!isSecure) socket.destroy(); // Given up.
  });
  socket.on("close", () => raw.destroy());
  socket.once("secure", () => {
    if (socket.destroyed) return;
    isSecure = true;
    serve(socket);
  });
}

/**
 * A server would take anything, and fail at each handshake.
 *
 * @throws {SvcError} `invalid`.
 */
function contextOf({ cert, key }: TlsPem): SecureContext {
  let isPair: boolean;
  try {
    isPair = new X509Certificate(cert).checkPrivateKey(createPrivateKey(key));
  } catch (error) {
    throw new SvcError("invalid", `api.tls_cert: ${messageOf(error)}`, { cause: error });
  }
  if (!isPair) throw new SvcError("invalid", "api.tls_key: it is not the certificate's key");
  return createSecureContext({ cert, key, minVersion: TLS_VERSION_MIN });
}
