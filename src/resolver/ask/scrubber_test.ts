import assert from "node:assert/strict";
import { setU16 } from "../../bytes/mod.ts";
import {
  AA_BIT,
  AD_BIT,
  encodeQuery,
  MessageWriter,
  QR_BIT,
  Qtype,
  qtypeName,
  RA_BIT,
  Rcode,
} from "../../dns/mod.ts";
import { a, decodeBoth, type FakeRecord, record, response, soaRdata, wire } from "../fakes.ts";
import { ScrubbingReader } from "./fakes.ts";
import { ALIASES_MAX } from "./scrubber.ts";

const none = { permissions: "none" } as const;
const ID = 0x1234;
const N = "www.example";
const OK = QR_BIT | RA_BIT;
const NX = OK | Rcode.NXDomain;

interface Case {
  readonly name?: string;
  readonly type?: number;
  readonly flags?: number;
  readonly dnssecOk?: boolean;
  readonly records: readonly (FakeRecord | string)[];
  readonly lead?: Uint8Array;
}

function read({ name = N, type = 1, flags = OK, dnssecOk = false, records, lead }: Case) {
  const asked = encodeQuery(name, type, { id: ID });
  const packet = response({
    id: ID,
    name,
    type,
    flags,
    records: records.map((line) => typeof line === "string" ? record(line) : line),
  });
  const reader = new ScrubbingReader({ min: 0, max: 86_400, negativeMax: 3_600 });
  const fit = reader.read(packet, packet.length, asked, asked.length, dnssecOk, true, lead);
  return { fit, reader, kept: reader.message.slice(0, reader.length) };
}

/** What is kept, held against another decoder. */
function show(c: Case): string {
  const { fit, kept } = read(c);
  if (fit !== "Answer" && fit !== "Open") return `${fit}`;
  const message = decodeBoth(kept);
  assert.deepEqual(message.additionals, []);
  const line = ({ name, type, data }: (typeof message.answers)[number]) => {
    if (type === Qtype.RRSIG) return `${name} RRSIG ${data.split(" ", 1)[0]}`;
    return `${name} ${qtypeName(type)}${
      type === Qtype.SOA || type === Qtype.NSEC ? "" : ` ${data}`
    }`;
  };
  const shown = message.answers.map(line).join(", ");
  const authority = message.authorities.map(line).join(", ");
  return `${fit}: ${shown}${authority === "" ? "" : ` | ${authority}`}`;
}

const soa = (name = "example"): FakeRecord => ({
  section: 1,
  name,
  type: Qtype.SOA,
  ttl: 60,
  rdata: soaRdata(60),
});
const nsec = (name: string): FakeRecord => ({
  section: 1,
  name,
  type: Qtype.NSEC,
  ttl: 60,
  rdata: [...wire("z.example"), 0, 1, 0x40],
});
const ns = (name: string): FakeRecord => ({
  section: 1,
  name,
  type: Qtype.NS,
  ttl: 60,
  rdata: wire("ns.evil.test"),
});
const dname = (name: string, to: string): FakeRecord => ({
  name,
  type: Qtype.DNAME,
  ttl: 60,
  rdata: wire(to),
});
/** A signature over an RRset, by the zone `signer`. */
const signed = (
  name: string,
  type: number,
  signer = "example",
  section: 0 | 1 = 0,
): FakeRecord => ({
  section,
  name,
  type: Qtype.RRSIG,
  ttl: 60,
  rdata: [type >> 8, type & 255, 13, 2, ...new Array(14).fill(0), ...wire(signer), 1, 2, 3],
});
const chain = (length: number): string[] =>
  Array.from({ length }, (_, i) => `${i === 0 ? N : `n${i}.example`} 60 CNAME n${i + 1}.example`);

