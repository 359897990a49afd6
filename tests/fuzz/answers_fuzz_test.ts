// Goal: no response makes what looks through answers throw, write where it should not, let a private
// address pass or lose a public one, or miss what a rule is about. Method: captured and malformed
// packets, changed by chance, and made-up answers full of private addresses, both read as a response
// is; what is kept is held against the plain decoder.
import assert from "node:assert/strict";
import { isPrivateAt, parseIp } from "../../src/addr/mod.ts";
import { encodeHex, getU32, setU16 } from "../../src/bytes/mod.ts";
import {
  type DecodedRecord,
  decodeMessage,
  HEADER_BYTES,
  type Message,
  MessageWriter,
  parseName,
  parseSvcb,
  QR_BIT,
  Qtype,
  RA_BIT,
  Section,
  skipPlainName,
} from "../../src/dns/mod.ts";
import { AnswerFilter } from "../../src/resolver/answers.ts";
import { ScrubbingReader } from "../../src/resolver/ask/fakes.ts";
import { RebindingProtection } from "../../src/resolver/rebinding.ts";
import { policyData } from "../../src/snapshot/fakes.ts";
import { DEFAULT_GROUP, NO_RULE, Snapshot } from "../../src/snapshot/mod.ts";
import { Prng, seedFromEnv } from "../prng.ts";
import { readSeedPackets } from "./dns_seeds.ts";
import { mutate } from "./mutate.ts";

const PACKETS = 100_000;
const PACKET_BYTES_MAX = 4_096;
/** Bytes around a packet that nobody may touch. */
const MARGIN_BYTES = 64;
const options = { permissions: "none" } as const;
const SEED = 4711;
const BLOCKED_SUFFIXES = ["com", "net", "track.example"];

const snapshot = new Snapshot(
  policyData({
    lists: { ads: BLOCKED_SUFFIXES.map((name) => `||${name}^\n`).join("") },
    rules: ["|10.*", "|192.0.2.7", "|2001:db8::7"],
  }, SEED),
  0,
);

const NAMES = ["a.example", "b.example", "x.track.example", "y.CoM", "very.long.name.in.example"];
const ADDRESSES = ["192.0.2.1", "192.0.2.7", "10.0.0.1", "10.1.2.3", "192.168.0.1", "127.0.0.1"];
const ADDRESSES6 = ["2001:db8::1", "2001:db8::7", "fd00::1", "::1", "::ffff:10.0.0.1", "fe80::1"];

function some<T>(prng: Prng, all: readonly T[]): T[] {
  return Array.from({ length: 1 + prng.int(4) }, () => prng.pick(all));
}

function wire(name: string): Uint8Array {
  const bytes = parseName(name);
  assert.ok(bytes !== null, name);
  return bytes;
}

/** RDATA by chance, of the types that are looked into and of one that is not. */
function anyRdata(prng: Prng): [number, Uint8Array] {
  switch (prng.int(6)) {
    case 0:
      return [Qtype.CNAME, wire(prng.pick(NAMES))];
    case 1:
      return [Qtype.AAAA, parseIp(prng.pick(ADDRESSES6))!];
    case 2:
    case 3: {
      const hints = [`ipv4hint=${some(prng, ADDRESSES)}`, `ipv6hint=${some(prng, ADDRESSES6)}`];
      const mandatory = prng.chance(0.5) ? "mandatory=ipv4hint,ipv6hint " : "";
      const svcb = parseSvcb(`1 . ${mandatory}alpn=h2 ${hints.join(" ")}`);
      assert.ok(svcb !== null);
      return [prng.pick([Qtype.SVCB, Qtype.HTTPS]), svcb];
    }
    case 4:
      return [Qtype.TXT, Uint8Array.of(3, 10, 0, 0)];
    default:
      return [Qtype.A, parseIp(prng.pick(ADDRESSES))!];
  }
}

/** An answer that somebody with a network in mind could send. */
function anyAnswer(prng: Prng): Uint8Array {
  const target = new Uint8Array(PACKET_BYTES_MAX);
  const writer = new MessageWriter();
  assert.ok(writer.start(target, 0, target.length, prng.int(65_536), QR_BIT | RA_BIT));
  const qtype = prng.pick([Qtype.A, Qtype.AAAA, Qtype.HTTPS]);
  let name = wire(prng.pick(NAMES));
  assert.ok(writer.question(name, qtype));
  for (let left = prng.int(12); left > 0; left--) {
    let [type, rdata] = anyRdata(prng);
    // Mostly what the question is about, or leads to.
    while (type !== qtype && type !== Qtype.CNAME && prng.chance(0.8)) {
      [type, rdata] = anyRdata(prng);
    }
    const owner = prng.chance(0.9) ? name : wire(prng.pick(NAMES));
    if (type === Qtype.CNAME && prng.chance(0.8)) name = rdata;
    assert.ok(writer.record(Section.Answer, owner, type, 1, prng.int(1_000), rdata));
  }
  return writer.bytes();
}

