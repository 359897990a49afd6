import { createServer, type Server, type Socket } from "node:net";
import { setU16 } from "../../bytes/mod.ts";
import { formatIp, type HostPort } from "../../addr/mod.ts";
import { messageOf } from "../../errors.ts";
import { log } from "../../log.ts";
import { FrameReader } from "../frames.ts";

export interface TcpLimits {
  /** Connections of one listener at a time; the next is closed. */
  readonly connectionsMax: number;
  /** Connections of one client address. */
  readonly connectionsPerClientMax: number;
  /** Queries of one connection that wait for their answers; then it is not read on. */
  readonly queriesMax: number;
  /** A connection without a whole query for this long is closed. */
  readonly idleMs: number;
  /** Bytes of answers that a client leaves unread before it is cut off. */
  readonly unreadBytesMax: number;
}

/** Where answers go. */
export interface TcpConnection {
  /** The client's address as text; IPv4-mapped ones as IPv4. */
  readonly client: string;
  /** Sends a message, now or with the others of this read. */
  send(message: Uint8Array, offset: number, length: number): void;
  /** One query that waited has been answered, or never will be. */
  settled(): void;
}

export interface TcpHandler {
  /**
   * A whole message, which is the handler's only during the call. Returns false when it is done
   * with; true when its answer waits: then `settled` is called once, now or later.
   */
  onMessage(connection: TcpConnection, message: Uint8Array): boolean;
  onOpen(connection: TcpConnection): void;
  /** A connection over a limit was closed. */
  onRefused(): void;
}

/** How long after a failure a listener begins anew. */
const LISTEN_AGAIN_MS = 1_000;
/** How often idle connections are looked for. */
const SWEEP_MS = 1_000;
/** Answers of one read are put together up to this size. */
const GATHER_BYTES = 64 * 1024 + 2;

/** What `node:net` is told to listen on. */
type Place = { readonly fd: number } | { readonly host: string; readonly port: number };

class Connection implements TcpConnection {
  readonly frames = new FrameReader();
  waiting = 0;
  lastQueryMs: number;
  ended = false;
  closed = false;

  constructor(
    readonly listener: TcpListener,
    readonly socket: Socket,
    readonly client: string,
    nowMs: number,
  ) {
    this.lastQueryMs = nowMs;
  }

  send(message: Uint8Array, offset: number, length: number): void {
    if (!this.closed) this.listener.send(this, message, offset, length);
  }

  settled(): void {
    this.waiting--;
    if (!this.closed) this.listener.afterSettled(this);
  }
}

/** DNS over TCP: many queries on a connection, answers in any order (RFC 7766). */
export class TcpListener {
  #server: Server | null = null;
  readonly #handler: TcpHandler;
  readonly #limits: TcpLimits;
  readonly #connections = new Set<Connection>();
  readonly #perClient = new Map<string, number>();
  readonly #gathered = new Uint8Array(GATHER_BYTES);
  #gatheredBytes = 0;
  /** The connection whose queries are being read: its answers are gathered. */
  #reading: Connection | null = null;
  readonly #sweep: ReturnType<typeof setInterval>;
  #draining = false;

