import { getU16 } from "../../bytes/mod.ts";
import type { Cache } from "../../cache/mod.ts";
import {
  equalNames,
  formatName,
  HEADER_BYTES,
  qtypeName,
  Rcode,
  RCODE_MASK,
  skipPlainName,
} from "../../dns/mod.ts";
import {
  type CutCache,
  type Finding,
  readSections,
  type RrSetResponse,
  Security,
  type SignatureCheck,
  type TrustAnchors,
  Validator,
  type Verdict,
} from "../../dnssec/mod.ts";
import { messageOf } from "../../errors.ts";
import { log } from "../../log.ts";
import { Counter } from "../../telemetry/mod.ts";
import { ownError, withoutDnssecErrors } from "../extended_errors.ts";
import { ResolveFailure, TOO_LARGE } from "../failure.ts";
import {
  type BroughtMessage,
  type Flight,
  lineOf,
  type Task,
  type Waiter,
} from "../flights/mod.ts";
import { clientOf, DnssecState, routeOf } from "../query.ts";
import type { Reply } from "../reply.ts";
import { questionText } from "../trace.ts";
import { type CheckOwner, type CheckQueue, ChecksRefused, SIGNER_OFFSET } from "./check_queue.ts";
import type { ChainQuestion } from "./chain_question.ts";
import type { FailingZones } from "./failing_zones.ts";
import type { Gaps } from "./gaps.ts";
import type { ProvenMessage } from "./proven_message.ts";

/** What is said once a flight's time is over, or where too many signatures wait. */
const TOO_LONG = new ResolveFailure("indeterminate", "validation took too long");
const TOO_MANY_CHECKS = new ResolveFailure("overload", "too many signatures wait to be checked");
const UNREADABLE = new ResolveFailure("malformed", "the answer can't be validated");

const STATES: Readonly<Record<Security, DnssecState>> = {
  [Security.Secure]: DnssecState.Secure,
  [Security.Insecure]: DnssecState.Insecure,
  [Security.Indeterminate]: DnssecState.None,
  [Security.Bogus]: DnssecState.Bogus,
};
/** Bogus ones are counted once they have failed for good. */
const COUNTERS: Readonly<Record<Security, Counter | null>> = {
  [Security.Secure]: Counter.DnssecSecure,
  [Security.Insecure]: Counter.DnssecInsecure,
  [Security.Indeterminate]: Counter.DnssecIndeterminate,
  [Security.Bogus]: null,
};

/** What a record takes beside its bytes. */
const RECORD_BYTES = 256;
const NAMES: Readonly<Record<Security, string>> = {
  [Security.Secure]: "secure",
  [Security.Insecure]: "insecure",
  [Security.Indeterminate]: "indeterminate",
  [Security.Bogus]: "bogus",
};

/** What all validations of an isolate share. */
export interface ValidatingMeans {
  readonly anchors: TrustAnchors;
  /** See `Validation.pastS`. */
  readonly pastS: number | null;
  readonly cuts: CutCache;
  readonly gaps: Gaps;
  readonly checks: CheckQueue;
  readonly cache: Cache;
  readonly counts: Float64Array;
  readonly message: ProvenMessage;
  readonly question: ChainQuestion;
  /** Room for a kept message. */
  readonly room: Reply;
  /** Seconds since 1970. */
  readonly nowSeconds: () => number;
  /** Has work done in a turn of its own, at whose end answers are sent. */
  readonly inTurn: (work: () => void) => void;
  /** How many wait for nobody; and, by client, how many for nobody or for a thread. */
  readonly work: { busy: number; readonly running: Uint16Array };
  readonly failing: FailingZones;
  /** One has ended, or waits for what it looks up. */
  readonly ended: (one: Validating) => void;
  readonly paused: (one: Validating) => void;
  readonly found: (finding: Finding) => void;
}

/** A DS or DNSKEY RRset that is looked up. */
interface LookUp {
  readonly name: Uint8Array;
  readonly type: number;
  readonly resolve: (response: RrSetResponse | null) => void;
}

/** The validation of what was brought to one flight. */
export class Validating implements Task, CheckOwner {
  readonly failure: ResolveFailure = TOO_LONG;
  readonly client: number;
  /** What it holds of the answer, about. */
  readonly bytes: number;
  readonly #means: ValidatingMeans;
  readonly #refused: ResolveFailure | null;
  #message: Uint8Array | null;
  readonly #ttl: number;
  readonly #errors: Uint8Array;
  /** `null` once it is over: flights are used again. */
  #flight: Flight | null;
  #lookUps: LookUp[] = [];
  #isStarted = false;
  #isRunning = false;
  /** What it waits for. */
  #waits = 0;
  /** Signatures that were checked, by what came of it. */
  #fitting = 0;
  #failed = 0;

