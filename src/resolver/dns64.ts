import { type EmbeddingPrefix, type IpPrefix, isPrivateAt, prefixHolds } from "../addr/mod.ts";
import { getU16 } from "../bytes/mod.ts";
import { type Cache, TTLS_MAX } from "../cache/mod.ts";
import {
  copyRdata,
  expandName,
  HashedName,
  HEADER_BYTES,
  MessageWriter,
  NAME_BYTES_MAX,
  QR_BIT,
  Qtype,
  RA_BIT,
  Rcode,
  RCODE_MASK,
  readRecord,
  RecordView,
  Section,
  skipQuestion,
} from "../dns/mod.ts";
import { Counter } from "../telemetry/mod.ts";
import { NO_IPV4, type ResolveFailure } from "./failure.ts";
import type {
  BroughtMessage,
  Finisher,
  Flight,
  KeptMessages,
  Task,
  Waiter,
} from "./flights/mod.ts";
import { DnssecState, hashQuestion, keptQuery, KEY_CD, KEY_DO, type Query } from "./query.ts";
import { TAKEN_BYTES_MAX } from "./rebinding.ts";

const IPV4_BYTES = 4;
const IPV6_BYTES = 16;
const MESSAGE_BYTES_MAX = 0xffff;
/** Longest life of an address that no SOA bounds (RFC 6147 §5.1.7). */
const UNFOUNDED_TTL = 600;
const NOTHING: Uint8Array = new Uint8Array(0);

export interface Dns64Options {
  readonly embedding: EmbeddingPrefix;
  /** IPv6 networks whose addresses are taken for none (RFC 6147 §5.1.4). */
  readonly exclude: readonly IpPrefix[];
  readonly cache: Cache;
  readonly messages: KeptMessages;
  readonly counts: Float64Array;
  /** Of every hash of a name. */
  readonly seed: number;
}

/** What is kept of the answer to a question for AAAA while A is asked for. */
interface Original {
  readonly message: Uint8Array;
  readonly brought: BroughtMessage;
  readonly errors: Uint8Array;
}

/**
 * Makes AAAA records of A records for names that have none (RFC 6147), so that hosts with IPv6 alone
 * reach them through a translator. One per dns isolate.
 */
export class Dns64 implements Finisher {
  readonly #options: Dns64Options;
  readonly #question: Query = keptQuery();
  readonly #name = new HashedName();
  readonly #writer: SynthesisWriter;
  readonly #record = new RecordView();
  /** Of the answer looked at last: some of its addresses are taken for none. */
  #holdsExcluded = false;

  constructor(options: Dns64Options) {
    this.#options = options;
    this.#writer = new SynthesisWriter(options);
  }

