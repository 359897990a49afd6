import assert from "node:assert/strict";
import { readJsonVector } from "../../../tests/fuzz/dns_seeds.ts";
import { Prng, seedFromEnv } from "../../../tests/prng.ts";
import { decodeHex, getU16, getU32, setU16 } from "../../bytes/mod.ts";
import {
  AA_BIT,
  AD_BIT,
  CD_BIT,
  decodeMessage,
  Ede,
  encodeQuery,
  QR_BIT,
  Qtype,
  qtypeName,
  RA_BIT,
  Rcode,
  RD_BIT,
  RecordView,
  SectionWalk,
  TC_BIT,
  Walk,
} from "../../dns/mod.ts";
import {
  a,
  edeData,
  type FakeRecord,
  type FakeResponse,
  response,
  soaRdata,
  wire,
} from "../fakes.ts";
import { ALL_SAID, type Said, ScrubbingReader } from "./fakes.ts";
import type { TtlBounds } from "./scrubber.ts";

const none = { permissions: "none" } as const;
const N = "www.example";
const ID = 0x1234;
const BOUNDS: TtlBounds = { min: 0, max: 86_400, negativeMax: 3_600 };
const OK = QR_BIT | RD_BIT | RA_BIT;

interface Case extends Partial<FakeResponse> {
  readonly asked?: Uint8Array;
  readonly bounds?: TtlBounds;
  readonly dnssecOk?: boolean;
  /** The response's bytes, where they are none that can be written. */
  readonly packet?: Uint8Array;
}

function read(c: Case): { fit: Said; reader: ScrubbingReader; kept: Uint8Array } {
  const asked = c.asked ?? encodeQuery(c.name ?? N, c.type ?? 1, { id: ID });
  const packet = c.packet?.slice() ?? response({ id: ID, name: N, type: 1, ...c });
  const reader = new ScrubbingReader(c.bounds ?? BOUNDS);
  // A receive buffer is longer than what came in, and holds what came in before.
  const buffer = new Uint8Array(packet.length + 500).fill(0xc0);
  buffer.set(packet);
  const questionEnd = 12 + wire(c.name ?? N).length + 4;
  const fit = reader.read(buffer, packet.length, asked, questionEnd, c.dnssecOk ?? false);
  return { fit, reader, kept: reader.message.slice(0, reader.length) };
}

/** The codes of the extended errors, with their texts. */
function codes({ errors }: ScrubbingReader): string {
  const found: string[] = [];
  const bytes = errors.view();
  for (let at = 0; at < bytes.length; at += 4 + getU16(bytes, at + 2)) {
    const text = new TextDecoder().decode(bytes.subarray(at + 6, at + 4 + getU16(bytes, at + 2)));
    found.push(`${getU16(bytes, at + 4)}${text === "" ? "" : ` ${text}`}`);
  }
  return found.length === 0 ? "none" : found.join(" and ");
}

/** The outcome and, of an answer, what is kept: flags, TTL, sections. */
function show(c: Case): string {
  const { fit, reader, kept } = read(c);
  if (fit !== "Answer" && fit !== "Open") {
    return fit === "Failure" ? `Failure: rcode ${reader.rcode}, ede ${codes(reader)}` : `${fit}`;
  }
  const message = decodeMessage(kept);
  assert.ok(message !== null, "what is kept is a message");
  assert.equal(message.trailingBytes, 0);
  assert.equal(message.additionals.length + (message.opt === null ? 0 : 1), 0);
  const ttls = Array.from(
    reader.ttlOffsets.subarray(0, reader.ttlCount),
    (at) => new DataView(kept.buffer).getUint32(at),
  );
  const records = [...message.answers, ...message.authorities];
  assert.deepEqual(ttls, records.map(({ ttl }) => ttl), "every TTL is noted");
  const section = (list: readonly (typeof records)[number][]) =>
    list.map(({ type, ttl }) => `${qtypeName(type)} ${ttl}`).join(" ");
  const parts = [`${fit === "Open" ? "open, " : ""}rcode ${message.rcode}`, `ttl ${reader.ttl}`];
  if (reader.isBare) parts.push("bare");
  if (reader.errors.length > 0) parts.push(`ede ${codes(reader)}`);
  if (message.ad) parts.push("ad");
  return `${parts.join(", ")}: ${section(message.answers)} | ${section(message.authorities)}`;
}

