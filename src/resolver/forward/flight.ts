/** What a question on its way is made of: who waits for it, and how it was sent. */
import { getU16 } from "../../bytes/mod.ts";
import { Query, QUESTION_BYTES_MAX } from "../query.ts";
import type { Upstream } from "./upstream.ts";

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

/** One way a question was sent. */
export interface Attempt {
  token: number;
  flight: Flight | null;
  upstream: Upstream;
  /** Query as sent: its ID and the case of its letters are part of the secret. */
  readonly packet: Uint8Array<ArrayBuffer>;
  length: number;
  sentAtMs: number;
  overTcp: boolean;
  mismatches: number;
  /** Its failure has been counted; a late answer is still good. */
  failed: boolean;
}

/** A question on its way to upstreams. */
export interface Flight {
  hash: number;
  readonly query: Query;
  startedAtMs: number;
  /** When the next upstream is asked as well. */
  nextAtMs: number;
  upstreams: readonly Upstream[];
  attempts: Attempt[];
  /** Upstreams it was sent to, by index, in order. */
  asked: number[];
  /** Upstreams that answered, and would answer the same again. */
  declined: Upstream[];
  waiters: Waiter | null;
  waiterCount: number;
  /** Waiters have been given the stale answer. */
  servedStale: boolean;
  /** What the last unhelpful upstream said. */
  failureEde: number;
  failureText: string;
  /** No client waits: an entry is renewed. */
  background: boolean;
  /** Asks only whether an upstream answers at all. */
  probe: boolean;
  done: boolean;
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
