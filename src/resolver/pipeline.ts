import { setU16 } from "../bytes/mod.ts";
import { type Cache, CacheHit } from "../cache/mod.ts";
import {
  AD_BIT,
  CD_BIT,
  Ede,
  equalNames,
  finishHash,
  HashedName,
  HEADER_BYTES,
  OPT_BYTES,
  parseName,
  Qclass,
  Qtype,
  Rcode,
  RCODE_MASK,
  RD_BIT,
} from "../dns/mod.ts";
import { invariant, messageOf } from "../errors.ts";
import { log } from "../log.ts";
import { BlockForm, NO_CLIENT, NO_RECORDS, type Snapshot } from "../snapshot/mod.ts";
import { Counter, type CounterBlock } from "../telemetry/mod.ts";
import { writeAnswer, writeAnyAnswer, writeLocal, writeNegative } from "./own_answers.ts";
import { CHAIN_MAX, OwnChain } from "./own_chain.ts";
import { type Query, QUESTION_BYTES_MAX, Read } from "./query.ts";
import { finish, type Reply, writeEmpty, writeTruncated } from "./reply.ts";
import { Splicer } from "./splice.ts";

/** What a stage made of a query. */
export const Verdict = {
  /** Nothing: the next stage has it. */
  Next: 0,
  /** The response is written. */
  Send: 1,
  /** No response at all. */
  Drop: 2,
  /** The upstreams have to be asked. */
  Resolve: 3,
} as const;
export type Verdict = typeof Verdict[keyof typeof Verdict];

/** Seconds that clients keep answers about the service's own names. */
const OWN_TTL = 10;
/** TTL of records that are served past their expiry (RFC 8767 §4). */
export const STALE_TTL = 30;
/** A popular entry is fetched again when this part of its time is left. */
const PREFETCH_PART = 0.1;
/** Entries with a shorter time than this, in seconds, are left to expire. */
const PREFETCH_TTL_MIN = 10;
/** TKEY, the first of the types that mean a transaction and no data (RFC 6895 §3.1). */
const META_TYPES_MIN = 249;

/** Room for an answer of ours behind a chain: an SOA, an address, or an extended error. */
const OWN_ANSWER_BYTES_MAX = 128;
/** Text of the extended error of a CNAME that leads from record to record of ours. */
const CHAIN_TEXT = new TextEncoder().encode("local CNAME records lead in a circle, or too far");

const LOOPBACK_V4 = Uint8Array.of(127, 0, 0, 1);
const LOOPBACK_V6 = Uint8Array.of(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1);

export interface PipelineOptions {
  readonly seed: number;
  readonly cache: Cache;
  readonly snapshot: Snapshot;
  readonly counters: CounterBlock;
  readonly prefetch: boolean;
  /** Has an entry that is about to expire fetched again. */
  readonly refresh: (query: Query, hash: number) => void;
}

/** The synchronous way of a query. One per dns isolate. */
export class Pipeline {
  /** Hashes of the query at hand. */
  readonly name: HashedName = new HashedName();
  /** Swapped between two queries. */
  snapshot: Snapshot;
  /** Set by the transport, once a batch. */
  nowSeconds = 0;
  /** Hash of the cache key of the query at hand, for whoever resolves it. */
  keyHash = 0;

  readonly #cache: Cache;
  readonly #counts: Float64Array;
  readonly #prefetch: boolean;
  readonly #refresh: PipelineOptions["refresh"];
  readonly #ownZone: Uint8Array;
  readonly #ownZoneHash: number;
  readonly #health: Uint8Array;
  readonly #seed: number;
  readonly #chain = new OwnChain();
  /** A question of our own, about the target of a CNAME record of ours. */
  readonly #targetPacket = new Uint8Array(QUESTION_BYTES_MAX);
  #splicer: Splicer | null = null;
  #filterFailureLogged = false;

