import { createServer, type Server, type Socket } from "node:net";
import { formatIp, type HostPort } from "../../addr/mod.ts";
import { messageOf } from "../../errors.ts";
import { log } from "../../log.ts";

export interface StreamLimits {
  /** Connections of one listener at a time; the next is closed. */
  readonly connectionsMax: number;
  /** Connections of one client address. */
  readonly connectionsPerClientMax: number;
}

/** Says who may connect. */
export interface StreamGate {
  /**
   * Asked before a byte is read and before any handshake begins. `client` is an address as text,
   * an IPv4-mapped one as IPv4. No: the connection is closed at once.
   */
  admits(client: string): boolean;
  /** A connection over a limit was closed. */
  onRefused(): void;
}

/** How long after a failure a listener begins anew. */
const LISTEN_AGAIN_MS = 1_000;

/** What `node:net` is told to listen on. */
type Place = { readonly fd: number } | { readonly host: string; readonly port: number };

/** Takes connections of a TCP socket, within the limits, from whom the gate lets in. */
export class StreamServer {
  #server: Server | null = null;
  readonly #gate: StreamGate;
  readonly #limits: StreamLimits;
  readonly #onSocket: (socket: Socket, client: string) => void;
  readonly #perClient = new Map<string, number>();
  #connections = 0;
  #closed = false;

  constructor(
    gate: StreamGate,
    limits: StreamLimits,
    onSocket: (socket: Socket, client: string) => void,
  ) {
    this.#gate = gate;
    this.#limits = limits;
    this.#onSocket = onSocket;
  }

  /**
   * Listens on a socket that somebody opened. `open` gives a number of it that is the server's to
   * close, and is called again when the server has to begin anew.
   */
  listenOn(open: () => number): Promise<void> {
    return this.#listen(() => ({ fd: open() }));
  }

  /** Opens a socket of its own, where there is no other way. */
  listenAt({ ip, port }: HostPort): Promise<void> {
    return this.#listen(() => ({ host: formatIp(ip), port }));
  }

  /** The port listened on. */
  get port(): number {
    const address = this.#server?.address() ?? null;
    return typeof address === "object" && address !== null ? address.port : 0;
  }

  /** Connections at this moment, those in a handshake among them. */
  get connections(): number {
    return this.#connections;
  }

  /** Takes no more connections; those there are stay. */
  close(): void {
    this.#closed = true;
    this.#server?.close();
  }

  async #listen(place: () => Place): Promise<void> {
    const server = createServer({ allowHalfOpen: true, noDelay: true }, (s) => this.#accept(s));
    this.#server = server;
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject);
      server.listen(place(), () => {
        server.off("error", reject);
        resolve();
      });
    });
    // Without a free descriptor to accept with, the server gives up: it is begun anew.
    server.on("error", (error) => this.#listenAgain(place, error));
  }

  #listenAgain(place: () => Place, error: unknown): void {
    if (this.#closed) return;
    log.warn("a TCP listener failed and begins anew", { error: messageOf(error) });
    this.#server?.close();
    setTimeout(() => {
      if (!this.#closed) this.#listen(place).catch((again) => this.#listenAgain(place, again));
    }, LISTEN_AGAIN_MS);
  }

  #accept(socket: Socket): void {
    // Gone before it was accepted: there is nobody to answer.
    const remote = socket.remoteAddress;
    if (remote === undefined || this.#closed) {
      socket.destroy();
      return;
    }
    const client = remote.startsWith("::ffff:") ? remote.slice(7) : remote;
    const held = this.#perClient.get(client) ?? 0;
    const { connectionsMax, connectionsPerClientMax } = this.#limits;
    const isOver = this.#connections >= connectionsMax || held >= connectionsPerClientMax;
    if (isOver || !this.#gate.admits(client)) {
      if (isOver) this.#gate.onRefused();
      socket.on("error", () => {});
      socket.destroy();
      return;
    }
    this.#perClient.set(client, held + 1);
    this.#connections++;
    socket.on("error", () => socket.destroy()); // Resets are part of the network.
    socket.on("close", () => this.#forget(client));
    this.#onSocket(socket, client);
  }

  #forget(client: string): void {
    this.#connections--;
    const held = (this.#perClient.get(client) ?? 1) - 1;
    if (held > 0) this.#perClient.set(client, held);
    else this.#perClient.delete(client);
  }
}
