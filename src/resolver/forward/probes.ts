import { Qclass, Qtype } from "../../dns/mod.ts";
import type { Ask, Asker, AskOwner, Sending } from "../ask/mod.ts";
import { NOT_SENT } from "../ask/mod.ts";
import { FLIGHT_MS } from "../flights/mod.ts";
import { keptQuery } from "../query.ts";
import type { Health } from "./health.ts";
import type { Upstream } from "./upstream.ts";

/** What a failing upstream is asked: who serves the root. Who knows that can be trusted again. */
const QUESTION = (() => {
  const query = keptQuery();
  query.qtype = Qtype.NS;
  query.qclass = Qclass.IN;
  query.rename(Uint8Array.of(0));
  return query;
})();

/** One question to an upstream that fails, or may: it says whether the others can go on. */
class Probe implements AskOwner<Upstream> {
  readonly asks: Ask<Upstream>[] = [];
  readonly #untilMs: number;

  constructor(
    private readonly upstream: Upstream,
    private readonly asker: Asker,
    private readonly health: Health,
    private readonly nowMs: () => number,
  ) {
    this.#untilMs = nowMs() + Math.max(FLIGHT_MS, upstream.spec.timeoutMs);
  }

  start(): void {
    const { upstream } = this;
    upstream.probing = true;
    const sending = this.asker.ask(this, upstream, QUESTION);
    if (sending !== "sent") this.#note(sending, NOT_SENT);
  }

  /** Looks through its waits; false: there are none any more. */
  tick(nowMs: number): boolean {
    this.health.countTimeouts(this.asks, nowMs);
    if (nowMs >= this.#untilMs) this.asker.releaseAll(this);
    return this.asks.length > 0;
  }

  onSending({ overTcp }: Ask<Upstream>): void {
    if (!overTcp) this.upstream.sent++;
  }

  maySendAgain(): boolean {
    return true;
  }

  onHeard(ask: Ask<Upstream>): void {
    this.health.heard(ask);
    this.asker.releaseAll(this);
  }

  /** All there was to know has been heard. */
  onResponse(): void {}

  onDoubt(ask: Ask<Upstream>): void {
    if (ask.hasBeside || this.asker.isFull(this.upstream)) return;
    ask.hasBeside = true;
    this.asker.askOverTcp(this, this.upstream, QUESTION);
  }

  onClosed({ failed }: Ask<Upstream>, sending: Sending, reason: string): void {
    this.#note(sending, reason, failed);
  }

  /** What this process lacks says nothing about the upstream. */
  #note(sending: Sending, reason: string, isCounted = false): void {
    if (sending !== "unreachable") this.upstream.postponeProbe(this.nowMs());
    this.health.note(this.upstream, sending, reason, isCounted);
  }
}

/** Asks failing upstreams now and then whether they are back, and doubted ones whether they are there. */
export class Probes {
  #running: Probe[] = [];

  constructor(
    private readonly upstreams: readonly Upstream[],
    private readonly asker: Asker,
    private readonly health: Health,
    private readonly nowMs: () => number,
  ) {}

  /** Starts those that are due, and ends those that are over; false: none will be needed. */
  tick(nowMs: number): boolean {
    this.#running = this.#running.filter((probe) => probe.tick(nowMs));
    let isNeeded = false;
    for (const upstream of this.upstreams) {
      if (upstream.healthy && !upstream.isDoubted) continue;
      isNeeded = true;
      if (upstream.probing || nowMs < upstream.probeAtMs) continue;
      const probe = new Probe(upstream, this.asker, this.health, this.nowMs);
      this.#running.push(probe);
      probe.start();
    }
    return isNeeded || this.#running.length > 0;
  }

  close(): void {
    for (const probe of this.#running) this.asker.releaseAll(probe);
    this.#running = [];
  }
}