  constructor(options: PipelineOptions) {
    this.snapshot = options.snapshot;
    this.#cache = options.cache;
    this.#counts = options.counters.values;
    this.#prefetch = options.prefetch;
    this.#refresh = options.refresh;
    this.#seed = options.seed;
    this.#ownZone = wire("svc.test");
    this.#health = wire("health.svc.test");
    const hashed = new HashedName();
    hashed.read(this.#ownZone, 0, this.#ownZone.length, options.seed);
    this.#ownZoneHash = hashed.hashes[0];
  }

  /** Answers what could not be read as a query (`read` is not `Ok`). */
  answerUnread(read: Read, query: Query, reply: Reply): Verdict {
    switch (read) {
      case Read.FormErr:
        this.#counts[Counter.FormErr]++;
        query.qnameLength = 0; // Its question may be what is wrong: it is not repeated.
        writeEmpty(query, reply, Rcode.FormErr);
        return Verdict.Send;
      case Read.NotImp:
        this.#counts[Counter.NotImp]++;
        writeEmpty(query, reply, Rcode.NotImp);
        return Verdict.Send;
      case Read.BadVers:
        this.#counts[Counter.FormErr]++;
        writeEmpty(query, reply, Rcode.BadVers);
        return Verdict.Send;
      default:
        this.#counts[Counter.Dropped]++;
        return Verdict.Drop;
    }
  }

  /** The stages in order, and why each stands there. `this.name` holds the hashes of QNAME. */
  answerNow(query: Query, reply: Reply): Verdict {
    // Groups and the log ask who the client is.
    this.#identify(query);
    // What no resolver forwards, before anything looks at the name.
    let verdict = this.#refuse(query, reply);
    if (verdict !== Verdict.Next) return verdict;
    // The failover component asks for these, whatever filter and upstreams do.
    verdict = this.#ownNames(query, reply);
    if (verdict !== Verdict.Next) return verdict;
    // The operator's own records hold even for a blocked name.
    verdict = this.#local(query, reply);
    if (verdict !== Verdict.Next) return verdict;
    // Before the cache: a new rule holds at once, without a flush.
    verdict = this.#filter(query, reply);
    if (verdict !== Verdict.Next) return verdict;
    // Last: a miss leaves the synchronous way.
    return this.#fromCache(query, reply);
  }

  #identify(query: Query): void {
    const { snapshot } = this;
    const { bytes, offset, lengthBytes } = query.address;
    query.client = lengthBytes === 0 ? NO_CLIENT : snapshot.clientAt(bytes, offset, lengthBytes);
    query.group = snapshot.groupOf(query.client);
  }

