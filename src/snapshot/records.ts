import { isLoopback, isUnspecified, parseIp, reverseName } from "../addr/mod.ts";
import {
  equalNames,
  FOLD,
  formatRdata,
  HashedName,
  parseName,
  parseRdata,
  Qtype,
} from "../dns/mod.ts";
import type { RecordSpec } from "../model/mod.ts";

/**
 * The operator's own records. A slot is about one name, found by its hash; the records of the name
 * itself stand one behind the other, and so do those of every name below it.
 */
export interface RecordsData {
  /** Open addressing, a power of two of slots; see `Slot`. */
  readonly recordSlots: Int32Array;
  /** Four words each: type, TTL, where RDATA stands and its bytes. */
  readonly records: Int32Array;
  /** Names and RDATA in wire format. */
  readonly recordBytes: Uint8Array;
}

/** Words of a slot. A free one has no records at all. */
const Slot = { Hash: 0, Name: 1, Exact: 2, Below: 4 } as const;
const SLOT_WORDS = 6;
/** Behind the number of the first record of a set: how many there are. */
const COUNT = 1;
const RECORD_WORDS = 4;
/** Slots to a name at least, so that searches are short. */
const SLOTS_PER_NAME = 2;
const SLOTS_MIN = 4;

const WILDCARD = "*.";

/** Types of no record: below a zone of ours no name is but those with records, and those above them. */
const Mark = { Absent: 0x1_0000, Empty: 0x1_0001 } as const;
const MARKS = {
  absent: { type: Mark.Absent, ttl: 0, rdata: new Uint8Array() },
  empty: { type: Mark.Empty, ttl: 0, rdata: new Uint8Array() },
} as const;

/** No record of ours is about the name. */
export const NO_RECORDS = -1;
/** CNAME records of ours that are followed for one query. */
export const CHAIN_MAX = 8;

interface Compiled {
  readonly type: number;
  readonly ttl: number;
  readonly rdata: Uint8Array;
}

interface Owner {
  readonly name: Uint8Array;
  readonly hash: number;
  readonly exact: Compiled[];
  readonly below: Compiled[];
}

/** Compiles the records that are enabled; one that is malformed is left out. */
export function compileRecords(specs: Iterable<RecordSpec>, seed: number): RecordsData {
  const owners = new Owners(seed);
  const hosts: RecordSpec[] = [];
  for (const spec of specs) {
    if (!spec.enabled) continue;
    const isWildcard = spec.name.startsWith(WILDCARD);
    const owner = owners.of(isWildcard ? spec.name.slice(WILDCARD.length) : spec.name);
    const record = compileRecord(spec);
    if (owner === null || record === null) continue;
    (isWildcard ? owner.below : owner.exact).push(record);
    if (!isWildcard) hosts.push(spec);
  }
  for (const host of hosts) addPointer(owners, host);
  owners.markZones();
  return layOut(owners.all.filter(({ exact, below }) => exact.length + below.length > 0));
}

/** By name. */
class Owners {
  readonly #seed: number;
  readonly #owners = new Map<string, Owner>();
  readonly #hashed = new HashedName();

  constructor(seed: number) {
    this.#seed = seed;
  }

