import { createServer, type Server, type Socket } from "node:net";
import { formatHostPort, type HostPort } from "../addr/mod.ts";
import { messageOf } from "../errors.ts";
import { log } from "../log.ts";
import { every } from "./every.ts";

/** Whoever asks for a proof asks once. */
const CONNECTIONS_MAX = 64;
const HEAD_BYTES_MAX = 4_096;
const CONNECTION_MS_MAX = 5_000;
/** How often an address is tried again that could not be listened on. */
const AGAIN_MS = 60_000;
const REQUEST = /^GET (\/[\x21-\x7e]{0,1024}) HTTP\/1\.[01]\r\n/;

export interface ProofServerOptions {
  readonly listen: readonly HostPort[];
  /** A socket of that address, which the server may close. @throws {SvcError} `unavailable`. */
  readonly copy: (address: HostPort) => number;
  /** What is shown at a path; `null`: nothing. */
  readonly textOf: (path: string) => string | null;
}

/** Serves proofs over HTTP, and nothing else: one request a connection, read to its first line. */
export class ProofServer {
  readonly #options: ProofServerOptions;
  readonly #servers = new Map<HostPort, Server>();
  readonly #guests = new Set<Socket>();
  readonly #failures = new Map<HostPort, string>();
  #endTrying: () => void = () => {};

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
    this.#servers.clear();
    for (const guest of this.#guests) guest.destroy();
  }

  #listen(): void {
    for (const address of this.#options.listen) {
      if (this.#servers.has(address)) continue;
      try {
        const fd = this.#options.copy(address);
        const server = createServer((socket) => this.#serve(socket));
        server.on("error", (error) => {
          this.#fail(address, error);
          this.#servers.delete(address);
        });
        server.listen({ fd });
        this.#servers.set(address, server);
        this.#failures.delete(address);
      } catch (error) {
        this.#fail(address, error);
      }
    }
  }

  #fail(address: HostPort, error: unknown): void {
    const reason = messageOf(error);
    if (!this.#failures.has(address)) {
      log.error("proofs can't be shown", { listen: formatHostPort(address), error: reason });
    }
    this.#failures.set(address, reason);
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
    let head = "";
    socket.on("data", (bytes: Uint8Array) => {
      head += String.fromCharCode(...bytes.subarray(0, HEAD_BYTES_MAX));
      if (!head.includes("\r\n\r\n") && head.length < HEAD_BYTES_MAX) return;
      socket.removeAllListeners("data");
      socket.on("data", () => {}); // What follows is read, so that no reset overtakes the answer.
      const path = REQUEST.exec(head)?.[1];
      socket.end(response(path === undefined ? null : this.#options.textOf(path)));
    });
  }
}

function response(text: string | null): string {
  const status = text === null ? "404 Not Found" : "200 OK";
  const body = text ?? "there is nothing here\n";
  return `HTTP/1.1 ${status}\r\ncontent-type: text/plain\r\ncontent-length: ${body.length}\r\n` +
    `cache-control: no-store\r\nx-content-type-options: nosniff\r\nconnection: close\r\n\r\n${body}`;
}
