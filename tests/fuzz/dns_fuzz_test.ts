import assert from "node:assert/strict";
import { encodeHex, setU16 } from "../../src/bytes/mod.ts";
import {
  checkRdata,
  decodeMessage,
  encodeQuery,
  expandName,
  formatName,
  formatRdata,
  HashedName,
  HEADER_BYTES,
  LABELS_MAX,
  type Message,
  MessageWriter,
  NAME_BYTES_MAX,
  OptRead,
  OptView,
  parseName,
  parseSvcb,
  QR_BIT,
  Qtype,
  readOpt,
  readRecord,
  RECORD_FIXED_BYTES,
  RecordView,
  Section,
  SectionWalk,
  skipPlainName,
  skipQuestion,
  Walk,
} from "../../src/dns/mod.ts";
import { Prng, seedFromEnv } from "../prng.ts";
import { readSeedPackets } from "./dns_seeds.ts";
import { mutate } from "./mutate.ts";

// Goal: no packet makes a reader throw, leave its bounds, disagree with another reader or work for
// longer than its size explains. Method: captured, malformed and own packets, changed by chance
// from one seed; work is counted in bytes read, not in time.

const PACKETS = 1_000_000;
/** Of the packets, those whose reads are counted while they are decoded. */
const COUNTED_SHARE = 0.002;
/** Packets are changed within this size; a few keep theirs. */
const MUTATED_BYTES_MAX = 1_500;

// Bytes read for one name at most: each of its bytes, each length byte once more, and two for each
// pointer, of which 126 are followed; then for its own bytes in the packet.
const EXPAND_READS = NAME_BYTES_MAX + LABELS_MAX + 1 + 2 * 127;
const SKIP_READS = LABELS_MAX + 3;
/** A name of a record is skipped and expanded, in RDATA when it is checked and when it is shown. */
const NAME_READS = 2 * (EXPAND_READS + SKIP_READS);
/** Names of a record: its owner and two of an SOA. */
const RECORD_NAMES = 3;
/** Passes over each byte of RDATA: to check it, to check it as SVCB, to show it, to copy it. */
const BYTE_READS = 12;

/** `packet`, with each read of a byte counted, alone or with others as a part. */
class Counted {
  reads = 0;
  readonly packet: Uint8Array;

  constructor(bytes: Uint8Array) {
    this.packet = new Proxy(bytes, {
      get: (target, key) => {
        if (typeof key === "string" && /^\d+$/.test(key)) this.reads++;
        const value = Reflect.get(target, key, target);
        if (typeof value !== "function") return value;
        return (...args: unknown[]) => {
          const result = value.apply(target, args);
          if (result instanceof Uint8Array) this.reads += result.length;
          return result;
        };
      },
    });
  }
}

/** Names in the questions and records of a packet, up to the first that is cut off. */
function countNames(packet: Uint8Array): number {
  let at = HEADER_BYTES;
  let names = 1;
  for (let left = (packet[4] << 8) | packet[5]; left > 0 && at >= 0; left--) {
    at = skipQuestion(packet, at, packet.length);
    names++;
  }
  const view = new RecordView();
  while (at >= 0 && at < packet.length) {
    at = readRecord(packet, at, packet.length, view);
    names += RECORD_NAMES;
  }
  return names;
}

function readsMax(packet: Uint8Array): number {
  return HEADER_BYTES * 4 + BYTE_READS * packet.length + NAME_READS * countNames(packet);
}

function name(text: string): Uint8Array {
  const wire = parseName(text);
  assert(wire !== null, text);
  return wire;
}