  constructor(handler: TcpHandler, limits: TcpLimits) {
    this.#handler = handler;
    this.#limits = limits;
    this.#sweep = setInterval(() => this.#closeIdle(), SWEEP_MS);
    Deno.unrefTimer(Number(this.#sweep));
  }

  /**
   * Listens on a socket that somebody opened. `open` gives a number of it that is the listener's to
   * close, and is called again when the listener has to begin anew.
   */
  listenOn(open: () => number): Promise<void> {
    return this.#listen(() => ({ fd: open() }));
  }

  /** Opens a socket of its own, where there is no other way. */
  listenAt({ ip, port }: HostPort): Promise<void> {
    return this.#listen(() => ({ host: formatIp(ip), port }));
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
    if (this.#draining) return;
    log.warn("a TCP listener failed and begins anew", { error: messageOf(error) });
    this.#server?.close();
    setTimeout(() => {
      if (!this.#draining) this.#listen(place).catch((again) => this.#listenAgain(place, again));
    }, LISTEN_AGAIN_MS);
  }

  /** The port listened on. */
  get port(): number {
    const address = this.#server?.address() ?? null;
    return typeof address === "object" && address !== null ? address.port : 0;
  }

  /** Connections at this moment. */
  get connections(): number {
    return this.#connections.size;
  }

  /** Takes no more connections and queries; those that wait are answered. */
  drain(): void {
    this.#draining = true;
    this.#server?.close();
    clearInterval(this.#sweep);
    for (const connection of this.#connections) {
      connection.socket.pause();
      if (connection.waiting === 0) connection.socket.end();
    }
  }

  close(): void {
    this.drain();
    for (const { socket } of this.#connections) socket.destroy();
  }

  /** Called by a connection of this listener. */
  send(connection: Connection, message: Uint8Array, offset: number, length: number): void {
    if (this.#reading !== connection) {
      const frame = new Uint8Array(2 + length);
      setU16(frame, 0, length);
      frame.set(message.subarray(offset, offset + length), 2);
      this.#write(connection, frame);
      return;
    }
    if (this.#gatheredBytes + 2 + length > GATHER_BYTES) this.#flush(connection);
    setU16(this.#gathered, this.#gatheredBytes, length);
    this.#gathered.set(message.subarray(offset, offset + length), this.#gatheredBytes + 2);
    this.#gatheredBytes += 2 + length;
  }

  /** Called by a connection of this listener. */
  afterSettled(connection: Connection): void {
    const { socket } = connection;
    if (this.#reading === connection) return; // Its answers are gathered; see `#readOn`.
    if (connection.waiting === 0 && (connection.ended || this.#draining)) {
      socket.end();
    } else if (socket.isPaused() && !this.#draining) {
      this.#readOn(connection);
    }
  }

  #accept(socket: Socket): void {
    // Gone before it was accepted: there is nobody to answer.
    const remote = socket.remoteAddress;
    if (remote === undefined || this.#draining) {
      socket.destroy();
      return;
    }
    const client = remote.startsWith("::ffff:") ? remote.slice(7) : remote;
    const held = this.#perClient.get(client) ?? 0;
    const { connectionsMax, connectionsPerClientMax } = this.#limits;
    if (this.#connections.size >= connectionsMax || held >= connectionsPerClientMax) {
      this.#handler.onRefused();
      socket.on("error", () => {});
      socket.destroy();
      return;
    }
    this.#perClient.set(client, held + 1);
    const connection = new Connection(this, socket, client, performance.now());
    this.#connections.add(connection);
    this.#handler.onOpen(connection);
    socket.on("data", (chunk: Uint8Array) => {
      connection.frames.push(chunk);
      this.#readOn(connection);
    });
    socket.on("end", () => {
      connection.ended = true;
      if (connection.waiting === 0) socket.end();
    });
    socket.on("error", () => socket.destroy()); // Resets are part of the network.
    socket.on("close", () => this.#forget(connection));
  }

  /** Hands whole messages on, until as many wait as may. */
  #readOn(connection: Connection): void {
    const { socket, frames } = connection;
    const outer = this.#reading;
    // One buffer gathers for all: what is in it is the outer connection's.
    if (outer !== null) this.#flush(outer);
    this.#reading = connection;
    let message = frames.next();
    while (message !== null) {
      connection.lastQueryMs = performance.now();
      // Counted first: it may be settled during the call.
      connection.waiting++;
      if (!this.#handler.onMessage(connection, message)) connection.waiting--;
      if (connection.waiting >= this.#limits.queriesMax || connection.closed) break;
      message = frames.next();
    }
    this.#flush(connection);
    this.#reading = outer;
    if (connection.ended && connection.waiting === 0) socket.end();
    else if (connection.waiting >= this.#limits.queriesMax) socket.pause();
    else if (socket.isPaused()) socket.resume();
  }

  #flush(connection: Connection): void {
    if (this.#gatheredBytes === 0) return;
    const bytes = this.#gathered.slice(0, this.#gatheredBytes);
    this.#gatheredBytes = 0;
    this.#write(connection, bytes);
  }

  #write(connection: Connection, bytes: Uint8Array): void {
    const { socket } = connection;
    socket.write(bytes);
    if (socket.writableLength > this.#limits.unreadBytesMax) socket.destroy();
  }

  #closeIdle(): void {
    const before = performance.now() - this.#limits.idleMs;
    for (const connection of this.#connections) {
      // A client that reads nothing keeps no connection by asking on.
      if (connection.lastQueryMs < before && connection.waiting === 0) connection.socket.destroy();
    }
  }

  #forget(connection: Connection): void {
    connection.closed = true;
    this.#connections.delete(connection);
    const held = (this.#perClient.get(connection.client) ?? 1) - 1;
    if (held > 0) this.#perClient.set(connection.client, held);
    else this.#perClient.delete(connection.client);
  }
}
