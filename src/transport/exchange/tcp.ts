import { connect, type Socket } from "node:net";
import { formatIp, type HostPort } from "../../addr/mod.ts";
import { getU16, setU16 } from "../../bytes/mod.ts";
import { FrameReader } from "../frames.ts";
import { type ExchangeEvents, lacksSocket, type Sending } from "./udp.ts";

/** Connections to one upstream at a time. */
const CONNECTIONS_MAX = 4;
/** Queries on one connection that wait for their answers. */
const PENDING_MAX = 256;
/** An idle connection is kept this long for the next query (RFC 7766 §6.2.3). */
const IDLE_MS = 5_000;

class Connection {
  readonly socket: Socket;
  /** Tokens by message ID. */
  readonly pending = new Map<number, number>();
  open = true;
  /** It has carried an answer: if it closes now, the other side may just have been idle. */
  proven = false;

  constructor(address: HostPort) {
    this.socket = connect({ host: formatIp(address.ip), port: address.port, noDelay: true });
    this.socket.setTimeout(IDLE_MS);
  }
}

/** A query on its way. */
interface Sent {
  readonly upstream: number;
  readonly connection: Connection;
  readonly id: number;
  readonly frame: Uint8Array;
  /** It was on a connection that closed, and is sent no third time. */
  readonly again: boolean;
}

/** Queries to upstreams over TCP: connections are shared, answers come in any order (RFC 7766). */
export class TcpExchange {
  readonly #connections: Connection[][];
  readonly #byToken = new Map<number, Sent>();

  constructor(
    private readonly upstreams: readonly (HostPort | null)[],
    private readonly events: ExchangeEvents,
  ) {
    this.#connections = upstreams.map(() => []);
  }

  send(upstream: number, packet: Uint8Array, lengthBytes: number, token: number): Sending {
    const frame = new Uint8Array(2 + lengthBytes);
    setU16(frame, 0, lengthBytes);
    frame.set(packet.subarray(0, lengthBytes), 2);
    return this.#send(upstream, frame, token, false);
  }

  #send(upstream: number, frame: Uint8Array, token: number, again: boolean): Sending {
    const address = this.upstreams[upstream];
    if (address === null) return "unreachable";
    const id = getU16(frame, 2);
    const connections = this.#connections[upstream];
    const usable = connections.find((c) => c.pending.size < PENDING_MAX && !c.pending.has(id));
    if (usable === undefined && connections.length >= CONNECTIONS_MAX) return "full";
    const connection = usable ?? this.#connect(upstream, address);
    connection.pending.set(id, token);
    this.#byToken.set(token, { upstream, connection, id, frame, again });
    connection.socket.write(frame);
    return "sent";
  }

  /** There are connections, or there are to be. */
  get isInUse(): boolean {
    return this.#connections.some(({ length }) => length > 0);
  }

  cancel(token: number): void {
    const sent = this.#byToken.get(token);
    if (sent === undefined) return;
    this.#byToken.delete(token);
    if (sent.connection.pending.get(sent.id) === token) sent.connection.pending.delete(sent.id);
  }

  close(): void {
    for (const connections of this.#connections) {
      for (const { socket, pending } of [...connections]) {
        pending.clear(); // Nobody waits any more.
        socket.destroy();
      }
    }
  }

  #connect(upstream: number, address: HostPort): Connection {
    const connection = new Connection(address);
    const connections = this.#connections[upstream];
    connections.push(connection);
    const frames = new FrameReader();
    const end = (error?: Error) => {
      if (!connection.open) return;
      connection.open = false;
      connections.splice(connections.indexOf(connection), 1);
      connection.socket.destroy();
      for (const token of [...connection.pending.values()]) {
        const sent = this.#byToken.get(token);
        this.#byToken.delete(token);
        // Closed for idleness just as we sent: that is no failure (RFC 7766 §6.2.4).
        const retry = connection.proven && sent !== undefined && !sent.again;
        if (retry && this.#send(sent.upstream, sent.frame, token, true) === "sent") continue;
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
    });
    connection.socket.on("timeout", () => end());
    connection.socket.on("error", end);
    connection.socket.on("close", () => end());
    return connection;
  }
}
