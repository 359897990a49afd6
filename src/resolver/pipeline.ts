import { type Cache, CacheHit } from "../cache/mod.ts";
import { Ede, HashedName, HEADER_BYTES, Qclass, Qtype, Rcode, RD_BIT } from "../dns/mod.ts";
import { messageOf } from "../errors.ts";
import { log } from "../log.ts";
import {
  Canaries,
  CHAIN_MAX,
  Decision,
  NO_CANARY,
  NO_ENGINE,
  NO_RECORDS,
  NO_RULE,
  Ruling,
  SafeSearch,
  type Snapshot,
} from "../snapshot/mod.ts";
import { Counter, type CounterBlock, countOutcome } from "../telemetry/mod.ts";
import { AnswerFilter } from "./answers.ts";
import type { Dns64Names } from "./dns64_names.ts";
import { EntryWriter } from "./entry_writer.ts";
import { NO_ERROR, RELAYED } from "./extended_errors.ts";
import { writeAnswer, writeAnyAnswer, writeLocal, writeNegative } from "./own_answers.ts";
import { OwnChain } from "./own_chain.ts";
import { Admission } from "./admission.ts";
import { Outcome } from "./outcome.ts";
import { OWN_CIRCLE, type ResolveFailure, UNCHECKED } from "./failure.ts";
import { OwnNames } from "./own_names.ts";
import {
  type ClientAddress,
  DnssecState,
  KEY_SUBNET,
  keyHashOf,
  type Query,
  QUESTION_BYTES_MAX,
  Read,
  type Transport,
  withRoute,
} from "./query.ts";
import type { RateLimiter } from "./rate_limit.ts";
import { type Reply, writeEmpty, writeTruncated } from "./reply.ts";
import { writeBlocked, writeRuled } from "./ruled_answers.ts";
import type { Subnet, Subnets } from "./subnets.ts";
import { Verdict } from "./verdict.ts";

/** A popular entry is fetched again when this part of its time is left. */
const PREFETCH_PART = 0.1;
/** Entries with a shorter time than this, in seconds, are left to expire. */
const PREFETCH_TTL_MIN = 10;
/** TKEY, the first of the types that mean a transaction and no data (RFC 6895 §3.1). */
const META_TYPES_MIN = 249;

/** Seconds that the name of an IPv6 address leads to that of the IPv4 address in it. */
const REVERSE_TTL = 600;
/** Room for an answer of ours behind a chain: an SOA, an address, or an extended error. */
const OWN_ANSWER_BYTES_MAX = 128;
/** No ruling: the filter failed, and what it failed at must not be answered. */
const NO_RULING = -1;

export interface PipelineOptions {
  readonly seed: number;
  readonly cache: Cache;
  readonly snapshot: Snapshot;
  readonly counters: CounterBlock;
  readonly prefetch: boolean;
  /** A name that can't be checked gets SERVFAIL; otherwise it is answered unfiltered. */
  readonly failClosed: boolean;
  /** `null`: no client is limited. */
  readonly limits: RateLimiter | null;
  /** Encrypted queries without a known client ID are refused. */
  readonly requireClientId: boolean;
  /** Left out, or `null`: no AAAA is made of A. */
  readonly dns64?: Dns64Names | null;
  /** Left out, or `null`: no upstream is told where clients are. */
  readonly subnets?: Subnets | null;
  /** Gets each query for a name that a leak test may have, in lower case. */
  readonly onLeakLookup: (query: Query, name: string) => void;
  /** Has an entry that is about to expire fetched again. */
  readonly refresh: (query: Query) => void;
}

/** The synchronous way of a query. One per dns isolate. */
export class Pipeline {
  /** Hashes of the query at hand. */
  readonly name: HashedName = new HashedName();
  /** Swapped between two queries. */
  snapshot: Snapshot;
  /** By group, as `Routes.of` has them for the snapshot. */
  routes: Uint8Array | null = null;
  /** Set by the transport, once a batch. */
  nowSeconds = 0;

