/**
 * Requests to the API of a svc while others put load on its DNS. They come from an isolate of their
 * own: to search all that the bench holds for garbage takes 50 ms, which a request would wait.
 */
import { BenchError } from "./bench_error.ts";

/** Pause between requests: some 15 a second, as of several people and tools at once. */
export const PAUSE_MS = 80;
/** A rule is made, two things are read without a pause between them, the rule is deleted. */
const PAUSES_PER_ROUND = 3;

export interface ApiOrder {
  readonly port: number;
  readonly seconds: number;
}

export interface ApiTimes {
  readonly readMs: readonly number[];
  readonly writeMs: readonly number[];
}

/** Writes within some seconds, as long as each of them takes no time. */
export const writesIn = (seconds: number): number =>
  2 * Math.floor(1_000 * seconds / (PAUSES_PER_ROUND * PAUSE_MS));

/** Its thread runs where the one that makes it may run. */
export class ApiLoad {
  readonly #worker = new Worker(new URL("./api_load_worker.ts", import.meta.url), {
    type: "module",
  });

  /** Sends requests one after the other for so long; one order at a time. */
  time(order: ApiOrder): Promise<ApiTimes> {
    const { promise, resolve, reject } = Promise.withResolvers<ApiTimes>();
    this.#worker.onmessage = (event: MessageEvent<ApiTimes>) => resolve(event.data);
    this.#worker.onerror = (event) => {
      event.preventDefault();
      reject(new BenchError(event.message));
    };
    this.#worker.postMessage(order);
    return promise;
  }

  close(): void {
    this.#worker.terminate();
  }
}
