import { Ede, Rcode, RCODE_MASK } from "../../dns/mod.ts";
import { log } from "../../log.ts";
import { Counter, type CounterBlock } from "../../telemetry/mod.ts";
import { NO_ERROR } from "../extended_errors.ts";
import { Outcome } from "../outcome.ts";
import { type ResolveFailure, TOO_LARGE, TOO_MANY_CLIENTS } from "../failure.ts";
import { type Waiter, WaiterPool } from "../flights/waiter.ts";
import { isServiceName } from "../own_names.ts";
import { KEY_DO, type Query } from "../query.ts";
import { AttemptTable } from "./attempts.ts";
import {
  leadsBack,
  NO_ANSWER,
  NO_SOCKET,
  NOBODY_ANSWERED,
  NOBODY_SERVES,
  NOT_SENT,
  tooMany,
  unhelpful,
  unreachable,
} from "./failures.ts";
import { type Attempt, type Flight, PROBE } from "./flight.ts";
import { FLIGHTS_MAX, FlightTable } from "./flight_table.ts";
import { KeptAnswers, type KeptAnswersOptions } from "./kept_answers.ts";
import type { AttemptFailure, Exchange, Sending, UpstreamSpec } from "./ports.ts";
import { QueryWriter } from "./query_writer.ts";
import { Fit, ResponseReader } from "./response.ts";
import { ATTEMPTS_MAX, nextUpstream } from "./next_upstream.ts";
import { Shortages } from "./shortages.ts";
import { DENIAL_TTL, type TtlBounds } from "./scrubber.ts";
import { type Upstream, UpstreamSet, UpstreamTable } from "./upstream.ts";

/** Queries that wait for them, all told, and for one of them. */
export const WAITERS_MAX = 16_384;
const WAITERS_PER_FLIGHT_MAX = 1_024;
/** A stub resolver gives up after five seconds: an answer must come before. */
const FLIGHT_MS = 4_800;
/** A client that could have a stale answer waits this long for a fresh one (RFC 8767 §5). */
const STALE_PATIENCE_MS = 1_800;
/** How often waits are looked through, while there are any. */
export const TICK_MS = 50;
/** An upstream that can't be reached is tried again after this, twice as long each time, */
const RETRY_MS = 200;
/** for this long: one that starts anew is back by then. */
const RETRY_MS_MAX = 2_000;
/** Wrong packets for one attempt after which UDP is no longer trusted with it (RFC 5452 §9.1). */
const MISMATCHES_MAX = 32;
/** Queries on their way to upstreams, all told, where the system has sockets for that many. */
export const OPEN_MAX = 4_096;

export interface ForwarderOptions extends KeptAnswersOptions {
  readonly upstreams: readonly UpstreamSpec[];
  readonly exchange: Exchange;
  readonly counters: CounterBlock;
  readonly ttl: TtlBounds;
  /** Queries on their way to upstreams at one time. */
  readonly openMax: number;
  /** Bytes of `Waiter.peer`. */
  readonly peerBytes: number;
  /** Milliseconds, monotonic. */
  readonly nowMs: () => number;
  /** Starts and stops calls of `tick` every `TICK_MS`. */
  readonly ticking: (on: boolean) => void;
  /** Fills the array with random numbers that cannot be foretold. */
  readonly random: (target: Uint8Array<ArrayBuffer>) => void;
}

/**
 * Asks upstreams what the cache does not know: identical questions once, the upstreams in order, a
 * further one when the first is slow, and whichever answers first counts.
 */
export class Forwarder {
  readonly #table: UpstreamTable;
  readonly #options: ForwarderOptions;
  readonly #reader: ResponseReader;
  readonly #counts: Float64Array;
  readonly #flights = new FlightTable();
  readonly #attempts: AttemptTable;
  readonly #waiters: WaiterPool;
  readonly #shortages: Shortages;
  #ticking = false;
  readonly #writer: QueryWriter;
  readonly #kept: KeptAnswers;

  constructor(options: ForwarderOptions) {
    this.#options = options;
    this.#table = new UpstreamTable(options.upstreams);
    this.#attempts = new AttemptTable(options.openMax);
    this.#reader = new ResponseReader(options.ttl);
    this.#kept = new KeptAnswers(options, this.#reader);
    this.#writer = new QueryWriter(options.random);
    this.#counts = options.counters.values;
    this.#waiters = new WaiterPool(WAITERS_MAX, options.peerBytes);
    this.#shortages = new Shortages(this.#counts, options.nowMs);
  }

  /** Health of every upstream, in the order configured. */
  get upstreams(): readonly Upstream[] {
    return this.#table.all;
  }

