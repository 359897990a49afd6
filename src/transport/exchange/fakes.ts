/** Servers of DNS over TLS and over HTTPS that a test has under its thumb. */
import assert from "node:assert/strict";
import { createSecureServer, type Http2SecureServer, type ServerHttp2Stream } from "node:http2";
import type { AddressInfo, Server, Socket } from "node:net";
import { createServer, type TLSSocket } from "node:tls";
import type { Issued } from "../../../tests/e2e/certificates.ts";
import { parseIp } from "../../addr/mod.ts";
import { setU16 } from "../../bytes/mod.ts";
import { FrameReader } from "../frames.ts";
import type { EncryptedUpstream } from "./encrypted.ts";
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

/** An upstream on loopback, by the name that its certificate covers. */
export function upstreamAt(
  transport: "tls" | "https",
  port: number,
  ca: string | null,
  more: Partial<EncryptedUpstream> = {},
): EncryptedUpstream {
  const path = transport === "https" ? "/dns-query" : "";
  return { transport, serverName: "dns.test", port, path, ca, ips: [LOOPBACK], ...more };
}