const soa = (ttl: number, minimum: number): FakeRecord => ({
  section: 1,
  name: "example",
  type: Qtype.SOA,
  ttl,
  rdata: soaRdata(minimum),
});
const ns = (ttl: number): FakeRecord => ({
  section: 1,
  name: "example",
  type: Qtype.NS,
  ttl,
  rdata: wire("ns.example"),
});
const cname = (ttl: number, to = "target.example"): FakeRecord => ({
  name: N,
  type: Qtype.CNAME,
  ttl,
  rdata: wire(to),
});
const glue: FakeRecord = { ...a("ns.example", 60), section: 2 };
const nsec: FakeRecord = {
  section: 1,
  name: "example",
  type: Qtype.NSEC,
  ttl: 900,
  rdata: [...wire("z.example"), 0, 1, 0x40],
};
/** A signature over the RRset of a record, by the zone `signer`. */
const signed = ({ section, name, type, ttl }: FakeRecord, signer = "example"): FakeRecord => ({
  ...(section !== undefined && { section }),
  name,
  type: Qtype.RRSIG,
  ttl,
  rdata: [type >> 8, type & 255, 13, 2, ...new Array(14).fill(0), ...wire(signer), 1, 2, 3],
});
const NX = OK | Rcode.NXDomain;

Deno.test("ResponseReader keeps answers with their TTLs clamped", none, async (t) => {
  const clamp = { min: 60, max: 600, negativeMax: 100 };
  const rows: readonly (readonly [string, Case, string])[] = [
    ["one record", { records: [a(N, 300)] }, "rcode 0, ttl 300: A 300 | "],
    [
      "the least TTL counts",
      { records: [a(N, 300), a(N, 20, 2)] },
      "rcode 0, ttl 20: A 300 A 20 | ",
    ],
    ["zero", { records: [a(N, 0)] }, "rcode 0, ttl 0: A 0 | "],
    ["the top bit is zero", { records: [a(N, 0xffffffff)] }, "rcode 0, ttl 0: A 0 | "],
    ["2^31", { records: [a(N, 0x80000000)] }, "rcode 0, ttl 0: A 0 | "],
    ["above the longest", { records: [a(N, 0x7fffffff)] }, "rcode 0, ttl 86400: A 86400 | "],
    [
      "bounds",
      { bounds: clamp, records: [a(N, 1), a(N, 5_000, 2)] },
      "rcode 0, ttl 60: A 60 A 600 | ",
    ],
    [
      "the top bit and a least TTL",
      { bounds: clamp, records: [a(N, 0x80000000)] },
      "rcode 0, ttl 60: A 60 | ",
    ],
    [
      "a chain",
      { records: [cname(30), a("target.example", 300)] },
      "rcode 0, ttl 30: CNAME 30 A 300 | ",
    ],
    ["AD", { flags: OK | AD_BIT, records: [a(N, 300)] }, "rcode 0, ttl 300, ad: A 300 | "],
    [
      "authority and additional",
      { records: [a(N, 300), ns(9), glue], opt: [] },
      "rcode 0, ttl 300: A 300 | ",
    ],
    [
      "DO, and no proofs",
      { dnssecOk: true, records: [a(N, 300), ns(9)] },
      "rcode 0, ttl 300: A 300 | ",
    ],
    [
      "DO, and a proof",
      { dnssecOk: true, records: [a(N, 300), ns(9), nsec, signed(nsec)] },
      "rcode 0, ttl 300: A 300 | NSEC 900 RRSIG 900",
    ],
    ["a proof nobody asked for", { records: [a(N, 300), nsec] }, "rcode 0, ttl 300: A 300 | "],
    [
      "YXDOMAIN",
      { flags: OK | Rcode.YXDomain, records: [soa(90, 50)] },
      "rcode 6, ttl 50:  | SOA 50",
    ],
  ];
  for (const [name, c, want] of rows) await t.step(name, () => assert.equal(show(c), want));
});

