import type { Upstream } from "./upstream.ts";

/** How upstreams are chosen among those that serve a name. */
export interface StrategyOptions {
  /** As configured; the one that has been answering soonest; several at once. */
  readonly kind: "order" | "fastest" | "parallel";
  /** With `parallel`, upstreams that are asked at once. */
  readonly atOnce: number;
}

/** One in that many questions goes to another upstream first, so that its time is known as well. */
const EXPLORE_ONE_IN = 20;
/** More than any time to answer: health comes before speed. */
const RANK_MS = 1e6;

/** Says who is asked before whom. One per forwarder. */
export class Strategy {
  readonly #options: StrategyOptions;
  readonly #random: () => number;

  /** `random` gives numbers from 0 up to 1. */
  constructor(options: StrategyOptions, random: () => number) {
    this.#options = options;
    this.#random = random;
  }

  /** Upstreams that a question goes to at once. */
  get atOnce(): number {
    return this.#options.kind === "parallel" ? this.#options.atOnce : 1;
  }

  /** The upstream that goes first for the sake of its time, or `null`. */
  explored(upstreams: readonly Upstream[]): Upstream | null {
    if (this.#options.kind !== "fastest" || upstreams.length < 2) return null;
    const drawn = Math.floor(this.#random() * EXPLORE_ONE_IN * upstreams.length);
    return upstreams[drawn] ?? null;
  }

  /**
   * What speaks against an upstream; those with the same are asked in order. Healthy ones whose
   * address is known come first, whatever the strategy.
   */
  cost(upstream: Upstream, explored: Upstream | null): number {
    const rank = (upstream.healthy ? 0 : 1) + (upstream.isUnresolved ? 2 : 0);
    if (this.#options.kind !== "fastest") return rank;
    // One that has not been asked yet comes first, and has a time from then on.
    return RANK_MS * rank + (upstream === explored ? -1 : Math.max(0, upstream.expectedMs));
  }
}