  #refuse(query: Query, reply: Reply): Verdict {
    const { qtype } = query;
    // 249 to 254: keys, signatures, zone transfers and mail groups of a whole transaction.
    const transaction = qtype >= META_TYPES_MIN && qtype < Qtype.ANY;
    if (query.qclass === Qclass.IN && !transaction && qtype !== Qtype.OPT && qtype !== 0) {
      return Verdict.Next;
    }
    this.#counts[Counter.Refused]++;
    writeEmpty(query, reply, Rcode.Refused, Ede.NotSupported);
    return Verdict.Send;
  }

  #ownNames(query: Query, reply: Reply): Verdict {
    const { name } = this;
    const apex = name.count - 2;
    if (apex < 0 || name.hashes[apex] !== this.#ownZoneHash) return Verdict.Next;
    if (!equalNames(query.packet, name.offsets[apex], this.#ownZone, 0)) return Verdict.Next;
    this.#counts[Counter.Local]++;
    const isHealth = name.count === 3 && equalNames(query.packet, query.qname, this.#health, 0);
    if (isHealth && query.qtype === Qtype.A) {
      writeAnswer(query, reply, Qtype.A, OWN_TTL, LOOPBACK_V4);
    } else if (isHealth && query.qtype === Qtype.AAAA) {
      writeAnswer(query, reply, Qtype.AAAA, OWN_TTL, LOOPBACK_V6);
    } else {
      const exists = isHealth || apex === 0;
      writeNegative(query, reply, exists ? Rcode.NoError : Rcode.NXDomain, OWN_TTL);
    }
    return Verdict.Send;
  }

  /** Answers by records of ours, or has a CNAME's target answered in the name's place. */
  #local(query: Query, reply: Reply): Verdict {
    const { records, blockTtl } = this.snapshot;
    let set = records.find(query.packet, this.name);
    if (set === NO_RECORDS) return Verdict.Next;
    if (query.qtype === Qtype.ANY) {
      this.#counts[Counter.Local]++;
      writeAnyAnswer(query, reply);
      return Verdict.Send;
    }
    for (let followed = 0; set !== NO_RECORDS; followed++) {
      const cname = query.qtype === Qtype.CNAME ? -1 : records.firstOfType(set, Qtype.CNAME);
      if (cname < 0) {
        this.#counts[Counter.Local]++;
        writeLocal(query, reply, records, set, blockTtl);
        return Verdict.Send;
      }
      if (followed === CHAIN_MAX) {
        this.#counts[Counter.Failed]++;
        writeEmpty(query, reply, Rcode.ServFail, Ede.Other, CHAIN_TEXT);
        return Verdict.Send;
      }
      this.#follow(query, cname);
      set = records.find(query.packet, this.name);
    }
    const lengthBytes = HEADER_BYTES + this.#chain.lengthBytes + OWN_ANSWER_BYTES_MAX;
    if (lengthBytes > query.limitBytes) {
      this.#counts[Counter.Truncated]++;
      writeTruncated(query, reply, Rcode.NoError, -1);
      return Verdict.Send;
    }
    // The target is a name like any other from here on.
    return this.#ownNames(query, reply);
  }

  /** Makes the query one about the target of a CNAME record of ours. */
  #follow(query: Query, cname: number): void {
    const { records } = this.snapshot;
    const chain = this.#chain;
    const packet = this.#targetPacket;
    if (query.chain === null) chain.start(query);
    chain.add(records, cname, packet);
    query.chain = chain;
    query.packet = packet;
    query.start = 0;
    const end = this.name.read(packet, HEADER_BYTES, packet.length, this.#seed);
    query.qnameLength = end - HEADER_BYTES;
  }

  #filter(query: Query, reply: Reply): Verdict {
    const { snapshot } = this;
    try {
      query.rule = snapshot.match(query.packet, this.name, query.group);
    } catch (error) {
      // A household without the Internet is worse than one without a filter.
      this.#counts[Counter.FilterFailures]++;
      if (!this.#filterFailureLogged) {
        log.error("checking a name failed; it is answered unfiltered", { error: messageOf(error) });
      }
      this.#filterFailureLogged = true;
      query.rule = -1;
    }
    if (query.rule < 0) return Verdict.Next;
    this.#counts[Counter.Blocked]++;
    const text = query.edns ? snapshot.blockedText(query.rule) : undefined;
    const ttl = snapshot.blockTtl;
    if (snapshot.blockForm === BlockForm.Refused) {
      writeEmpty(query, reply, Rcode.Refused, Ede.Blocked, text);
    } else if (snapshot.blockForm === BlockForm.NxDomain) {
      writeNegative(query, reply, Rcode.NXDomain, ttl, Ede.Blocked, text);
    } else if (query.qtype === Qtype.A) {
      writeAnswer(query, reply, Qtype.A, ttl, snapshot.blockIpv4, Ede.Blocked, text);
    } else if (query.qtype === Qtype.AAAA) {
      writeAnswer(query, reply, Qtype.AAAA, ttl, snapshot.blockIpv6, Ede.Blocked, text);
    } else {
      writeNegative(query, reply, Rcode.NoError, ttl, Ede.Blocked, text);
    }
    return Verdict.Send;
  }

  #fromCache(query: Query, reply: Reply): Verdict {
    if (query.qtype === Qtype.ANY) {
      this.#counts[Counter.Local]++;
      writeAnyAnswer(query, reply);
      return Verdict.Send;
    }
    const hash = finishHash(
      this.name.hashes[0] ^ Math.imul(query.qtype | (query.keyBits << 16), 0x9e3779b1),
    );
    this.keyHash = hash;
    const { nowSeconds } = this;
    const cache = this.#cache;
    const entry = cache.find(
      hash,
      query.qtype,
      query.keyBits,
      query.packet,
      query.qname,
      query.qnameLength,
    );
    if (entry >= 0 && cache.freshness(entry, nowSeconds) === CacheHit.Fresh) {
      this.#counts[Counter.Cached]++;
      this.writeEntry(entry, query, reply, cache.ede(entry));
      if (this.#prefetch) this.#prefetchIfDue(entry, query, hash);
      return Verdict.Send;
    }
    // Looking into the cache without asking for recursion (RFC 1035 §4.1.1): there is nothing.
    if ((query.flags & RD_BIT) === 0) {
      this.#counts[Counter.Refused]++;
      writeEmpty(query, reply, Rcode.Refused, Ede.NotAuthoritative);
      return Verdict.Send;
    }
    return Verdict.Resolve;
  }

  #prefetchIfDue(entry: number, query: Query, hash: number): void {
    const whole = this.#cache.secondsWhole(entry);
    if (whole < PREFETCH_TTL_MIN) return;
    if (this.#cache.secondsLeft(entry, this.nowSeconds) > whole * PREFETCH_PART) return;
    if (this.#cache.claimRefresh(entry)) this.#refresh(query, hash);
  }

  /** Writes a cached message as the response to `query`, cut when it does not fit. */
  writeEntry(entry: number, query: Query, reply: Reply, ede: number): void {
    const cache = this.#cache;
    const length = cache.messageLength(entry);
    const stored = cache.flags(entry);
    const { chain } = query;
    if (chain !== null) {
      this.#splicer ??= new Splicer();
      const { kept } = this.#splicer;
      cache.copyTo(entry, kept.bytes, kept.words, 0, this.nowSeconds, STALE_TTL);
      kept.length = length;
      this.#splicer.write(query, chain, reply, stored & RCODE_MASK, ede);
      return;
    }
    // An extended error goes before any record does (RFC 8914 §3): see `finish`.
    const more = query.edns ? OPT_BYTES : 0;
    if (length + more > query.limitBytes) {
      this.#counts[Counter.Truncated]++;
      writeTruncated(query, reply, stored & RCODE_MASK, ede);
      return;
    }
    const { bytes, offset } = reply;
    cache.copyTo(entry, bytes, reply.words, offset, this.nowSeconds, STALE_TTL);
    setU16(bytes, offset, query.id);
    // AD is for those who understand it (RFC 6840 §5.8).
    const wantsAd = query.dnssecOk || (query.flags & AD_BIT) !== 0;
    const kept = wantsAd ? stored : stored & ~AD_BIT;
    setU16(bytes, offset + 2, (kept & ~(RD_BIT | CD_BIT)) | (query.flags & (RD_BIT | CD_BIT)));
    // The client's own spelling: it may compare letter by letter (0x20).
    const { packet, qname, qnameLength } = query;
    const to = offset + HEADER_BYTES;
    for (let i = 0; i < qnameLength; i++) bytes[to + i] = packet[qname + i];
    reply.truncated = false;
    finish(query, reply, offset + length, stored & RCODE_MASK, ede);
  }
}

function wire(text: string): Uint8Array {
  const name = parseName(text);
  invariant(name !== null, `${text} is a name`);
  return name;
}
