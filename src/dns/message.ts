/**
 * Whole messages as plain data, for logs, tests and servers of tests; and a writer with name
 * compression. A query that passes uses neither to read.
 */
import { getU16, setU16, setU32 } from "../bytes/mod.ts";
import { invariant } from "../errors.ts";
import {
  closeOpt,
  type ExtendedError,
  type OptFields,
  OptionView,
  OptView,
  readEde,
  readOption,
  readOptRecord,
  writeOpt,
  writeOption,
} from "./edns.ts";
import { NAME_BYTES_MAX, parseName, readNameText, skipName } from "./name.ts";
import { FOLD, HashedName } from "./name_hash.ts";
import {
  AA_BIT,
  AD_BIT,
  CD_BIT,
  EdnsOption,
  HEADER_BYTES,
  OPCODE_MASK,
  Qclass,
  QR_BIT,
  Qtype,
  RA_BIT,
  RCODE_MASK,
  RD_BIT,
  TC_BIT,
  UDP_PAYLOAD_MAX,
} from "./numbers.ts";
import { formatRdata } from "./presentation.ts";
import {
  RECORD_FIXED_BYTES,
  RecordView,
  Section,
  SectionWalk,
  skipQuestion,
  Walk,
} from "./record.ts";

export interface Question {
  readonly name: string;
  readonly type: number;
  readonly cls: number;
}

export interface DecodedRecord {
  readonly name: string;
  readonly type: number;
  readonly cls: number;
  readonly ttl: number;
  /** RDATA in presentation form. */
  readonly data: string;
  /** RDATA as it stands in the packet: names in it may be compressed. */
  readonly rdata: Uint8Array;
}

export interface EdnsOptionData {
  readonly code: number;
  readonly data: Uint8Array;
}

export interface DecodedOpt extends Readonly<OptFields> {
  readonly options: readonly EdnsOptionData[];
  readonly errors: readonly ExtendedError[];
}

/** A message as plain data. */
export interface Message {
  readonly id: number;
  readonly response: boolean;
  readonly opcode: number;
  readonly aa: boolean;
  readonly tc: boolean;
  readonly rd: boolean;
  readonly ra: boolean;
  readonly ad: boolean;
  readonly cd: boolean;
  /** All twelve bits: those of the header and, above them, those of OPT. */
  readonly rcode: number;
  readonly questions: readonly Question[];
  readonly answers: readonly DecodedRecord[];
  readonly authorities: readonly DecodedRecord[];
  /** Without OPT, which is `opt`. */
  readonly additionals: readonly DecodedRecord[];
  readonly opt: DecodedOpt | null;
  /** Bytes behind the last record, which belong to nothing. */
  readonly trailingBytes: number;
}

/**
 * Decodes a message, or returns `null` when it is cut off, one of its names is broken or its OPT is
 * malformed. Malformed RDATA of other records is no reason: `data` shows its bytes.
 */
export function decodeMessage(packet: Uint8Array): Message | null {
  const walk = new SectionWalk();
  if (!walk.start(packet, packet.length)) return null;
  const questions = decodeQuestions(packet);
  if (questions === null) return null;
  const sections: DecodedRecord[][] = [[], [], []];
  const record = new RecordView();
  let opt: DecodedOpt | null = null;
  let step = walk.next(record);
  for (; step === Walk.Record; step = walk.next(record)) {
    if (record.type === Qtype.OPT && walk.section === Section.Additional) {
      if (opt !== null) return null;
      opt = decodeOpt(packet, record);
      if (opt === null) return null;
      continue;
    }
    const name = readNameText(packet, record.ownerOffset);
    if (name === null) return null;
    const { type, cls, ttl, rdataOffset, rdataLength } = record;
    const data = formatRdata(packet, type, rdataOffset, rdataLength);
    const rdata = packet.slice(rdataOffset, record.end);
    sections[walk.section].push({ name, type, cls, ttl, data, rdata });
  }
  if (step === Walk.Malformed) return null;
  const flags = getU16(packet, 2);
  const has = (bit: number) => (flags & bit) !== 0;
  return {
    id: getU16(packet, 0),
    response: has(QR_BIT),
    opcode: (flags & OPCODE_MASK) >> 11,
    aa: has(AA_BIT),
    tc: has(TC_BIT),
    rd: has(RD_BIT),
    ra: has(RA_BIT),
    ad: has(AD_BIT),
    cd: has(CD_BIT),
    rcode: (flags & RCODE_MASK) | ((opt?.extendedRcode ?? 0) << 4),
    questions,
    answers: sections[Section.Answer],
    authorities: sections[Section.Authority],
    additionals: sections[Section.Additional],
    opt,
    trailingBytes: packet.length - walk.offset,
  };
}