Deno.test("Scrubber keeps the chain of the question and the RRset at its end", none, async (t) => {
  const rows: readonly (readonly [string, Case, string])[] = [
    ["an RRset", { records: [a(N, 9), a(N, 9, 2)] }, `${N} A 192.0.2.1, ${N} A 192.0.2.2`],
    ["another name", { records: [a(N, 9), a("bank.test", 9, 66)] }, `${N} A 192.0.2.1`],
    ["a name below", { records: [a(`x.${N}`, 9, 66), a(N, 9)] }, `${N} A 192.0.2.1`],
    ["another type", { records: [a(N, 9), `${N} 9 AAAA 2001:db8::1`] }, `${N} A 192.0.2.1`],
    [
      "a chain in any order",
      { records: [a("b.example", 9), "a.example 9 CNAME b.example", `${N} 9 CNAME a.example`] },
      `${N} CNAME a.example, a.example CNAME b.example, b.example A 192.0.2.1`,
    ],
    [
      "case of owners and targets",
      { records: [`${N} 9 CNAME A.Example`, a("a.eXample", 9)] },
      // Where they are alike they are one in the message, which is as the client wrote the question.
      `${N} CNAME A.example, A.example A 192.0.2.1`,
    ],
    [
      "two CNAMEs of one name",
      { records: [`${N} 9 CNAME a.example`, `${N} 9 CNAME b.test`, a("a.example", 9)] },
      `${N} CNAME a.example, a.example A 192.0.2.1`,
    ],
    [
      "two CNAMEs, asked for",
      { type: Qtype.CNAME, records: [`${N} 9 CNAME a.example`, `${N} 9 CNAME b.test`] },
      `${N} CNAME a.example`,
    ],
    [
      "a CNAME beside other data",
      { records: [`${N} 9 CNAME evil.test`, a(N, 9), a("evil.test", 9, 66)] },
      `${N} A 192.0.2.1`,
    ],
    [
      "a chain of others",
      { records: [a(N, 9), "x.test 9 CNAME y.test", a("y.test", 9, 66)] },
      `${N} A 192.0.2.1`,
    ],
    [
      "a DNAME and the CNAME made of it",
      {
        records: [
          dname("example", "other.test"),
          `${N} 9 CNAME www.other.test`,
          a("www.other.test", 9),
        ],
      },
      `example DNAME other.test, ${N} CNAME www.other.test, www.other.test A 192.0.2.1`,
    ],
    [
      "a DNAME without the CNAME made of it",
      { records: [a("www.other.test", 9), dname("example", "other.test")] },
      `example DNAME other.test, ${N} CNAME www.other.test, www.other.test A 192.0.2.1`,
    ],
    [
      "the CNAME that a DNAME stands for",
      { type: Qtype.CNAME, records: [dname("example", "other.test")] },
      `example DNAME other.test, ${N} CNAME www.other.test`,
    ],
    [
      "a DNAME of others",
      { records: [dname("bank.test", "evil.test"), a(N, 9)] },
      `${N} A 192.0.2.1`,
    ],
    [
      "a DNAME at the name",
      { records: [dname(N, "evil.test"), a(N, 9)] },
      `${N} A 192.0.2.1`,
    ],
    ["signatures without DO", { records: [a(N, 9), signed(N, 1)] }, `${N} A 192.0.2.1`],
    [
      "signatures",
      {
        dnssecOk: true,
        records: [a(N, 9), signed(N, 28), signed(N, 1), signed("bank.test", 1), signed(N, 1)],
      },
      `${N} A 192.0.2.1, ${N} RRSIG A, ${N} RRSIG A`,
    ],
    [
      "signatures along a chain",
      {
        dnssecOk: true,
        records: [
          ...[dname("example", "b.test"), signed("example", 39), `${N} 9 CNAME www.b.test`],
          ...[signed(N, 5), a("www.b.test", 9), signed("www.b.test", 1, "b.test")],
        ],
      },
      "example DNAME b.test, example RRSIG DNAME, " +
      `${N} CNAME www.b.test, ${N} RRSIG CNAME, www.b.test A 192.0.2.1, www.b.test RRSIG A`,
    ],
    [
      "signatures, asked for",
      { type: Qtype.RRSIG, records: [signed(N, 28), signed("bank.test", 1)] },
      `${N} RRSIG AAAA`,
    ],
    [
      "servers and their addresses",
      { records: [a(N, 9), ns("example"), { ...a("ns.evil.test", 9), section: 2 }] },
      `${N} A 192.0.2.1`,
    ],
    [
      "a proof of a wildcard",
      {
        dnssecOk: true,
        records: [a(N, 9), nsec("v.example"), signed("v.example", 47, "example", 1), ns("example")],
      },
      `${N} A 192.0.2.1 | v.example NSEC, v.example RRSIG NSEC`,
    ],
    [
      "a proof of another zone",
      {
        dnssecOk: true,
        records: [a(N, 9), nsec("v.test"), signed("v.test", 47, "test", 1)],
      },
      `${N} A 192.0.2.1`,
    ],
    [
      "a proof signed from outside",
      {
        dnssecOk: true,
        records: [a(N, 9), nsec("v.test"), signed("v.test", 47, "example", 1)],
      },
      `${N} A 192.0.2.1`,
    ],
  ];
  for (const [what, c, want] of rows) {
    await t.step(what, () => assert.equal(show(c), `Answer: ${want}`));
  }
});

