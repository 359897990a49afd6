/** What the tests of the listeners stand on: certificates, a handler that echoes, and clients. */
import assert from "node:assert/strict";
import { connect, type Socket } from "node:net";
import { connect as connectTls, type ConnectionOptions } from "node:tls";
import { makeAuthority } from "../../tests/e2e/certificates.ts";
import { FrameReader } from "./frames.ts";
import type { DnsStream } from "./listen/dns_streams.ts";
import type { DotHandler } from "./listen/dot.ts";
import type { TlsIdentity } from "./listen/tls.ts";

/** Longest wait for anything in these tests. */
const WAIT_MS_MAX = 30_000;

export const DOMAIN = "dns.svc.test";
export const AUTHORITY = await makeAuthority();

/** A certificate for these names, as a listener takes it. */
export async function identityOf(...names: string[]): Promise<TlsIdentity> {
  const { cert, key } = await AUTHORITY.issue({ names });
  const encoder = new TextEncoder();
  return { cert: encoder.encode(cert), key: encoder.encode(key) };
}

export async function until(what: string, holds: () => boolean): Promise<void> {
  const endMs = performance.now() + WAIT_MS_MAX;
  while (!holds()) {
    assert.ok(performance.now() < endMs, `in time: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}

/** Echoes messages; those that start with `w` wait until they are answered by name. */
export class EchoHandler implements DotHandler {
  readonly waiting: { connection: DnsStream; text: string }[] = [];
  readonly seen: string[] = [];
  readonly clients: string[] = [];
  readonly serverNames: (string | null)[] = [];
  refused = 0;
  handshakeFailures = 0;
  /** Bytes behind each answer. */
  padding = 0;

  onMessage(connection: DnsStream, message: Uint8Array): boolean {
    const text = new TextDecoder().decode(message);
    this.seen.push(text);
    if (text.startsWith("w")) {
      this.waiting.push({ connection, text });
      return true;
    }
    if (!text.startsWith("drop")) this.send(connection, text);
    return false;
  }

  onOpen(connection: DnsStream): void {
    this.clients.push(connection.client);
    this.serverNames.push(connection.serverName);
  }

  /** Whom nobody lets in. */
  unwelcome = "";

  admits(client: string): boolean {
    return client !== this.unwelcome;
  }

  onRefused(): void {
    this.refused++;
  }

  onHandshakeFailure(): void {
    this.handshakeFailures++;
  }

  send(connection: DnsStream, text: string): void {
    // The answer stands somewhere in a buffer that is used again at once.
    const bytes = new TextEncoder().encode(`##${text}${".".repeat(this.padding)}##`);
    connection.send(bytes, 2, bytes.length - 4);
    bytes.fill(0);
  }

  answer(text: string): void {
    const i = this.waiting.findIndex((w) => w.text === text);
    const [{ connection }] = this.waiting.splice(i, 1);
    this.send(connection, text);
    connection.settled();
  }
}

export class Client {
  readonly answers: string[] = [];
  ended = false;
  closed = false;
  /** What it was closed by, unless that was an end. */
  error: Error | null = null;
  readonly #frames = new FrameReader();

  private constructor(readonly socket: Socket) {
    socket.on("data", (chunk: Uint8Array) => {
      this.#frames.push(chunk);
      for (let m = this.#frames.next(); m !== null; m = this.#frames.next()) {
        this.answers.push(new TextDecoder().decode(m));
      }
    });
    socket.on("end", () => this.ended = true);
    socket.on("error", (error) => this.error = error); // A reset is one of the ways to be closed.
    socket.on("close", () => this.closed = true);
  }

  static async to(port: number): Promise<Client> {
    const socket = connect({ host: "127.0.0.1", port, allowHalfOpen: true, noDelay: true });
    const client = new Client(socket);
    await until("connected", () => !socket.connecting);
    return client;
  }

  /** Over TLS; the handshake may fail, which looks like a connection that is closed. */
  static async toTls(port: number, options: ConnectionOptions = {}): Promise<Client> {
    const raw = connect({ host: "127.0.0.1", port, allowHalfOpen: true, noDelay: true });
    const socket = connectTls({
      socket: raw,
      servername: DOMAIN,
      ca: AUTHORITY.cert,
      ALPNProtocols: ["dot"],
      ...options,
    });
    socket.allowHalfOpen = true;
    let isSecure = false;
    socket.on("secureConnect", () => isSecure = true);
    const client = new Client(socket);
    await until("a handshake", () => isSecure || client.closed);
    return client;
  }

  /** Sends messages in one write. */
  send(...texts: string[]): void {
    this.socket.write(Client.framed(texts));
  }

  static framed(texts: string[]): Uint8Array {
    return Uint8Array.from(texts.flatMap((text) => {
      const bytes = new TextEncoder().encode(text);
      return [bytes.length >> 8, bytes.length & 255, ...bytes];
    }));
  }

  async expect(...answers: string[]): Promise<void> {
    await until(`answers ${answers}`, () => this.answers.length >= answers.length);
    assert.deepEqual(this.answers.splice(0), answers);
  }
}
