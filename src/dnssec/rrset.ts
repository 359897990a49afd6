/** RRsets with their signatures, as a response carries them. */
import { getU16 } from "../bytes/mod.ts";
import {
  copyRdata,
  expandName,
  NAME_BYTES_MAX,
  nameKey,
  Qtype,
  RecordView,
  SectionWalk,
  Walk,
} from "../dns/mod.ts";

export interface RrSet {
  /** Uncompressed, in the case it came in. */
  readonly owner: Uint8Array;
  readonly type: number;
  /** The class; what `class` would be called if it could. */
  readonly cls: number;
  /** The lowest of its records, in seconds (RFC 2181 §5.2). */
  readonly ttl: number;
  /** RDATA, the names in it uncompressed. */
  readonly rdatas: readonly Uint8Array[];
  /** RDATA of the RRSIG records that cover it. */
  readonly signatures: readonly Uint8Array[];
}

export interface Sections {
  readonly answer: readonly RrSet[];
  readonly authority: readonly RrSet[];
  readonly additional: readonly RrSet[];
}

/** An RRset while its records come in. */
interface Growing {
  owner: Uint8Array;
  type: number;
  cls: number;
  ttl: number;
  rdatas: Uint8Array[];
  signatures: Uint8Array[];
}

/** Largest RDATA once its names are uncompressed: a few names more than it had. */
const RDATA_BYTES_MAX = 0xffff + 2 * NAME_BYTES_MAX;
/** TTLs from here on mean zero (RFC 2181 §8). */
const TTL_END = 0x8000_0000;

/** Scratch of `readSections`, which leaves before anything else can use it. */
const name = new Uint8Array(NAME_BYTES_MAX);
const rdataRoom = new Uint8Array(RDATA_BYTES_MAX);

/**
 * Groups the records of the message in the first `end` bytes into RRsets, OPT left out, and adds
 * each RRSIG to what it covers. Those that cover nothing in their section are RRsets of their own.
 * Returns `null` for a message that is cut off or has a broken owner name.
 */
export function readSections(packet: Uint8Array, end: number = packet.length): Sections | null {
  const walk = new SectionWalk();
  if (!walk.start(packet, end)) return null;
  const sections = [new Map(), new Map(), new Map()] as Map<string, Growing>[];
  const record = new RecordView();
  let step = walk.next(record);
  for (; step === Walk.Record; step = walk.next(record)) {
    if (record.type === Qtype.OPT) continue;
    const length = expandName(packet, record.ownerOffset, name, 0, end);
    if (length < 0) return null;
    add(sections[walk.section], name.slice(0, length), record, readRdata(packet, record));
  }
  if (step === Walk.Malformed) return null;
  const [answer, authority, additional] = sections.map(attachSignatures);
  return { answer, authority, additional };
}

/** RDATA without the form of its type stays as it is: no signature will fit it. */
function readRdata(packet: Uint8Array, { type, rdataOffset, rdataLength, end }: RecordView) {
  const copied = copyRdata(packet, type, rdataOffset, rdataLength, rdataRoom, 0);
  return copied < 0 ? packet.slice(rdataOffset, end) : rdataRoom.slice(0, copied);
}

function add(
  section: Map<string, Growing>,
  owner: Uint8Array,
  { type, cls, ttl: ttlBits }: RecordView,
  rdata: Uint8Array,
): void {
  // Signatures are sets by what they cover.
  const covered = type === Qtype.RRSIG && rdata.length >= 2 ? getU16(rdata, 0) : 0;
  const key = keyOf(owner, type, cls, covered);
  const ttl = ttlBits < TTL_END ? ttlBits : 0;
  const set = section.get(key);
  if (set === undefined) {
    section.set(key, { owner, type, cls, ttl, rdatas: [rdata], signatures: [] });
    return;
  }
  set.ttl = Math.min(set.ttl, ttl);
  set.rdatas.push(rdata);
}

function keyOf(owner: Uint8Array, type: number, cls: number, covered: number): string {
  return `${type},${cls},${covered},${nameKey(owner)}`;
}

function attachSignatures(section: Map<string, Growing>): readonly RrSet[] {
  for (const [key, { owner, type, cls, rdatas }] of section) {
    if (type !== Qtype.RRSIG || rdatas[0].length < 2) continue;
    const covered = section.get(keyOf(owner, getU16(rdatas[0], 0), cls, 0));
    if (covered === undefined || covered.type === Qtype.RRSIG) continue;
    covered.signatures.push(...rdatas);
    section.delete(key);
  }
  return [...section.values()];
}
