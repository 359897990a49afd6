import { connect, type Socket } from "node:net";
import { formatIp, type HostPort } from "../../addr/mod.ts";
import { getU16, setU16 } from "../../bytes/mod.ts";
import { FrameReader } from "../frames.ts";
import type { PlainRemote } from "./remote.ts";
import { Silence } from "./silence.ts";
import { type ExchangeEvents, lacksSocket, type Sending } from "./udp.ts";

/** Connections at a time: to one server, and all told. */
const CONNECTIONS_MAX = 4;
export const CONNECTIONS_ALL_MAX = 256;
/** Queries on one connection that wait for their answers. */
const PENDING_MAX = 256;
/** An idle connection is kept this long for the next query (RFC 7766 §6.2.3). */
const IDLE_MS = 5_000;

/** One connection, shared by queries. */
export class Connection {
  readonly socket: Socket;
  /** Tokens by message ID. */
  readonly pending = new Map<number, number>();
  open = true;
  /** It has carried an answer: if it closes now, the other side may just have been idle. */
  proven = false;
  readonly silence: Silence;
  /** Closes it, and tells those who wait. */
  end: (error?: Error) => void = () => {};

  constructor(address: HostPort, nowMs: () => number) {
    this.silence = new Silence(nowMs);
    this.socket = connect({ host: formatIp(address.ip), port: address.port, noDelay: true });
    this.socket.setTimeout(IDLE_MS);
  }
}

/** A query on its way. */
interface Sent {
  readonly remote: PlainRemote;
  readonly connection: Connection;
  readonly id: number;
  readonly frame: Uint8Array;
  /** It was on a connection that closed, and is sent no third time. */
  readonly again: boolean;
}

/** Queries over TCP: connections are shared, answers come in any order (RFC 7766). */
export class TcpExchange {
  /** Those that are open, the oldest first. */
  readonly #open = new Set<Connection>();
  readonly #byToken = new Map<number, Sent>();

  /** `nowMs` is milliseconds of a monotonic clock. */
  constructor(
    private readonly events: ExchangeEvents,
    private readonly nowMs: () => number = () => performance.now(),
  ) {}

  send(remote: PlainRemote, packet: Uint8Array, lengthBytes: number, token: number): Sending {
    const frame = new Uint8Array(2 + lengthBytes);
    setU16(frame, 0, lengthBytes);
    frame.set(packet.subarray(0, lengthBytes), 2);
    return this.#send(remote, frame, token, false);
  }

  #send(remote: PlainRemote, frame: Uint8Array, token: number, again: boolean): Sending {
    const id = getU16(frame, 2);
    const { connections } = remote;
    this.#endDead(connections);
    const usable = connections.find((c) => c.pending.size < PENDING_MAX && !c.pending.has(id));
    if (usable === undefined && connections.length >= CONNECTIONS_MAX) return "full";
    if (usable === undefined && !this.#makeRoom()) return "full";
    const connection = usable ?? this.#connect(remote);
    connection.pending.set(id, token);
    this.#byToken.set(token, { remote, connection, id, frame, again });
    connection.silence.asked();
    connection.socket.write(frame);
    return "sent";
  }

  /** There are connections, or there are to be. */
  get isInUse(): boolean {
    return this.#open.size > 0;
  }

  cancel(token: number): void {
    const sent = this.#byToken.get(token);
    if (sent === undefined) return;
    this.#byToken.delete(token);
    if (sent.connection.pending.get(sent.id) === token) sent.connection.pending.delete(sent.id);
  }

  close(): void {
    for (const { socket, pending } of [...this.#open]) {
      pending.clear(); // Nobody waits any more.
      socket.destroy();
    }
  }

  /** Ends those that owe answers and say nothing: what is written to them keeps them open for minutes. */
  #endDead(connections: readonly Connection[]): void {
    const nowMs = this.nowMs();
    for (const connection of [...connections]) {
      if (connection.silence.isOver(nowMs, connection.pending.size)) connection.end();
    }
  }

  /** Has the oldest idle connection go where there is no room for another; false: none is idle. */
  #makeRoom(): boolean {
    if (this.#open.size < CONNECTIONS_ALL_MAX) return true;
    for (const connection of this.#open) {
      if (connection.pending.size > 0) continue;
      connection.end();
      return true;
    }
    return false;
  }

  #connect(remote: PlainRemote): Connection {
    const connection = new Connection(remote.address, this.nowMs);
    const { connections } = remote;
    connections.push(connection);
    this.#open.add(connection);
    const frames = new FrameReader();
    connection.end = (error) => {
      if (!connection.open) return;
      connection.open = false;
      this.#open.delete(connection);
      connections.splice(connections.indexOf(connection), 1);
      connection.socket.destroy();
      for (const token of [...connection.pending.values()]) {
        const sent = this.#byToken.get(token);
        this.#byToken.delete(token);
        // Closed for idleness just as we sent: that is no failure (RFC 7766 §6.2.4).
        const retry = connection.proven && sent !== undefined && !sent.again;
        if (retry && this.#send(sent.remote, sent.frame, token, true) === "sent") continue;
        this.events.onFailure(token, "closed the connection", lacksSocket(error));
      }
    };
    connection.socket.on("data", (chunk: Uint8Array) => {
      frames.push(chunk);
      for (let frame = frames.next(); frame !== null; frame = frames.next()) {
        if (frame.length < 2) continue;
        connection.proven = true;
        const token = connection.pending.get(getU16(frame, 0));
        if (token !== undefined) this.events.onPacket(token, frame, frame.length);
      }
      connection.silence.heard(connection.pending.size);
    });
    connection.socket.on("timeout", () => connection.end());
    connection.socket.on("error", (error) => connection.end(error));
    connection.socket.on("close", () => connection.end());
    return connection;
  }
}
