import { type Remote, Server, type ServerAddress } from "../ask/mod.ts";
import type { ResolveFailure } from "../failure.ts";
import { FLIGHT_MS, type Share } from "../flights/mod.ts";
import type { Query } from "../query.ts";
import { NO_DOMAIN_UPSTREAM, NO_GROUP_UPSTREAM, NOBODY_ANSWERED } from "./failures.ts";

/** Failures in a row before an upstream is left alone for a while. */
export const FAILURES_MAX = 3;
/** So many domains it has to be silent about: one alone may be one whose own servers are dead. */
const FAILING_DOMAINS_MIN = 2;
/** First pause of a failing upstream; doubles up to the longest. */
const BACKOFF_MS_MIN = 1_000;
const BACKOFF_MS_MAX = 60_000;
/** Wait for a first answer before the next upstream is asked as well. */
const PATIENCE_MS_MIN = 150;
const PATIENCE_START_MS = 400;
const PATIENCE_MS_MAX = 1_500;

/** An upstream as it is configured; where it is is the exchange's. */
export interface UpstreamSpec extends ServerAddress {
  /** As configured, for logs and the status. */
  readonly address: string;
  /** Longest wait for one response. */
  readonly timeoutMs: number;
  /** Names at or below which it serves, uncompressed and in lower case; empty: every name. */
  readonly domains: readonly Uint8Array[];
  /**
   * What it is told of where clients are: a part of their own address, always the same (data of the
   * option), or, left out, nothing.
   */
  readonly clientSubnet?: "client" | Uint8Array;
  /** What groups call it by, beside its address; left out: by that alone. */
  readonly name?: string;
  /** It is asked for groups that name it, and for nobody else. */
  readonly groupsOnly?: boolean;
}

/** A resolver that is asked, its health and its speed. */
export class Upstream extends Server {
  healthy = true;
  /** Failures since the last answer. */
  failures = 0;
  /** It is silent about one domain alone: whether it answers at all, a probe finds out. */
  isDoubted = false;
  /** When an upstream that is failing or doubted is probed next. */
  probeAtMs = 0;
  /** A probe is on its way. */
  probing = false;
  /** Smoothed time to answer; -1 before the first. */
  latencyMs = -1;
  /** The same with the time that was waited in vain. */
  expectedMs = -1;
  /** Queries sent to it, and those that failed, all told: silence that was waited for. */
  sent = 0;
  failuresTotal = 0;
  /** Queries whose answer was not waited for. */
  calledOffTotal = 0;
  /** What is wrong with one that is not healthy. */
  reason = "";
  /** It has a name whose address is still being looked up: others are asked first. */
  isUnresolved = false;
  /** It had no room for a query, and has not been heard of since. */
  isFull = false;
  #backoffMs = BACKOFF_MS_MIN;
  #answeredAtMs = -Infinity;
  /** Domains that it was silent about since its last answer; no more than are needed. */
  readonly #silentAbout: string[] = [];

  constructor(readonly index: number, readonly spec: UpstreamSpec, remote: Remote) {
    super(remote, true);
  }

  override subnetFor({ subnet }: Query): Uint8Array | null {
    const { clientSubnet = null } = this.spec;
    return clientSubnet === "client" ? subnet?.option ?? null : clientSubnet;
  }

  /** How long to wait before another upstream is asked as well; this one may still answer. */
  get patienceMs(): number {
    const patience = this.latencyMs < 0 ? PATIENCE_START_MS : 4 * this.latencyMs;
    const bounded = Math.min(Math.max(patience, PATIENCE_MS_MIN), PATIENCE_MS_MAX);
    return Math.min(bounded, this.spec.timeoutMs);
  }

  /** Returns true when this answer ends a time of failure. */
  answered(nowMs: number, tookMs: number): boolean {
    const recovered = !this.healthy;
    this.#answeredAtMs = nowMs;
    this.latencyMs = smoothed(this.latencyMs, tookMs);
    this.expectedMs = smoothed(this.expectedMs, tookMs);
    this.failures = 0;
    this.healthy = true;
    this.reason = "";
    this.probing = this.isFull = this.isDoubted = false;
    this.#silentAbout.length = 0;
    this.#backoffMs = BACKOFF_MS_MIN;
    return recovered;
  }