  /** Questions on their way. */
  get inFlight(): number {
    return this.#flights.active.length;
  }

  /** Flights that are kept for the next questions. */
  get pooledFlights(): number {
    return this.#flights.pooled;
  }

  /** Queries that wait. */
  get waiting(): number {
    return this.#waiters.count;
  }

  /** Ways that questions are being sent at this moment. */
  get attemptsInUse(): number {
    return this.#attempts.inUse;
  }

  /** Queries were not sent of late because the process has no socket left. */
  get lacksSockets(): boolean {
    return this.#shortages.lacksSockets;
  }

  /** A waiter to fill in, or `null` when as many wait as may. */
  takeWaiter(): Waiter | null {
    const waiter = this.#waiters.take();
    if (waiter === null) this.#counts[Counter.FlightsFull]++;
    return waiter;
  }

  /** Gives back a waiter that was answered, or never waited. */
  releaseWaiter(waiter: Waiter): void {
    this.#waiters.release(waiter);
  }

  /** Has the question of `waiter` asked; its taker is told once, now or later. */
  resolve(waiter: Waiter): void {
    const known = this.#flights.find(waiter.query);
    if (known !== null) {
      if (known.waiterCount >= WAITERS_PER_FLIGHT_MAX) {
        this.#counts[Counter.FlightsFull]++;
        this.#failWaiter(waiter, TOO_MANY_CLIENTS);
        return;
      }
      const looping = known.attempts.find((attempt) => attempt.isWhatWasSent(waiter.query));
      if (looping !== undefined) {
        this.#failWaiter(waiter, leadsBack(looping.upstream));
        return;
      }
      this.#counts[Counter.Merged]++;
      known.background = false;
      this.#join(known, waiter);
      if (known.servedStale) this.#serveStale(known);
      return;
    }
    const set = this.#setFor(waiter.query);
    if (set === null) {
      this.#failWaiter(waiter, NOBODY_SERVES);
      return;
    }
    if (this.#flights.isFull(set)) {
      const stale = this.#kept.stale(waiter.query);
      if (stale >= 0) {
        this.#respondStale(waiter, stale);
        return;
      }
      this.#counts[Counter.FlightsFull]++;
      for (const upstream of set.upstreams) this.#shortages.noteFull(upstream);
      this.#failWaiter(waiter, tooMany(set.names));
      return;
    }
    const flight = this.#open(waiter.query, set);
    this.#join(flight, waiter);
    this.#askNext(flight);
  }

