import { formatName, HEADER_BYTES } from "../../dns/mod.ts";
import { log } from "../../log.ts";
import { Counter } from "../../telemetry/mod.ts";
import type { Ask, Sending } from "../ask/mod.ts";
import type { ResolveFailure } from "../failure.ts";
import { NO_ANSWER, NO_SOCKET, tooMany, unreachable } from "./failures.ts";
import type { Upstream } from "./upstream.ts";

/** How often it is logged that there is no socket, and how long it is told in the status. */
const NO_SOCKET_MS = 60_000;

/** Notes what upstreams do, and what queries to them lack: whose fault a failure is. */
export class Health {
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

  /** The upstream has answered. */
  heard({ server: upstream, sentAtMs }: Ask<Upstream>): void {
    const nowMs = this.#nowMs();
    if (upstream.answered(nowMs, nowMs - sentAtMs)) {
      log.info("upstream answers again", { upstream: upstream.spec.address });
    }
  }

  /** Counts those asks that have had their time. */
  countTimeouts(asks: readonly Ask<Upstream>[], nowMs: number): void {
    for (const ask of asks) {
      if (nowMs - ask.sentAtMs >= ask.server.spec.timeoutMs) this.countSilence(ask);
    }
  }

  /** Others that had their time and were overtaken have failed this once. */
  countOvertaken(asks: readonly Ask<Upstream>[], by: Upstream): void {
    const nowMs = this.#nowMs();
    for (const ask of asks) {
      if (ask.server === by) continue;
      if (nowMs - ask.sentAtMs >= ask.server.patienceMs) this.countSilence(ask);
    }
  }

  /** Nothing more is wanted of these: another one has answered, or the time is over. */
  callOff(asks: readonly Ask<Upstream>[]): void {
    const nowMs = this.#nowMs();
    for (const { server, sentAtMs } of asks) server.calledOff(nowMs - sentAtMs);
  }

  /** Counts a failure of an ask, once. */
  countSilence(ask: Ask<Upstream>): void {
    if (ask.failed) return;
    ask.failed = true;
    this.#countFailure(ask.server, NO_ANSWER, domainOf(ask), ask.sentAtMs);
  }

  /**
   * Notes why a query was not sent, or not answered, and says it. `isCounted`: it has been counted as
   * a failure before.
   */
  note(upstream: Upstream, sending: Sending, reason: string, isCounted = false): ResolveFailure {
    switch (sending) {
      case "full":
        this.noteFull(upstream);
        return tooMany(upstream.spec.address);
      case "noSocket":
        this.#noteNoSocket();
        return NO_SOCKET;
      default:
        if (!isCounted) this.#countFailure(upstream, reason, null);
        return unreachable(upstream, reason);
    }
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
  #noteNoSocket(): void {
    this.#counts[Counter.NoSocket]++;
    const nowMs = this.#noSocketAtMs = this.#nowMs();
    if (nowMs - this.#loggedAtMs < NO_SOCKET_MS) return;
    this.#loggedAtMs = nowMs;
    log.error(NO_SOCKET.text);
  }

  /** `domain`: see `Upstream.failed`. */
  #countFailure(
    upstream: Upstream,
    reason: string,
    domain: string | null,
    sentAtMs = this.#nowMs(),
  ): void {
    this.#counts[Counter.UpstreamTimeouts]++;
    if (!upstream.failed(this.#nowMs(), reason, sentAtMs, domain)) return;
    log.warn("upstream does not answer", {
      upstream: upstream.spec.address,
      failures: upstream.failures,
      reason,
    });
  }
}

/** Names below the same two labels may share their servers; the root's any resolver knows. */
function domainOf({ packet }: Ask): string | null {
  const name = formatName(packet, HEADER_BYTES).toLowerCase();
  return name === "." ? null : name.split(".").slice(-2).join(".");
}
