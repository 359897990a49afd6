/**
 * A client of the API of one svc. It shares a processor with the load, so it does no more than a
 * request needs: one text out, one answer in.
 */
import { BenchError } from "./bench_error.ts";

/** Requests on their way at a time at most. */
export const SIDE_BY_SIDE = 16;
/** A connection that has rested for so long may be closed by the server at any moment. */
const REST_MS_MAX = 3_000;
const READ_BYTES = 64 * 1024;
/** How often a svc that starts is asked whether it listens. */
const LOOK_MS = 20;
const HEAD_END = "\r\n\r\n";

export interface ApiAnswer {
  readonly status: number;
  readonly json: unknown;
  readonly tookMs: number;
}

/** Speaks HTTP/1.1 to one svc over kept connections. */
export class Api {
  readonly #resting: Connection[] = [];
  constructor(readonly port: number) {}

  /** @throws {BenchError} Where nobody listens within `msMax`. */
  static async whenUp(port: number, msMax: number): Promise<Api> {
    const api = new Api(port);
    const endsAtMs = performance.now() + msMax;
    for (;;) {
      try {
        await api.must("GET", "/health");
        return api;
      } catch (error) {
        if (!(error instanceof Deno.errors.ConnectionRefused)) throw error;
        if (performance.now() > endsAtMs) throw new BenchError(`the API is not up in ${msMax} ms`);
        await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
      }
    }
  }

  /** Sends a request; returns its status, body and time. */
  async call(method: string, path: string, body?: unknown): Promise<ApiAnswer> {
    const text = body === undefined ? "" : JSON.stringify(body);
    const content = body === undefined
      ? ""
      : `content-type: application/json\r\ncontent-length: ${new Blob([text]).size}\r\n`;
    const head = `${method} /api/v1${path} HTTP/1.1\r\nhost: 127.0.0.1:${this.port}\r\n${content}`;
    const startedMs = performance.now();
    const connection = await this.#connection();
    const { status, body: answer } = await connection.exchange(`${head}\r\n${text}`);
    const endedMs = performance.now();
    connection.restsSinceMs = endedMs;
    this.#resting.push(connection);
    const json: unknown = answer === "" ? null : JSON.parse(answer);
    return { status, json, tookMs: endedMs - startedMs };
  }

  /** Sends a request that has to succeed; returns its answer. */
  async must(method: string, path: string, body?: unknown): Promise<Record<string, unknown>> {
    const { status, json } = await this.call(method, path, body);
    if (status >= 300) throw new BenchError(`${method} ${path}: ${status} ${JSON.stringify(json)}`);
    return json as Record<string, unknown>;
  }

  close(): void {
    for (const connection of this.#resting.splice(0)) connection.close();
  }

  async #connection(): Promise<Connection> {
    for (;;) {
      const connection = this.#resting.pop();
      if (connection === undefined) break;
      if (performance.now() - connection.restsSinceMs < REST_MS_MAX) return connection;
      connection.close();
    }
    return new Connection(await Deno.connect({ hostname: "127.0.0.1", port: this.port }));
  }
}

class Connection {
  restsSinceMs = 0;
  readonly #conn: Deno.TcpConn;
  readonly #chunk = new Uint8Array(READ_BYTES);
  readonly #encoder = new TextEncoder();

  constructor(conn: Deno.TcpConn) {
    this.#conn = conn;
    conn.setNoDelay(true);
  }

  /** Sends a whole request; returns the answer, whose length its head says. */
  async exchange(request: string): Promise<{ status: number; body: string }> {
    const bytes = this.#encoder.encode(request);
    for (let sent = 0; sent < bytes.length;) sent += await this.#conn.write(bytes.subarray(sent));
    const decoder = new TextDecoder();
    let text = "";
    /** Bytes that are still to come; `null` until the head is there. */
    let missing: number | null = null;
    let status = 0;
    while (missing === null || missing > 0) {
      const read = await this.#conn.read(this.#chunk);
      if (read === null) throw new BenchError(`the API closed the connection within ${text}`);
      text += decoder.decode(this.#chunk.subarray(0, read), { stream: true });
      if (missing !== null) {
        missing -= read;
        continue;
      }
      const end = text.indexOf(HEAD_END);
      if (end < 0) continue;
      const head = text.slice(0, end);
      status = Number(/^HTTP\/1\.1 (\d+)/.exec(head)?.[1]);
      const length = Number(/^content-length: *(\d+)$/im.exec(head)?.[1] ?? 0);
      text = text.slice(end + HEAD_END.length);
      missing = length - this.#encoder.encode(text).length;
    }
    return { status, body: text };
  }

  close(): void {
    this.#conn.close();
  }
}