Deno.test(
  "ResponseReader keeps denials as long as their SOA says (RFC 2308 §5)",
  none,
  async (t) => {
    const clamp = { min: 60, max: 600, negativeMax: 100 };
    const rows: readonly (readonly [string, Case, string])[] = [
      [
        "NXDOMAIN: the MINIMUM",
        { flags: NX, records: [soa(900, 300)] },
        "rcode 3, ttl 300:  | SOA 300",
      ],
      [
        "NXDOMAIN: the SOA's TTL",
        { flags: NX, records: [soa(200, 300)] },
        "rcode 3, ttl 200:  | SOA 200",
      ],
      ["NODATA", { records: [soa(900, 300)] }, "rcode 0, ttl 300:  | SOA 300"],
      [
        "the longest",
        { flags: NX, records: [soa(90_000, 90_000)] },
        "rcode 3, ttl 3600:  | SOA 3600",
      ],
      ["bounds", { bounds: clamp, records: [soa(900, 300)] }, "rcode 0, ttl 100:  | SOA 100"],
      ["the least", { bounds: clamp, records: [soa(900, 3)] }, "rcode 0, ttl 60:  | SOA 60"],
      [
        "the least above the longest",
        { bounds: { ...clamp, min: 200 }, records: [soa(9, 3)] },
        "rcode 0, ttl 100:  | SOA 100",
      ],
      ["MINIMUM zero", { flags: NX, records: [soa(900, 0)] }, "rcode 3, ttl 0:  | SOA 0"],
      ["no SOA: kept for a short while", { flags: NX }, "rcode 3, ttl 10:  | "],
      ["NODATA of a resolver without SOA", {}, "rcode 0, ttl 10:  | "],
      [
        "a chain to nothing",
        { flags: NX, records: [cname(30), soa(900, 300)] },
        "rcode 3, ttl 30: CNAME 30 | SOA 300",
      ],
      ["a chain without an end", { records: [cname(30)] }, "open, rcode 0, ttl 30: CNAME 30 | "],
      [
        "a chain to NODATA",
        { records: [cname(900), soa(900, 300)] },
        "rcode 0, ttl 300: CNAME 900 | SOA 300",
      ],
      [
        "proofs",
        {
          flags: NX,
          dnssecOk: true,
          records: [soa(900, 300), signed(soa(900, 300)), nsec, signed(nsec)],
        },
        "rcode 3, ttl 300:  | SOA 300 RRSIG 900 NSEC 900 RRSIG 900",
      ],
    ];
    for (const [name, c, want] of rows) await t.step(name, () => assert.equal(show(c), want));
  },
);

Deno.test("ResponseReader tells what is no answer to the question", none, async (t) => {
  const good = response({ id: ID, name: N, type: 1, records: [a(N, 300)] });
  const changed = (change: (packet: Uint8Array) => Uint8Array | void) => {
    const packet = good.slice();
    return change(packet) ?? packet;
  };
  const rows: readonly (readonly [string, Case, string])[] = [
    ["another ID", { id: ID ^ 1, records: [a(N, 300)] }, "Mismatched"],
    ["another name", { packet: response({ id: ID, name: "wwx.example", type: 1 }) }, "Mismatched"],
    ["another type", { packet: response({ id: ID, name: N, type: 28 }) }, "Mismatched"],
    ["another class", { packet: changed((p) => void (p[28] = 3)) }, "Mismatched"],
    ["another case", {
      packet: response({ id: ID, name: "wWw.example", type: 1, records: [a(N, 9)] }),
    }, "WrongCase"],
    [
      "another case, cut",
      { flags: OK | TC_BIT, packet: changed((p) => void (p[13] = 0x57)) },
      "WrongCase",
    ],
    ["no question", { packet: changed((p) => setU16(p, 4, 0)) }, "Mismatched"],
    ["two questions", { packet: changed((p) => setU16(p, 4, 2)) }, "Mismatched"],
    ["a query", { flags: RD_BIT }, "Mismatched"],
    ["another opcode", { flags: OK | 5 << 11 }, "Mismatched"],
    ["a header alone", { packet: changed((p) => p.slice(0, 12)) }, "Mismatched"],
    ["nothing", { packet: new Uint8Array(0) }, "Mismatched"],
    ["truncated", { flags: OK | TC_BIT }, "Truncated"],
    ["truncated with records", { flags: OK | TC_BIT, records: [a(N, 300)] }, "Truncated"],
    ["counts without records", { packet: changed((p) => setU16(p, 6, 2)) }, "Broken"],
    ["a count of 65535", { packet: changed((p) => setU16(p, 6, 65_535)) }, "Broken"],
    ["a record cut", { packet: changed((p) => p.slice(0, -1)) }, "Broken"],
    ["RDLENGTH 3 for A", { records: [{ ...a(N, 9), rdata: [1, 2, 3] }] }, "Broken"],
    ["RDLENGTH 5 for A", { records: [{ ...a(N, 9), rdata: [1, 2, 3, 4, 5] }] }, "Broken"],
    [
      "an owner that points to itself",
      { packet: changed((p) => setU16(p, 29, 0xc01d)) },
      "Broken",
    ],
    [
      "an owner that points forward",
      { packet: changed((p) => setU16(p, 29, 0xc020)) },
      "Broken",
    ],
    ["an owner in the header", { packet: changed((p) => setU16(p, 29, 0xc004)) }, "Broken"],
    [
      "a broken SOA",
      { flags: NX, records: [{ ...soa(9, 9), rdata: soaRdata(9).slice(0, -1) }] },
      "Broken",
    ],
    [
      "a broken record behind",
      { records: [a(N, 9), { ...glue, rdata: [1] }] },
      "rcode 0, ttl 9: A 9 | ",
    ],
    ["two OPTs", {
      records: [a(N, 9), { section: 2, name: ".", type: 41, ttl: 0, rdata: [] }],
      opt: [],
    }, "Broken"],
    ["a referral", { flags: QR_BIT, records: [ns(900), glue] }, "Failure: rcode 0, ede none"],
    ["a referral of a resolver", { records: [ns(900)] }, "Failure: rcode 0, ede none"],
    ["nothing from no resolver", { flags: QR_BIT }, "rcode 0, ttl 10, bare:  | "],
    ["nothing from who knows", { flags: QR_BIT | AA_BIT }, "rcode 0, ttl 10:  | "],
    ["something else alone", { records: [a("other.example", 9)] }, "Failure: rcode 0, ede none"],
    ["a referral above", {
      flags: QR_BIT | AA_BIT,
      records: [ns(900)],
    }, "rcode 0, ttl 10:  | "],
    [
      "an authoritative denial",
      { flags: QR_BIT | AA_BIT, records: [soa(9, 9)] },
      "rcode 0, ttl 9:  | SOA 9",
    ],
    ["SERVFAIL", { flags: OK | Rcode.ServFail }, "Failure: rcode 2, ede none"],
    ["REFUSED", { flags: OK | Rcode.Refused }, "Failure: rcode 5, ede none"],
    ["NOTIMP", { flags: OK | Rcode.NotImp }, "Failure: rcode 4, ede none"],
    ["an unknown code", { flags: OK | 15 }, "Failure: rcode 15, ede none"],
    ["FORMERR with an answer", { flags: OK | 1, records: [a(N, 9)] }, "Failure: rcode 1, ede none"],
    ["BADVERS", { extendedRcode: 1 }, "Failure: rcode 16, ede none"],
    ["BADCOOKIE", { flags: OK | 7, extendedRcode: 1 }, "Failure: rcode 23, ede none"],
  ];
  for (const [name, c, want] of rows) await t.step(name, () => assert.equal(show(c), want));
});

