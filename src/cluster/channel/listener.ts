import { X509Certificate } from "node:crypto";
import { createServer as createTcpServer, type Server, type Socket } from "node:net";
import {
  createServer as createTlsServer,
  type Server as TlsServer,
  type TLSSocket,
} from "node:tls";
import {
  formatHostPort,
  formatIp,
  type HostPort,
  isUnspecified,
  parseIp,
  serverAddresses,
  unmapIpv4,
} from "../../addr/mod.ts";
import { memberFault, memberNameOf } from "../../config/mod.ts";
import { messageOf } from "../../errors.ts";
import { log } from "../../log.ts";
import type { ChannelSockets } from "../ports.ts";
import { Gate, type Unfinished } from "./gate.ts";
import type { Identity } from "./identity.ts";
import type { ChannelLimits } from "./limits.ts";
import { MessageType, writeMessage } from "./messages.ts";

/** Why a connection was refused. */
export const REFUSALS = [
  /** Too many unfinished ones, or too often. */
  "flood",
  /** Plain TCP, TLS 1.2, no certificate, or one of another CA. */
  "tls",
  /** The handshake or the greeting took too long. */
  "slow",
  /** A certificate of the CA, whose name is in no `[[cluster.member]]`, or is this member's own. */
  "unknown",
  /** No greeting of ours. */
  "greeting",
] as const;
export type Refusal = typeof REFUSALS[number];

/** A connection whose TLS handshake is done, and which is nobody's yet. */
export interface Arrival {
  readonly socket: TLSSocket;
  /** The name of its certificate, which is this cluster's. */
  readonly name: string;
  /** Where it comes from, as text. */
  readonly source: string;
  /** Says that it is greeted: nothing watches it any more. */
  finish(): void;
  /** Ends it, and counts why; `word` is said as a refusal first, as far as it leaves at once. */
  refuse(reason: Refusal, word?: Uint8Array): void;
}

export interface ListenerOptions {
  readonly listen: readonly HostPort[];
  /** Addresses of members, as text. */
  readonly members: ReadonlySet<string>;
  readonly identity: Identity;
  readonly limits: ChannelLimits;
  /** A clock that never goes back. */
  readonly monotonicMs: () => number;
  readonly onArrival: (arrival: Arrival) => void;
}

/** A connection from its first moment to its greeting. */
interface Beginning extends Unfinished {
  readonly raw: Socket;
  readonly source: string;
  /** The TLS handshake is done, and the certificate a member's. */
  isSecure: boolean;
  refuse(reason: Refusal): void;
  finish(): void;
}

/** Takes the connections of members, and what strangers try. */
export class Listener {
  readonly #options: ListenerOptions;
  readonly #gate: Gate;
  readonly #servers: Server[] = [];
  /** By both ends' addresses and ports: the TLS library tells of no other way back. */
  readonly #beginnings = new Map<string, Beginning>();
  readonly refused: Record<Refusal, number>;
  #identity: Identity;
  #tls: TlsServer;
  #sockets: ChannelSockets | null = null;
  #isClosed = false;
  readonly #retries = new Set<ReturnType<typeof setTimeout>>();
  /** Addresses that could not be listened on, and why. */
  readonly #failures = new Map<string, string>();
  listening: HostPort[] = [];

  constructor(options: ListenerOptions) {
    this.#options = options;
    this.#gate = new Gate(options.members, options.monotonicMs);
    this.refused = Object.fromEntries(REFUSALS.map((reason) => [reason, 0])) as Record<
      Refusal,
      number
    >;
    this.#identity = options.identity;
    this.#tls = this.#makeTls();
  }

  /** Unfinished connections. */
  get unfinished(): number {
    return this.#beginnings.size;
  }

  get problems(): string[] {
    return Array.from(
      this.#failures,
      ([address, reason]) => `cluster.listen: ${address} can't be listened on: ${reason}`,
    );
  }