  /** The message is copied within this call, and not at all where it is `refused`. */
  constructor(
    flight: Flight,
    brought: BroughtMessage,
    errors: Uint8Array,
    means: ValidatingMeans,
    refused: ResolveFailure | null,
  ) {
    this.#flight = flight;
    this.#means = means;
    this.client = clientOf(flight.query);
    this.bytes = bytesOf(brought);
    this.#refused = refused;
    this.#message = refused === null ? brought.message.slice(0, brought.length) : null;
    this.#ttl = brought.ttl;
    this.#errors = withoutDnssecErrors(errors);
  }

  /** Begins behind this call; what the source had on its way is called off by then. */
  start(): void {
    this.#isStarted = true;
    this.#means.work.busy++;
    this.#run(true);
    queueMicrotask(() => void this.#validate());
  }

  #run(isRunning: boolean): void {
    if (this.#isRunning === isRunning) return;
    this.#isRunning = isRunning;
    this.#means.work.running[lineOf(this.client)] += isRunning ? 1 : -1;
  }

  /** Comes to an end by one of the flight's. */
  async #validate(): Promise<void> {
    const { cuts, anchors, pastS, nowSeconds } = this.#means;
    const flight = this.#flight;
    const message = this.#message;
    this.#message = null;
    const response = message === null ? null : responseOf(message, message.length);
    if (flight === null || response === null) {
      this.#refuse(this.#refused ?? UNREADABLE);
      return;
    }
    const ports = {
      lookUp: (name: Uint8Array, type: number, attempt: number) =>
        this.#lookUp(name, type, attempt),
      check: (check: SignatureCheck) => this.#check(check),
      cuts,
      pastS,
    };
    const { packet, qname, qnameLength, qtype: type } = flight.query;
    const question = { name: packet.slice(qname, qname + qnameLength), type };
    try {
      const validator = new Validator(ports, anchors);
      const { zone, madeHere } = flight;
      const from = { zone, madeHere };
      const verdict = await validator.validate(question, response, nowSeconds(), from);
      this.#conclude(verdict);
    } catch (error) {
      if (error instanceof ChecksRefused) this.#refuse(TOO_MANY_CHECKS);
      else {
        log.error("an answer can't be validated", { error: messageOf(error) });
        this.#refuse(UNREADABLE);
      }
    }
  }