function decodeQuestions(packet: Uint8Array): Question[] | null {
  const questions: Question[] = [];
  let at = HEADER_BYTES;
  for (let left = getU16(packet, 4); left > 0; left--) {
    const name = readNameText(packet, at);
    at = skipQuestion(packet, at, packet.length);
    if (name === null || at < 0) return null;
    questions.push({ name, type: getU16(packet, at - 4), cls: getU16(packet, at - 2) });
  }
  return questions;
}

function decodeOpt(packet: Uint8Array, record: RecordView): DecodedOpt | null {
  const view = new OptView();
  if (!readOptRecord(packet, record, view)) return null;
  const options: EdnsOptionData[] = [];
  const errors: ExtendedError[] = [];
  const option = new OptionView();
  let at = view.optionsOffset;
  while (at < view.optionsEnd) {
    at = readOption(packet, at, view.optionsEnd, option);
    const { code, dataOffset, dataLength } = option;
    options.push({ code, data: packet.slice(dataOffset, dataOffset + dataLength) });
    const error = code === EdnsOption.Ede ? readEde(packet, option) : null;
    if (error !== null) errors.push(error);
  }
  const { payload, extendedRcode, version, dnssecOk } = view;
  return { payload, extendedRcode, version, dnssecOk, options, errors };
}

/** Most names' tails remembered for compression: a response's first records repeat the most. */
const TAILS_MAX = 64;
/** Where a pointer can't lead any more (RFC 1035 §4.1.4). */
const POINTER_OFFSETS = 0x4000;
const POINTER = 0xc000;
const RDLENGTH_BYTES = 2;

/** Where names that may be compressed stand in RDATA (RFC 3597 §4): bytes before, then names. */
const COMPRESSED_RDATA: ReadonlyMap<number, { readonly before: number; readonly names: number }> =
  new Map([
    [Qtype.NS, { before: 0, names: 1 }],
    [Qtype.CNAME, { before: 0, names: 1 }],
    [Qtype.PTR, { before: 0, names: 1 }],
    [Qtype.MX, { before: 2, names: 1 }],
    [Qtype.SOA, { before: 0, names: 2 }],
  ]);

/**
 * Writes a message into a given buffer; made once and started for each. Each step says whether it
 * fitted; one that did not leaves the message as it was, so that it can be ended with TC set.
 * Names are uncompressed and get compressed here, byte for byte: their case comes back as it was,
 * unless the writer folds it.
 */
export class MessageWriter {
  /** Where the TTL of the record written last stands, from the start of the message. */
  ttlOffset = 0;
  #target: Uint8Array = new Uint8Array(0);
  #start = 0;
  #limit = 0;
  #at = 0;
  /** Where OPT starts, or -1; nothing but options may follow it. */
  #opt = -1;
  readonly #name = new HashedName();
  readonly #tailHashes = new Int32Array(TAILS_MAX);
  readonly #tailOffsets = new Uint16Array(TAILS_MAX);
  #tails = 0;
  readonly #foldsCase: boolean;

  /** `foldsCase`: a name that was written before is led to whatever its letters' case. */
  constructor(foldsCase = false) {
    this.#foldsCase = foldsCase;
  }

  /** Bytes written. */
  get lengthBytes(): number {
    return this.#at - this.#start;
  }

