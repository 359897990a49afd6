/** What a question on its way is made of: who waits for it, and how it was sent. */
import { getU16, setU16 } from "../../bytes/mod.ts";
import { HEADER_BYTES, OPT_BYTES, skipName } from "../../dns/mod.ts";
import { Query, QUESTION_BYTES_MAX } from "../query.ts";
import type { ResolveFailure } from "../failure.ts";
import type { Waiter } from "../flights/waiter.ts";
import { type Upstream, UpstreamSet } from "./upstream.ts";

/** Block size of padded queries (RFC 8467 §4.1). */
export const QUERY_BLOCK_BYTES = 128;
/** Bytes of an option without data. */
export const OPTION_BYTES = 4;
/** Room for a query as it is sent, its padding included. */
export const SENT_BYTES_MAX = QUERY_BLOCK_BYTES *
  Math.ceil((QUESTION_BYTES_MAX + OPT_BYTES + OPTION_BYTES) / QUERY_BLOCK_BYTES);

const NOTHING = new Uint8Array(0);
const NOBODY = new UpstreamSet(Uint8Array.of(0), []);

/** One way a question was sent. Used again once it is free. */
export class Attempt {
  flight: Flight | null = null;
  /** Query as sent: its ID and the case of its letters are part of the secret. */
  readonly packet = new Uint8Array(SENT_BYTES_MAX);
  length = 0;
  /** Where the question ends in `packet`. */
  questionEnd = 0;
  sentAtMs = 0;
  /** It goes over a stream, where nobody can forge an answer from afar, and none is cut. */
  overStream = false;
  mismatches = 0;
  /** Its failure has been counted; a late answer is still good. */
  failed = false;
  /** It had a malformed answer over UDP: a true one may follow. */
  isDoubted = false;
  /** The upstream is asked over TCP beside it. */
  hasBeside = false;

  constructor(readonly token: number, public upstream: Upstream) {}

  /** Says whether a query is the very one that was sent, its ID and case included. */
  isWhatWasSent({ id, packet, qname, qnameLength }: Query): boolean {
    if (this.questionEnd !== HEADER_BYTES + qnameLength + 4) return false;
    if (id !== getU16(this.packet, 0)) return false;
    for (let i = 0; i < qnameLength; i++) {
      if (packet[qname + i] !== this.packet[HEADER_BYTES + i]) return false;
    }
    return true;
  }
}

/** A question on its way to upstreams. Used again a while after it is done: see `FlightTable`. */
export class Flight {
  readonly query = new Query();
  startedAtMs = 0;
  /** When the next upstream is asked as well. */
  nextAtMs = 0;
  /** Who is asked; their `flights` count this one. */
  set: UpstreamSet = NOBODY;
  readonly attempts: Attempt[] = [];
  /** Upstreams it was sent to, by index, in order. */
  readonly asked: number[] = [];
  /** Upstreams that answered, and would answer the same again. */
  readonly declined: Upstream[] = [];
  waiters: Waiter | null = null;
  waiterCount = 0;
  /** Waiters have been given the stale answer. */
  servedStale = false;
  /** What the last unhelpful upstream said; `null`: nobody said anything. */
  failure: ResolveFailure | null = null;
  /** What is asked at this moment: the question, or the name that its chain has led to so far. */
  asking: Query = this.query;
  /** What the answer goes behind: the question, or a message with the chain. */
  lead: Uint8Array = NOTHING;
  /** Seconds that the chain holds. */
  leadTtl = Infinity;
  /** Every upstream of it has domains of its own: their addresses are those of one's network. */
  isOwnDomain = true;
  /** The question about a chain's target; made when first needed. */
  #target: Query | null = null;
  /** No client waits: an entry is renewed. */
  background = false;
  /** Asks only whether an upstream answers at all. */
  probe = false;
  done = false;
  /** The table's own: its place among the active ones, and the next one of its bucket. */
  place = 0;
  next: Flight | null = null;

  constructor() {
    this.query.packet = new Uint8Array(QUESTION_BYTES_MAX);
  }

  /** Makes it a new one, about the question of `query`. */
  start(query: Query, set: UpstreamSet, nowMs: number): void {
    this.query.keep(query);
    this.asking = this.query;
    this.lead = this.query.packet.subarray(0, questionEnd(this.query));
    this.leadTtl = Infinity;
    this.isOwnDomain = true;
    this.set = set;
    this.startedAtMs = this.nextAtMs = nowMs;
    this.attempts.length = this.asked.length = this.declined.length = 0;
    this.waiters = null;
    this.waiterCount = 0;
    this.servedStale =
      this.background =
      this.probe =
      this.done =
        false;
    this.failure = null;
  }

  /** Goes on to the end of a chain: asks for `target`, whose answer goes behind `lead`. */
  follow(target: Uint8Array, lead: Uint8Array, ttl: number): void {
    const asking = this.#target ??= targetQuery();
    asking.keep(this.query);
    const end = skipName(target, 0, target.length);
    for (let i = 0; i < end; i++) asking.packet[HEADER_BYTES + i] = target[i];
    asking.qnameLength = end;
    setU16(asking.packet, HEADER_BYTES + end, asking.qtype);
    setU16(asking.packet, HEADER_BYTES + end + 2, asking.qclass);
    this.asking = asking;
    this.lead = lead;
    this.leadTtl = Math.min(this.leadTtl, ttl);
    this.asked.length = this.declined.length = 0;
  }

  /** The attempt that an upstream has answered with a malformed message, or `null`. */
  doubted(upstream: Upstream): Attempt | null {
    for (const attempt of this.attempts) {
      if (attempt.isDoubted && attempt.upstream === upstream) return attempt;
    }
    return null;
  }

  /** How often an upstream was asked. */
  timesAsked(upstream: Upstream): number {
    let count = 0;
    for (const index of this.asked) if (index === upstream.index) count++;
    return count;
  }
}

function targetQuery(): Query {
  const query = new Query();
  query.packet = new Uint8Array(QUESTION_BYTES_MAX);
  return query;
}

/** Where the question of a kept query ends. */
export function questionEnd({ qnameLength }: Query): number {
  return HEADER_BYTES + qnameLength + 4;
}

/** The question of a probe: `. NS`. */
export const PROBE = (() => {
  const query = new Query();
  query.packet = Uint8Array.of(0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 1);
  query.qnameLength = 1;
  query.qtype = 2;
  query.qclass = 1;
  query.keyHash = 0x50524f42;
  return query;
})();

/** Says whether two queries ask the same, ASCII letters in either case (RFC 4343). */
export function sameQuestion(a: Query, b: Query): boolean {
  if (a.qtype !== b.qtype || a.keyBits !== b.keyBits || a.qnameLength !== b.qnameLength) {
    return false;
  }
  if (getU16(a.packet, a.qname + a.qnameLength) !== b.qtype) return false;
  for (let i = 0; i < a.qnameLength; i++) {
    const [x, y] = [a.packet[a.qname + i], b.packet[b.qname + i]];
    if (x === y) continue;
    const lower = x | 0x20;
    if (lower !== (y | 0x20) || lower < 0x61 || lower > 0x7a) return false;
  }
  return true;
}