  /** Has a question asked that nobody waits for yet. */
  refresh(query: Query): void {
    if (this.inFlight >= FLIGHTS_MAX / 2 || this.#flights.find(query) !== null) return;
    const set = this.#setFor(query);
    if (set === null || this.#flights.isFull(set)) return;
    this.#counts[Counter.Prefetched]++;
    const flight = this.#open(query, set);
    flight.background = true;
    this.#askNext(flight);
  }

  /** A packet came in for an attempt. Its bytes are the caller's again afterwards. */
  onPacket(token: number, packet: Uint8Array, length: number): void {
    const attempt = this.#attempts.find(token);
    const flight = attempt?.flight ?? null;
    if (attempt === null || flight === null) return;
    const dnssecOk = (flight.query.keyBits & KEY_DO) !== 0;
    const reader = this.#reader;
    const { overStream, packet: asked, questionEnd: end, upstream } = attempt;
    const fit = reader.read(packet, length, asked, end, dnssecOk, overStream, flight.lead);
    if (fit === Fit.Mismatched || fit === Fit.WrongCase || (fit === Fit.Broken && !overStream)) {
      this.#doubt(flight, attempt, fit);
      return;
    }
    if (upstream.answered(this.#options.nowMs() - attempt.sentAtMs)) {
      log.info("upstream answers again", { upstream: upstream.spec.address });
    }
    if (flight.probe) {
      this.#close(flight);
      return;
    }
    if (fit === Fit.Truncated) {
      this.#askOverTcp(attempt);
      return;
    }
    // Who is asked for names of its own knows them; of any other server it is a refusal to recurse.
    const isDenial = !reader.isBare || upstream.spec.domains.length > 0;
    if (fit === Fit.Answer && isDenial) {
      this.#countSilent(flight, attempt);
      this.#answer(flight, upstream.index);
      return;
    }
    if (fit === Fit.Open) {
      this.#countSilent(flight, attempt);
      this.#follow(flight, upstream.index);
      return;
    }
    // Only a server that knows no EDNS answers so, and without OPT (RFC 6891 §7).
    const noEdns = fit === Fit.Failure && reader.rcode === Rcode.FormErr && !reader.hasOpt;
    if (noEdns && !upstream.isPlain(attempt.sentAtMs)) {
      upstream.refusesEdns(this.#options.nowMs());
      this.#release(attempt);
      if (this.#ask(flight, upstream) !== "sent") this.#askNext(flight);
      return;
    }
    flight.declined.push(upstream);
    flight.failure = unhelpful(upstream, fit, reader);
    this.#release(attempt);
    // What is malformed over TCP as well is no forgery.
    const hopeless = fit === Fit.Broken ? flight.doubted(upstream) : null;
    if (hopeless !== null) this.#release(hopeless);
    if (reader.bogus) this.#fail(flight);
    else this.#askNext(flight);
  }

  /** A packet that is not to be trusted, or of no use. */
  #doubt(flight: Flight, attempt: Attempt, fit: Fit): void {
    this.#counts[Counter.UpstreamMismatched]++;
    const isFlood = ++attempt.mismatches === MISMATCHES_MAX;
    // Somebody may be guessing, or a router folds names: TCP tells, where guesses do not reach.
    if (isFlood || fit === Fit.WrongCase) {
      if (!attempt.overStream) this.#askOverTcp(attempt);
      return;
    }
    if (fit !== Fit.Broken || attempt.isDoubted) return;
    // A true answer may still follow; others are asked beside it.
    attempt.isDoubted = true;
    flight.failure = unhelpful(attempt.upstream, fit, this.#reader);
    this.#askNext(flight);
  }

  /**
   * The way to the upstream is closed: nothing will come for this attempt. `isOwn`: it is this
   * process that lacks what it needs for one.
   */
  onFailure(token: number, reason: AttemptFailure, isOwn = false): void {
    const attempt = this.#attempts.find(token);
    const flight = attempt?.flight ?? null;
    if (attempt === null || flight === null) return;
    this.#noteFailure(flight, attempt, isOwn ? "noSocket" : "unreachable", reason);
    this.#release(attempt);
    this.#askNext(flight, true);
  }

  /** Notes why a query was not sent, or not answered, and whose fault that is. */
  #noteFailure(flight: Flight, attempt: Attempt, sending: Sending, reason: string): void {
    const { upstream } = attempt;
    if (flight.probe && sending !== "unreachable") upstream.postponeProbe(this.#options.nowMs());
    switch (sending) {
      case "full":
        this.#shortages.noteFull(upstream);
        flight.failure = tooMany(upstream.spec.address);
        return;
      case "noSocket":
        this.#shortages.noteNoSocket();
        flight.failure = NO_SOCKET;
        return;
      default:
        flight.failure = unreachable(upstream, reason);
        this.#countFailure(attempt, reason);
    }
  }

  /** Looks through the waits; called every `TICK_MS` while there are any. */
  tick(): void {
    const nowMs = this.#options.nowMs();
    this.#flights.recycle(); // A tick is nobody's turn: no flight is held by a caller.
    const { active } = this.#flights;
    for (let i = active.length - 1; i >= 0; i--) {
      const flight = active[i];
      if (flight === undefined || flight.done) continue;
      for (const attempt of flight.attempts) {
        if (nowMs - attempt.sentAtMs >= attempt.upstream.spec.timeoutMs) {
          this.#countFailure(attempt, NO_ANSWER);
        }
      }
      const age = nowMs - flight.startedAtMs;
      if (!flight.servedStale && age >= STALE_PATIENCE_MS) this.#serveStale(flight);
      if (age >= this.#deadlineMs(flight)) this.#fail(flight);
      else if (nowMs >= flight.nextAtMs) this.#askNext(flight);
    }
    this.#probe(nowMs);
    if (active.length === 0 && this.#table.all.every((u) => u.healthy)) this.#tick(false);
  }

  /** Ends every wait: the isolate stops. Waiting clients get SERVFAIL. */
  close(): void {
    for (const flight of [...this.#flights.active]) this.#fail(flight);
    this.#tick(false);
  }

  #deadlineMs(flight: Flight): number {
    let longest = FLIGHT_MS;
    for (const { spec } of flight.set.upstreams) longest = Math.max(longest, spec.timeoutMs);
    return longest;
  }

  #tick(on: boolean): void {
    if (this.#ticking === on) return;
    this.#ticking = on;
    this.#options.ticking(on);
  }

  #setFor(query: Query): UpstreamSet | null {
    return this.#table.forName(query.packet, query.qname, query.qnameLength);
  }

  #open(query: Query, set: UpstreamSet): Flight {
    const flight = this.#flights.open(query, set, this.#options.nowMs());
    flight.isOwnDomain = set.isOwnDomain;
    this.#tick(true);
    return flight;
  }

  #join(flight: Flight, waiter: Waiter): void {
    waiter.next = flight.waiters;
    flight.waiters = waiter;
    flight.waiterCount++;
  }

  /**
   * Asks the next upstream, or gives up when none is left to ask or to wait for. `isUnreachable`: the
   * last one can't be reached; where no other is left, it gets a moment to come back.
   */
  #askNext(flight: Flight, isUnreachable = false): void {
    while (!flight.done) {
      const upstream = flight.asked.length < (flight.probe ? 1 : ATTEMPTS_MAX)
        ? nextUpstream(flight, this.#attempts, this.#shortages)
        : null;
      if (upstream === null) {
        if (flight.attempts.length === 0) this.#fail(flight);
        else {
          flight.nextAtMs = Infinity;
          this.#askBeside(flight);
        }
        return;
      }
      const before = flight.timesAsked(upstream);
      if (isUnreachable && before > 0) {
        const nowMs = this.#options.nowMs();
        if (nowMs - flight.startedAtMs < RETRY_MS_MAX) {
          flight.nextAtMs = nowMs + RETRY_MS * 2 ** (before - 1);
        } else if (flight.attempts.length === 0) {
          this.#fail(flight);
        }
        return;
      }
      const sending = this.#ask(flight, upstream);
      if (sending === "sent") return;
      // No other upstream has what this process lacks.
      if (sending === "noSocket" && flight.attempts.length === 0) this.#fail(flight);
    }
  }

  /** Nobody else is left: who answered with a malformed message may do better over TCP. */
  #askBeside(flight: Flight): void {
    const doubted = flight.attempts.find((attempt) => attempt.isDoubted && !attempt.hasBeside);
    if (doubted === undefined || this.#attempts.isFull(doubted.upstream)) return;
    doubted.hasBeside = true;
    this.#askOverTcp(this.#takeAttempt(flight, doubted.upstream));
  }

  /** Sends the question to an upstream. */
  #ask(flight: Flight, upstream: Upstream): Sending {
    const attempt = this.#takeAttempt(flight, upstream);
    // Each time the same upstream is asked again, it gets twice the time.
    const before = flight.timesAsked(upstream);
    flight.asked.push(upstream.index);
    flight.nextAtMs = attempt.sentAtMs + upstream.patienceMs * 2 ** before;
    this.#counts[Counter.UpstreamSent]++;
    upstream.sent++;
    const { exchange } = this.#options;
    const sending = exchange.send(upstream.index, attempt.packet, attempt.length, attempt.token);
    if (sending !== "sent") {
      this.#noteFailure(flight, attempt, sending, NOT_SENT);
      this.#release(attempt);
    }
    return sending;
  }

  /** The same upstream, by a way that carries any size and that nobody can forge from afar. */
  #askOverTcp(attempt: Attempt): void {
    const { exchange, nowMs } = this.#options;
    const { flight } = attempt;
    if (flight === null) return;
    exchange.cancel(attempt.token);
    attempt.overStream = true;
    attempt.sentAtMs = nowMs();
    flight.nextAtMs = attempt.sentAtMs + attempt.upstream.spec.timeoutMs;
    this.#counts[Counter.UpstreamTcp]++;
    const { upstream, packet, length, token } = attempt;
    const sending = exchange.sendTcp(upstream.index, packet, length, token);
    if (sending === "sent") return;
    this.#noteFailure(flight, attempt, sending, NOT_SENT);
    this.#release(attempt);
    this.#askNext(flight, true);
  }

  #takeAttempt(flight: Flight, upstream: Upstream): Attempt {
    const attempt = this.#attempts.take(flight, upstream, this.#options.nowMs());
    this.#writer.write(attempt, flight.asking);
    return attempt;
  }

  #release(attempt: Attempt): void {
    const { flight } = attempt;
    if (flight !== null) flight.attempts.splice(flight.attempts.indexOf(attempt), 1);
    this.#free(attempt);
  }

  #free(attempt: Attempt): void {
    this.#options.exchange.cancel(attempt.token);
    this.#attempts.release(attempt);
  }

