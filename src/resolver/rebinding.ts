/** Takes addresses of the network at hand out of what upstreams say about public names. */
import { type EmbeddingPrefix, isPrivateAt } from "../addr/mod.ts";
import { getU16, setU16 } from "../bytes/mod.ts";
import {
  AD_BIT,
  copyRdata,
  expandName,
  HEADER_BYTES,
  isAtOrBelow,
  MessageWriter,
  NAME_BYTES_MAX,
  parseName,
  Qtype,
  readRecord,
  readSvcParam,
  RECORD_FIXED_BYTES,
  RecordView,
  Section,
  skipSvcbTarget,
  SvcParam,
  SvcParamView,
} from "../dns/mod.ts";
import { invariant } from "../errors.ts";

/** Names of one's own network, by custom or by standard (RFC 8375, RFC 6762). */
const OWN_DOMAINS = ["lan", "home.arpa", "internal", "local"] as const;

const MESSAGE_BYTES_MAX = 0xffff;
/** Names take their full length once they are uncompressed; RDATA holds two at most. */
const RDATA_BYTES_MAX = MESSAGE_BYTES_MAX + 2 * NAME_BYTES_MAX;
const PARAM_HEADER_BYTES = 4;
const IPV4_BYTES = 4;
const IPV6_BYTES = 16;
/** Bytes of RRSIG RDATA before the signer's name (RFC 4034 §3.1). */
const RRSIG_TYPE_BYTES = 2;

/** Most bytes of addresses taken out that are noted, some 800 of IPv4. */
export const TAKEN_BYTES_MAX = 4_096;

/** A response as it is to be kept; the scrubber of responses is one. */
export interface KeptMessage {
  /** Bytes of the message, whose additional section is gone. */
  length: number;
  /** Where each TTL stands. */
  readonly ttlOffsets: Uint16Array;
  ttlCount: number;
}

/**
 * Protection against DNS rebinding: a page of the Internet whose name turns into an address of the
 * reader's own network may read what is there. One per dns isolate.
 */
export class RebindingProtection {
  readonly #exempt: readonly Uint8Array[];
  readonly #embedding: EmbeddingPrefix | null;
  readonly #record = new RecordView();
  readonly #param = new SvcParamView();
  readonly #writer = new MessageWriter();
  /** Made when first needed: most answers are left as they are. */
  #scratch: Scratch | null = null;
  #takenBytes = 0;
  /** The record at hand is of the answer section, which alone rules are about. */
  #isAnswer = false;

  /**
   * `exempt` are further names, uncompressed: at and below them private addresses are wanted.
   * `embedding` is the prefix that stands before IPv4 addresses in this network.
   */
  constructor(exempt: readonly Uint8Array[] = [], embedding: EmbeddingPrefix | null = null) {
    this.#embedding = embedding;
    this.#exempt = [...OWN_DOMAINS.map(wire), ...exempt];
  }