function isPrivateText(text: string): boolean {
  const ip = parseIp(text);
  return ip !== null && isPrivateAt(ip, 0, ip.length);
}

function hintsOf({ type, data }: DecodedRecord): string[] {
  if (type !== Qtype.SVCB && type !== Qtype.HTTPS) return [];
  return Array.from(data.matchAll(/ ipv[46]hint=([^ ]*)/g), ([, list]) => list.split(",")).flat();
}

function isAddress({ type }: DecodedRecord): boolean {
  return type === Qtype.A || type === Qtype.AAAA;
}

/** What is to be left of a record, in text; `null` where it goes. */
function left(record: DecodedRecord): string | null {
  if (isAddress(record) && isPrivateText(record.data)) return null;
  const { name, type, cls, ttl } = record;
  const data = hintsOf(record).some(isPrivateText) ? withoutHints(record.data) : record.data;
  return [name, type, cls, ttl, data].join(" ");
}

/** The text of an SVCB record without private hints. */
function withoutHints(data: string): string {
  const gone: string[] = [];
  const rest = data.replace(/ (ipv[46]hint)=([^ ]*)/g, (_, key: string, list: string) => {
    const kept = list.split(",").filter((text) => !isPrivateText(text));
    if (kept.length === 0) gone.push(key);
    return kept.length === 0 ? "" : ` ${key}=${kept.join()}`;
  });
  return rest.replace(/ mandatory=([^ ]*)/, (_, list: string) => {
    const kept = list.split(",").filter((key) => !gone.includes(key));
    return kept.length === 0 ? "" : ` mandatory=${kept.join()}`;
  });
}

/** Says whether the record is one that the rules above block. */
function isRuledOut(record: DecodedRecord): boolean {
  if (record.type === Qtype.CNAME) {
    const name = record.data.toLowerCase();
    return BLOCKED_SUFFIXES.some((suffix) => name === suffix || name.endsWith(`.${suffix}`));
  }
  const addresses = isAddress(record) ? [record.data] : hintsOf(record);
  return addresses.some((text) =>
    /^(::ffff:)?(10\.|192\.0\.2\.7$)/.test(text) || text === "2001:db8::7"
  );
}

const seed = seedFromEnv();
const captured = readSeedPackets().map(({ packet }) => packet).filter(({ length }) =>
  length > HEADER_BYTES && length <= PACKET_BYTES_MAX
);

Deno.test(`answers are looked through whatever they hold, seed ${seed}`, options, () => {
  const prng = new Prng(seed);
  const memory = new Uint8Array(PACKET_BYTES_MAX + 2 * MARGIN_BYTES);
  const reader = new ScrubbingReader({ min: 0, max: 86_400, negativeMax: 3_600 });
  const protection = new RebindingProtection();
  const filter = new AnswerFilter(SEED);
  const counts = { read: 0, changed: 0, blocked: 0 };
  for (let i = 0; i < PACKETS; i++) {
    const source = captured.length > 0 && prng.chance(0.5) ? prng.pick(captured) : anyAnswer(prng);
    memory.fill(0xee);
    const buffer = memory.subarray(MARGIN_BYTES, MARGIN_BYTES + PACKET_BYTES_MAX);
    buffer.set(source);
    const isChanged = prng.chance(0.5);
    const whole = buffer.subarray(0, source.length);
    const packet = isChanged
      ? mutate(prng, whole, captured.length > 0 ? captured : [whole])
      : whole;
    if (packet.length >= HEADER_BYTES) {
      packet[2] = QR_BIT >> 8;
      packet[3] = (packet[3] & 0x0f) | RA_BIT;
      setU16(packet, 4, 1);
    }
    const shown = encodeHex(packet);
    try {
      // Even what was never checked does no harm.
      filter.blockingRule(packet, packet.length, snapshot, DEFAULT_GROUP);
      assert.equal(encodeHex(packet), shown, "it only reads");
      const nameEnd = skipPlainName(packet, HEADER_BYTES, packet.length);
      if (nameEnd < 0 || nameEnd + 4 > packet.length) continue;
      const asked = packet.slice(0, nameEnd + 4);
      asked.fill(0, 2, HEADER_BYTES);
      setU16(asked, 4, 1);
      const fit = reader.read(buffer, packet.length, asked, nameEnd + 4, true);
      if (fit !== "Answer") continue;
      counts.read++;
      const before = decodeMessage(reader.message.subarray(0, reader.length));
      assert.ok(before !== null);
      checkScrubbed(before, packet);
      const ruledOut = before.answers.some(isRuledOut);
      const rule = filter.blockingRule(reader.message, reader.length, snapshot, DEFAULT_GROUP);
      assert.equal(rule !== NO_RULE, ruledOut, "as the decoder sees it");
      if (!ruledOut) assert.equal(filter.isClean, true, "there are no exceptions here");
      if (ruledOut) counts.blocked++;
      if (checkProtected(protection, reader, reader.message)) counts.changed++;
    } catch (error) {
      throw new Error(`packet ${i} of seed ${seed}: ${shown}`, { cause: error });
    }
    const isWhole = memory.subarray(0, MARGIN_BYTES).every((byte) => byte === 0xee) &&
      memory.subarray(-MARGIN_BYTES).every((byte) => byte === 0xee);
    assert.ok(isWhole, "nothing is written around the packet");
  }
  const { read, changed, blocked } = counts;
  assert.ok(read > PACKETS / 5 && changed > PACKETS / 10 && blocked > PACKETS / 10, `${read}`);
});

