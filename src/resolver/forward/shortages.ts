import { log } from "../../log.ts";
import { Counter } from "../../telemetry/mod.ts";
import { NO_SOCKET } from "./failures.ts";
import type { Upstream } from "./upstream.ts";

/** How often it is logged that there is no socket, and how long it is told in the status. */
const NO_SOCKET_MS = 60_000;

/** Notes what queries to upstreams lack. */
export class Shortages {
  readonly #counts: Float64Array;
  readonly #nowMs: () => number;
  #noSocketAtMs = -Infinity;
  #loggedAtMs = -Infinity;

  constructor(counts: Float64Array, nowMs: () => number) {
    this.#counts = counts;
    this.#nowMs = nowMs;
  }

  /** Queries were not sent of late because the process has no socket left. */
  get lacksSockets(): boolean {
    return this.#nowMs() - this.#noSocketAtMs < NO_SOCKET_MS;
  }

  /** A query was not sent because too many wait for the upstream. */
  noteFull(upstream: Upstream): void {
    this.#counts[Counter.UpstreamFull]++;
    if (upstream.isFull) return;
    upstream.isFull = true;
    log.warn("too many queries wait for an upstream: further ones get SERVFAIL", {
      upstream: upstream.spec.address,
      waiting: upstream.open,
    });
  }

  /** A query was not sent because the process has no socket left. */
  noteNoSocket(): void {
    this.#counts[Counter.NoSocket]++;
    const nowMs = this.#noSocketAtMs = this.#nowMs();
    if (nowMs - this.#loggedAtMs < NO_SOCKET_MS) return;
    this.#loggedAtMs = nowMs;
    log.error(NO_SOCKET.text);
  }
}