Deno.test(
  "ResponseReader relays extended errors as they are, and knows the bogus ones",
  none,
  () => {
    const opt = (...codes: number[]) =>
      codes.map((code) => ({ code: 15, data: edeData(code, "x") }));
    assert.equal(
      show({ records: [a(N, 9)], opt: opt(Ede.Filtered) }),
      "rcode 0, ttl 9, ede 17 x: A 9 | ",
    );
    assert.equal(
      show({ records: [a(N, 9)], opt: opt(4, 17, 65_535) }),
      "rcode 0, ttl 9, ede 4 x and 17 x and 65535 x: A 9 | ",
    );
    // The text is cut behind a whole character, and what has no room is left out.
    const long = { code: 15, data: edeData(17, `${"x".repeat(255)}é`) };
    assert.equal(
      show({ records: [a(N, 9)], opt: [long, long, { code: 15, data: edeData(4) }] }),
      `rcode 0, ttl 9, ede 17 ${"x".repeat(255)} and 4: A 9 | `,
    );
    const short = [{ code: 15, data: [0] }, { code: 10, data: [1, 2, 3] }];
    assert.equal(show({ records: [a(N, 9)], opt: short }), "rcode 0, ttl 9: A 9 | ");
    for (let code = 0; code <= 24; code++) {
      const { fit, reader } = read({ flags: OK | Rcode.ServFail, opt: opt(code) });
      assert.equal(fit, "Failure");
      assert.equal(codes(reader), `${code} x`);
      assert.equal(reader.bogus, code >= 6 && code <= 12, `${code}`);
    }
    const { reader } = read({ flags: OK | Rcode.ServFail });
    assert.deepEqual([codes(reader), reader.bogus], ["none", false]);
  },
);

Deno.test("ResponseReader keeps QR, RA, AD and the code of the header, and no more", none, () => {
  const flags = QR_BIT | AA_BIT | RD_BIT | AD_BIT | CD_BIT | 0x40 | Rcode.NXDomain;
  const { kept } = read({ flags, records: [soa(9, 9), glue], opt: [] });
  assert.equal(getU16(kept, 2), QR_BIT | RA_BIT | AD_BIT | Rcode.NXDomain);
  assert.deepEqual([4, 6, 8, 10].map((at) => getU16(kept, at)), [1, 0, 1, 0]);
});