/** Packets of every shape that captures lack. */
function ownPackets(): Uint8Array[] {
  const packets = [
    encodeQuery("www.example", Qtype.A),
    encodeQuery("www.example", Qtype.HTTPS, {
      edns: { dnssecOk: true, options: [{ code: 10, data: new Uint8Array(8) }] },
    }),
  ];
  const svcb = parseSvcb("1 . mandatory=port,alpn alpn=h2,h3 port=443 ipv4hint=192.0.2.1 key9=x");
  assert(svcb !== null);
  const soa = Uint8Array.of(...name("ns.example"), ...name("admin.example"), ...Array(20).fill(7));
  const nsec = Uint8Array.of(...name("b.example"), 0, 6, 0x40, 1, 0, 0, 0, 3);
  const nsec3 = Uint8Array.of(1, 0, 0, 1, 2, 9, 9, 20, ...Array(20).fill(5), 0, 1, 0x40);
  const rrsig = Uint8Array.of(...Array(18).fill(1), ...name("example"), ...Array(64).fill(3));
  const writer = new MessageWriter();
  const target = new Uint8Array(0xffff);
  assert.ok(writer.start(target, 0, target.length, 1, QR_BIT));
  assert.ok(writer.question(name("a.example"), Qtype.ANY));
  const records: [number, Uint8Array][] = [
    [Qtype.HTTPS, svcb],
    [Qtype.CNAME, name("b.example")],
    [Qtype.MX, Uint8Array.of(0, 1, ...name("mail.example"))],
    [Qtype.SOA, soa],
    [Qtype.NSEC, nsec],
    [Qtype.NSEC3, nsec3],
    [Qtype.RRSIG, rrsig],
    [Qtype.TXT, Uint8Array.of(3, 97, 98, 99, 0, 1, 255)],
    [Qtype.CAA, Uint8Array.of(0, 5, ...new TextEncoder().encode("issueca.example"))],
  ];
  for (const [type, rdata] of records) {
    assert.ok(writer.record(Section.Answer, name("a.example"), type, 1, 60, rdata));
  }
  assert.ok(writer.opt({ payload: 1232, extendedRcode: 0, version: 0, dnssecOk: true }));
  assert.ok(writer.option(15, Uint8Array.of(0, 6, 97)));
  packets.push(writer.bytes().slice());
  return packets;
}

/** The most work a packet of its size can make: each record's names go through 126 pointers. */
function pointerChains(): Uint8Array {
  const packet = new Uint8Array(0xffff);
  packet[2] = QR_BIT >> 8;
  setU16(packet, 4, 0);
  // A record whose RDATA is the chain, then SOA records that start at its end.
  let at = HEADER_BYTES;
  const chainRecord = at;
  at += 1 + RECORD_FIXED_BYTES;
  packet[at++] = 0;
  let to = at - 1;
  for (let i = 0; i < 125; i++) {
    packet[at] = 1;
    packet[at + 1] = 0x61;
    setU16(packet, at + 2, 0xc000 | to);
    to = at;
    at += 4;
  }
  setU16(packet, chainRecord + 1, Qtype.NULL);
  setU16(packet, chainRecord + 9, at - chainRecord - 1 - RECORD_FIXED_BYTES);
  let records = 1;
  for (; at + 2 + RECORD_FIXED_BYTES + 24 <= packet.length; records++) {
    setU16(packet, at, 0xc000 | to);
    setU16(packet, at + 2, Qtype.SOA);
    setU16(packet, at + 10, 24);
    setU16(packet, at + 12, 0xc000 | to);
    setU16(packet, at + 14, 0xc000 | to);
    at += 2 + RECORD_FIXED_BYTES + 24;
  }
  setU16(packet, 6, records);
  return packet.slice(0, at);
}

const view = new RecordView();
const opt = new OptView();
const walk = new SectionWalk();
const hashed = new HashedName();
const expanded = new Uint8Array(NAME_BYTES_MAX);

