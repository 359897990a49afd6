import { getU16, setU16 } from "../../bytes/mod.ts";
import type { Cache } from "../../cache/mod.ts";
import { AD_BIT } from "../../dns/mod.ts";
import { type Finding, Security, type TrustAnchors } from "../../dnssec/mod.ts";
import { Counter, type CounterBlock } from "../../telemetry/mod.ts";
import {
  type BroughtMessage,
  ClientLines,
  type Flight,
  type Judge,
  lineOf,
  LINES,
} from "../flights/mod.ts";
import { ResolveFailure } from "../failure.ts";
import { KEY_CD, type Query, routeOf } from "../query.ts";
import { streamReply } from "../reply.ts";
import { ChainQuestion } from "./chain_question.ts";
import { type CheckQueue } from "./check_queue.ts";
import { CutTable } from "./cut_table.ts";
import { FailingZones } from "./failing_zones.ts";
import { Gaps } from "./gaps.ts";
import { ProvenMessage } from "./proven_message.ts";
import { UnsignedAnswers } from "./unsigned.ts";
import { bytesOf, noteFinding, Validating, type ValidatingMeans } from "./validating.ts";

export interface ValidationOptions {
  /** Of every hash of a name in this process. */
  readonly seed: number;
  readonly anchors: TrustAnchors;
  readonly checks: CheckQueue;
  readonly cache: Cache;
  readonly counters: CounterBlock;
  /** Seconds since 1970. */
  /** By the monotonic clock. */
  readonly nowMs: () => number;
  readonly nowSeconds: () => number;
  /** Has work done in a turn of its own, at whose end answers are sent. */
  readonly inTurn: (work: () => void) => void;
}

/**
 * Answers to one client that are looked at, or wait for threads, at one time; those that wait for
 * chains are not among them. What lives long is dear to collect: the rest waits as it came.
 */
export const RUNNING_MAX = 16;
/** What answers take that are validated, or wait for it, at one time. */
export const ACTIVE_BYTES_MAX: number = 32 * 1024 * 1024;
const TOO_MUCH = new ResolveFailure("overload", "too many answers wait to be validated");

/** Validates what a source brings, whichever source that is. One per dns isolate. */
export class Validation implements Judge {
  /** The keys of an anchored zone fail by the time alone: see `Finding.clockSuspect`. */
  clockSuspect = false;
  readonly #means: ValidatingMeans;
  readonly #counts: Float64Array;
  readonly #cuts = new CutTable();
  readonly #gaps = new Gaps();
  readonly #failing: FailingZones;
  readonly #unsigned = new UnsignedAnswers(this.#cuts);
  readonly #active = new Set<Validating>();
  /** What those take. */
  #activeBytes = 0;
  readonly #work = { busy: 0, running: new Uint16Array(LINES) };
  /** Those that wait for others of their client's to come to an end. */
  readonly #lines = new ClientLines<Validating>();
  #anchors: TrustAnchors;
  #pastS: number | null = null;

  constructor(options: ValidationOptions) {
    const { seed, anchors, checks, cache, counters, nowMs, nowSeconds, inTurn } = options;
    this.#anchors = anchors;
    this.#counts = counters.values;
    const failing = this.#failing = new FailingZones(nowMs);
    const inForce = () => this.#anchors;
    const pastS = () => this.#pastS;
    this.#means = {
      get anchors() {
        return inForce();
      },
      get pastS() {
        return pastS();
      },
      cuts: this.#cuts,
      gaps: this.#gaps,
      checks,
      cache,
      counts: counters.values,
      message: new ProvenMessage(),
      question: new ChainQuestion(seed),
      room: streamReply(),
      nowSeconds,
      inTurn,
      work: this.#work,
      failing,
      ended: (one) => {
        if (!this.#active.delete(one)) return;
        this.#activeBytes -= one.bytes;
        this.#lines.remove(one.client, one);
        this.#startNext(one.client);
      },
      paused: ({ client }) => this.#startNext(client),
      found: (finding) => this.#found(finding),
    };
  }

  /** Answers that are being validated. */
  get active(): number {
    return this.#active.size;
  }