  /** An answer that has not come for this time is not wanted any more. */
  calledOff(waitedMs: number): void {
    this.calledOffTotal++;
    if (waitedMs > this.expectedMs) this.expectedMs = smoothed(this.expectedMs, waitedMs);
  }

  /** The probe could not be sent, which says nothing about the upstream. */
  postponeProbe(nowMs: number): void {
    this.probing = false;
    this.probeAtMs = nowMs + this.#backoffMs;
  }

  /**
   * Notes that a query which was sent at `sentAtMs` has no answer; returns true when that makes the
   * upstream an unhealthy one. If it has answered others since, it is the question that has none.
   * `domain` is what the question was about; `null`: it fails whatever that is.
   */
  failed(nowMs: number, reason: string, sentAtMs: number, domain: string | null): boolean {
    this.failuresTotal++;
    if (this.healthy && this.#answeredAtMs > sentAtMs) return false;
    this.failures++;
    this.reason = reason;
    if (!this.healthy) {
      if (!this.probing) return false; // A query sent for want of anything better.
      this.probing = false;
      this.#backoffMs = Math.min(2 * this.#backoffMs, BACKOFF_MS_MAX);
      this.probeAtMs = nowMs + this.#backoffMs;
      return false;
    }
    const isAboutAll = domain === null || this.#isSilentAboutMore(domain);
    if (this.failures < FAILURES_MAX) return false;
    if (!isAboutAll) {
      if (!this.isDoubted) this.probeAtMs = nowMs;
      this.isDoubted = true;
      return false;
    }
    this.healthy = this.isDoubted = this.probing = false;
    this.#backoffMs = BACKOFF_MS_MIN;
    this.probeAtMs = nowMs + this.#backoffMs;
    return true;
  }

  /** Notes a domain; says whether it is silent about as many as prove that it is down. */
  #isSilentAboutMore(domain: string): boolean {
    const known = this.#silentAbout;
    if (known.length < FAILING_DOMAINS_MIN && !known.includes(domain)) known.push(domain);
    return known.length >= FAILING_DOMAINS_MIN;
  }
}

function smoothed(formerMs: number, ms: number): number {
  return formerMs < 0 ? ms : 0.875 * formerMs + 0.125 * ms;
}

/** Upstreams that serve the same names. */
export class UpstreamSet implements Share {
  flights = 0;
  readonly flightsMax: number = Infinity;

  /** `domain` is what they serve, uncompressed and in lower case. */
  constructor(
    readonly domain: Uint8Array,
    readonly upstreams: Upstream[],
    /** Why there is no answer where nobody says anything. */
    readonly failure: ResolveFailure = NOBODY_ANSWERED,
  ) {}

  /** Long enough for each to have its time. */
  get flightMs(): number {
    let longest = FLIGHT_MS;
    for (const { spec } of this.upstreams) longest = Math.max(longest, spec.timeoutMs);
    return longest;
  }

  /** They serve a domain and not every name. */
  get isOwnDomain(): boolean {
    return this.upstreams.some(({ spec }) => spec.domains.length > 0);
  }

  /** Their addresses, for a message. */
  get names(): string {
    return this.upstreams.map(({ spec }) => spec.address).join(", ");
  }
}

/** Serves every name by nobody: a group names upstreams, and none of them is here. */
const NO_GROUP_SET = new UpstreamSet(Uint8Array.of(0), [], NO_GROUP_UPSTREAM);

/**
 * Which upstreams serve a name, in the order they are asked: those with the longest matching
 * domain, else those for every name; the healthy ones first, each group in the order configured.
 */
export class UpstreamTable {
  readonly all: readonly Upstream[];
  /** By route, 0 for everybody: longest domain first; the set for every name last. */
  readonly #sets: (readonly UpstreamSet[])[];

