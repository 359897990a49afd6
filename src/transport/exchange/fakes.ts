/** Servers of DNS over TLS, HTTPS and QUIC that a test has under its thumb. */
import assert from "node:assert/strict";
import { createSecureServer, type Http2SecureServer, type ServerHttp2Stream } from "node:http2";
import type { AddressInfo, Server, Socket } from "node:net";
import { createServer, type TLSSocket } from "node:tls";
import type { Issued } from "../../../tests/e2e/certificates.ts";
import { parseIp } from "../../addr/mod.ts";
import { setU16 } from "../../bytes/mod.ts";
import { FrameReader } from "../frames.ts";
import type { EncryptedTransport, EncryptedUpstream } from "./encrypted.ts";
import type { ExchangeEvents } from "./udp.ts";

export const LOOPBACK = parseIp("127.0.0.1")!;
const WAIT_MS_MAX = 20_000;

export async function until(what: string, holds: () => boolean): Promise<void> {
  const endMs = performance.now() + WAIT_MS_MAX;
  while (!holds()) {
    assert.ok(performance.now() < endMs, `in time: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}

/** Notes what an exchange tells, as `token: bytes` and `token failure`. */
export class Notes implements ExchangeEvents {
  readonly lines: string[] = [];
  /** Told of what is answered, as the forwarder does. */
  cancel: (token: number) => void = () => {};

  onPacket(token: number, packet: Uint8Array, length: number): void {
    this.lines.push(`${token}: ${packet.slice(0, length).join(" ")}`);
    this.cancel(token);
  }

  onFailure(token: number, failure: string): void {
    this.lines.push(`${token} ${failure}`);
    this.cancel(token);
  }

  async expect(...lines: string[]): Promise<void> {
    await until(lines.join(), () => this.lines.length >= lines.length);
    assert.deepEqual(this.lines.splice(0).sort(), lines);
  }
}

/** A message of an ID and some bytes, which is as much as an exchange looks at. */
export function message(id: number, ...bytes: number[]): Uint8Array<ArrayBuffer> {
  return Uint8Array.of(id >> 8, id & 255, ...bytes);
}

function framed(packet: Uint8Array): Uint8Array {
  const frame = new Uint8Array(2 + packet.length);
  setU16(frame, 0, packet.length);
  frame.set(packet, 2);
  return frame;
}

/** A query that came in, and how it is answered. */
export interface Asked {
  readonly connection: number;
  readonly packet: Uint8Array;
  reply(packet: Uint8Array): void;
  /** Ends the connection, without a word. */
  hangUp(): void;
}

export interface FakeServer extends AsyncDisposable {
  readonly port: number;
  readonly asked: Asked[];
  /** Connections that were opened, and those that are open. */
  readonly connections: { opened: number; open: number };
  /** What happens to each query as it comes; nothing: it waits in `asked`. */
  script: ((asked: Asked) => void) | null;
  /** Takes no connection any more, and closes those there are. */
  stop(): Promise<void>;
  /** Takes connections again. */
  restart(): Promise<void>;
}

/** Echoes a query, each byte behind the ID one higher. */
export const echo = ({ packet, reply }: Asked): void =>
  reply(packet.map((byte, i) => i < 2 ? byte : byte + 1));

async function listening(server: Server | Http2SecureServer, port: number): Promise<number> {
  await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", () => resolve()));
  return (server.address() as AddressInfo).port;
}

abstract class Fake implements FakeServer {
  port = 0;
  readonly asked: Asked[] = [];
  readonly connections = { opened: 0, open: 0 };
  script: FakeServer["script"] = null;
  #server: Server | Http2SecureServer | null = null;
  readonly #sockets = new Set<Socket>();

  protected abstract make(): Server | Http2SecureServer;

  async restart(): Promise<void> {
    const server = this.#server = this.make();
    server.on("connection", (socket: Socket) => {
      this.#sockets.add(socket);
      socket.on("error", () => socket.destroy());
      socket.on("close", () => this.#sockets.delete(socket));
    });
    this.port = await listening(server, this.port);
  }

  async stop(): Promise<void> {
    const server = this.#server;
    this.#server = null;
    if (server === null) return;
    const closed = new Promise((resolve) => server.close(resolve));
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  protected note(asked: Asked): void {
    this.asked.push(asked);
    this.script?.(asked);
  }

  protected opened(socket: { on(event: "close", listener: () => void): unknown }): number {
    const { connections } = this;
    connections.open++;
    socket.on("close", () => connections.open--);
    return connections.opened++;
  }
}

class FakeDot extends Fake {
  constructor(private readonly issued: Issued, private readonly alpn: string[] | undefined) {
    super();
  }

  protected override make(): Server {
    const { issued, alpn } = this;
    return createServer(
      { ...issued, ...(alpn && { ALPNProtocols: alpn }) },
      (socket: TLSSocket) => {
        const connection = this.opened(socket);
        const frames = new FrameReader();
        socket.on("error", () => socket.destroy());
        socket.on("data", (chunk: Uint8Array) => {
          frames.push(chunk);
          for (let frame = frames.next(); frame !== null; frame = frames.next()) {
            this.note({
              connection,
              packet: frame.slice(),
              reply: (packet) => void (socket.destroyed || socket.write(framed(packet))),
              hangUp: () => socket.destroy(),
            });
          }
        });
      },
    );
  }
}

/** A query over HTTPS, with its head. */
export interface AskedHttps extends Asked {
  readonly head: Readonly<Record<string, unknown>>;
  readonly stream: ServerHttp2Stream;
}

class FakeDoh extends Fake {
  constructor(private readonly issued: Issued, private readonly streamsMax: number) {
    super();
  }

  protected override make(): Http2SecureServer {
    const server = createSecureServer({
      ...this.issued,
      settings: { maxConcurrentStreams: this.streamsMax },
    });
    server.on("session", (session) => {
      const connection = this.opened(session);
      session.on("error", () => session.destroy());
      session.on("stream", (stream: ServerHttp2Stream, head: Record<string, unknown>) => {
        const chunks: Uint8Array[] = [];
        stream.on("error", () => {}); // The client gave it up.
        stream.on("data", (chunk: Uint8Array) => chunks.push(chunk));
        stream.on("end", () => {
          const asked: AskedHttps = {
            connection,
            head,
            stream,
            packet: Uint8Array.from(chunks.flatMap((chunk) => [...chunk])),
            reply: (packet) => {
              stream.respond({ ":status": 200, "content-type": "application/dns-message" });
              stream.end(packet);
            },
            hangUp: () => session.destroy(),
          };
          this.note(asked);
        });
      });
    });
    return server;
  }
}

/** A query over QUIC, with its stream. */
export interface AskedQuic extends Asked {
  /** Sends bytes as they are, and `isEnd` ends the stream. */
  write(bytes: Uint8Array, isEnd: boolean): void;
}

/** Its socket stays while it is away: the runtime frees none at a certain time. */
class FakeDoq implements FakeServer {
  readonly port: number;
  readonly asked: AskedQuic[] = [];
  readonly connections = { opened: 0, open: 0 };
  script: FakeServer["script"] = null;
  readonly #endpoint = new Deno.QuicEndpoint({ hostname: "127.0.0.1", port: 0 });
  readonly #listener: Deno.QuicListener;
  readonly #conns = new Set<Deno.QuicConn>();
  #isAway = false;

  constructor({ cert, key }: Issued, streamsMax: number, alpn: string) {
    this.port = this.#endpoint.addr.port;
    this.#listener = this.#endpoint.listen({
      cert,
      key,
      alpnProtocols: [alpn],
      maxConcurrentBidirectionalStreams: streamsMax,
    });
    void this.#listen();
  }

  async #listen(): Promise<void> {
    for (;;) {
      let incoming: Deno.QuicIncoming;
      try {
        incoming = await this.#listener.incoming();
      } catch {
        return; // The endpoint is closed.
      }
      if (this.#isAway) incoming.refuse();
      else void this.#take(incoming).catch(() => {}); // It speaks something else.
    }
  }

  async #take(incoming: Deno.QuicIncoming): Promise<void> {
    // Any other option would have it show the endpoint's first certificate.
    const conn = incoming.accept({ zeroRtt: true });
    conn.closed.catch(() => {});
    const { connections } = this;
    if (!await conn.handshake.then(() => true, () => false)) return;
    this.#conns.add(conn);
    connections.open++;
    const connection = connections.opened++;
    const onClose = () => {
      connections.open--;
      this.#conns.delete(conn);
    };
    conn.closed.then(onClose, onClose);
    try {
      for await (const stream of conn.incomingBidirectionalStreams) {
        void this.#read(conn, connection, stream).catch(() => {}); // The client gave it up.
      }
    } catch {
      // The connection is closed.
    }
  }

  async #read(
    conn: Deno.QuicConn,
    connection: number,
    { readable, writable }: Deno.QuicBidirectionalStream,
  ): Promise<void> {
    const chunks: number[] = [];
    for await (const chunk of readable) chunks.push(...chunk);
    assert.equal(chunks.length, 2 + 256 * chunks[0] + chunks[1], "one message, and the end");
    const writer = writable.getWriter();
    writer.closed.catch(() => {});
    const write = (bytes: Uint8Array, isEnd: boolean) => {
      writer.write(Uint8Array.from(bytes)).catch(() => {});
      if (isEnd) writer.close().catch(() => {});
    };
    const asked: AskedQuic = {
      connection,
      packet: Uint8Array.from(chunks.slice(2)),
      write,
      reply: (packet) => write(framed(packet), true),
      hangUp: () => conn.close({ closeCode: 0, reason: "" }),
    };
    this.asked.push(asked);
    this.script?.(asked);
  }

  stop(): Promise<void> {
    this.#isAway = true;
    for (const conn of this.#conns) conn.close({ closeCode: 0, reason: "" });
    return Promise.resolve();
  }

  restart(): Promise<void> {
    this.#isAway = false;
    return Promise.resolve();
  }

  [Symbol.asyncDispose](): Promise<void> {
    this.#endpoint.close();
    return Promise.resolve();
  }
}

/** DNS over TLS; `alpn` is left out for a server that knows nothing of it. */
export async function fakeDot(issued: Issued, alpn?: string[]): Promise<FakeServer> {
  const server = new FakeDot(issued, alpn);
  await server.restart();
  return server;
}

/** DNS over HTTPS. */
export async function fakeDoh(issued: Issued, streamsMax = 100): Promise<FakeServer> {
  const server = new FakeDoh(issued, streamsMax);
  await server.restart();
  return server;
}

/** DNS over QUIC. */
export function fakeDoq(issued: Issued, streamsMax = 256, alpn = "doq"): FakeServer {
  return new FakeDoq(issued, streamsMax, alpn);
}

/** An upstream on loopback, by the name that its certificate covers. */
export function upstreamAt(
  transport: EncryptedTransport,
  port: number,
  ca: string | null,
  more: Partial<EncryptedUpstream> = {},
): EncryptedUpstream {
  const path = transport === "https" ? "/dns-query" : "";
  return { transport, serverName: "dns.test", port, path, ca, ips: [LOOPBACK], ...more };
}