  /** Those of them that wait for nobody: they go on with the next microtasks. */
  get busy(): number {
    return this.#work.busy;
  }

  /** Goes on with other anchors, and with nothing that was found by the former ones. */
  set anchors(anchors: TrustAnchors) {
    this.#anchors = anchors;
    this.forget();
  }

  /**
   * By a clock that is behind, what was signed after it counts as unsigned, so that names, that of a
   * time server among them, can be resolved at all. Seconds since 1970 that the time is past at least;
   * `null`: the clock is believed.
   */
  get pastS(): number | null {
    return this.#pastS;
  }

  set pastS(pastS: number | null) {
    if (this.#pastS === pastS) return;
    this.#pastS = pastS;
    this.forget();
  }

  /** Forgets what was proven. */
  forget(): void {
    this.#cuts.clear();
    this.#gaps.clear();
    this.#failing.clear();
  }

  admit(query: Query, zone: Uint8Array): ResolveFailure | null {
    return this.#isExempt(query) ? null : this.#note(this.#failing.admit(zone, query));
  }

  refusal(query: Query, zone: Uint8Array): ResolveFailure | null {
    return this.#isExempt(query) ? null : this.#note(this.#failing.refusal(zone, query));
  }

  /** What need not be proven is not to be refused for that, nor shows whether a zone is sound. */
  #isExempt({ packet, qname, qnameLength, keyBits }: Query): boolean {
    if (this.#failing.size === 0 || (keyBits & KEY_CD) !== 0) return true;
    const name = packet.subarray(qname, qname + qnameLength);
    return this.#anchors.closest(name)?.kind !== "anchor";
  }

  #note(refusal: ResolveFailure | null): ResolveFailure | null {
    if (refusal !== null) this.#counts[Counter.FailingRefused]++;
    return refusal;
  }

  take(flight: Flight, message: BroughtMessage, errors: Uint8Array): boolean {
    if (!flight.isValidated || this.#isUnsigned(flight, message, errors)) {
      // Who wants it unchecked gets it so: others' word for it is not ours.
      setU16(message.message, 2, getU16(message.message, 2) & ~AD_BIT);
      return false;
    }
    const { home, query } = flight;
    const refusal = home === null ? null : this.refusal(query, home);
    const isTooMuch = this.#activeBytes + bytesOf(message) > ACTIVE_BYTES_MAX;
    const refused = refusal ?? (isTooMuch ? TOO_MUCH : null);
    const validating = new Validating(flight, message, errors, this.#means, refused);
    flight.judging = validating;
    this.#active.add(validating);
    this.#activeBytes += validating.bytes;
    // What is refused takes no time.
    if (refused !== null) validating.start();
    else {
      this.#lines.push(validating.client, validating);
      this.#startNext(validating.client);
    }
    return true;
  }

  #startNext(client: number): void {
    if (this.#work.running[lineOf(client)] < RUNNING_MAX) this.#lines.nextOf(client)?.start();
  }

  /** Says whether an answer is known to be insecure without a look at it, and notes that. */
  #isUnsigned(flight: Flight, message: BroughtMessage, errors: Uint8Array): boolean {
    if (errors.length > 0) return false; // Those of others about DNSSEC are not ours.
    const { anchors, nowSeconds } = this.#means;
    const finding = this.#unsigned.find(flight, message, anchors, nowSeconds());
    if (finding === null) return false;
    noteFinding(flight, finding, this.#counts);
    if (flight.home !== null) this.#failing.held(flight.home, flight.query, 0);
    return true;
  }

  deduce(query: Query): BroughtMessage | null {
    if (routeOf(query) !== 0) return null; // Its upstreams may say otherwise.
    const { message, anchors, nowSeconds } = this.#means;
    const proven = this.#gaps.deduce(query, anchors, nowSeconds());
    if (proven === null || !message.write(query, proven)) return null;
    this.#counts[Counter.Deduced]++;
    return message;
  }

  #found({ security, clockSuspect }: Finding): void {
    if (clockSuspect) this.clockSuspect = true;
    else if (security === Security.Secure) this.clockSuspect = false;
  }
}