  readonly #cache: Cache;
  readonly #counts: Float64Array;
  readonly #prefetch: boolean;
  readonly #refresh: PipelineOptions["refresh"];
  readonly #admission: Admission;
  readonly #own: OwnNames;
  readonly #seed: number;
  readonly #failClosed: boolean;
  readonly #canaries: Canaries;
  readonly #safeSearch: SafeSearch;
  readonly #answers: AnswerFilter;
  readonly #entries: EntryWriter;
  readonly #dns64: Dns64Names | null;
  readonly #subnets: Subnets | null;
  readonly #decision = new Decision();
  readonly #chain = new OwnChain();
  /** A question of our own, about the target of a CNAME record of ours. */
  readonly #targetPacket = new Uint8Array(QUESTION_BYTES_MAX);
  #filterFailureLogged = false;

  constructor(options: PipelineOptions) {
    this.snapshot = options.snapshot;
    this.#cache = options.cache;
    this.#counts = options.counters.values;
    this.#prefetch = options.prefetch;
    this.#refresh = options.refresh;
    this.#seed = options.seed;
    this.#failClosed = options.failClosed;
    this.#canaries = new Canaries(options.seed);
    this.#safeSearch = new SafeSearch(options.seed);
    this.#answers = new AnswerFilter(options.seed);
    this.#entries = new EntryWriter(options.cache, this.#counts);
    this.#dns64 = options.dns64 ?? null;
    this.#subnets = options.subnets ?? null;
    this.#admission = new Admission(options.limits, options.requireClientId, this.#counts);
    this.#own = new OwnNames(options.seed, options.onLeakLookup);
  }

  /** Says whether an address may connect, before anything of it is read. */
  admitsConnection(transport: Transport, client: ClientAddress): boolean {
    return this.#admission.admitsConnection(transport, client, this.snapshot);
  }