/** Says whether a record is the CNAME that a DNAME before it stands for (RFC 6672 §2.2). */
function isOfDname(
  { type, name, data }: DecodedRecord,
  answers: readonly DecodedRecord[],
): boolean {
  return type === Qtype.CNAME && answers.some((dname) => {
    const [below, owner, target] = [name, dname.name, dname.data].map((text) => text.toLowerCase());
    if (dname.type !== Qtype.DNAME || !(owner === "." || below.endsWith(`.${owner}`))) return false;
    const rest = below.slice(0, below.length - (owner === "." ? 1 : owner.length));
    return data.toLowerCase() === (target === "." ? rest : rest + target);
  });
}

/**
 * Checks by plain means that each record kept belongs to the question: the chain from it, the RRset
 * at its end, signatures over these; and that each stood in the packet, and the other decoder agrees.
 */
function checkScrubbed(kept: Message, packet: Uint8Array): void {
  const came = decodeMessage(packet); // It takes no broken OPT, of which nothing is kept.
  const [{ name, type, cls }] = kept.questions;
  const chain = [name.toLowerCase()];
  for (const record of kept.answers) {
    const owner = record.name.toLowerCase();
    assert.equal(record.cls, cls);
    const last = chain[chain.length - 1];
    if (record.type === Qtype.DNAME && type !== Qtype.DNAME) {
      assert.ok(owner === "." || last.endsWith(`.${owner}`), "a DNAME above");
    } else if (record.type !== Qtype.RRSIG || type === Qtype.RRSIG) {
      assert.equal(owner, last, "of the name that the chain has come to");
      assert.ok(record.type === type || record.type === Qtype.CNAME);
    }
    if (record.type === Qtype.CNAME && type !== Qtype.CNAME) chain.push(record.data.toLowerCase());
  }
  assert.ok(chain.length <= 13);
  const text = ({ name, type, cls, data }: DecodedRecord) =>
    `${name} ${type} ${cls} ${data}`.toLowerCase();
  const all = new Set([...came?.answers ?? [], ...came?.authorities ?? []].map(text));
  const rest = [...kept.answers, ...kept.authorities].filter((record) =>
    !isOfDname(record, kept.answers)
  );
  assert.ok(came === null || rest.every((record) => all.has(text(record))), "nothing is made up");
  assert.ok(
    kept.authorities.every(({ type }) =>
      type === Qtype.SOA || type === Qtype.NSEC || type === Qtype.NSEC3 || type === Qtype.RRSIG
    ),
  );
  assert.ok(kept.authorities.filter(({ type }) => type === Qtype.SOA).length <= 1);
  assert.equal(kept.additionals.length, 0);
}

/** Takes private addresses out and checks what is left; says whether there were any. */
function checkProtected(
  protection: RebindingProtection,
  reader: ScrubbingReader,
  buffer: Uint8Array,
): boolean {
  const before = decodeMessage(buffer.subarray(0, reader.length))!;
  const all = [...before.answers, ...before.authorities];
  const isOwn = /(^|\.)(lan|home\.arpa|internal|local)$/i.test(before.questions[0].name);
  const hasPrivate = all.some((record) =>
    (isAddress(record) && isPrivateText(record.data)) || hintsOf(record).some(isPrivateText)
  );
  const message = protection.protect(buffer, reader);
  assert.equal(message !== buffer, hasPrivate && !isOwn);
  if (message === buffer) return false;
  const kept = message.slice(0, reader.length);
  const after = decodeMessage(kept);
  assert.ok(after !== null && after.trailingBytes === 0);
  const rest = [...after.answers, ...after.authorities];
  const isSigned = ({ type }: DecodedRecord) => type === Qtype.RRSIG;
  assert.deepEqual(
    rest.filter((record) => !isSigned(record)).map(left),
    all.filter((record) => !isSigned(record)).map(left).filter((text) => text !== null),
  );
  assert.ok(rest.every((record) => !hintsOf(record).some(isPrivateText)));
  assert.deepEqual([after.id, after.rcode, after.ad], [before.id, before.rcode, false]);
  assert.deepEqual(after.questions, before.questions);
  const ttls = Array.from(reader.ttlOffsets.subarray(0, reader.ttlCount), (at) => getU32(kept, at));
  assert.deepEqual(ttls, rest.map(({ ttl }) => ttl));
  return true;
}