  /** Listens; an address that can't be had is tried again until `close`. */
  async start(sockets: ChannelSockets | null = null): Promise<void> {
    this.#sockets = sockets;
    await Promise.all(serverAddresses(this.#options.listen).map((one) => this.#listen(one)));
  }

  /** Shows another certificate, and believes another authority, from the next handshake on. */
  renew(identity: Identity): void {
    this.#identity = identity;
    this.#tls = this.#makeTls();
  }

  /** Takes no more, and ends what is unfinished. */
  async close(): Promise<void> {
    this.#isClosed = true;
    for (const timer of this.#retries) clearTimeout(timer);
    for (const beginning of this.#beginnings.values()) beginning.raw.destroy();
    await Promise.all(this.#servers.map((server) => {
      const { promise, resolve } = Promise.withResolvers<void>();
      server.close(() => resolve());
      return promise;
    }));
  }

  async #listen(address: HostPort): Promise<void> {
    if (this.#isClosed) return;
    const text = formatHostPort(address);
    try {
      const onConnection = (raw: Socket) => this.#begin(raw);
      const server = this.#sockets === null
        ? await openServer(address, onConnection)
        : await listenOn({ fd: this.#sockets.copy(address) }, onConnection);
      if (this.#isClosed) return void server.close();
      this.#servers.push(server);
      this.#failures.delete(text);
      const { port } = server.address() as { port: number };
      this.listening.push({ ip: address.ip, port });
    } catch (error) {
      const reason = messageOf(error).split("\n", 1)[0];
      if (!this.#failures.has(text)) {
        log.error("the cluster's channel can't listen: it is tried again", {
          listen: text,
          reason,
        });
      }
      this.#failures.set(text, reason);
      const timer = setTimeout(() => {
        this.#retries.delete(timer);
        void this.#listen(address);
      }, this.#options.limits.listenMs);
      this.#retries.add(timer);
    }
  }

  #begin(raw: Socket): void {
    const source = sourceOf(raw);
    const key = keyOf(raw);
    raw.on("error", () => raw.destroy());
    // Whoever has gone already has no address any more.
    if (source === null || key === null) return void raw.destroy();
    let isOver = false;
    const end = (reason: Refusal | null) => {
      if (isOver) return;
      isOver = true;
      clearTimeout(timer);
      this.#beginnings.delete(key);
      this.#gate.leave(source, beginning);
      if (reason === null) return;
      this.refused[reason]++;
      raw.destroy();
    };
    const beginning: Beginning = {
      ...{ raw, source },
      isSecure: false,
      end: () => end("flood"),
      refuse: end,
      finish: () => end(null),
    };
    const timer = setTimeout(() => end("slow"), this.#options.limits.handshakeMs);
    raw.once("close", () => end(beginning.isSecure ? "greeting" : "tls"));
    if (!this.#gate.enter(source, beginning)) return end("flood");
    this.#beginnings.set(key, beginning);
    this.#tls.emit("connection", raw);
  }

  #makeTls(): TlsServer {
    const { ca, cert, key, authorities } = this.#identity;
    const options = {
      ca,
      cert,
      key,
      minVersion: "TLSv1.3",
      requestCert: true,
      rejectUnauthorized: true,
    } as const;
    const server = createTlsServer(options, (socket) => {
      socket.on("error", () => socket.destroy());
      const beginning = this.#beginnings.get(keyOf(socket) ?? "");
      if (beginning === undefined) return void socket.destroy();
      const { raw } = beginning;
      const der = socket.getPeerCertificate(true)?.raw;
      const certificate = socket.authorized && der ? new X509Certificate(der) : null;
      const name = certificate === null ? null : memberNameOf(certificate);
      // The library has said so already; nobody comes in by its word alone.
      if (certificate === null || name === null || memberFault(certificate, authorities, name)) {
        return beginning.refuse("tls");
      }
      beginning.isSecure = true;
      this.#options.onArrival({
        ...{ socket, name, source: beginning.source },
        finish: beginning.finish,
        refuse: (reason, word) => {
          if (word === undefined) return beginning.refuse(reason);
          this.refused[reason]++;
          beginning.finish();
          socket.end(writeMessage(MessageType.Refusal, word));
          const timer = setTimeout(() => raw.destroy(), this.#options.limits.tickMs);
          raw.once("close", () => clearTimeout(timer));
        },
      });
    });
    server.on("tlsClientError", (_, socket) => {
      const key = keyOf(socket);
      socket.destroy();
      if (key !== null) this.#beginnings.get(key)?.refuse("tls");
    });
    return server;
  }
}

/** Opens a server; where a machine has no IPv6, `::` is every address of IPv4. */
async function openServer(
  { ip, port }: HostPort,
  onConnection: (raw: Socket) => void,
): Promise<Server> {
  try {
    return await listenOn({ host: formatIp(ip), port }, onConnection);
  } catch (error) {
    const code = error instanceof Error && "code" in error ? error.code : "";
    const hasNoIpv6 = code === "EAFNOSUPPORT" || code === "EADDRNOTAVAIL";
    if (ip.length === 4 || !hasNoIpv6 || !isUnspecified(ip)) throw error;
    return await listenOn({ host: "0.0.0.0", port }, onConnection);
  }
}

function listenOn(
  place: { readonly host: string; readonly port: number } | { readonly fd: number },
  onConnection: (raw: Socket) => void,
): Promise<Server> {
  const { promise, resolve, reject } = Promise.withResolvers<Server>();
  const server = createTcpServer(onConnection);
  server.once("error", reject);
  server.listen(place, () => {
    server.off("error", reject);
    // Of a connection that was not taken: the next one may be.
    server.on("error", () => {});
    resolve(server);
  });
  return promise;
}

/** Where a connection is from, as text; `null`: it has ended. */
function sourceOf({ remoteAddress }: Socket): string | null {
  const ip = remoteAddress === undefined ? null : parseIp(remoteAddress.split("%", 1)[0]);
  return ip === null ? null : formatIp(unmapIpv4(ip));
}

function keyOf({ remoteAddress, remotePort, localAddress, localPort }: Socket): string | null {
  if (remoteAddress === undefined) return null;
  return `${remoteAddress} ${remotePort} ${localAddress} ${localPort}`;
}