  #refuse(failure: ResolveFailure): void {
    this.#end((flight) => flight.fail(failure));
  }

  /** Everything here waits for somebody else, who ends in time. */
  tick(): void {}

  end(): void {
    if (this.#flight === null) return;
    this.#flight = null;
    if (this.#isStarted && this.#waits === 0) this.#means.work.busy--;
    this.#run(false);
    this.#lookUps = [];
    this.#means.checks.forget(this);
    this.#means.ended(this);
  }

  /** Nothing of its own is on its way. */
  echo(): null {
    return null;
  }

  onChild({ query }: Waiter, entry: number): void {
    const at = this.#lookUps.findIndex(({ name, type }) =>
      type === query.qtype && equalNames(name, 0, query.packet, query.qname)
    );
    if (at < 0) return;
    const [{ resolve }] = this.#lookUps.splice(at, 1);
    resolve(entry < 0 ? null : this.#readEntry(entry));
  }

  #lookUp(name: Uint8Array, type: number, attempt: number): Promise<RrSetResponse | null> {
    const flight = this.#flight;
    const { promise, resolve } = Promise.withResolvers<RrSetResponse | null>();
    if (flight === null) return promise; // Nobody goes on with it.
    this.onWaits(true);
    this.#run(false);
    const lookUp = {
      name,
      type,
      resolve: (response: RrSetResponse | null) => {
        this.onWaits(false);
        if (this.#flight !== null) this.#run(true);
        resolve(response);
      },
    };
    this.#lookUps.push(lookUp);
    this.#means.paused(this);
    this.#means.inTurn(() => {
      if (flight.ask(this.#means.question.about(name, type, flight.query), attempt)) return;
      this.#lookUps = this.#lookUps.filter((one) => one !== lookUp);
      lookUp.resolve(null);
    });
    return promise;
  }

  async #check(check: SignatureCheck): Promise<boolean> {
    const fits = await this.#means.checks.check(this, check);
    if (fits) this.#fitting++;
    else this.#failed++;
    const flight = this.#flight;
    flight?.trace?.note(flight.depth, {
      event: "validated",
      detail: `${describeCheck(check.data)} ${fits ? "fits" : "does not fit"}`,
    });
    return fits;
  }

  onWaits(isWaiting: boolean): void {
    const { work } = this.#means;
    const wasBusy = this.#waits === 0;
    this.#waits += isWaiting ? 1 : -1;
    const isBusy = this.#waits === 0;
    if (this.#flight !== null && isBusy !== wasBusy) work.busy += isBusy ? 1 : -1;
  }

  #readEntry(entry: number): RrSetResponse | null {
    const { cache, room, nowSeconds } = this.#means;
    cache.copyTo(entry, room.bytes, room.words, 0, nowSeconds(), 0);
    const response = responseOf(room.bytes, cache.messageLength(entry));
    const isAnswer = response?.rcode === Rcode.NoError || response?.rcode === Rcode.NXDomain;
    return isAnswer ? response : null;
  }

  #conclude(verdict: Verdict): void {
    const { finding } = verdict;
    const { counts, found, failing } = this.#means;
    const { security } = finding;
    found(finding);
    this.#end((flight) => {
      noteFinding(flight, finding, counts);
      const { home, query } = flight;
      if (security <= Security.Insecure) {
        if (home !== null) failing.held(home, query, this.#fitting);
        this.#settle(flight, verdict);
        return;
      }
      const refusal = home === null ? null : failing.refusal(home, query);
      if (security === Security.Bogus && flight.attempt === 0 && refusal === null) {
        flight.askElsewhere(failureOf(finding));
        return;
      }
      if (home !== null) failing.failed(home, query, this.#failed);
      flight.fail(failureOf(finding));
    });
  }

  #settle(flight: Flight, verdict: Verdict): void {
    const { finding, rcode, answer, authority } = verdict;
    const { message, gaps, nowSeconds } = this.#means;
    const { security, ede, reason } = finding;
    // Addresses of a network of one's own are for names that are asked for there.
    const learned = flight.isOwnDomain ? { ...verdict, answer: [] } : verdict;
    // What upstreams of a group say is for nobody else.
    const isForAll = routeOf(flight.query) === 0;
    if (security === Security.Secure && isForAll) gaps.learn(learned, nowSeconds());
    const proven = { rcode, security, answer, authority, ttlMax: this.#ttl };
    if (!message.write(flight.query, proven)) flight.fail(TOO_LARGE);
    else flight.settle(message, ede === null ? this.#errors : ownError(ede, reason));
  }

  /** The last thing it does with its flight. */
  #end(work: (flight: Flight) => void): void {
    this.#means.inTurn(() => {
      if (this.#flight !== null) work(this.#flight);
    });
  }
}

/** What a message takes while it is validated, about. */
export function bytesOf({ length, ttlCount }: BroughtMessage): number {
  return length + RECORD_BYTES * ttlCount;
}

/** Notes what was found about the answer of a flight, and counts it. */
export function noteFinding(flight: Flight, { security, reason }: Finding, counts: Float64Array) {
  flight.dnssec = STATES[security];
  flight.reason = reason;
  flight.trace?.note(flight.depth, {
    event: "validated",
    question: questionText(flight.query),
    detail: [NAMES[security], reason].filter((text) => text !== "").join(": "),
  });
  const counter = COUNTERS[security];
  if (counter !== null) counts[counter]++;
}

function responseOf(message: Uint8Array, length: number): RrSetResponse | null {
  const sections = readSections(message, length);
  if (sections === null || length < HEADER_BYTES) return null;
  const { answer, authority } = sections;
  return { rcode: getU16(message, 2) & RCODE_MASK, answer, authority };
}

/** `www.example A: the signature of key 4711 of example`, by what a signature covers. */
function describeCheck(data: Uint8Array): string {
  const owner = skipPlainName(data, SIGNER_OFFSET);
  if (owner < 0 || skipPlainName(data, owner) < 0) return "a signature";
  return `${formatName(data, owner)} ${qtypeName(getU16(data, 0))}: the signature of key ` +
    `${getU16(data, SIGNER_OFFSET - 2)} of ${formatName(data, SIGNER_OFFSET)}`;
}

function failureOf({ security, ede, reason }: Finding): ResolveFailure {
  const code = security === Security.Bogus ? "bogus" : "indeterminate";
  return new ResolveFailure(code, reason, ede === null ? undefined : ownError(ede, reason));
}