  #countFailure(attempt: Attempt, reason: string): void {
    if (attempt.failed) return;
    attempt.failed = true;
    this.#counts[Counter.UpstreamTimeouts]++;
    const { upstream } = attempt;
    if (upstream.failed(this.#options.nowMs(), reason)) {
      log.warn("upstream does not answer", {
        upstream: upstream.spec.address,
        failures: upstream.failures,
        reason,
      });
      this.#tick(true); // For the probes.
    }
  }

  /** Others that had their time and were overtaken have failed this once. */
  #countSilent(flight: Flight, answered: Attempt): void {
    const nowMs = this.#options.nowMs();
    for (const attempt of flight.attempts) {
      if (attempt.upstream === answered.upstream) continue;
      if (nowMs - attempt.sentAtMs >= attempt.upstream.patienceMs) {
        this.#countFailure(attempt, NO_ANSWER);
      }
    }
  }

  /** Asks for the name that a chain has led to, so that clients get what is at its end. */
  #follow(flight: Flight, upstream: number): void {
    const reader = this.#reader;
    // Names of the service itself are never forwarded: the chain is all there is to say.
    if (isServiceName(reader.target)) {
      reader.ttl = Math.min(reader.ttl, DENIAL_TTL);
      this.#answer(flight, upstream);
      return;
    }
    for (const attempt of flight.attempts) this.#free(attempt);
    flight.attempts.length = 0;
    flight.failure = null;
    flight.follow(reader.target, reader.message.slice(0, reader.length), reader.ttl);
    const set = this.#setFor(flight.asking);
    if (set === null) {
      flight.failure = NOBODY_SERVES;
      this.#fail(flight);
      return;
    }
    this.#flights.move(flight, set);
    flight.isOwnDomain &&= set.isOwnDomain;
    this.#askNext(flight);
  }

  /** Keeps the answer and hands it to all who wait. */
  #answer(flight: Flight, upstream: number): void {
    const entry = this.#kept.keep(flight);
    this.#close(flight);
    for (let waiter = flight.waiters; waiter !== null;) {
      const { next } = waiter;
      if (entry < 0) {
        this.#failWaiter(waiter, TOO_LARGE);
      } else {
        waiter.query.upstream = upstream;
        waiter.taker?.onAnswer(waiter, entry, NO_ERROR);
        this.releaseWaiter(waiter);
      }
      waiter = next;
    }
  }

  /** Gives up: a stale answer where there is one, else SERVFAIL, which is remembered a while. */
  #fail(flight: Flight): void {
    if (flight.done) return;
    if (!flight.servedStale) this.#serveStale(flight);
    this.#close(flight);
    const failure = flight.failure ?? NOBODY_ANSWERED;
    const silent = flight.background || flight.probe ||
      this.#kept.stale(flight.query) >= 0;
    if (!silent) this.#kept.keepFailure(flight, failure.errors);
    for (let waiter = flight.waiters; waiter !== null;) {
      const { next } = waiter;
      this.#failWaiter(waiter, failure);
      waiter = next;
    }
  }

  #failWaiter(waiter: Waiter, failure: ResolveFailure): void {
    waiter.taker?.onFailure(waiter, failure);
    this.releaseWaiter(waiter);
  }

  /** Answers those who wait with what is past its time, and goes on asking. */
  #serveStale(flight: Flight): void {
    const entry = this.#kept.stale(flight.query);
    if (entry < 0) return;
    flight.servedStale = true;
    const { waiters } = flight;
    flight.waiters = null;
    flight.waiterCount = 0;
    for (let waiter = waiters; waiter !== null;) {
      const { next } = waiter;
      this.#respondStale(waiter, entry);
      waiter = next;
    }
  }

  #respondStale(waiter: Waiter, entry: number): void {
    const rcode = this.#options.cache.flags(entry) & RCODE_MASK;
    const ede = rcode === Rcode.NXDomain ? Ede.StaleNxdomainAnswer : Ede.StaleAnswer;
    this.#counts[Counter.Stale]++;
    waiter.query.source = Outcome.Cached;
    waiter.taker?.onAnswer(waiter, entry, ede);
    this.releaseWaiter(waiter);
  }

  #close(flight: Flight): void {
    for (const attempt of flight.attempts) this.#free(attempt);
    flight.attempts.length = 0;
    this.#flights.close(flight);
  }

  /** Asks failing upstreams for the root's name servers: who knows those can be trusted again. */
  #probe(nowMs: number): void {
    for (const upstream of this.#table.all) {
      if (upstream.healthy || upstream.probing || nowMs < upstream.probeAtMs) continue;
      if (this.inFlight >= FLIGHTS_MAX) return;
      upstream.probing = true;
      const alone = new UpstreamSet(ROOT, [upstream]);
      const flight = this.#open(PROBE, alone);
      flight.probe = true;
      this.#askNext(flight);
    }
  }
}

const ROOT = Uint8Array.of(0);