Deno.test("ResponseReader reads as many records as it can note", none, () => {
  const many = (count: number) => ({ records: Array.from({ length: count }, () => a(N, 9)) });
  assert.equal(read(many(4_000)).fit, "Answer");
  assert.equal(read(many(4_001)).fit, "Broken");
});

interface Malformed {
  readonly packets: readonly {
    readonly name: string;
    readonly direction: string;
    readonly hex: string;
    readonly expect: string;
  }[];
}
const vectors = readJsonVector<Malformed>("malformed.json");

/** Which outcomes the words of the vectors allow. */
function allowed(name: string, expect: string): readonly Said[] {
  if (name === "question with other 0x20 case") return ["WrongCase"];
  if (/^the answer is thrown away/.test(expect)) return ["Mismatched", "Failure", "Broken"];
  if (/ignored, the query stays open/.test(expect)) return ["Mismatched"];
  if (/^retried over TCP/.test(expect)) return ["Truncated"];
  if (/^(like SERVFAIL|retried without EDNS)/.test(expect)) return ["Failure"];
  if (expect === "accepted") return ["Answer"];
  return ALL_SAID; // Its contents are not this reader's to judge.
}

Deno.test({
  name: "ResponseReader treats the malformed responses as they deserve",
  permissions: "none",
  ignore: vectors === null,
  fn: async (t) => {
    const responses = (vectors?.packets ?? []).filter(({ direction }) => direction === "response");
    assert.ok(responses.length > 40, `${responses.length} responses`);
    for (const { name, hex, expect } of responses) {
      await t.step(name, () => {
        const packet = decodeHex(hex);
        assert.ok(packet !== null);
        // The vectors have one ID, and name the one to be changed.
        if (name === "wrong ID") packet[1] ^= 1;
        const type = packet.length >= 34 ? getU16(packet, 30) : 1;
        const name0 = "www.example.test";
        const asked = encodeQuery(name0, type, { id: ID });
        const reader = new ScrubbingReader(BOUNDS);
        const fit = reader.read(packet, packet.length, asked, 34, false);
        assert.ok(allowed(name, expect).includes(fit), `${fit}, wanted: ${expect}`);
      });
    }
  },
});

Deno.test("ResponseReader neither throws nor keeps anything broken, seeded", {
  permissions: { env: ["SVC_SEED"] },
}, () => {
  const prng = new Prng(seedFromEnv());
  const packets = [
    response({
      id: ID,
      name: N,
      type: 1,
      records: [cname(30), a("target.example", 300), ns(9), glue],
      opt: [{ code: 15, data: edeData(3, "stale") }],
    }),
    response({ id: ID, name: N, type: 1, flags: NX, records: [soa(900, 300), nsec], opt: [] }),
    response({ id: ID, name: N, type: 1, flags: OK | 2, opt: [{ code: 15, data: edeData(6) }] }),
  ];
  const asked = encodeQuery(N, 1, { id: ID });
  const questionEnd = asked.length;
  const reader = new ScrubbingReader({ min: 5, max: 600, negativeMax: 60 });
  let answers = 0;
  for (let i = 0; i < 50_000; i++) {
    const packet = prng.pick(packets).slice();
    // Mostly behind the question: what is before it is compared byte by byte.
    const from = prng.chance(0.9) ? questionEnd : 0;
    for (let n = 1 + prng.int(3); n > 0; n--) {
      packet[from + prng.int(packet.length - from)] = prng.next();
    }
    if (prng.chance(0.2)) setU16(packet, 6 + 2 * prng.int(3), prng.int(6));
    const length = prng.chance(0.2) ? prng.int(packet.length + 1) : packet.length;
    const fit = reader.read(packet, length, asked, questionEnd, prng.chance(0.5));
    if (fit !== "Answer") continue;
    answers++;
    assert.ok(reader.length >= questionEnd);
    const ttls = Array.from(reader.ttlOffsets.subarray(0, reader.ttlCount), (at) => {
      assert.ok(at + 6 <= reader.length);
      return getU32(reader.message, at);
    });
    for (const ttl of ttls) assert.ok(ttl >= 5 && ttl <= 600, `TTL ${ttl}, case ${i}`);
    const walk = new SectionWalk();
    const record = new RecordView();
    assert.ok(walk.start(reader.message, reader.length));
    for (const at of reader.ttlOffsets.subarray(0, reader.ttlCount)) {
      assert.equal(walk.next(record), Walk.Record);
      assert.equal(record.rdataOffset - 6, at);
    }
    assert.equal(walk.next(record), Walk.End);
    assert.equal(walk.offset, reader.length, `case ${i}`);
    assert.ok(reader.ttl <= 600);
  }
  assert.ok(answers > 1_000, `${answers} answers`);
});