  wants(flight: Flight, { message, length }: BroughtMessage): boolean {
    if (!this.#isOurs(flight) || (getU16(message, 2) & RCODE_MASK) !== Rcode.NoError) return false;
    let addresses = 0;
    let excluded = 0;
    let at = skipQuestion(message, HEADER_BYTES, length);
    for (let left = getU16(message, 6); left > 0 && at >= 0; left--) {
      at = readRecord(message, at, length, this.#record);
      if (at < 0 || this.#record.type !== Qtype.AAAA) continue;
      addresses++;
      if (this.#writer.isExcluded(message, this.#record)) excluded++;
    }
    this.#holdsExcluded = excluded < addresses && excluded > 0;
    return excluded === addresses || this.#holdsExcluded;
  }

  wantsInstead(flight: Flight, { code }: ResolveFailure): boolean {
    // Whoever chokes on AAAA may well know A (RFC 6147 §5.1.2).
    return this.#isOurs(flight) && code === "unhelpful";
  }

  begin(flight: Flight, brought: BroughtMessage, errors: Uint8Array): void {
    const { length, ttl, ttlOffsets, ttlCount } = brought;
    const message = brought.message.slice(0, length);
    if (this.#holdsExcluded) {
      flight.isFinished = true;
      flight.dnssec = DnssecState.None;
      flight.reason = "";
      this.#writer.noteNothingAside();
      this.#writer.write(message, ttl);
      flight.settle(this.#writer, errors);
      return;
    }
    const kept = { message, length, ttl, ttlCount, ttlOffsets: ttlOffsets.slice(0, ttlCount) };
    this.#begin(flight, { message, brought: kept, errors: errors.slice() }, NO_IPV4);
  }

  beginInstead(flight: Flight, failure: ResolveFailure): void {
    this.#begin(flight, null, failure);
  }

  #begin(flight: Flight, original: Original | null, failure: ResolveFailure): void {
    flight.isFinished = true;
    const synthesis = new Synthesis(flight, original, failure, this.#options, this.#writer);
    flight.judging = synthesis;
    const question = this.#question;
    question.keep(flight.query);
    question.qtype = Qtype.A;
    question.rename(flight.query.packet, flight.query.qname);
    hashQuestion(question, this.#name, this.#options.seed);
    if (!flight.ask(question)) synthesis.giveUp();
  }

  /**
   * Who validates for itself is handed what is signed (RFC 6147 §5.5), and name servers, whose
   * addresses other flights ask for, are reached without a translator.
   */
  #isOurs({ query, isFinished, depth }: Flight): boolean {
    return query.qtype === Qtype.AAAA && !isFinished && depth === 0 &&
      (query.keyBits & (KEY_DO | KEY_CD)) !== (KEY_DO | KEY_CD);
  }
}

/** The wait of one flight for the A records of its name. */
class Synthesis implements Task {
  constructor(
    private readonly flight: Flight,
    private readonly original: Original | null,
    readonly failure: ResolveFailure,
    private readonly options: Dns64Options,
    private readonly writer: SynthesisWriter,
  ) {}

  tick(): void {}

  end(): void {}

  echo(): null {
    return null;
  }

  onChild({ failure }: Waiter, entry: number): void {
    const { flight, original, options: { cache, messages, counts }, writer } = this;
    if (entry < 0) {
      // That A is not known now says nothing about later: a denial would be kept.
      flight.fail(this.original === null ? this.failure : failure ?? this.failure);
      return;
    }
    const message = messages.copy(entry);
    if ((getU16(message, 2) & RCODE_MASK) > Rcode.NXDomain) {
      flight.fail(this.failure);
      return;
    }
    writer.noteAside(cache, entry);
    // No longer than the denial of AAAA holds (RFC 6147 §5.1.7).
    if (!writer.write(message, original?.brought.ttl ?? UNFOUNDED_TTL)) {
      this.giveUp();
      return;
    }
    counts[Counter.Dns64Synthesized]++;
    // Nobody has signed what was made here.
    flight.dnssec = DnssecState.None;
    flight.reason = "";
    flight.settle(writer, original?.errors ?? NOTHING);
  }

  /** There is no A: what was said about AAAA is all there is. */
  giveUp(): void {
    const { flight, original } = this;
    if (original === null) flight.fail(this.failure);
    else flight.settle(original.brought, original.errors);
  }
}

/** Writes the answer for AAAA from that for A. Its fields speak of the one written last. */
class SynthesisWriter implements BroughtMessage {
  readonly message: Uint8Array<ArrayBuffer> = new Uint8Array(MESSAGE_BYTES_MAX);
  length = 0;
  readonly ttlOffsets: Uint16Array = new Uint16Array(TTLS_MAX);
  ttlCount = 0;
  ttl = 0;
  readonly #embedding: EmbeddingPrefix;
  readonly #exclude: readonly IpPrefix[];
  readonly #writer = new MessageWriter(true);
  readonly #record = new RecordView();
  readonly #owner = new Uint8Array(NAME_BYTES_MAX);
  readonly #rdata = new Uint8Array(NAME_BYTES_MAX);
  readonly #address = new Uint8Array(IPV6_BYTES);
  /** Addresses that rules look at: those of the A records, each behind its length. */
  readonly #aside = new Uint8Array(TAKEN_BYTES_MAX + (1 + IPV4_BYTES) * TTLS_MAX);
  #asideBytes = 0;

  constructor({ embedding, exclude }: Dns64Options) {
    this.#embedding = embedding;
    this.#exclude = exclude;
  }

  get aside(): Uint8Array {
    return this.#aside.subarray(0, this.#asideBytes);
  }

  isExcluded(message: Uint8Array, { rdataOffset, rdataLength }: RecordView): boolean {
    if (rdataLength !== IPV6_BYTES) return true;
    const address = message.subarray(rdataOffset, rdataOffset + IPV6_BYTES);
    return this.#exclude.some((prefix) => prefixHolds(prefix, address));
  }

  /** Begins with the addresses that were taken out of the answer for A. */
  noteAside(cache: Cache, entry: number): void {
    this.#asideBytes = cache.copyAside(entry, this.#aside);
  }

  noteNothingAside(): void {
    this.#asideBytes = 0;
  }

  /**
   * Writes it from a message that answers for A, or for AAAA with excluded ones among them, and that
   * is well formed; false: it holds no address to speak of.
   */
  write(source: Uint8Array, ttlMax: number): boolean {
    const writer = this.#writer;
    const record = this.#record;
    const { length } = source;
    const flags = QR_BIT | RA_BIT;
    let at = skipQuestion(source, HEADER_BYTES, length);
    if (at < 0) return false;
    const qname = source.subarray(HEADER_BYTES, at - 4);
    writer.start(this.message, 0, MESSAGE_BYTES_MAX, 0, flags);
    writer.question(qname, Qtype.AAAA, getU16(source, at - 2));
    this.ttlCount = 0;
    this.ttl = ttlMax;
    let addresses = 0;
    for (let left = getU16(source, 6); left > 0; left--) {
      const ownerAt = at;
      at = readRecord(source, at, length, record);
      if (at < 0) return false;
      const { type } = record;
      const ownerLength = expandName(source, ownerAt, this.#owner, 0, at);
      if (ownerLength < 0) return false;
      const owner = this.#owner.subarray(0, ownerLength);
      if (type === Qtype.A) {
        if (this.#writeAddress(source, owner)) addresses++;
      } else if (type === Qtype.AAAA) {
        if (this.isExcluded(source, record)) continue;
        const { rdataOffset, ttl } = record;
        const address = source.subarray(rdataOffset, rdataOffset + IPV6_BYTES);
        if (this.#write(owner, type, ttl, address)) addresses++;
      } else if (type === Qtype.CNAME || type === Qtype.DNAME) {
        const rdataLength = copyRdata(
          source,
          type,
          record.rdataOffset,
          record.rdataLength,
          this.#rdata,
          0,
        );
        if (rdataLength < 0) return false;
        this.#write(owner, type, record.ttl, this.#rdata.subarray(0, rdataLength));
      }
    }
    this.length = writer.lengthBytes;
    return addresses > 0;
  }

  #writeAddress(source: Uint8Array, owner: Uint8Array): boolean {
    const { rdataOffset, rdataLength, ttl } = this.#record;
    if (rdataLength !== IPV4_BYTES) return false;
    // The prefix for everybody leads to the Internet alone (RFC 6052 §3.1).
    if (this.#embedding.isWellKnown && isPrivateAt(source, rdataOffset, IPV4_BYTES)) return false;
    this.#embedding.embed(source, rdataOffset, this.#address, 0);
    if (!this.#write(owner, Qtype.AAAA, Math.min(ttl, this.ttl), this.#address)) return false;
    this.#aside[this.#asideBytes++] = IPV4_BYTES;
    for (let i = 0; i < IPV4_BYTES; i++) this.#aside[this.#asideBytes++] = source[rdataOffset + i];
    return true;
  }

  /** What has no room is left out: there are thousands of addresses by then. */
  #write(owner: Uint8Array, type: number, ttl: number, rdata: Uint8Array): boolean {
    if (this.ttlCount >= TTLS_MAX) return false;
    if (!this.#writer.record(Section.Answer, owner, type, 1, ttl, rdata)) return false;
    this.ttlOffsets[this.ttlCount++] = this.#writer.ttlOffset;
    this.ttl = Math.min(this.ttl, ttl);
    return true;
  }
}