/** Reads a packet in place as a query and a response are; returns how many records it has, or -1. */
function readInPlace(packet: Uint8Array, prng: Prng): number {
  const end = packet.length;
  assert.equal(hashed.read(packet, HEADER_BYTES, end, 0), skipPlainName(packet, HEADER_BYTES, end));
  if (!walk.start(packet, end)) return -1;
  let records = 0;
  let before = walk.offset;
  let step: Walk = walk.next(view);
  for (; step === Walk.Record; step = walk.next(view)) {
    assert.ok(view.ownerOffset === before && view.end > before && view.end <= end);
    assert.equal(view.rdataOffset + view.rdataLength, view.end);
    before = view.end;
    records++;
    const length = expandName(packet, view.ownerOffset, expanded, 0);
    if (length > 0) assert.equal(skipPlainName(expanded, 0), length);
    if (length > 0 && prng.chance(0.01)) {
      assert.deepEqual(parseName(formatName(expanded)), expanded.slice(0, length));
    }
    const sound = checkRdata(packet, view.type, view.rdataOffset, view.rdataLength);
    if (!sound && prng.chance(0.1)) {
      const text = formatRdata(packet, view.type, view.rdataOffset, view.rdataLength);
      assert.ok(text.startsWith("\\# "), text);
    }
  }
  const additionals = end < HEADER_BYTES ? 0 : (packet[10] << 8) | packet[11];
  const found = readOpt(packet, prng.int(end + 1), end, additionals, opt);
  if (found === OptRead.Found) {
    assert.ok(opt.optionsOffset <= opt.optionsEnd && opt.optionsEnd <= end);
  }
  expandName(packet, prng.int(end + 1), expanded, 0);
  return step === Walk.Malformed ? -1 : records;
}

function countRecords(message: Message): number {
  const { answers, authorities, additionals } = message;
  return answers.length + authorities.length + additionals.length + (message.opt === null ? 0 : 1);
}

const seed = seedFromEnv();
const captured = readSeedPackets().map(({ packet }) => packet).filter((packet) =>
  packet.length > 0
);
const options = { permissions: "none" } as const;

Deno.test(`readers take a million changed packets, seed ${seed}`, options, () => {
  const prng = new Prng(seed);
  const seeds = [...captured, ...ownPackets()];
  const small = seeds.filter((packet) => packet.length <= MUTATED_BYTES_MAX);
  const buffer = new Uint8Array(MUTATED_BYTES_MAX);
  let wellFormed = 0;
  let decodedCount = 0;
  let countedCount = 0;
  for (let i = 0; i < PACKETS; i++) {
    const source = prng.pick(small);
    buffer.set(source);
    const packet = mutate(prng, buffer.subarray(0, source.length), small);
    try {
      const records = readInPlace(packet, prng);
      if (records >= 0) wellFormed++;
      const message = decodeMessage(packet);
      if (message !== null) {
        decodedCount++;
        assert.equal(countRecords(message), records);
      }
      if (prng.chance(COUNTED_SHARE)) {
        const counted = new Counted(packet);
        decodeMessage(counted.packet);
        assert.ok(counted.reads <= readsMax(packet), `${counted.reads} reads`);
        countedCount++;
      }
    } catch (error) {
      throw new Error(`packet ${i} of seed ${seed}: ${encodeHex(packet)}`, { cause: error });
    }
  }
  // The changes leave enough of both kinds.
  assert.ok(wellFormed > PACKETS / 10 && wellFormed < PACKETS, `${wellFormed} well formed`);
  assert.ok(decodedCount > PACKETS / 100, `${decodedCount} decoded`);
  assert.ok(countedCount > PACKETS / 1_000, `${countedCount} counted`);
});

Deno.test("decodeMessage() does no more for a packet than its size explains", options, () => {
  const worst = pointerChains();
  const large = captured.filter((packet) => packet.length > MUTATED_BYTES_MAX);
  for (const packet of [worst, ...ownPackets(), ...large]) {
    const counted = new Counted(packet);
    const message = decodeMessage(counted.packet);
    assert.equal(message === null, decodeMessage(packet) === null);
    assert.ok(counted.reads <= readsMax(packet), `${counted.reads} of ${readsMax(packet)} reads`);
  }
  // The chain is no straw man: it makes hundreds of reads for each name, and all names are read.
  const counted = new Counted(worst);
  assert.equal(decodeMessage(counted.packet)?.answers.at(-1)?.name.length, 249);
  assert.ok(counted.reads > countNames(worst) * EXPAND_READS);
});
