import {
  type Ask,
  type Asker,
  type AskOwner,
  DENIAL_TTL,
  Fit,
  NOT_SENT,
  ResponseReader,
  Scrubbed,
  type Scrubber,
  type Sending,
} from "../ask/mod.ts";
import { formatName, HashedName, rcodeName } from "../../dns/mod.ts";
import type { ResolveFailure } from "../failure.ts";
import type { Flight, KeptMessages, Task, Waiter } from "../flights/mod.ts";
import { isServiceName } from "../own_names.ts";
import { hashQuestion, keptQuery, KEY_DO, type Query, routeOf } from "../query.ts";
import { isAboutSubnet, SCOPE_AT } from "../subnets.ts";
import { questionText } from "../trace.ts";
import { endless, leadsBack, malformed, NOBODY_SERVES, tooMany, unhelpful } from "./failures.ts";
import type { Health } from "./health.ts";
import type { Strategy } from "./strategy.ts";
import { type Upstream, UpstreamSet, type UpstreamTable } from "./upstream.ts";

/** Times one question is sent, whatever the number of upstreams. */
const ATTEMPTS_MAX = 6;
/** An upstream that can't be reached is tried again after this, twice as long each time, */
const RETRY_MS = 200;
/** for this long: one that starts anew is back by then. */
const RETRY_MS_MAX = 2_000;

const NOTHING = new Uint8Array(0);
const NOBODY = new UpstreamSet(Uint8Array.of(0), []);

/** What all flights to upstreams share. */
export interface ForwardingMeans {
  readonly table: UpstreamTable;
  readonly asker: Asker;
  readonly scrubber: Scrubber;
  readonly health: Health;
  readonly strategy: Strategy;
  readonly nowMs: () => number;
  /** `null`: nobody else is asked. */
  readonly elsewhere: Elsewhere | null;
}

/** What it takes to have names resolved that no upstream serves, and to read what came of it. */
export interface Elsewhere {
  readonly messages: KeptMessages;
  /** Of every hash of a name. */
  readonly seed: number;
}

/**
 * Asks upstreams for one flight: one after the other or several at once, a further one when these are
 * slow, and whichever answers first counts. Used again with its flight.
 */
export class Forwarding implements Task, AskOwner<Upstream> {
  readonly asks: Ask<Upstream>[] = [];
  readonly #flight: Flight;
  readonly #means: ForwardingMeans;
  /** Who is asked. */
  #set: UpstreamSet = NOBODY;
  /** Who is asked first for the sake of its time; `null`: nobody. */
  #explored: Upstream | null = null;
  /** When the next upstream is asked as well. */
  #nextAtMs = 0;
  /** Upstreams it was sent to, by index, in order. */
  readonly #asked: number[] = [];
  /** Upstreams that answered, and would answer the same again. */
  readonly #declined: Upstream[] = [];
  /** In a rush, one that may still answer is not asked again for now. */
  #isPutOff = false;
  /** What the last unhelpful upstream said; `null`: nobody said anything. */
  #failure: ResolveFailure | null = null;
  /** What is asked at this moment: the question, or the name that its chain has led to so far. */
  #asking: Query;
  /** What the answer goes behind: the question, or a message with the chain. */
  #lead: Uint8Array = NOTHING;
  /** Seconds that the chain holds. */
  #leadTtl = Infinity;
  /** What is asked where that is not the flight's question as it is; made when first needed. */
  #other: Query | null = null;

  constructor(flight: Flight, means: ForwardingMeans) {
    this.#flight = flight;
    this.#means = means;
    this.#asking = flight.query;
  }

  begin(set: UpstreamSet): void {
    const flight = this.#flight;
    flight.isOwnDomain = set.isOwnDomain;
    this.#set = set;
    this.#explored = this.#means.strategy.explored(set.upstreams);
    this.#nextAtMs = flight.startedAtMs;
    this.#asked.length = this.#declined.length = 0;
    this.#failure = null;
    this.#asking = flight.askBits === flight.query.keyBits
      ? flight.query
      : this.#copyOf(flight.query);
    // What it said is not to be believed, so that any other comes before it.
    if (flight.avoids >= 0) this.#asked.push(flight.avoids);
    this.#lead = flight.query.packet.subarray(0, flight.query.questionEnd);
    this.#leadTtl = Infinity;
    this.#askFirst();
  }