Deno.test(
  "Scrubber keeps denials of the name at the chain's end (RFC 2308 §2)",
  none,
  async (t) => {
    const rows: readonly (readonly [string, Case, string])[] = [
      ["NXDOMAIN", { flags: NX, records: [soa()] }, "Answer:  | example SOA"],
      ["NODATA", { records: [soa()] }, "Answer:  | example SOA"],
      ["of the root", { flags: NX, records: [soa(".")] }, "Answer:  | . SOA"],
      ["an SOA of another zone", { flags: NX, records: [soa("test")] }, "Answer: "],
      ["an SOA below", { flags: NX, records: [soa(`x.${N}`)] }, "Answer: "],
      ["two SOAs", { flags: NX, records: [soa(), soa()] }, "Answer:  | example SOA"],
      ["an SOA and servers", { records: [ns("example"), soa()] }, "Answer:  | example SOA"],
      [
        "at a chain's end",
        { flags: NX, records: [`${N} 9 CNAME a.test`, soa("test")] },
        `Answer: ${N} CNAME a.test | test SOA`,
      ],
      [
        "NODATA at a chain's end",
        { records: [`${N} 9 CNAME a.test`, soa("test")] },
        `Answer: ${N} CNAME a.test | test SOA`,
      ],
      [
        "an SOA of the chain's beginning",
        { records: [`${N} 9 CNAME a.test`, soa()] },
        `Open: ${N} CNAME a.test`,
      ],
      [
        "NXDOMAIN with that",
        { flags: NX, records: [`${N} 9 CNAME a.test`, soa()] },
        `Answer: ${N} CNAME a.test`,
      ],
      ["a chain alone", { records: [`${N} 9 CNAME a.test`] }, `Open: ${N} CNAME a.test`],
      [
        "proofs of both zones",
        {
          flags: NX,
          dnssecOk: true,
          records: [
            ...[`${N} 9 CNAME a.test`, soa("test"), signed("test", 6, "test", 1)],
            ...[nsec("v.example"), signed("v.example", 47, "example", 1)],
            ...[nsec("b.test"), signed("b.test", 47, "test", 1), nsec("c.other")],
          ],
        },
        `Answer: ${N} CNAME a.test | test SOA, test RRSIG SOA, ` +
        "v.example NSEC, v.example RRSIG NSEC, b.test NSEC, b.test RRSIG NSEC",
      ],
      [
        "proofs without DO",
        { flags: NX, records: [soa(), nsec("v.example"), signed("v.example", 47, "example", 1)] },
        "Answer:  | example SOA",
      ],
      [
        "a DNAME that makes a name too long",
        { flags: OK | Rcode.YXDomain, records: [dname("example", "other.test")] },
        "Answer: example DNAME other.test",
      ],
    ];
    for (const [what, c, want] of rows) await t.step(what, () => assert.equal(show(c), want));
  },
);

Deno.test("Scrubber ends chains that are too long or lead in a circle", none, () => {
  const end = (length: number) => a(`n${length}.example`, 9);
  assert.match(show({ records: [...chain(ALIASES_MAX), end(ALIASES_MAX)] }), /^Answer: .* A 192/);
  assert.equal(show({ records: [...chain(ALIASES_MAX + 1), end(ALIASES_MAX + 1)] }), "Endless");
  assert.equal(show({ records: chain(60) }), "Endless");
  assert.equal(show({ records: [`${N} 9 CNAME ${N}`] }), "Endless");
  assert.equal(show({ records: [`${N} 9 CNAME b.test`, `b.test 9 CNAME ${N}`] }), "Endless");
  assert.equal(show({ records: [dname("example", "a.example")] }), "Endless");
  const long = Array.from({ length: 4 }, () => "l".repeat(62)).join("."); // 253 bytes, as a name.
  assert.equal(show({ records: [dname("example", long)] }), "Broken");
  const lead = read({ records: chain(ALIASES_MAX - 1) }).kept;
  const next = `n${ALIASES_MAX - 1}.example`;
  const one = `${next} 9 CNAME x.example`;
  assert.match(show({ name: next, lead, records: [one, a("x.example", 9)] }), /^Answer: /);
  const two = [one, "x.example 9 CNAME y.example", a("y.example", 9)];
  assert.equal(show({ name: next, lead, records: two }), "Endless");
});

