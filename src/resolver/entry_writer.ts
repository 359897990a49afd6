import { setU16 } from "../bytes/mod.ts";
import type { Cache } from "../cache/mod.ts";
import { AD_BIT, CD_BIT, HEADER_BYTES, RCODE_MASK, RD_BIT } from "../dns/mod.ts";
import { Counter } from "../telemetry/mod.ts";
import { ERRORS_BYTES_MAX, NO_ERROR, RELAYED } from "./extended_errors.ts";
import type { Query } from "./query.ts";
import { finish, optBytes, type Reply, writeTruncated } from "./reply.ts";
import { Splicer } from "./splice.ts";

/** TTL of records that are served past their expiry (RFC 8767 §4). */
export const STALE_TTL = 30;

const NOTHING: Uint8Array = new Uint8Array(0);

/** Writes kept messages as responses. One per dns isolate. */
export class EntryWriter {
  readonly #cache: Cache;
  readonly #counts: Float64Array;
  /** Extended errors of the kept message at hand. */
  readonly #errors = new Uint8Array(ERRORS_BYTES_MAX);
  #splicer: Splicer | null = null;

  constructor(cache: Cache, counts: Float64Array) {
    this.#cache = cache;
    this.#counts = counts;
  }

  /** Writes a cached message as the response to `query`, cut when it does not fit. */
  write(
    entry: number,
    query: Query,
    reply: Reply,
    ownEde: number,
    nowSeconds: number,
  ): void {
    const cache = this.#cache;
    let ede = ownEde;
    let errors = NOTHING;
    if (ede === NO_ERROR && query.edns && cache.errorsLength(entry) > 0) {
      cache.copyErrors(entry, this.#errors);
      errors = this.#errors.subarray(0, cache.errorsLength(entry));
      ede = RELAYED;
    }
    const length = cache.messageLength(entry);
    const stored = cache.flags(entry);
    const { chain } = query;
    if (chain !== null) {
      this.#splicer ??= new Splicer();
      const { kept } = this.#splicer;
      cache.copyTo(entry, kept.bytes, kept.words, 0, nowSeconds, STALE_TTL);
      kept.length = length;
      this.#splicer.write(query, chain, reply, stored & RCODE_MASK, ede, errors);
      return;
    }
    // An extended error goes before any record does (RFC 8914 §3): see `finish`.
    if (length + optBytes(query) > query.limitBytes) {
      this.#counts[Counter.Truncated]++;
      writeTruncated(query, reply, stored & RCODE_MASK, ede, errors);
      return;
    }
    const { bytes, offset } = reply;
    cache.copyTo(entry, bytes, reply.words, offset, nowSeconds, STALE_TTL);
    setU16(bytes, offset, query.id);
    // AD is for those who understand it (RFC 6840 §5.8). What is past its time may be past that of its
    // signatures.
    const wantsAd = query.dnssecOk || (query.flags & AD_BIT) !== 0;
    const kept = wantsAd && ownEde === NO_ERROR ? stored : stored & ~AD_BIT;
    setU16(bytes, offset + 2, (kept & ~(RD_BIT | CD_BIT)) | (query.flags & (RD_BIT | CD_BIT)));
    // The client's own spelling: it may compare letter by letter (0x20).
    const { packet, qname, qnameLength } = query;
    const to = offset + HEADER_BYTES;
    for (let i = 0; i < qnameLength; i++) bytes[to + i] = packet[qname + i];
    reply.truncated = false;
    finish(query, reply, offset + length, stored & RCODE_MASK, ede, errors);
  }
}