  /**
   * `lost` are domains whose upstreams can't be used: their names are asked of nobody else, who would
   * learn them and say that they are not there.
   */
  constructor(
    specs: readonly UpstreamSpec[],
    remote: (spec: UpstreamSpec) => Remote,
    lost: readonly Uint8Array[] = [],
  ) {
    this.all = specs.map((spec, index) => new Upstream(index, spec, remote(spec)));
    const sets = setsOf(this.all.filter(({ spec }) => spec.groupsOnly !== true));
    const closed = lost.map((domain) => new UpstreamSet(domain, [], NO_DOMAIN_UPSTREAM));
    this.#sets = [inOrder([...sets, ...closed])]; // Of the same domain, those that can be asked first.
  }

  /** The indexes of upstreams by names or addresses, those that there are. */
  find(names: readonly string[]): number[] {
    return names.flatMap((name) => {
      const found = this.all.find(({ spec }) => spec.name === name || spec.address === name);
      return found === undefined ? [] : [found.index];
    });
  }

  /**
   * Has these upstreams asked on a route: for the names that they serve, in place of those for
   * everybody. None at all: nobody is asked.
   */
  addRoute(route: number, indexes: readonly number[]): void {
    if (indexes.length === 0) {
      this.#sets[route] = [NO_GROUP_SET];
      return;
    }
    const own = setsOf(indexes.map((index) => this.all[index]));
    const domains = new Set(own.map(({ domain }) => domain.join()));
    const others = this.#sets[0].filter(({ domain }) => !domains.has(domain.join()));
    this.#sets[route] = inOrder([...own, ...others]);
  }

  /** The upstreams for the uncompressed name at `offset`; `null` when none serves it. */
  forName(
    packet: Uint8Array,
    offset: number,
    length: number,
    route = 0,
  ): UpstreamSet | null {
    for (const set of this.#sets[route] ?? [NO_GROUP_SET]) {
      if (endsWith(packet, offset, length, set.domain)) return set;
    }
    return null;
  }
}

/** Never asked: the table of a moment has no servers. */
const NOWHERE: Remote = { transport: "udp" };

/**
 * Who would be asked for an uncompressed name, in the order named: of the upstreams that `names`
 * has, as a group does, or, where that is empty, of those for everybody. Nobody where none of `names`
 * is there, or the name is of a domain of `lost`; `null` where none serves the name.
 */
export function upstreamsFor(
  specs: readonly UpstreamSpec[],
  lost: readonly Uint8Array[],
  names: readonly string[],
  name: Uint8Array,
): readonly UpstreamSpec[] | null {
  const table = new UpstreamTable(specs, () => NOWHERE, lost);
  const route = names.length === 0 ? 0 : 1;
  if (route > 0) table.addRoute(route, table.find(names));
  return table.forName(name, 0, name.length, route)?.upstreams.map(({ spec }) => spec) ?? null;
}

/** Puts upstreams that serve the same names together. */
function setsOf(upstreams: readonly Upstream[]): UpstreamSet[] {
  const root = Uint8Array.of(0);
  const sets = new Map<string, UpstreamSet>();
  for (const upstream of upstreams) {
    const domains = upstream.spec.domains.length > 0 ? upstream.spec.domains : [root];
    for (const domain of domains) {
      const set = sets.get(domain.join()) ?? new UpstreamSet(domain, []);
      set.upstreams.push(upstream);
      sets.set(domain.join(), set);
    }
  }
  return inOrder([...sets.values()]);
}

/** Longest domain first. */
function inOrder(sets: UpstreamSet[]): UpstreamSet[] {
  return sets.sort((a, b) => b.domain.length - a.domain.length);
}

/** Says whether the name ends with `domain` at a label boundary; ASCII case is folded. */
function endsWith(packet: Uint8Array, offset: number, length: number, domain: Uint8Array): boolean {
  const end = offset + length;
  let at = offset;
  while (end - at > domain.length) at += 1 + packet[at];
  if (end - at !== domain.length) return false;
  for (let i = 0; i < domain.length; i++) {
    const byte = packet[at + i];
    const folded = byte >= 0x41 && byte <= 0x5a ? byte | 0x20 : byte;
    if (folded !== domain[i]) return false;
  }
  return true;
}
