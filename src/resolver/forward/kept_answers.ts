import { setU16 } from "../../bytes/mod.ts";
import { type Cache, CacheHit } from "../../cache/mod.ts";
import { HEADER_BYTES, QR_BIT, RA_BIT, Rcode } from "../../dns/mod.ts";
import type { Query } from "../query.ts";
import type { RebindingProtection } from "../rebinding.ts";
import { type Flight, questionEnd } from "./flight.ts";
import type { ResponseReader } from "./response.ts";

/** Seconds that a failure to resolve is remembered (RFC 9520 §3.2). */
const FAILURE_TTL = 5;

export interface KeptAnswersOptions {
  readonly cache: Cache;
  /** Takes private addresses out of answers; `null`: they stay. */
  readonly rebinding: RebindingProtection | null;
  /** Seconds past expiry that an entry may be served. */
  readonly serveStale: number;
  /** Seconds, as the cache counts them. */
  readonly nowSeconds: () => number;
}

/** What is kept of the answers to questions, and of failures, in the cache. */
export class KeptAnswers {
  readonly #options: KeptAnswersOptions;
  readonly #reader: ResponseReader;

  constructor(options: KeptAnswersOptions, reader: ResponseReader) {
    this.#options = options;
    this.#reader = reader;
  }

  /** Keeps the answer that was read last; returns its entry, or -1 when it is too large. */
  keep(flight: Flight): number {
    const reader = this.#reader;
    const message = this.#protect(flight);
    // Rules are about the response as it came, with what is taken out of it here.
    const taken = message === reader.message ? undefined : this.#options.rebinding?.taken;
    const ttl = Math.min(reader.ttl, flight.leadTtl);
    return this.#store(flight, message, reader.length, ttl, reader.errors.view(), taken);
  }

  /** A SERVFAIL message for a short while (RFC 9520). */
  keepFailure(flight: Flight, errors: Uint8Array): void {
    const { query } = flight;
    const length = questionEnd(query);
    const message = query.packet.slice(0, length);
    setU16(message, 2, QR_BIT | RA_BIT | Rcode.ServFail);
    setU16(message, 4, 1);
    message.fill(0, 6, HEADER_BYTES);
    this.#reader.ttlCount = 0;
    this.#store(flight, message, length, FAILURE_TTL, errors);
  }

  /** The entry that is past its time and may be served still, or -1. */
  stale(query: Query): number {
    const { cache, nowSeconds, serveStale } = this.#options;
    if (serveStale === 0) return -1;
    const { qtype, keyBits, keyHash, packet, qname, qnameLength } = query;
    const entry = cache.find(keyHash, qtype, keyBits, packet, qname, qnameLength);
    return entry >= 0 && cache.freshness(entry, nowSeconds()) === CacheHit.Stale ? entry : -1;
  }

  /** The message as it may be kept, which the reader speaks of then. */
  #protect(flight: Flight): Uint8Array {
    const { rebinding } = this.#options;
    const { message } = this.#reader;
    // Who sends a domain to an upstream of its own wants the addresses of that network.
    if (rebinding === null || flight.isOwnDomain) return message;
    return rebinding.protect(message, this.#reader);
  }

  #store(
    flight: Flight,
    message: Uint8Array,
    length: number,
    ttl: number,
    errors: Uint8Array,
    aside?: Uint8Array,
  ): number {
    const { qtype, keyBits, keyHash: hash, qnameLength } = flight.query;
    const { cache, nowSeconds: now } = this.#options;
    const nowSeconds = now();
    const more = aside === undefined ? {} : { aside };
    return cache.store(
      { hash, qtype, keyBits, qnameLength, ttl, errors, nowSeconds, ...more },
      message,
      0,
      length,
      this.#reader.ttlOffsets,
      this.#reader.ttlCount,
    );
  }
}
