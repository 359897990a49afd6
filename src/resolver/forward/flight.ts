/** What a question on its way is made of: who waits for it, and how it was sent. */
import { getU16 } from "../../bytes/mod.ts";
import { OPT_BYTES } from "../../dns/mod.ts";
import { Query, QUESTION_BYTES_MAX } from "../query.ts";
import type { Upstream } from "./upstream.ts";

/** Block size of padded queries (RFC 8467 §4.1). */
export const QUERY_BLOCK_BYTES = 128;
/** Bytes of an option without data. */
export const OPTION_BYTES = 4;
/** Room for a query as it is sent, its padding included. */
export const SENT_BYTES_MAX = QUERY_BLOCK_BYTES *
  Math.ceil((QUESTION_BYTES_MAX + OPT_BYTES + OPTION_BYTES) / QUERY_BLOCK_BYTES);

/** A query that waits, and whoever takes its response. */
export class Waiter {
  readonly query = new Query();
  /** The transport's own: which listener, which connection. */
  responder: Responder | null = null;
  /** Where the client is, as the transport writes it down. */
  readonly peer: Uint8Array;
  next: Waiter | null = null;

  constructor(peerBytes: number) {
    this.query.packet = new Uint8Array(QUESTION_BYTES_MAX);
    this.peer = new Uint8Array(peerBytes);
  }
}

/** Takes the response to a query that waited. */
export interface Responder {
  /** The message is in the cache under `entry`; `ede` is the extended error to send or -1. */
  respond(waiter: Waiter, entry: number, ede: number): void;
  /** It can't be resolved. */
  fail(waiter: Waiter, ede: number, text: string): void;
}

/** One way a question was sent. Used again once it is free. */
export class Attempt {
  flight: Flight | null = null;
  /** Query as sent: its ID and the case of its letters are part of the secret. */
  readonly packet = new Uint8Array(SENT_BYTES_MAX);
  length = 0;
  sentAtMs = 0;
  /** It goes over a stream, where nobody can forge an answer from afar, and none is cut. */
  overStream = false;
  mismatches = 0;
  /** Its failure has been counted; a late answer is still good. */
  failed = false;

  constructor(readonly token: number, public upstream: Upstream) {}
}

/** A question on its way to upstreams. Used again a while after it is done: see `FlightTable`. */
export class Flight {
  readonly query = new Query();
  hash = 0;
  startedAtMs = 0;
  /** When the next upstream is asked as well. */
  nextAtMs = 0;
  upstreams: readonly Upstream[] = [];
  readonly attempts: Attempt[] = [];
  /** Upstreams it was sent to, by index, in order. */
  readonly asked: number[] = [];
  /** Upstreams that answered, and would answer the same again. */
  readonly declined: Upstream[] = [];
  waiters: Waiter | null = null;
  waiterCount = 0;
  /** Waiters have been given the stale answer. */
  servedStale = false;
  /** What the last unhelpful upstream said. */
  failureEde = -1;
  failureText = "";
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
  start(query: Query, hash: number, upstreams: readonly Upstream[], nowMs: number): void {
    this.query.keep(query);
    this.hash = hash;
    this.startedAtMs = this.nextAtMs = nowMs;
    this.upstreams = upstreams;
    this.attempts.length = this.asked.length = this.declined.length = 0;
    this.waiters = null;
    this.waiterCount = 0;
    this.servedStale =
      this.background =
      this.probe =
      this.done =
        false;
    this.failureEde = -1;
    this.failureText = "";
  }

  /** How often an upstream was asked. */
  timesAsked(upstream: Upstream): number {
    let count = 0;
    for (const index of this.asked) if (index === upstream.index) count++;
    return count;
  }
}

/** The question of a probe: `. NS`. */
export const PROBE = (() => {
  const query = new Query();
  query.packet = Uint8Array.of(0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 1);
  query.qnameLength = 1;
  query.qtype = 2;
  query.qclass = 1;
  return query;
})();
export const PROBE_HASH = 0x50524f42;

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
