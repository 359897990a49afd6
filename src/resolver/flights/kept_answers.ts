import { setU16 } from "../../bytes/mod.ts";
import { type Cache, CacheHit } from "../../cache/mod.ts";
import { HEADER_BYTES, QR_BIT, RA_BIT, Rcode, RCODE_MASK } from "../../dns/mod.ts";
import { DnssecState, type Query } from "../query.ts";
import type { KeptMessage, RebindingProtection } from "../rebinding.ts";
import type { Flight } from "./flight.ts";

/** Seconds that a failure to resolve is remembered, and one to validate (RFC 9520 §3.2). */
const FAILURE_TTL = 5;
const BOGUS_TTL = 30;
const NO_TTLS = new Uint16Array(0);
const NOTHING: Uint8Array = new Uint8Array(0);

/** What is kept beside a message. */
interface Kept {
  readonly ttl: number;
  readonly errors: Uint8Array;
  readonly state: DnssecState;
}

export interface KeptAnswersOptions {
  readonly cache: Cache;
  /** Takes private addresses out of answers; `null`: they stay. */
  readonly rebinding: RebindingProtection | null;
  /** Seconds past expiry that an entry may be served. */
  readonly serveStale: number;
  /** Seconds, as the cache counts them. */
  readonly nowSeconds: () => number;
}

/** A message that answers a question, as a source brings it. */
export interface BroughtMessage extends KeptMessage {
  readonly message: Uint8Array;
  /** Seconds until it expires; 0 when it must not be kept. */
  readonly ttl: number;
  /** Addresses that rules are to look at beside those in it, as `RebindingProtection.taken` has them. */
  readonly aside?: Uint8Array;
}

/** What is kept of the answers to questions, and of failures, in the cache. */
export class KeptAnswers {
  readonly #options: KeptAnswersOptions;

  constructor(options: KeptAnswersOptions) {
    this.#options = options;
  }

  /** Keeps an answer with its extended errors; returns its entry, or -1 when it is too large. */
  keep(flight: Flight, brought: BroughtMessage, errors: Uint8Array): number {
    const message = this.#protect(flight.isOwnDomain, brought);
    // Rules are about the response as it came, with what is taken out of it here.
    const taken = message === brought.message ? undefined : this.#options.rebinding?.taken;
    const aside = brought.aside ?? taken;
    // Of what was changed nothing is proven.
    const state = message === brought.message ? flight.dnssec : DnssecState.None;
    const { ttl } = brought;
    const { query } = flight;
    // Among queries with a subnet, what holds everywhere is found by all of them.
    const hash = query.subnet === null || flight.isScoped ? query.keyHash : query.openHash;
    return this.#store(query, hash, message, brought, { ttl, errors, state }, aside);
  }

  /** Keeps what follows from proofs; returns its entry, or -1 when it is too large. */
  keepDeduced(query: Query, brought: BroughtMessage): number {
    const { ttl } = brought;
    const message = this.#protect(false, brought);
    const isWhole = message === brought.message;
    const state = isWhole ? DnssecState.Secure : DnssecState.None;
    const taken = isWhole ? undefined : this.#options.rebinding?.taken;
    const { subnet, keyHash, openHash } = query;
    const hash = subnet === null ? keyHash : openHash;
    return this.#store(query, hash, message, brought, { ttl, errors: NOTHING, state }, taken);
  }

  /** A SERVFAIL message for a short while (RFC 9520). */
  keepFailure({ query, dnssec: state }: Flight, errors: Uint8Array): void {
    const length = query.questionEnd;
    const message = query.packet.slice(0, length);
    setU16(message, 2, QR_BIT | RA_BIT | Rcode.ServFail);
    setU16(message, 4, 1);
    message.fill(0, 6, HEADER_BYTES);
    const kept = { length, ttlOffsets: NO_TTLS, ttlCount: 0 };
    const ttl = state === DnssecState.Bogus ? BOGUS_TTL : FAILURE_TTL;
    this.#store(query, query.keyHash, message, kept, { ttl, errors, state });
  }

  /** The entry that answers a question at this moment, or -1. */
  fresh(query: Query): number {
    return this.#find(query, CacheHit.Fresh);
  }

  /**
   * The entry that is past its time and may be served still, or -1: no failure, and nothing that was
   * not to be kept (RFC 8767 §4).
   */
  stale(query: Query): number {
    const { cache, serveStale } = this.#options;
    if (serveStale === 0) return -1;
    const entry = this.#find(query, CacheHit.Stale);
    if (entry < 0 || cache.secondsWhole(entry) === 0) return -1;
    return (cache.flags(entry) & RCODE_MASK) === Rcode.ServFail ? -1 : entry;
  }

  #find(query: Query, wanted: CacheHit): number {
    const entry = this.#findBy(query, query.keyHash, wanted);
    if (entry >= 0 || query.subnet === null) return entry;
    return this.#findBy(query, query.openHash, wanted);
  }

  #findBy(
    { qtype, keyBits, packet, qname, qnameLength }: Query,
    hash: number,
    wanted: CacheHit,
  ): number {
    const { cache, nowSeconds } = this.#options;
    const entry = cache.find(hash, qtype, keyBits, packet, qname, qnameLength);
    return entry >= 0 && cache.freshness(entry, nowSeconds()) === wanted ? entry : -1;
  }

  /** The message as it may be kept, which `brought` speaks of then. */
  #protect(isOwnDomain: boolean, brought: BroughtMessage): Uint8Array {
    const { rebinding } = this.#options;
    const { message } = brought;
    // Who has a domain of its own asked elsewhere wants the addresses of that network.
    if (rebinding === null || isOwnDomain) return message;
    return rebinding.protect(message, brought);
  }

  #store(
    { qtype, keyBits, qnameLength }: Query,
    hash: number,
    message: Uint8Array,
    { length, ttlOffsets, ttlCount }: KeptMessage,
    { ttl, errors, state }: Kept,
    aside?: Uint8Array,
  ): number {
    const { cache, nowSeconds: now } = this.#options;
    const nowSeconds = now();
    const more = aside === undefined ? {} : { aside };
    return cache.store(
      { hash, qtype, keyBits, qnameLength, ttl, errors, state, nowSeconds, ...more },
      message,
      0,
      length,
      ttlOffsets,
      ttlCount,
    );
  }
}