  /**
   * Returns the message to keep in place of `message`, which `kept` speaks of and which has been
   * checked to be well formed: itself, or, where it holds private addresses about a public name, one
   * without them, good until the next call. Then `kept` speaks of that, and AD is clear.
   */
  protect(message: Uint8Array, kept: KeptMessage): Uint8Array {
    this.#takenBytes = 0;
    const types = this.#typesToChange(message, kept.length);
    if (types === 0 || this.#isExempt(message)) return message;
    const scratch = this.#scratch ??= makeScratch();
    // What has grown over the bound by uncompressing loses all its records: no private one is left.
    const length = this.#rewrite(message, kept.length, types, scratch) ||
      this.#rewriteHead(message, scratch);
    kept.length = length;
    this.#noteTtls(scratch.target, kept);
    return scratch.target;
  }

  /**
   * The addresses that the last call of `protect` took out of the answer section, each behind a byte with its length: rules
   * about addresses are about the response as it came. Good until the next call.
   */
  get taken(): Uint8Array {
    return this.#scratch === null ? NOTHING : this.#scratch.taken.subarray(0, this.#takenBytes);
  }

  #noteTaken(message: Uint8Array, offset: number, lengthBytes: number): void {
    const { taken } = this.#scratch!;
    // What has no room is taken out all the same.
    if (!this.#isAnswer || this.#takenBytes + 1 + lengthBytes > taken.length) return;
    taken[this.#takenBytes] = lengthBytes;
    const end = offset + lengthBytes;
    this.#takenBytes = copyBytes(message, offset, end, taken, this.#takenBytes + 1);
  }

  #isExempt(message: Uint8Array): boolean {
    return this.#exempt.some((zone) => isAtOrBelow(message, HEADER_BYTES, zone, 0));
  }

  /** The types of which some record holds a private address, as bits; nothing is allocated. */
  #typesToChange(message: Uint8Array, length: number): number {
    let types = 0;
    let at = behindQuestion(message);
    for (let left = recordCount(message); left > 0; left--) {
      at = readRecord(message, at, length, this.#record);
      if (at < 0) return types;
      if (this.#isPrivate(message)) types |= typeBit(this.#record.type);
    }
    return types;
  }

  /** Says whether the record at hand holds a private address. */
  #isPrivate(message: Uint8Array): boolean {
    const { type, rdataOffset, rdataLength } = this.#record;
    switch (type) {
      case Qtype.A:
        return rdataLength === IPV4_BYTES && isPrivateAt(message, rdataOffset, IPV4_BYTES);
      case Qtype.AAAA:
        return rdataLength === IPV6_BYTES &&
          isPrivateAt(message, rdataOffset, IPV6_BYTES, this.#embedding);
      case Qtype.SVCB:
      case Qtype.HTTPS:
        return this.#hasPrivateHint(message, rdataOffset, rdataOffset + rdataLength);
      default:
        return false;
    }
  }

  #hasPrivateHint(message: Uint8Array, from: number, end: number): boolean {
    const param = this.#param;
    param.key = -1;
    let at = skipSvcbTarget(message, from, end);
    while (at >= 0 && at < end) {
      at = readSvcParam(message, at, end, param);
      if (at < 0) return false;
      const size = hintBytes(param.key);
      const { valueOffset, valueLength } = param;
      for (let i = 0; size > 0 && i + size <= valueLength; i += size) {
        if (isPrivateAt(message, valueOffset + i, size, this.#embedding)) return true;
      }
    }
    return false;
  }

  /** Writes the message anew, without what is private; returns its bytes, or 0 if it has no room. */
  #rewrite(message: Uint8Array, length: number, types: number, scratch: Scratch): number {
    const writer = this.#writer;
    this.#rewriteHead(message, scratch);
    const answers = getU16(message, 6);
    const count = recordCount(message);
    const record = this.#record;
    let at = behindQuestion(message);
    for (let i = 0; i < count; i++) {
      const ownerAt = at;
      at = readRecord(message, at, length, record);
      if (at < 0) return 0;
      const { type, ttl } = record;
      this.#isAnswer = i < answers;
      const isAddress = type === Qtype.A || type === Qtype.AAAA;
      if (isAddress && this.#isPrivate(message)) {
        this.#noteTaken(message, record.rdataOffset, record.rdataLength);
        continue;
      }
      // A signature over what is no longer whole would only look broken.
      if (type === Qtype.RRSIG && (types & this.#coveredBit(message)) !== 0) continue;
      const ownerLength = expandName(message, ownerAt, scratch.owner, 0, at);
      const rdataLength = this.#copyRdata(message, scratch.rdata);
      if (ownerLength < 0 || rdataLength < 0) return 0;
      const section = this.#isAnswer ? Section.Answer : Section.Authority;
      const owner = scratch.owner.subarray(0, ownerLength);
      const rdata = scratch.rdata.subarray(0, rdataLength);
      if (!writer.record(section, owner, type, record.cls, ttl, rdata)) return 0;
    }
    return writer.lengthBytes;
  }

  /** Header and question alone; returns their bytes. */
  #rewriteHead(message: Uint8Array, { target }: Scratch): number {
    const writer = this.#writer;
    // Nobody has vouched for what is left.
    const flags = getU16(message, 2) & ~AD_BIT;
    const end = behindQuestion(message);
    const hasRoom = writer.start(target, 0, MESSAGE_BYTES_MAX, getU16(message, 0), flags) &&
      writer.question(
        message.subarray(HEADER_BYTES, end - 4),
        getU16(message, end - 4),
        getU16(message, end - 2),
      );
    invariant(hasRoom, "a question fits into a message");
    return writer.lengthBytes;
  }

  /** The bit of the type that the RRSIG at hand covers. */
  #coveredBit(message: Uint8Array): number {
    const { rdataOffset, rdataLength } = this.#record;
    return rdataLength < RRSIG_TYPE_BYTES ? 0 : typeBit(getU16(message, rdataOffset));
  }

  /** Copies the RDATA at hand, uncompressed and without private hints; returns its bytes or -1. */
  #copyRdata(message: Uint8Array, target: Uint8Array): number {
    const { type, rdataOffset, rdataLength } = this.#record;
    if ((type === Qtype.SVCB || type === Qtype.HTTPS) && this.#isPrivate(message)) {
      return this.#copyWithoutHints(message, rdataOffset, rdataOffset + rdataLength, target);
    }
    return copyRdata(message, type, rdataOffset, rdataLength, target, 0);
  }

  #copyWithoutHints(message: Uint8Array, from: number, end: number, target: Uint8Array): number {
    const param = this.#param;
    const paramsAt = skipSvcbTarget(message, from, end);
    if (paramsAt < 0) return -1;
    // A parameter that loses every address goes, and `mandatory` can't name it any longer.
    let gone = 0;
    param.key = -1;
    for (let at = paramsAt; at < end;) {
      at = readSvcParam(message, at, end, param);
      if (at < 0) return -1;
      const isEmptied = hintBytes(param.key) > 0 &&
        copyHints(message, param, target, 0, this.#embedding) === 0;
      this.#noteHints(message);
      if (isEmptied) gone |= 1 << param.key;
    }
    let to = copyBytes(message, from, paramsAt, target, 0);
    param.key = -1;
    for (let at = paramsAt; at < end;) {
      at = readSvcParam(message, at, end, param);
      const { key, valueOffset } = param;
      const valueAt = to + PARAM_HEADER_BYTES;
      const canBeEmptied = hintBytes(key) > 0 || key === SvcParam.Mandatory;
      const valueEnd = hintBytes(key) > 0
        ? copyHints(message, param, target, valueAt, this.#embedding)
        : key === SvcParam.Mandatory
        ? copyMandatory(message, param, gone, target, valueAt)
        : copyBytes(message, valueOffset, at, target, valueAt);
      if (canBeEmptied && valueEnd === valueAt) continue;
      setU16(target, to, key);
      setU16(target, to + 2, valueEnd - valueAt);
      to = valueEnd;
    }
    return to;
  }

  /** Notes the private addresses of the parameter at hand. */
  #noteHints(message: Uint8Array): void {
    const { key, valueOffset, valueLength } = this.#param;
    const size = hintBytes(key);
    for (let i = 0; size > 0 && i + size <= valueLength; i += size) {
      const at = valueOffset + i;
      if (isPrivateAt(message, at, size, this.#embedding)) this.#noteTaken(message, at, size);
    }
  }

  #noteTtls(message: Uint8Array, kept: KeptMessage): void {
    let at = behindQuestion(message);
    kept.ttlCount = recordCount(message);
    for (let i = 0; i < kept.ttlCount; i++) {
      at = readRecord(message, at, kept.length, this.#record);
      invariant(at >= 0, "what was written can be read");
      kept.ttlOffsets[i] = this.#record.rdataOffset - RECORD_FIXED_BYTES + 4;
    }
  }
}

/** Room to write a message anew. */
interface Scratch {
  readonly target: Uint8Array;
  readonly owner: Uint8Array;
  readonly rdata: Uint8Array;
  readonly taken: Uint8Array;
}

const NOTHING: Uint8Array = new Uint8Array(0);

function makeScratch(): Scratch {
  return {
    target: new Uint8Array(MESSAGE_BYTES_MAX),
    owner: new Uint8Array(NAME_BYTES_MAX),
    rdata: new Uint8Array(RDATA_BYTES_MAX),
    taken: new Uint8Array(TAKEN_BYTES_MAX),
  };
}

/** Where the records start; the question's name is not compressed. */
function behindQuestion(message: Uint8Array): number {
  let at = HEADER_BYTES;
  while (message[at] !== 0) at += 1 + message[at];
  return at + 1 + 4;
}

/** Records of answer and authority sections. */
function recordCount(message: Uint8Array): number {
  return getU16(message, 6) + getU16(message, 8);
}

/** The bit of a type that holds addresses, or 0. */
function typeBit(type: number): number {
  switch (type) {
    case Qtype.A:
      return 1;
    case Qtype.AAAA:
      return 2;
    case Qtype.SVCB:
      return 4;
    case Qtype.HTTPS:
      return 8;
    default:
      return 0;
  }
}

/** Bytes of each address that a parameter holds, or 0 for one that holds none. */
function hintBytes(key: number): number {
  if (key === SvcParam.Ipv4Hint) return IPV4_BYTES;
  return key === SvcParam.Ipv6Hint ? IPV6_BYTES : 0;
}

/** Copies the addresses of a hint that are not private; returns where they end. */
function copyHints(
  message: Uint8Array,
  { key, valueOffset, valueLength }: SvcParamView,
  target: Uint8Array,
  at: number,
  embedding: EmbeddingPrefix | null,
): number {
  const size = hintBytes(key);
  let to = at;
  for (let i = valueOffset; i + size <= valueOffset + valueLength; i += size) {
    if (isPrivateAt(message, i, size, embedding)) continue;
    to = copyBytes(message, i, i + size, target, to);
  }
  return to;
}

/** Copies the keys of `mandatory` but for those that are gone; returns where they end. */
function copyMandatory(
  message: Uint8Array,
  { valueOffset, valueLength }: SvcParamView,
  gone: number,
  target: Uint8Array,
  at: number,
): number {
  let to = at;
  for (let i = valueOffset; i + 2 <= valueOffset + valueLength; i += 2) {
    const key = getU16(message, i);
    const isGone = key <= SvcParam.Ipv6Hint && ((gone >> key) & 1) === 1;
    if (!isGone) to = copyBytes(message, i, i + 2, target, to);
  }
  return to;
}

function copyBytes(
  from: Uint8Array,
  start: number,
  end: number,
  target: Uint8Array,
  at: number,
): number {
  for (let i = start; i < end; i++) target[at + i - start] = from[i];
  return at + end - start;
}

function wire(name: string): Uint8Array {
  const bytes = parseName(name);
  invariant(bytes !== null, `${name} is a name`);
  return bytes;
}