  /** Starts a message at `offset` that ends before `limit` of `target`; writes its header. */
  start(
    target: Uint8Array,
    offset: number,
    limit: number,
    id: number,
    flags: number,
  ): boolean {
    this.#target = target;
    this.#start = this.#at = offset;
    this.#limit = Math.min(limit, target.length);
    this.#opt = -1;
    this.#tails = 0;
    if (offset + HEADER_BYTES > this.#limit) return false;
    target.fill(0, offset, offset + HEADER_BYTES);
    setU16(target, offset, id);
    setU16(target, offset + 2, flags);
    this.#at += HEADER_BYTES;
    return true;
  }

  /** Sets further bits of the header's flags: TC, when something did not fit. */
  setFlags(bits: number): void {
    const at = this.#start + 2;
    setU16(this.#target, at, getU16(this.#target, at) | bits);
  }

  question(name: Uint8Array, type: number, cls: number = Qclass.IN): boolean {
    const mark = this.#mark();
    if (!this.#writeName(name, 0) || this.#at + 4 > this.#limit) return this.#undo(mark);
    setU16(this.#target, this.#at, type);
    setU16(this.#target, this.#at + 2, cls);
    this.#at += 4;
    this.#count(4);
    return true;
  }

  /**
   * Writes a record; sections come in their order. `rdata` holds its names uncompressed.
   *
   * @throws {InvariantError} If OPT has been written, or the owner is no name.
   */
  record(
    section: Section,
    owner: Uint8Array,
    type: number,
    cls: number,
    ttl: number,
    rdata: Uint8Array,
  ): boolean {
    invariant(this.#opt < 0, "OPT is the last record");
    const mark = this.#mark();
    if (!this.#writeName(owner, 0)) return this.#undo(mark);
    const fixed = this.#at;
    if (fixed + RECORD_FIXED_BYTES > this.#limit) return this.#undo(mark);
    setU16(this.#target, fixed, type);
    setU16(this.#target, fixed + 2, cls);
    setU32(this.#target, fixed + 4, ttl);
    this.ttlOffset = fixed + 4 - this.#start;
    this.#at += RECORD_FIXED_BYTES;
    if (!this.#writeRdata(type, rdata)) return this.#undo(mark);
    const rdataOffset = fixed + RECORD_FIXED_BYTES;
    setU16(this.#target, rdataOffset - RDLENGTH_BYTES, this.#at - rdataOffset);
    this.#count(6 + 2 * section);
    return true;
  }

  /** Writes OPT, the last record; `option` adds to it. */
  opt(fields: OptFields): boolean {
    invariant(this.#opt < 0, "a message has one OPT");
    const end = writeOpt(this.#target, this.#at, this.#limit, fields);
    if (end < 0) return false;
    this.#opt = this.#at;
    this.#at = end;
    this.#count(10);
    return true;
  }

  /** @throws {InvariantError} If no OPT has been written. */
  option(code: number, data: Uint8Array): boolean {
    invariant(this.#opt >= 0, "an option needs OPT");
    const end = writeOption(this.#target, this.#at, this.#limit, code, data);
    if (end < 0) return false;
    closeOpt(this.#target, this.#opt, end);
    this.#at = end;
    return true;
  }

  /** The message, a view of the given buffer. */
  bytes(): Uint8Array {
    return this.#target.subarray(this.#start, this.#at);
  }

  #mark(): { readonly at: number; readonly tails: number } {
    return { at: this.#at, tails: this.#tails };
  }

  #undo(mark: { readonly at: number; readonly tails: number }): false {
    this.#at = mark.at;
    this.#tails = mark.tails;
    return false;
  }

  /** Adds one to the count of a section, which stands at `offset` of the header. */
  #count(offset: number): void {
    const at = this.#start + offset;
    setU16(this.#target, at, getU16(this.#target, at) + 1);
  }

  #writeBytes(bytes: Uint8Array, from: number, to: number): boolean {
    if (this.#at + to - from > this.#limit) return false;
    for (let i = from; i < to; i++) this.#target[this.#at++] = bytes[i];
    return true;
  }

  #writeRdata(type: number, rdata: Uint8Array): boolean {
    const names = COMPRESSED_RDATA.get(type);
    let at = 0;
    // RDATA without its type's form is written as it is.
    if (names !== undefined && this.#hasNames(rdata, names.before, names.names)) {
      if (!this.#writeBytes(rdata, 0, names.before)) return false;
      at = names.before;
      for (let i = 0; i < names.names; i++) {
        if (!this.#writeName(rdata, at)) return false;
        at = skipName(rdata, at);
      }
    }
    return this.#writeBytes(rdata, at, rdata.length);
  }

  #hasNames(rdata: Uint8Array, before: number, count: number): boolean {
    let at = before;
    for (let i = 0; i < count && at >= 0; i++) at = this.#name.read(rdata, at, rdata.length, 0);
    return at >= 0;
  }

  /** Writes the uncompressed name at `offset`, its tail as a pointer if it was written before. */
  #writeName(wire: Uint8Array, offset: number): boolean {
    const name = this.#name;
    const end = name.read(wire, offset, wire.length, 0);
    invariant(end >= 0, "a name to write is well formed");
    let pointer = -1;
    let kept = 0;
    for (; kept < name.count; kept++) {
      pointer = this.#findTail(name.hashes[kept], wire, name.offsets[kept]);
      if (pointer >= 0) break;
    }
    const keptEnd = pointer < 0 ? end : name.offsets[kept];
    const at = this.#at;
    if (!this.#writeBytes(wire, offset, keptEnd)) return false;
    if (pointer >= 0) {
      if (this.#at + 2 > this.#limit) return false;
      setU16(this.#target, this.#at, POINTER | pointer);
      this.#at += 2;
    }
    for (let k = 0; k < kept && this.#tails < TAILS_MAX; k++) {
      const tail = at - this.#start + name.offsets[k] - offset;
      if (tail >= POINTER_OFFSETS) break;
      this.#tailHashes[this.#tails] = name.hashes[k];
      this.#tailOffsets[this.#tails++] = tail;
    }
    return true;
  }

  /** The offset of a tail written before that equals the name at `offset`, or -1. */
  #findTail(hash: number, wire: Uint8Array, offset: number): number {
    for (let i = 0; i < this.#tails; i++) {
      if (this.#tailHashes[i] !== hash) continue;
      if (this.#equalsTail(this.#start + this.#tailOffsets[i], wire, offset)) {
        return this.#tailOffsets[i];
      }
    }
    return -1;
  }

  /** Our own pointers lead backwards, so each label is met once. */
  #equalsTail(from: number, wire: Uint8Array, offset: number): boolean {
    const target = this.#target;
    let at = from;
    let other = offset;
    for (;;) {
      while (target[at] >= POINTER >> 8) at = this.#start + (getU16(target, at) & ~POINTER);
      const length = target[at];
      // Length bytes are below 64 and so are left alone by the folding.
      for (let i = 0; i <= length; i++) {
        const [a, b] = [target[at + i], wire[other + i]];
        if (a !== b && !(this.#foldsCase && FOLD[a] === FOLD[b])) return false;
      }
      if (length === 0) return true;
      at += 1 + length;
      other += 1 + length;
    }
  }
}

/** What a query may ask for beside its question. */
export interface QueryOptions {
  readonly id?: number;
  readonly cls?: number;
  /** Recursion desired; so it is if left out. */
  readonly rd?: boolean;
  readonly ad?: boolean;
  readonly cd?: boolean;
  /** With an OPT record, whose fields are these where they are given. */
  readonly edns?: Partial<OptFields> & { readonly options?: readonly EdnsOptionData[] };
}

/** Room for a query's header, question and OPT; options come on top. */
const QUERY_BYTES_MAX = HEADER_BYTES + NAME_BYTES_MAX + 4 + 11;

/**
 * A query's bytes. `name` is in presentation form or in wire format.
 *
 * @throws {InvariantError} If `name` is none.
 */
export function encodeQuery(
  name: string | Uint8Array,
  type: number,
  options: QueryOptions = {},
): Uint8Array<ArrayBuffer> {
  const wire = typeof name === "string" ? parseName(name) : name;
  invariant(wire !== null, `${name} is a name`);
  const { id = 0, cls = Qclass.IN, rd = true, ad = false, cd = false, edns } = options;
  const added = edns?.options ?? [];
  const size = added.reduce((sum, { data }) => sum + 4 + data.length, QUERY_BYTES_MAX);
  const target = new Uint8Array(size);
  const writer = new MessageWriter();
  const flags = (rd ? RD_BIT : 0) | (ad ? AD_BIT : 0) | (cd ? CD_BIT : 0);
  let fits = writer.start(target, 0, size, id, flags) && writer.question(wire, type, cls);
  if (edns !== undefined) {
    const { payload = UDP_PAYLOAD_MAX, extendedRcode = 0, version = 0, dnssecOk = false } = edns;
    fits = fits && writer.opt({ payload, extendedRcode, version, dnssecOk });
  }
  for (const { code, data } of added) fits = fits && writer.option(code, data);
  invariant(fits, "a query fits in the room made for it");
  return target.slice(0, writer.lengthBytes);
}