  /** Answers what could not be read as a query (`read` is not `Ok`). */
  answerUnread(read: Read, query: Query, reply: Reply): Verdict {
    query.outcome = Outcome.Refused;
    if (read !== Read.Drop) {
      // Who gets no answer gets none to nonsense either.
      this.#identify(query);
      const verdict = this.#admission.admit(query, reply, this.snapshot, false);
      if (verdict !== Verdict.Next) return verdict;
    }
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
      case Read.Cookie:
        writeEmpty(query, reply, Rcode.NoError);
        return Verdict.Send;
      default:
        this.#counts[Counter.Dropped]++;
        return Verdict.Drop;
    }
  }

  /** The stages in order, and why each stands there. `this.name` holds the hashes of QNAME. */
  answerNow(query: Query, reply: Reply): Verdict {
    // Access, groups and the log ask who the client is.
    this.#identify(query);
    // Before any answer: a client that is refused learns nothing.
    const isHealthCheck = this.#own.isHealth(query.packet, this.name);
    let verdict = this.#admission.admit(query, reply, this.snapshot, isHealthCheck);
    if (verdict !== Verdict.Next) return verdict;
    // What no resolver forwards, before anything looks at the name.
    verdict = this.#refuse(query, reply);
    if (verdict !== Verdict.Next) return verdict;
    if (this.routes !== null) {
      query.keyBits = withRoute(query.keyBits, this.routes[query.group]);
    }
    // As long as the packet is the client's own.
    if (this.#subnets !== null) this.#place(query, this.#subnets.of(query));
    // The failover component asks for these, whatever filter and upstreams do.
    verdict = this.#ownNames(query, reply);
    if (verdict !== Verdict.Next) return verdict;
    // The operator's own records hold even for a blocked name.
    verdict = this.#local(query, reply);
    if (verdict !== Verdict.Next) return verdict;
    // What a translator's prefix stands for is known here, unless a record of ours says otherwise.
    if (this.#dns64 !== null) {
      verdict = this.#translated(query, reply, this.#dns64);
      if (verdict !== Verdict.Next) return verdict;
    }
    // Before the cache: a new rule holds at once, without a flush.
    verdict = this.#filter(query, reply);
    if (verdict !== Verdict.Next) return verdict;
    // After the rules, so that a blocked search engine stays blocked.
    verdict = this.#searchSafely(query, reply);
    if (verdict !== Verdict.Next) return verdict;
    // Last: a miss leaves the synchronous way.
    return this.#fromCache(query, reply);
  }

  /**
   * As `answerNow` for a question of the service itself: records of ours hold for it, and no filter
   * and no limit does; `route` is whose upstreams are asked. Nothing is counted.
   */
  answerOwn(query: Query, reply: Reply, route: number): Verdict {
    query.isOwn = true;
    query.isAllowed = true;
    this.#identify(query);
    query.keyBits = withRoute(query.keyBits, route);
    if (this.#subnets !== null) this.#place(query, null);
    let verdict = this.#refuse(query, reply);
    if (verdict !== Verdict.Next) return verdict;
    verdict = this.#local(query, reply);
    return verdict !== Verdict.Next ? verdict : this.#fromCache(query, reply);
  }

  /** Has a query asked for a part of the Internet, or for none. */
  #place(query: Query, subnet: Subnet | null): void {
    query.subnet = subnet;
    if (subnet !== null) query.keyBits |= KEY_SUBNET;
  }

  #identify(query: Query): void {
    const { snapshot } = this;
    const { bytes, offset, lengthBytes, id } = query.address;
    query.generation = snapshot.generation;
    query.client = snapshot.clientOf(bytes, offset, lengthBytes, id);
    query.group = snapshot.groupOf(query.client);
  }

  #refuse(query: Query, reply: Reply): Verdict {
    const { qtype } = query;
    // 249 to 254: keys, signatures, zone transfers and mail groups of a whole transaction.
    const transaction = qtype >= META_TYPES_MIN && qtype < Qtype.ANY;
    if (query.qclass === Qclass.IN && !transaction && qtype !== Qtype.OPT && qtype !== 0) {
      return Verdict.Next;
    }
    this.#settle(query, Outcome.Refused);
    writeEmpty(query, reply, Rcode.Refused, Ede.NotSupported);
    return Verdict.Send;
  }

  #ownNames(query: Query, reply: Reply): Verdict {
    if (!this.#own.holds(query.packet, this.name)) return Verdict.Next;
    this.#settle(query, Outcome.Local);
    this.#own.answer(query, reply, this.name, this.snapshot.blockTtl);
    return Verdict.Send;
  }

  /** Answers by records of ours, or has a CNAME's target answered in the name's place. */
  #local(query: Query, reply: Reply): Verdict {
    const { records, blockTtl } = this.snapshot;
    let set = records.find(query.packet, this.name);
    if (set === NO_RECORDS) return Verdict.Next;
    if (query.qtype === Qtype.ANY && !records.isAbsent(set)) {
      this.#settle(query, Outcome.Local);
      writeAnyAnswer(query, reply);
      return Verdict.Send;
    }
    while (set !== NO_RECORDS) {
      const cname = query.qtype === Qtype.CNAME ? -1 : records.firstOfType(set, Qtype.CNAME);
      if (cname < 0) {
        this.#settle(query, Outcome.Local);
        if (this.#dns64?.writeLocal(query, reply, records, set) !== true) {
          writeLocal(query, reply, records, set, blockTtl);
        }
        return Verdict.Send;
      }
      if (query.chain !== null && query.chain.count >= CHAIN_MAX) {
        this.fail(query, OWN_CIRCLE, reply);
        return Verdict.Send;
      }
      const offset = records.rdataOffset(cname);
      const length = records.rdataLength(cname);
      this.#follow(query, records.ttl(cname), records.bytes, offset, length);
      set = records.find(query.packet, this.name);
    }
    if (this.#chainIsCut(query, reply)) return Verdict.Send;
    // The target is a name like any other from here on.
    return this.#ownNames(query, reply);
  }

  /** Answers for the names of a translator's prefix, or leads to those of IPv4 (RFC 6147, 7050). */
  #translated(query: Query, reply: Reply, dns64: Dns64Names): Verdict {
    if (dns64.writeKnown(query, reply, this.name)) {
      this.#settle(query, Outcome.Local);
      return Verdict.Send;
    }
    const target = dns64.reverse(query, this.name);
    if (target === null) return Verdict.Next;
    this.#follow(query, REVERSE_TTL, target, 0, target.length);
    return this.#chainIsCut(query, reply) ? Verdict.Send : this.#local(query, reply);
  }

  /** Makes the query one about the target of a CNAME record of ours. */
  #follow(query: Query, ttl: number, target: Uint8Array, offset: number, length: number): void {
    const chain = this.#chain;
    const packet = this.#targetPacket;
    if (query.chain === null) chain.start(query);
    chain.add(ttl, target, offset, length, packet);
    query.chain = chain;
    query.packet = packet;
    query.start = 0;
    const end = this.name.read(packet, HEADER_BYTES, packet.length, this.#seed);
    query.qnameLength = end - HEADER_BYTES;
  }

  /** Writes a cut response where the chain of ours leaves no room for any answer. */
  #chainIsCut(query: Query, reply: Reply): boolean {
    const lengthBytes = HEADER_BYTES + this.#chain.lengthBytes + OWN_ANSWER_BYTES_MAX;
    if (lengthBytes <= query.limitBytes) return false;
    this.#counts[Counter.Truncated]++;
    this.#settle(query, Outcome.Local);
    writeTruncated(query, reply, Rcode.NoError, -1);
    return true;
  }

  #filter(query: Query, reply: Reply): Verdict {
    const { blockTtl } = this.snapshot;
    const ruling = this.#decide(query);
    if (ruling === Ruling.None || ruling === Ruling.Block) {
      // A null address would send clients around the filter, where a denial keeps them.
      const rcode = this.#canaries.rcode(query.packet, this.name);
      if (rcode !== NO_CANARY) {
        query.rule = NO_RULE;
        this.#settle(query, Outcome.Local);
        writeNegative(query, reply, rcode, blockTtl);
        return Verdict.Send;
      }
    }
    switch (ruling) {
      case Ruling.Block:
        return this.#block(query, reply);
      case Ruling.Answer:
        this.#settle(query, Outcome.Rewritten);
        writeRuled(query, reply, this.#decision, blockTtl);
        return Verdict.Send;
      case NO_RULING:
        this.fail(query, UNCHECKED, reply);
        return Verdict.Send;
      case Ruling.Allow:
        query.isAllowed = true;
    }
    return Verdict.Next;
  }

  /** What the filter says of QNAME; `query.rule` is the rule that decided. */
  #decide(query: Query): Ruling | typeof NO_RULING {
    try {
      const decision = this.#decision;
      const ruling = this.snapshot.decide(query.packet, this.name, query.group, decision);
      query.rule = decision.rule;
      return ruling;
    } catch (error) {
      return this.#noteFailure(error) ? NO_RULING : Ruling.None;
    }
  }

  /** Counts a failure of the filter; says whether the query must not be answered for it. */
  #noteFailure(error: unknown): boolean {
    this.#counts[Counter.FilterFailures]++;
    if (!this.#filterFailureLogged) {
      const then = this.#failClosed ? "it gets SERVFAIL" : "it is answered unfiltered";
      log.error(`checking a name failed; ${then}`, { error: messageOf(error) });
    }
    this.#filterFailureLogged = true;
    // By default open: a household without the Internet is worse than one without a filter.
    return this.#failClosed;
  }

  /** Writes that there is no answer, and why. Every query that fails passes here. */
  fail(query: Query, failure: ResolveFailure, reply: Reply): void {
    this.#settle(query, Outcome.Failed);
    writeEmpty(query, reply, failure.rcode, RELAYED, failure.errors);
  }

  /** Leads a query for a search engine to its safe host, or answers with its safe address. */
  #searchSafely(query: Query, reply: Reply): Verdict {
    const { snapshot } = this;
    if (!snapshot.safeSearch(query.group)) return Verdict.Next;
    const engine = this.#safeSearch.find(query.packet, this.name, query.qtype);
    if (engine === NO_ENGINE) return Verdict.Next;
    query.isSafeSearch = true;
    const { blockTtl } = snapshot;
    const target = this.#safeSearch.target(engine);
    if (target !== null) {
      this.#follow(query, blockTtl, target, 0, target.length);
      // The safe host is resolved like any other name, by records of ours as well.
      return this.#chainIsCut(query, reply) ? Verdict.Send : this.#local(query, reply);
    }
    this.#settle(query, Outcome.SafeSearch);
    const address = query.qtype === Qtype.A ? this.#safeSearch.address(engine) : null;
    if (address === null) writeNegative(query, reply, Rcode.NoError, blockTtl);
    else writeAnswer(query, reply, Qtype.A, blockTtl, address);
    return Verdict.Send;
  }

  #block(query: Query, reply: Reply): Verdict {
    this.#settle(query, Outcome.Blocked);
    writeBlocked(query, reply, this.snapshot);
    return Verdict.Send;
  }

  /** Notes and counts what became of a query. */
  #settle(query: Query, outcome: Outcome): void {
    const isAnswered = outcome !== Outcome.Blocked && outcome !== Outcome.Failed;
    query.outcome = query.isSafeSearch && isAnswered ? Outcome.SafeSearch : outcome;
    if (query.isOwn) return;
    countOutcome(this.#counts, query.transport, query.outcome);
  }

  #fromCache(query: Query, reply: Reply): Verdict {
    if (query.qtype === Qtype.ANY) {
      this.#settle(query, Outcome.Local);
      writeAnyAnswer(query, reply);
      return Verdict.Send;
    }
    const { qtype, keyBits, packet, qname, qnameLength } = query;
    const hash = query.keyHash = keyHashOf(this.name.hashes[0], qtype, keyBits, query.subnet);
    const { nowSeconds } = this;
    const cache = this.#cache;
    let entry = cache.find(hash, qtype, keyBits, packet, qname, qnameLength);
    let isFresh = entry >= 0 && cache.freshness(entry, nowSeconds) === CacheHit.Fresh;
    if (query.subnet !== null) {
      const open = query.openHash = keyHashOf(this.name.hashes[0], qtype, keyBits);
      if (!isFresh) entry = cache.find(open, qtype, keyBits, packet, qname, qnameLength);
      isFresh ||= entry >= 0 && cache.freshness(entry, nowSeconds) === CacheHit.Fresh;
    }
    if (!query.isOwn) this.#counts[isFresh ? Counter.CacheHits : Counter.CacheMisses]++;
    if (isFresh) {
      query.source = Outcome.Cached;
      this.#respond(query, entry, NO_ERROR, reply);
      if (this.#prefetch) this.#prefetchIfDue(entry, query);
      return Verdict.Send;
    }
    // Looking into the cache without asking for recursion (RFC 1035 §4.1.1): there is nothing.
    if ((query.flags & RD_BIT) === 0) {
      this.#settle(query, Outcome.Refused);
      writeEmpty(query, reply, Rcode.Refused, Ede.NotAuthoritative);
      return Verdict.Send;
    }
    return Verdict.Resolve;
  }

  #prefetchIfDue(entry: number, query: Query): void {
    const whole = this.#cache.secondsWhole(entry);
    if (whole < PREFETCH_TTL_MIN) return;
    if (this.#cache.secondsLeft(entry, this.nowSeconds) > whole * PREFETCH_PART) return;
    if (this.#cache.claimRefresh(entry)) this.#refresh(query);
  }

  /**
   * Writes the response to a query that waited: the message that is kept as `entry`, with the
   * extended error `ede`, or with what is kept with it where that is -1.
   */
  answerWaiter(query: Query, entry: number, ede: number, reply: Reply): void {
    if (query.generation !== this.snapshot.generation) {
      // Its numbers are those of a snapshot that is gone.
      this.#identify(query);
      query.rule = NO_RULE;
    }
    this.#respond(query, entry, ede, reply);
  }

  /** Answers with a kept message, unless a rule blocks what that holds. */
  #respond(query: Query, entry: number, ede: number, reply: Reply): void {
    const { snapshot } = this;
    const cache = this.#cache;
    // Nearly every entry is clean: no rule at all is about what it holds. A change of the rules may
    // end that, but for an entry without a CNAME only one of rules about addresses.
    const passes = cache.isClean(entry, snapshot.generation) || query.isAllowed ||
      !snapshot.filters(query.group) ||
      (cache.hasNoAlias(entry) && !snapshot.hasAddressRules(query.group));
    if (!passes) {
      try {
        const rule = this.#answers.ruleOnEntry(cache, entry, snapshot, query.group);
        if (rule !== NO_RULE) {
          query.rule = rule;
          this.#block(query, reply);
          return;
        }
      } catch (error) {
        if (this.#noteFailure(error)) {
          this.fail(query, UNCHECKED, reply);
          return;
        }
      }
    }
    // What was put together of records of ours and others' is nobody's proof, nor is what is past its time.
    const isWhole = query.chain === null && ede === NO_ERROR;
    query.dnssec = isWhole ? cache.state(entry) as DnssecState : DnssecState.None;
    this.#settle(query, query.source);
    this.#entries.write(entry, query, reply, ede, this.nowSeconds);
  }
}
