import { createServer, type Server, type Socket } from "node:net";
import { formatHostPort, formatIp, type HostPort } from "../addr/mod.ts";
import { concat, getU16 } from "../bytes/mod.ts";
import { messageOf } from "../errors.ts";
import { log } from "../log.ts";
import { every } from "./every.ts";

/** Whoever asks for a proof asks once. */
const CONNECTIONS_MAX = 64;
const REQUEST_BYTES_MAX = 4_096;
const CONNECTION_MS_MAX = 5_000;
/** Packets that are answered in a second; those that look for a proof send a handful. */
const PACKETS_MAX = 200;
/** How often an address is tried again that could not be listened on. */
const AGAIN_MS = 60_000;

export interface ProofServerOptions {
  readonly listen: readonly HostPort[];
  /** A socket of that address, which the server may close; `null`: it opens its own. */
  readonly copy: ((address: HostPort) => number) | null;
  /** The answer to what a connection has sent, behind which it ends; `null`: more is to come. */
  readonly reply: (received: Uint8Array, isWhole: boolean) => Uint8Array | null;
  /** The answer to a packet, or none; `null`: packets are not taken. */
  readonly replyTo: ((packet: Uint8Array) => Uint8Array | null) | null;
}

/** Shows proofs to whoever asks, and nothing else: one request a connection, within limits. */
export class ProofServer {
  readonly #options: ProofServerOptions;
  readonly #servers = new Map<HostPort, Server>();
  readonly #packets = new Map<HostPort, Deno.DatagramConn>();
  readonly #guests = new Set<Socket>();
  readonly #failures = new Map<HostPort, string>();
  #endTrying: () => void = () => {};
  #second = 0;
  #answered = 0;

  constructor(options: ProofServerOptions) {
    this.#options = options;
  }

  get problems(): string[] {
    return [...this.#failures].map(([address, reason]) =>
      `acme.listen: ${formatHostPort(address)} can't be listened on, so nobody is shown a proof ` +
      `there: ${reason}: free the port and restart svc, or name another`
    );
  }

  start(): void {
    this.#listen();
    this.#endTrying = every(AGAIN_MS, () => this.#listen());
  }

  stop(): void {
    this.#endTrying();
    for (const server of this.#servers.values()) server.close();
    for (const packets of this.#packets.values()) packets.close();
    this.#servers.clear();
    this.#packets.clear();
    for (const guest of this.#guests) guest.destroy();
  }

  #listen(): void {
    for (const address of this.#options.listen) {
      if (this.#servers.has(address)) continue;
      try {
        const hostname = formatIp(address.ip);
        const fd = this.#options.copy?.(address);
        if (this.#options.replyTo !== null) {
          const { port } = address;
          const packets = Deno.listenDatagram({ transport: "udp", hostname, port });
          this.#packets.set(address, packets);
          void this.#answer(packets);
        }
        const server = createServer((socket) => this.#serve(socket));
        server.on("error", (error) => this.#fail(address, error));
        if (fd === undefined) server.listen({ host: hostname, port: address.port });
        else server.listen({ fd });
        this.#servers.set(address, server);
        this.#failures.delete(address);
      } catch (error) {
        this.#fail(address, error);
      }
    }
  }

  #fail(address: HostPort, error: unknown): void {
    const reason = messageOf(error);
    this.#servers.delete(address);
    this.#packets.get(address)?.close();
    this.#packets.delete(address);
    if (!this.#failures.has(address)) {
      log.error("proofs can't be shown", { listen: formatHostPort(address), error: reason });
    }
    this.#failures.set(address, reason);
  }

  async #answer(packets: Deno.DatagramConn): Promise<void> {
    for (;;) {
      try {
        const [packet, from] = await packets.receive();
        const second = Math.floor(performance.now() / 1_000);
        if (second !== this.#second) [this.#second, this.#answered] = [second, 0];
        if (++this.#answered > PACKETS_MAX) continue;
        const answer = this.#options.replyTo?.(packet) ?? null;
        if (answer !== null) await packets.send(answer, from);
      } catch (error) {
        if (error instanceof Deno.errors.BadResource || error instanceof Deno.errors.Interrupted) {
          return; // It is closed.
        }
        log.warn("a question for a proof can't be answered", { error });
      }
    }
  }

  #serve(socket: Socket): void {
    socket.on("error", () => {}); // It is closed then.
    if (this.#guests.size >= CONNECTIONS_MAX) {
      socket.destroy();
      return;
    }
    this.#guests.add(socket);
    const timer = setTimeout(() => socket.destroy(), CONNECTION_MS_MAX);
    socket.on("close", () => {
      clearTimeout(timer);
      this.#guests.delete(socket);
    });
    let received: Uint8Array = new Uint8Array(0);
    socket.on("data", (bytes: Uint8Array) => {
      if (socket.writableEnded) return; // Read all the same: no reset overtakes the answer.
      received = concat(received, bytes.subarray(0, REQUEST_BYTES_MAX - received.length));
      const answer = this.#options.reply(received, received.length >= REQUEST_BYTES_MAX);
      if (answer !== null) socket.end(answer);
    });
  }
}

/** A target may be a whole URL (RFC 9112 §3.2.2). */
const REQUEST =
  /^GET (?:[Hh][Tt]{2}[Pp][Ss]?:\/\/[\w\-.:[\]]{1,255})?(\/[\x21-\x7e]{0,1024}) HTTP\/1\.[01]\r\n/;

/** Answers a request over HTTP/1.1, once its head is there; `textOf` tells what is at a path. */
export function answerHttp(
  received: Uint8Array,
  isWhole: boolean,
  textOf: (path: string) => string | null,
): Uint8Array | null {
  const head = new TextDecoder("latin1").decode(received);
  if (!head.includes("\r\n\r\n") && !isWhole) return null;
  const path = REQUEST.exec(head)?.[1];
  const text = path === undefined ? null : textOf(path);
  const status = text === null ? "404 Not Found" : "200 OK";
  const body = text ?? "there is nothing here\n";
  return new TextEncoder().encode(
    `HTTP/1.1 ${status}\r\ncontent-type: text/plain\r\ncontent-length: ${body.length}\r\n` +
      "cache-control: no-store\r\nx-content-type-options: nosniff\r\nconnection: close\r\n\r\n" +
      body,
  );
}

/** Answers a DNS message over TCP, once it is there; an empty answer ends the connection. */
export function answerFramed(
  received: Uint8Array,
  reply: (packet: Uint8Array) => Uint8Array | null,
): Uint8Array | null {
  if (received.length < 2) return null;
  const length = getU16(received, 0);
  if (received.length < 2 + length) return length > REQUEST_BYTES_MAX ? new Uint8Array(0) : null;
  const answer = reply(received.subarray(2, 2 + length)) ?? new Uint8Array(0);
  return answer.length === 0
    ? answer
    : concat(Uint8Array.of(answer.length >> 8, answer.length), answer);
}