  get failure(): ResolveFailure {
    return this.#failure ?? this.#set.failure;
  }

  tick(nowMs: number): void {
    this.#means.health.countTimeouts(this.asks, nowMs);
    if (nowMs >= this.#nextAtMs && !this.#flight.isOver(nowMs)) this.#askNext();
  }

  end(): void {
    const { asker, health } = this.#means;
    health.callOff(this.asks);
    asker.releaseAll(this);
  }

  echo(query: Query): ResolveFailure | null {
    for (const ask of this.asks) if (ask.isWhatWasSent(query)) return leadsBack(ask.server);
    return null;
  }

  /** What was asked elsewhere, the target of a chain, has come to its end. */
  onChild({ failure }: Waiter, entry: number): void {
    const { scrubber, elsewhere } = this.#means;
    const kept = new ResponseReader();
    if (entry < 0 || elsewhere === null || !kept.readKept(elsewhere.messages.copy(entry))) {
      this.#flight.fail(failure ?? NOBODY_SERVES);
      return;
    }
    const dnssecOk = (this.#flight.askBits & KEY_DO) !== 0;
    if (scrubber.scrub(kept, dnssecOk, this.#lead) !== Scrubbed.Whole) {
      this.#flight.fail(NOBODY_SERVES);
      return;
    }
    scrubber.ttl = Math.min(scrubber.ttl, this.#leadTtl);
    this.#flight.answer(scrubber, NOTHING);
  }

  onSending({ server: upstream, sentAtMs, overTcp }: Ask<Upstream>): void {
    if (overTcp) {
      this.#nextAtMs = sentAtMs + upstream.spec.timeoutMs;
      return;
    }
    this.#flight.trace?.note(this.#flight.depth, {
      event: "asked",
      question: questionText(this.#asking),
      server: upstream.spec.address,
    });
    // Each time the same upstream is asked again, it gets twice the time.
    const before = this.#timesAsked(upstream);
    this.#asked.push(upstream.index);
    this.#nextAtMs = sentAtMs + upstream.patienceMs * 2 ** before;
    upstream.sent++;
  }

  maySendAgain(): boolean {
    return true;
  }

  onHeard(ask: Ask<Upstream>): void {
    this.#means.health.heard(ask);
  }

  onResponse(ask: Ask<Upstream>, fit: Fit): void {
    const { asker, scrubber, health } = this.#means;
    const { response } = asker;
    const { server: upstream } = ask;
    const dnssecOk = (this.#flight.askBits & KEY_DO) !== 0;
    const scope = scopeOf(ask, response);
    const scrubbed = scope < 0
      ? Scrubbed.Broken
      : fit === Fit.Response
      ? scrubber.scrub(response, dnssecOk, this.#lead)
      : Scrubbed.Nothing;
    if (scrubbed === Scrubbed.Broken && !ask.overStream) {
      asker.doubt(ask);
      return;
    }
    // Who is asked for names of its own knows them; of any other server it is a refusal to recurse.
    const isDenial = !scrubber.isBare || upstream.spec.domains.length > 0;
    if (scrubbed === Scrubbed.Whole && isDenial) {
      health.countOvertaken(this.asks, upstream);
      asker.release(ask);
      this.#flight.isScoped ||= scope > 0;
      this.#answer(upstream, scrubber.ttl);
      return;
    }
    if (scrubbed === Scrubbed.Open) {
      health.countOvertaken(this.asks, upstream);
      asker.release(ask);
      this.#flight.isScoped ||= scope > 0;
      this.#follow(upstream);
      return;
    }
    const isBroken = fit === Fit.Broken || scrubbed === Scrubbed.Broken;
    this.#declined.push(upstream);
    this.#failure = isBroken
      ? malformed(upstream)
      : scrubbed === Scrubbed.Endless
      ? endless(upstream)
      : unhelpful(upstream, response);
    this.#note("failed", upstream, this.#failure.text);
    asker.release(ask);
    // What is malformed over TCP as well is no forgery.
    const hopeless = isBroken ? this.#doubted(upstream) : null;
    if (hopeless !== null) asker.release(hopeless);
    if (response.bogus) this.#flight.fail(this.#failure);
    else this.#askInstead();
  }

  /** A true answer may still follow; others are asked beside it. */
  onDoubt(ask: Ask<Upstream>): void {
    this.#failure = malformed(ask.server);
    this.#askNext();
  }

  onClosed({ server: upstream, failed }: Ask<Upstream>, sending: Sending, reason: string): void {
    this.#failure = this.#means.health.note(upstream, sending, reason, failed);
    this.#askNext(true);
  }

  /** Asks as many upstreams as are asked at once. */
  #askFirst(): void {
    const { asker, strategy } = this.#means;
    this.#askNext();
    for (let more = strategy.atOnce - 1; more > 0 && !this.#flight.done; more--) {
      // Who does not answer is asked for want of anything better, and a rush is no time for more.
      const upstream = asker.isHalfFull ? null : this.#next();
      if (upstream === null || strategy.cost(upstream, null) > 0) return;
      if (this.#timesAsked(upstream) > 0) return;
      this.#askNext();
    }
  }

  /** Asks another one in the place of who did not help, unless all others are being asked. */
  #askInstead(): void {
    const isShared = this.#means.strategy.atOnce > 1 && this.asks.length > 0;
    const next = isShared ? this.#next() : null;
    if (next === null || this.#timesAsked(next) === 0) this.#askNext();
  }

  /**
   * Asks the next upstream, or gives up when none is left to ask or to wait for. `isUnreachable`: the
   * last one can't be reached; where no other is left, it gets a moment to come back.
   */
  #askNext(isUnreachable = false): void {
    const { asker, health, nowMs } = this.#means;
    const flight = this.#flight;
    while (!flight.done) {
      const upstream = this.#asked.length < ATTEMPTS_MAX ? this.#next() : null;
      if (upstream === null) {
        if (this.asks.length === 0) flight.fail(this.failure);
        else {
          this.#nextAtMs = this.#isPutOff ? nowMs() + RETRY_MS : Infinity;
          this.#askBeside();
        }
        return;
      }
      const before = this.#timesAsked(upstream);
      if (isUnreachable && before > 0) {
        const now = nowMs();
        if (now - flight.startedAtMs < RETRY_MS_MAX) {
          this.#nextAtMs = now + RETRY_MS * 2 ** (before - 1);
        } else if (this.asks.length === 0) {
          flight.fail(this.failure);
        }
        return;
      }
      const sending = asker.ask(this, upstream, this.#asking);
      if (sending === "sent") return;
      this.#failure = health.note(upstream, sending, NOT_SENT);
      // No other upstream has what this process lacks.
      if (sending === "noSocket" && this.asks.length === 0) flight.fail(this.#failure);
    }
  }

  /**
   * The upstream that was asked least often, so that a query is answered while any of them works;
   * among those the one that the strategy has first. `null`: none is left that has room.
   */
  #next(): Upstream | null {
    const { asker, health, strategy } = this.#means;
    const { upstreams } = this.#set;
    let best: Upstream | null = null;
    let bestCount = Math.floor(ATTEMPTS_MAX / upstreams.length) + 1;
    let bestCost = 0;
    this.#isPutOff = false;
    for (const upstream of upstreams) {
      if (this.#declined.includes(upstream) || this.#doubted(upstream) !== null) continue;
      if (asker.isFull(upstream)) {
        health.noteFull(upstream);
        this.#failure ??= tooMany(upstream.spec.address);
        continue;
      }
      if (asker.isCrowded(upstream) && this.asks.some(({ server }) => server === upstream)) {
        this.#isPutOff = true;
        continue;
      }
      const count = this.#timesAsked(upstream);
      const cost = strategy.cost(upstream, this.#explored);
      if (count < bestCount || (count === bestCount && best !== null && cost < bestCost)) {
        [best, bestCount, bestCost] = [upstream, count, cost];
      }
    }
    return best;
  }

  /** Nobody else is left: who answered with a malformed message may do better over TCP. */
  #askBeside(): void {
    const { asker } = this.#means;
    const doubted = this.asks.find((ask) => ask.isDoubted && !ask.hasBeside);
    if (doubted === undefined || asker.isFull(doubted.server)) return;
    doubted.hasBeside = true;
    asker.askOverTcp(this, doubted.server, this.#asking);
  }

  /** Asks for the name that a chain has led to, so that clients get what is at its end. */
  #follow(upstream: Upstream): void {
    const { scrubber, table } = this.#means;
    const flight = this.#flight;
    // Names of the service itself are never forwarded: the chain is all there is to say.
    if (isServiceName(scrubber.target)) {
      this.#answer(upstream, Math.min(scrubber.ttl, DENIAL_TTL));
      return;
    }
    this.#note("alias", upstream, formatName(scrubber.target));
    this.end();
    this.#failure = null;
    const asking = this.#asking = this.#copyOf(flight.query);
    asking.rename(scrubber.target);
    this.#lead = scrubber.message.slice(0, scrubber.length);
    this.#leadTtl = Math.min(this.#leadTtl, scrubber.ttl);
    this.#asked.length = this.#declined.length = 0;
    const set = table.forName(
      asking.packet,
      asking.qname,
      asking.qnameLength,
      routeOf(flight.query),
    );
    if (set === null) {
      this.#askElsewhere(asking);
      return;
    }
    this.#set = set;
    flight.move(set);
    flight.isOwnDomain &&= set.isOwnDomain;
    this.#explored = null;
    this.#askFirst();
  }

  /** Has a name resolved that no upstream serves, where anybody else does. */
  #askElsewhere(asking: Query): void {
    const { elsewhere } = this.#means;
    const flight = this.#flight;
    this.#nextAtMs = Infinity;
    flight.isOwnDomain = false;
    if (elsewhere !== null) {
      asking.keyBits = flight.query.keyBits | (flight.askBits & KEY_DO);
      hashQuestion(asking, new HashedName(), elsewhere.seed);
      if (flight.ask(asking)) return;
    }
    flight.fail(NOBODY_SERVES);
  }

  /** A copy of the question, to be asked with the bits that servers are to see. */
  #copyOf(query: Query): Query {
    const copy = this.#other ??= keptQuery();
    copy.keep(query);
    copy.keyBits = this.#flight.askBits;
    return copy;
  }

  #answer(upstream: Upstream, ttl: number): void {
    const { asker, scrubber } = this.#means;
    scrubber.ttl = Math.min(ttl, this.#leadTtl);
    this.#note("answered", upstream, rcodeName(asker.response.rcode));
    this.#flight.upstream = upstream.index;
    this.#flight.answer(scrubber, asker.response.errors.view());
  }

  #note(event: "answered" | "alias" | "failed", upstream: Upstream, detail: string): void {
    const { trace, depth } = this.#flight;
    trace?.note(depth, { event, server: upstream.spec.address, detail });
  }

  /** The ask that an upstream has answered with a malformed message, or `null`. */
  #doubted(upstream: Upstream): Ask<Upstream> | null {
    for (const ask of this.asks) if (ask.isDoubted && ask.server === upstream) return ask;
    return null;
  }

  /** How often an upstream was asked. */
  #timesAsked(upstream: Upstream): number {
    let count = 0;
    for (const index of this.#asked) if (index === upstream.index) count++;
    return count;
  }
}

/**
 * Bits of the client's subnet that a response holds for; 0: it holds for everybody. -1: it is about
 * another one, as none from the upstream itself is (RFC 7871 §11.2).
 */
function scopeOf(
  { subnet, server: { spec } }: Ask<Upstream>,
  { packet, subnetAt, subnetLength }: ResponseReader,
): number {
  if (subnet === null || subnetLength === 0) return 0;
  if (subnetLength !== subnet.length || !isAboutSubnet(subnet, packet, subnetAt)) return -1;
  // One that is the same for all clients is asked for by all of them.
  return spec.clientSubnet === "client" ? packet[subnetAt + SCOPE_AT] : 0;
}