Deno.test("Scrubber leaves out records of another class", none, () => {
  const asked = encodeQuery(N, 1, { id: ID });
  const target = new Uint8Array(512);
  const writer = new MessageWriter();
  assert.ok(writer.start(target, 0, target.length, ID, OK) && writer.question(wire(N), 1));
  for (const [cls, last] of [[3, 66], [1, 1], [4, 67], [255, 68]]) {
    assert.ok(writer.record(0, wire(N), 1, cls, 60, Uint8Array.of(192, 0, 2, last)));
  }
  assert.ok(writer.record(0, wire(N), 5, 3, 60, wire("evil.test")));
  const reader = new ScrubbingReader({ min: 0, max: 600, negativeMax: 60 });
  const packet = writer.bytes();
  assert.equal(reader.read(packet, packet.length, asked, asked.length, false), "Answer");
  const { answers } = decodeBoth(reader.message.slice(0, reader.length));
  assert.deepEqual(answers.map(({ cls, data }) => [cls, data]), [[1, "192.0.2.1"]]);
});

Deno.test("Scrubber shows the client's case of letters, whoever wrote what", none, () => {
  // A server that writes each name out, in the case of the query.
  const sent = "wWw.ExAmPlE";
  const asked = encodeQuery(sent, 1, { id: ID });
  const client = encodeQuery("Www.example", 1, { id: 7 });
  const cdn = "cDn.ExAmPlE";
  const parts = [asked, [
    ...wire(sent),
    0,
    5,
    0,
    1,
    0,
    0,
    0,
    60,
    0,
    wire(cdn).length,
    ...wire(cdn),
  ]];
  parts.push([...wire(cdn), 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 192, 0, 2, 1]);
  const packet = Uint8Array.from(parts.flatMap((part) => [...part]));
  setU16(packet, 2, OK | AA_BIT);
  setU16(packet, 6, 2);
  const reader = new ScrubbingReader({ min: 0, max: 600, negativeMax: 60 });
  const { length } = packet;
  assert.equal(reader.read(packet, length, asked, asked.length, false, false, client), "Answer");
  const kept = reader.message.slice(0, reader.length);
  const { questions, answers } = decodeBoth(kept);
  assert.equal(questions[0].name, "Www.example");
  assert.deepEqual(answers.map(({ name, data }) => `${name} ${data}`), [
    "Www.example cDn.example",
    "cDn.example 192.0.2.1",
  ]);
  assert.equal(answers[0].name, questions[0].name);
  // The next client's question is written over it, and the names of the records change with it.
  kept.set(wire("WWW.EXAMPLE"), 12);
  assert.equal(decodeBoth(kept).answers[0].name, "WWW.EXAMPLE");
});

Deno.test("Scrubber puts the rest of a chain behind what led there", none, () => {
  const lead = read({ flags: OK | AD_BIT, records: [`${N} 40 CNAME a.test`] }).kept;
  const name = "a.test";
  const whole = { name, lead, flags: OK | AD_BIT, records: [a(name, 90)] };
  assert.equal(show(whole), `Answer: ${N} CNAME a.test, a.test A 192.0.2.1`);
  const { kept, reader } = read(whole);
  assert.deepEqual([decodeBoth(kept).ad, reader.ttl], [true, 40]);
  assert.equal(decodeBoth(kept).questions[0].name, N);
  assert.equal(decodeBoth(read({ ...whole, flags: OK }).kept).ad, false, "nobody vouches for it");
  const denied = { name, lead, flags: NX, records: [soa("test")] };
  assert.equal(show(denied), `Answer: ${N} CNAME a.test | test SOA`);
  assert.equal(decodeBoth(read(denied).kept).rcode, Rcode.NXDomain);
  assert.equal(show({ name, lead, records: [] }), `Answer: ${N} CNAME a.test`);
  assert.equal(read({ name, lead, records: [] }).reader.ttl, 10);
});

Deno.test("Scrubber bounds its work on a message full of proofs", none, () => {
  const proofs = Array.from({ length: 500 }, (_, i) => [
    nsec(`n${i}.example`),
    signed(`n${i}.example`, 47, "example", 1),
  ]).flat();
  const { fit, kept } = read({ flags: NX, dnssecOk: true, records: [soa(), ...proofs] });
  assert.equal(fit, "Answer");
  assert.ok(decodeBoth(kept).authorities.length <= 64);
});
