/** A client of the API of one svc. */
import { Agent, request } from "node:http";
import { BenchError } from "./bench_error.ts";

/** Requests on their way at a time at most. */
export const SIDE_BY_SIDE = 16;

/** Speaks to one svc over kept connections. */
export class Api {
  readonly #agent = new Agent({ keepAlive: true, maxSockets: SIDE_BY_SIDE });
  constructor(readonly port: number) {}

  /** Sends a request; returns its status, body and time. */
  call(
    method: string,
    path: string,
    body?: unknown,
  ): Promise<{ status: number; json: unknown; tookMs: number }> {
    const text = body === undefined ? undefined : JSON.stringify(body);
    const startedMs = performance.now();
    return new Promise((resolve, reject) => {
      const sent = request({
        agent: this.#agent,
        host: "127.0.0.1",
        port: this.port,
        method,
        path: `/api/v1${path}`,
        ...(text !== undefined && {
          headers: { "content-type": "application/json", "content-length": `${text.length}` },
        }),
      }, (response) => {
        const pieces: Uint8Array[] = [];
        response.on("data", (piece: Uint8Array) => pieces.push(piece));
        response.on("end", async () => {
          const tookMs = performance.now() - startedMs;
          const whole = await new Blob(pieces as BlobPart[]).text();
          const json: unknown = whole === "" ? null : JSON.parse(whole);
          resolve({ status: response.statusCode ?? 0, json, tookMs });
        });
        response.on("error", reject);
      });
      sent.on("error", reject);
      sent.end(text);
    });
  }

  /** Sends a request that has to succeed; returns its answer. */
  async must(method: string, path: string, body?: unknown): Promise<Record<string, unknown>> {
    const { status, json } = await this.call(method, path, body);
    if (status >= 300) throw new BenchError(`${method} ${path}: ${status} ${JSON.stringify(json)}`);
    return json as Record<string, unknown>;
  }

  close(): void {
    this.#agent.destroy();
  }
}