  get all(): readonly Owner[] {
    return [...this.#owners.values()];
  }

  /** The owner of a name; `null` for a text that is none. */
  of(text: string): Owner | null {
    const wire = parseName(text);
    return wire === null ? null : this.#ofName(wire.map((byte) => FOLD[byte]));
  }

  /**
   * Notes of each name with an SOA record that all below it is ours: names without records are not
   * there (RFC 2308 §2.1), and those between it and records have none (RFC 8020 §3.1).
   */
  markZones(): void {
    const zones = this.all.filter(({ exact }) => exact.some(({ type }) => type === Qtype.SOA));
    const ends = new Set(zones.map(({ name }) => keyOf(name)));
    for (const { below } of zones) below.push(MARKS.absent);
    if (zones.length === 0) return;
    for (const { name, exact } of this.all) {
      // A wildcard's own name is above it; below a zone's top nothing is for it to mark.
      const above = exact.length > 0 ? parentsOf(name).slice(1) : parentsOf(name);
      const top = above.findIndex((one) => ends.has(keyOf(one)));
      for (const one of above.slice(0, Math.max(0, top))) {
        const owner = this.#ofName(one);
        if (owner.exact.length === 0) owner.exact.push(MARKS.empty);
      }
    }
  }

  #ofName(name: Uint8Array): Owner {
    const key = keyOf(name);
    const known = this.#owners.get(key);
    if (known !== undefined) return known;
    this.#hashed.read(name, 0, name.length, this.#seed);
    const owner = { name, hash: this.#hashed.hashes[0], exact: [], below: [] };
    this.#owners.set(key, owner);
    return owner;
  }
}

function keyOf(name: Uint8Array): string {
  return String.fromCharCode(...name);
}

/** A name in wire format, and those above it up to a top-level one. */
function parentsOf(name: Uint8Array): Uint8Array[] {
  const found: Uint8Array[] = [];
  for (let at = 0; name[at] > 0; at += name[at] + 1) found.push(name.slice(at));
  return found;
}

/** Lets the address of a host lead back to its name: the first that has it, and no record is there. */
function addPointer(owners: Owners, { name, type, value, ttl }: RecordSpec): void {
  if (type !== "A" && type !== "AAAA") return;
  const ip = parseIp(value);
  const rdata = parseName(name);
  // Those that any name may have lead nowhere.
  if (ip === null || rdata === null || isLoopback(ip) || isUnspecified(ip)) return;
  const owner = owners.of(reverseName(ip));
  if (owner?.exact.length === 0) owner.exact.push({ type: Qtype.PTR, ttl, rdata });
}

function compileRecord({ type, value, ttl }: RecordSpec): Compiled | null {
  const rdata = parseRdata(Qtype[type], value);
  return rdata === null ? null : { type: Qtype[type], ttl, rdata };
}

function layOut(owners: readonly Owner[]): RecordsData {
  const slots = 2 ** Math.ceil(Math.log2(Math.max(SLOTS_MIN, SLOTS_PER_NAME * owners.length)));
  const recordSlots = new Int32Array(slots * SLOT_WORDS);
  const words: number[] = [];
  const pieces: Uint8Array[] = [];
  let lengthBytes = 0;
  const put = (bytes: Uint8Array) => {
    pieces.push(bytes);
    lengthBytes += bytes.length;
    return lengthBytes - bytes.length;
  };
  for (const { name, hash, exact, below } of owners) {
    let slot = (hash & (slots - 1)) * SLOT_WORDS;
    while (!isFree(recordSlots, slot)) slot = (slot + SLOT_WORDS) % recordSlots.length;
    recordSlots[slot + Slot.Hash] = hash;
    recordSlots[slot + Slot.Name] = put(name);
    for (
      const [set, records] of [[slot + Slot.Exact, exact], [slot + Slot.Below, below]] as const
    ) {
      recordSlots[set] = words.length / RECORD_WORDS;
      recordSlots[set + COUNT] = records.length;
      for (const { type, ttl, rdata } of records) words.push(type, ttl, put(rdata), rdata.length);
    }
  }
  const recordBytes = new Uint8Array(lengthBytes);
  let at = 0;
  for (const piece of pieces) {
    recordBytes.set(piece, at);
    at += piece.length;
  }
  return { recordSlots, records: Int32Array.from(words), recordBytes };
}

function isFree(slots: Int32Array, slot: number): boolean {
  return slots[slot + Slot.Exact + COUNT] === 0 && slots[slot + Slot.Below + COUNT] === 0;
}

/** Reads compiled records. A set is all records of one owner; it leaves no garbage. */
export class LocalRecords {
  /** Names and RDATA; never written to. */
  readonly bytes: Uint8Array;
  /** There is no record at all. */
  readonly isEmpty: boolean;
  readonly #slots: Int32Array;
  readonly #records: Int32Array;
  readonly #mask: number;

  constructor({ recordSlots, records, recordBytes }: RecordsData) {
    this.bytes = recordBytes;
    this.isEmpty = records.length === 0;
    this.#slots = recordSlots;
    this.#records = records;
    this.#mask = recordSlots.length / SLOT_WORDS - 1;
  }

  /**
   * The set about a name that was read from `packet`: that of the name itself, or else that of the
   * closest wildcard above it; `NO_RECORDS` where there is neither.
   */
  find(packet: Uint8Array, { count, hashes, offsets }: HashedName): number {
    if (this.isEmpty) return NO_RECORDS;
    const slots = this.#slots;
    for (let k = 0; k < count; k++) {
      const slot = this.#slotOf(hashes[k], packet, offsets[k]);
      if (slot < 0) continue;
      const set = slot + (k === 0 ? Slot.Exact : Slot.Below);
      if (slots[set + COUNT] > 0) return set;
    }
    return NO_RECORDS;
  }

  #slotOf(hash: number, packet: Uint8Array, offset: number): number {
    const slots = this.#slots;
    let slot = (hash & this.#mask) * SLOT_WORDS;
    while (!isFree(slots, slot)) {
      const isIt = slots[slot + Slot.Hash] === hash &&
        equalNames(this.bytes, slots[slot + Slot.Name], packet, offset);
      if (isIt) return slot;
      slot += SLOT_WORDS;
      if (slot === slots.length) slot = 0;
    }
    return -1;
  }

  /** Says of a set of `find` that its name is not there. */
  isAbsent(set: number): boolean {
    return this.count(set) === 1 && this.type(this.first(set)) === Mark.Absent;
  }

  /** The number of the first record of a set; the others follow. */
  first(set: number): number {
    return this.#slots[set];
  }

  /** Records of a set, one at least. */
  count(set: number): number {
    return this.#slots[set + COUNT];
  }

  type(record: number): number {
    return this.#records[record * RECORD_WORDS];
  }

  /** Seconds. */
  ttl(record: number): number {
    return this.#records[record * RECORD_WORDS + 1];
  }

  /** Where RDATA starts in `bytes`. */
  rdataOffset(record: number): number {
    return this.#records[record * RECORD_WORDS + 2];
  }

  rdataLength(record: number): number {
    return this.#records[record * RECORD_WORDS + 3];
  }

  /** The first record of a type in a set, or -1. */
  firstOfType(set: number, type: number): number {
    const first = this.first(set);
    const end = first + this.count(set);
    for (let record = first; record < end; record++) if (this.type(record) === type) return record;
    return -1;
  }

  /** RDATA in presentation form; allocates. */
  text(record: number): string {
    const offset = this.rdataOffset(record);
    const rdata = this.bytes.slice(offset, offset + this.rdataLength(record));
    return formatRdata(rdata, this.type(record), 0, rdata.length);
  }
}
