import type { CounterBlock } from "../../telemetry/mod.ts";
import { type Asker, type Exchange, Scrubber, type TtlBounds } from "../ask/mod.ts";
import type { ResolveFailure } from "../failure.ts";
import type { Flight, Share, Source } from "../flights/mod.ts";
import { type Query, routeOf } from "../query.ts";
import { NOBODY_SERVES, tooMany } from "./failures.ts";
import { type Elsewhere, Forwarding, type ForwardingMeans } from "./forwarding.ts";
import { Health } from "./health.ts";
import { Probes } from "./probes.ts";
import { Routes } from "./routes.ts";
import { Strategy, type StrategyOptions } from "./strategy.ts";
import { type Upstream, UpstreamSet, type UpstreamSpec, UpstreamTable } from "./upstream.ts";

export interface ForwarderOptions {
  readonly upstreams: readonly UpstreamSpec[];
  /** Domains whose upstreams can't be used; left out: none. */
  readonly lostDomains?: readonly Uint8Array[];
  readonly exchange: Exchange;
  readonly asker: Asker;
  readonly counters: CounterBlock;
  readonly ttl: TtlBounds;
  readonly strategy: StrategyOptions;
  /** Numbers from 0 up to 1. */
  readonly random: () => number;
  /** Milliseconds, monotonic. */
  readonly nowMs: () => number;
  /** For names that none of them serves, where others are asked for these; else left out. */
  readonly elsewhere?: Elsewhere;
}

/** Has other resolvers answer: chooses among those that serve a name, and watches their health. */
export class Forwarder implements Source {
  readonly #means: ForwardingMeans;
  readonly #probes: Probes;
  /** Those that groups have in place of others. */
  readonly routes: Routes;

  constructor(options: ForwarderOptions) {
    const { upstreams, exchange, asker, counters, ttl, nowMs, elsewhere = null } = options;
    const strategy = new Strategy(options.strategy, options.random);
    const table = new UpstreamTable(
      upstreams,
      (spec) => exchange.remote(spec),
      options.lostDomains,
    );
    this.routes = new Routes(table);
    const health = new Health(counters.values, nowMs);
    const scrubber = new Scrubber(ttl);
    this.#means = { table, asker, scrubber, health, strategy, nowMs, elsewhere };
    this.#probes = new Probes(table.all, asker, health, nowMs);
  }

  /** Health of every upstream, in the order configured. */
  get upstreams(): readonly Upstream[] {
    return this.#means.table.all;
  }

  /** Queries were not sent of late because the process has no socket left. */
  get lacksSockets(): boolean {
    return this.#means.health.lacksSockets;
  }

  /** Says whether a share is of upstreams. */
  owns(share: Share): share is UpstreamSet {
    return share instanceof UpstreamSet;
  }

  /** Says whether an upstream serves an uncompressed name. */
  serves(name: Uint8Array, length: number): boolean {
    return this.#means.table.forName(name, 0, length) !== null;
  }

  shareOf(query: Query): UpstreamSet | ResolveFailure {
    const { packet, qname, qnameLength } = query;
    return this.#means.table.forName(packet, qname, qnameLength, routeOf(query)) ?? NOBODY_SERVES;
  }

  /** One of them is asked first: what the roomiest has is what there is. */
  left({ upstreams }: UpstreamSet): number {
    let left = 0;
    for (const upstream of upstreams) {
      left = Math.max(left, this.#means.asker.leftFor(upstream));
    }
    return left;
  }

  full({ upstreams, names }: UpstreamSet): ResolveFailure {
    for (const upstream of upstreams) this.#means.health.noteFull(upstream);
    return tooMany(names);
  }

  begin(flight: Flight, set: UpstreamSet): void {
    // A flight that is used again brings along what was made for it.
    const former = flight.task;
    const task = former instanceof Forwarding ? former : new Forwarding(flight, this.#means);
    flight.task = task;
    task.begin(set);
  }

  tick(nowMs: number): boolean {
    return this.#probes.tick(nowMs);
  }

  close(): void {
    this.#probes.close();
  }
}
