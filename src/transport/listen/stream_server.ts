import { createServer, type Server, type Socket } from "node:net";
import { formatIp, type HostPort } from "../../addr/mod.ts";
import { messageOf } from "../../errors.ts";
import { log } from "../../log.ts";
import { clientOf, ConnectionTable, type Occupancy, type TableLimits } from "./connection_table.ts";
import { PlacedSender, type Sender } from "./sender.ts";
import { ACCEPT_UNITS } from "./read_queue.ts";
import type { SharedBounds } from "./shared_bounds.ts";

export type StreamLimits = TableLimits;

/** Says who may connect. */
export interface StreamGate {
  /**
   * Asked before a byte is read and before any handshake begins. `client` is an address as text,
   * an IPv4-mapped one as IPv4. No: the connection is closed at once.
   */
  admits(client: string): boolean;
  /** A connection was closed to make room for another. */
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
  readonly #table: ConnectionTable;
  readonly #onSocket: (socket: Socket, sender: Sender) => void;
  protected readonly bounds: SharedBounds;
  #closed = false;
  #isRetiring = false;

  constructor(
    gate: StreamGate,
    limits: StreamLimits,
    bounds: SharedBounds,
    onSocket: (socket: Socket, sender: Sender) => void,
  ) {
    this.#gate = gate;
    this.#table = new ConnectionTable(limits);
    this.bounds = bounds;
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
    return this.#table.size;
  }

  /** Who has them. */
  get occupancy(): Occupancy {
    return this.#table.occupancy;
  }

  /** Takes no more connections; those there are stay. */
  close(): void {
    this.#closed = true;
    this.#server?.close();
  }

  /**
   * Leaves connections to come to whoever else listens on the socket. One that is handed over at
   * this moment is served all the same: nobody else has it.
   */
  retire(): void {
    this.#isRetiring = true;
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
    if (this.#closed || this.#isRetiring) return;
    log.warn("a TCP listener failed and begins anew", { error: messageOf(error) });
    this.#server?.close();
    setTimeout(() => {
      if (!this.#closed && !this.#isRetiring) {
        this.#listen(place).catch((again) => this.#listenAgain(place, again));
      }
    }, LISTEN_AGAIN_MS);
  }

  #accept(socket: Socket): void {
    this.bounds.reads.charge(ACCEPT_UNITS);
    // Gone before it was accepted: there is nobody to answer.
    const remote = socket.remoteAddress;
    if (remote === undefined || this.#closed) {
      socket.destroy();
      return;
    }
    const address = remote.startsWith("::ffff:") ? remote.slice(7) : remote;
    socket.on("error", () => socket.destroy()); // Resets are part of the network.
    if (!this.#gate.admits(address)) {
      socket.destroy();
      return;
    }
    const table = this.#table;
    const network = clientOf(address);
    const place = table.add(network, () => socket.destroy(), () => this.#gate.onRefused());
    socket.on("close", () => table.remove(place));
    this.#onSocket(socket, new PlacedSender(address, network, table, place));
  }
}
