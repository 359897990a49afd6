import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import * as oracle from "dns-packet";
import { readSeedPackets } from "../../tests/fuzz/dns_seeds.ts";
import { Prng, seedFromEnv } from "../../tests/prng.ts";
import { decodeHex, encodeBase32hex, encodeBase64, encodeHex } from "../bytes/mod.ts";
import { InvariantError } from "../errors.ts";
import {
  AA_BIT,
  checkRdata,
  type DecodedRecord,
  decodeMessage,
  Ede,
  EdnsOption,
  encodeQuery,
  expandName,
  type Message,
  MessageWriter,
  Opcode,
  OptRead,
  OptView,
  parseName,
  parseQtype,
  parseSvcb,
  Qclass,
  QR_BIT,
  Qtype,
  RA_BIT,
  Rcode,
  RD_BIT,
  readOpt,
  RecordView,
  Section,
  SectionWalk,
  TC_BIT,
  Walk,
} from "./mod.ts";

const none = { permissions: "none" } as const;

function bytes(hex: string): Uint8Array {
  const decoded = decodeHex(hex.replaceAll(" ", ""));
  assert.notEqual(decoded, null, hex);
  return decoded ?? new Uint8Array(0);
}

function name(text: string): Uint8Array {
  const wire = parseName(text);
  assert.notEqual(wire, null, text);
  return wire ?? new Uint8Array(0);
}

/** The message, which must be one. */
function decode(packet: Uint8Array): Message {
  const message = decodeMessage(packet);
  assert(message !== null, encodeHex(packet));
  return message;
}

Deno.test("encodeQuery() writes what decodeMessage() reads", none, () => {
  const plain = encodeQuery("www.Example", Qtype.A);
  assert.equal(
    encodeHex(plain),
    "000001000001000000000000" + "03777777074578616d706c6500" + "00010001",
  );
  const cookie = bytes("0102030405060708");
  const query = decode(encodeQuery(name("example"), Qtype.HTTPS, {
    id: 0xbeef,
    rd: false,
    ad: true,
    cd: true,
    cls: Qclass.CH,
    edns: { dnssecOk: true, options: [{ code: EdnsOption.Cookie, data: cookie }] },
  }));
  assert.deepEqual(query, {
    id: 0xbeef,
    response: false,
    opcode: Opcode.Query,
    aa: false,
    tc: false,
    rd: false,
    ra: false,
    ad: true,
    cd: true,
    rcode: Rcode.NoError,
    questions: [{ name: "example", type: Qtype.HTTPS, cls: Qclass.CH }],
    answers: [],
    authorities: [],
    additionals: [],
    opt: {
      payload: 1232,
      extendedRcode: 0,
      version: 0,
      dnssecOk: true,
      options: [{ code: EdnsOption.Cookie, data: cookie }],
      errors: [],
    },
    trailingBytes: 0,
  });
  assert.throws(() => encodeQuery("a..b", Qtype.A), InvariantError);
  assert.throws(() => encodeQuery(bytes("c00c"), Qtype.A), InvariantError);
  const longest = `${"a".repeat(63)}.${"b".repeat(63)}.${"c".repeat(63)}.${"d".repeat(61)}`;
  assert.equal(encodeQuery(longest, Qtype.A, { edns: {} }).length, 12 + 255 + 4 + 11);
});

Deno.test("decodeMessage() puts OPT's bits into the RCODE and reads extended errors", none, () => {
  const target = new Uint8Array(512);
  const writer = new MessageWriter();
  assert.ok(writer.start(target, 0, 512, 1, QR_BIT | AA_BIT | RA_BIT));
  assert.ok(writer.opt({ payload: 512, extendedRcode: 1, version: 0, dnssecOk: false }));
  assert.ok(writer.option(EdnsOption.Ede, bytes("0016 6162")));
  assert.ok(writer.option(EdnsOption.Ede, bytes("00")));
  const message = decode(writer.bytes());
  assert.equal(message.rcode, Rcode.BadVers);
  assert.deepEqual([message.response, message.aa, message.ra, message.rd], [
    true,
    true,
    true,
    false,
  ]);
  assert.deepEqual(message.opt?.errors, [{ code: Ede.NoReachableAuthority, text: "ab" }]);
  assert.equal(message.opt?.options.length, 2);
});

Deno.test("decodeMessage() refuses broken messages and counts what is too much", none, () => {
  const head = "0000 0100 0001 0000 0000 0000 0161 00 0001 0001";
  const rows: [hex: string, trailingBytes: number | null, what: string][] = [
    [head, 0, "a query"],
    [head + "ffffff", 3, "garbage behind it"],
    ["0000 8180 0000 0000 0000 0000", 0, "header alone"],
    ["0000 8180 0000 0000 0000 00", null, "header cut"],
    ["0000 0100 0001 0000 0000 0000 c00c 0001 0001", null, "pointer to itself"],
    ["0000 0100 0002 0000 0000 0000 0161 00 0001 0001", null, "question missing"],
    ["0000 0100 0000 0001 0000 0000 c00c 0001 0001 00000000 0000", null, "owner a loop"],
    ["0000 0100 0000 0000 0000 0001 00 0029 0200 00000000 0001 00", null, "option cut"],
    ["0000 0100 0000 0000 0000 0002" + "00 0029 0200 00000000 0000".repeat(2), null, "two OPT"],
    ["0000 0100 0000 0001 0000 0000 00 0001 0001 00000000 0003 c00002", 0, "A of three bytes"],
  ];
  for (const [hex, trailingBytes, what] of rows) {
    assert.equal(decodeMessage(bytes(hex))?.trailingBytes ?? null, trailingBytes, what);
  }
  assert.equal(decode(bytes(rows[9][0])).answers[0].data, "\\# 3 c00002");
});

Deno.test("MessageWriter compresses owners and names of RFC 1035 types", none, () => {
  const target = new Uint8Array(512);
  const writer = new MessageWriter();
  const www = name("www.example");
  assert.ok(writer.start(target, 5, 512, 7, QR_BIT));
  assert.ok(writer.question(www, Qtype.MX));
  const mx = Uint8Array.of(0, 10, ...name("mail.example"));
  assert.ok(writer.record(Section.Answer, www, Qtype.MX, Qclass.IN, 60, mx));
  assert.ok(
    writer.record(
      Section.Authority,
      name("example"),
      Qtype.NS,
      Qclass.IN,
      60,
      name("mail.example"),
    ),
  );
  // The same name in other case is another text, and SRV's must not be compressed (RFC 2782).
  assert.ok(
    writer.record(Section.Additional, name("Www.example"), Qtype.A, 1, 60, bytes("c0000201")),
  );
  const srv = Uint8Array.of(0, 0, 0, 0, 0, 53, ...www);
  assert.ok(writer.record(Section.Additional, www, Qtype.SRV, Qclass.IN, 60, srv));
  assert.equal(
    encodeHex(writer.bytes()),
    [
      "00078000 0001 0001 0001 0002",
      "03777777 076578616d706c65 00 000f 0001",
      "c00c 000f 0001 0000003c 0009 000a 046d61696c c010",
      "c010 0002 0001 0000003c 0002 c02b",
      "03577777 c010 0001 0001 0000003c 0004 c0000201",
      "c00c 0021 0001 0000003c 0013 0000 0000 0035 03777777 076578616d706c65 00",
    ].join("").replaceAll(" ", ""),
  );
  assert.equal(writer.lengthBytes, writer.bytes().length);
  const message = decode(writer.bytes());
  assert.deepEqual(message.answers.map(show), ["www.example 60 MX 10 mail.example"]);
  assert.deepEqual(message.authorities.map(show), ["example 60 NS mail.example"]);
});

Deno.test("MessageWriter leaves a message whole when something does not fit", none, () => {
  const writer = new MessageWriter();
  const owner = name("www.example");
  const full = new Uint8Array(512);
  const write = (limit: number) => {
    full.fill(0xee);
    if (!writer.start(full, 0, limit, 1, QR_BIT)) return -1;
    if (!writer.question(owner, Qtype.CNAME)) return 0;
    let records = 0;
    for (let i = 0; i < 3; i++) {
      const target = name(`target${i}.example`);
      if (!writer.record(Section.Answer, owner, Qtype.CNAME, 1, 60, target)) {
        writer.setFlags(TC_BIT);
      } else records++;
    }
    if (writer.opt({ payload: 1232, extendedRcode: 0, version: 0, dnssecOk: false })) {
      writer.option(EdnsOption.Nsid, bytes("6162"));
    }
    return records;
  };
  assert.equal(write(512), 3);
  const wanted = writer.lengthBytes;
  let before = -1;
  for (let limit = 0; limit <= wanted; limit++) {
    const records = write(limit);
    assert.ok(records >= before, `limit ${limit}`);
    before = records;
    assert.ok(full.subarray(Math.max(limit, 0)).every((byte) => byte === 0xee), `limit ${limit}`);
    if (records < 0) continue;
    const message = decode(writer.bytes());
    assert.equal(message.answers.length, records);
    assert.equal(message.trailingBytes, 0);
    assert.equal(message.tc, records < 3 && message.questions.length === 1);
  }
  assert.equal(before, 3);
});

Deno.test("MessageWriter points at no name that was taken back or is out of reach", none, () => {
  const writer = new MessageWriter();
  assert.ok(writer.start(new Uint8Array(60), 0, 60, 1, QR_BIT));
  const tooLong = new Uint8Array(40);
  assert.equal(writer.record(Section.Answer, name("a.example"), Qtype.TXT, 1, 0, tooLong), false);
  for (const owner of ["a.example", "b.test"]) {
    assert.ok(writer.record(Section.Answer, name(owner), Qtype.NULL, 1, 0, new Uint8Array(0)));
  }
  assert.deepEqual(decode(writer.bytes()).answers.map((record) => record.name), [
    "a.example",
    "b.test",
  ]);

  const target = new Uint8Array(0xffff);
  assert.ok(writer.start(target, 0, target.length, 1, QR_BIT));
  const owners = ["first.example", "last.test", "last.test"];
  const sizes = [0x4000, 0, 0];
  owners.forEach((owner, i) => {
    const rdata = new Uint8Array(sizes[i]);
    assert.ok(writer.record(Section.Answer, name(owner), Qtype.NULL, 1, 0, rdata));
  });
  assert.deepEqual(decode(writer.bytes()).answers.map((record) => record.name), owners);
});

Deno.test("MessageWriter rules out what its caller may not do", none, () => {
  const writer = new MessageWriter();
  const opt = { payload: 1232, extendedRcode: 0, version: 0, dnssecOk: false };
  assert.ok(writer.start(new Uint8Array(512), 0, 512, 0, 0));
  assert.throws(() => writer.option(EdnsOption.Nsid, bytes("00")), InvariantError);
  assert.throws(() => writer.question(bytes("c00c"), Qtype.A), InvariantError);
  assert.ok(writer.opt(opt));
  assert.throws(() => writer.opt(opt), InvariantError);
  assert.throws(
    () => writer.record(Section.Answer, name("a"), Qtype.A, 1, 0, bytes("c0000201")),
    InvariantError,
  );
});

Deno.test(
  "MessageWriter writes names back as they were, past its table and past pointers",
  none,
  () => {
    const target = new Uint8Array(0xffff);
    const writer = new MessageWriter();
    assert.ok(writer.start(target, 0, target.length, 1, QR_BIT));
    const owners: string[] = [];
    for (let i = 0; i < 1_200; i++) {
      const owner = `h${i % 700}.${i % 3 === 0 ? "Sub." : "sub."}example`;
      owners.push(owner);
      assert.ok(writer.record(Section.Answer, name(owner), Qtype.TXT, 1, i, bytes("03616263")));
    }
    assert.ok(writer.lengthBytes > 0x4000, "further than a pointer reaches");
    assert.deepEqual(decode(writer.bytes()).answers.map((record) => record.name), owners);
  },
);

function show(record: DecodedRecord): string {
  const type = Object.entries(Qtype).find(([, number]) => number === record.type)?.[0];
  return `${record.name} ${record.ttl} ${type} ${record.data}`;
}

/** A random record as the oracle takes it, and what we must make of its RDATA. */
interface Sample {
  readonly answer: oracle.Answer;
  readonly data: string;
}

const LABELS = ["a", "www", "mail", "x1", "example", "test", "long-label-with-hyphens", "Mixed"];

function randomName(prng: Prng): string {
  return Array.from({ length: 1 + prng.int(4) }, () => prng.pick(LABELS)).join(".");
}

function isoTime(seconds: number): string {
  return new Date(seconds * 1000).toISOString().slice(0, 19).replace(/[-:T]/g, "");
}

/** One sample of each type the oracle knows; its shape is ours to vary, its bytes are not. */
const SAMPLERS: readonly ((prng: Prng) => readonly [type: string, data: unknown, text: string])[] =
  [
    (prng) => {
      const ip = [...prng.bytes(4)].join(".");
      return ["A", ip, ip];
    },
    (prng) => {
      const words = Array.from({ length: 8 }, () => (0x1000 + prng.int(0xe000)).toString(16));
      return ["AAAA", words.join(":"), words.join(":")];
    },
    ...["NS", "CNAME", "PTR", "DNAME"].map((type) => (prng: Prng) => {
      const target = randomName(prng);
      return [type, target, target] as const;
    }),
    (prng) => {
      const [mname, rname] = [randomName(prng), randomName(prng)];
      const [serial, refresh, retry, expire, minimum] = Array.from(
        { length: 5 },
        () => prng.next(),
      );
      const data = { mname, rname, serial, refresh, retry, expire, minimum };
      return ["SOA", data, Object.values(data).join(" ")];
    },
    (prng) => {
      const data = { preference: prng.int(65536), exchange: randomName(prng) };
      return ["MX", data, `${data.preference} ${data.exchange}`];
    },
    (prng) => {
      const texts = Array.from({ length: 1 + prng.int(3) }, () => "x y=z;".repeat(prng.int(9)));
      return ["TXT", texts, texts.map((text) => `"${text}"`).join(" ")];
    },
    (prng) => ["HINFO", { cpu: "A B", os: `o${prng.int(9)}` }, ""],
    (prng) => {
      const data = { priority: prng.int(9), weight: prng.int(9), port: prng.int(65536) };
      const target = randomName(prng);
      return ["SRV", { ...data, target }, [...Object.values(data), target].join(" ")];
    },
    (prng) => {
      const critical = prng.chance(0.5);
      const data = { flags: critical ? 128 : 0, tag: prng.pick(["issue", "iodef"]), value: "ca;x" };
      return ["CAA", { ...data, issuerCritical: critical }, `${data.flags} ${data.tag} "ca;x"`];
    },
    (prng) => {
      const digest = Buffer.from(prng.bytes(1 + prng.int(40)));
      const data = { keyTag: prng.int(65536), algorithm: prng.int(256), digestType: prng.int(256) };
      return ["DS", { ...data, digest }, [...Object.values(data), encodeHex(digest)].join(" ")];
    },
    (prng) => {
      const key = Buffer.from(prng.bytes(1 + prng.int(70)));
      const data = { flags: prng.pick([256, 257]), algorithm: prng.int(256), key };
      return ["DNSKEY", data, `${data.flags} 3 ${data.algorithm} ${encodeBase64(key)}`];
    },
    (prng) => {
      const signature = Buffer.from(prng.bytes(1 + prng.int(70)));
      const [expiration, inception] = [prng.next(), prng.next()];
      const head = { typeCovered: "MX", algorithm: prng.int(256), labels: prng.int(9) };
      const [originalTTL, keyTag, signersName] = [prng.next(), prng.int(65536), randomName(prng)];
      const data = { ...head, originalTTL, expiration, inception, keyTag, signersName, signature };
      const times = `${originalTTL} ${isoTime(expiration)} ${isoTime(inception)} ${keyTag}`;
      const text = `${Object.values(head).join(" ")} ${times} ${signersName}`;
      return ["RRSIG", data, `${text} ${encodeBase64(signature)}`];
    },
    (prng) => {
      const data = { nextDomain: randomName(prng), rrtypes: ["A", "MX", "RRSIG", "NSEC", "CAA"] };
      return ["NSEC", data, `${data.nextDomain} A MX RRSIG NSEC CAA`];
    },
    (prng) => {
      const [salt, nextDomain] = [prng.bytes(prng.int(9)), prng.bytes(20)].map((b) =>
        Buffer.from(b)
      );
      const data = { algorithm: 1, flags: prng.int(2), iterations: prng.int(65536) };
      const hash = encodeBase32hex(nextDomain);
      const text = `${Object.values(data).join(" ")} ${salt.length === 0 ? "-" : encodeHex(salt)}`;
      const rest = { salt, nextDomain, rrtypes: ["NS", "DS", "RRSIG"] };
      return ["NSEC3", { ...data, ...rest }, `${text} ${hash} NS DS RRSIG`];
    },
    (prng) => {
      const fingerprint = encodeHex(prng.bytes(20));
      const data = { algorithm: prng.int(7), hash: 1 };
      return ["SSHFP", { ...data, fingerprint }, `${data.algorithm} 1 ${fingerprint}`];
    },
    (prng) => {
      const numbers = { order: prng.int(65536), preference: prng.int(65536) };
      const strings = { flags: "u", services: "E2U+sip", regexp: "!^.*$!sip:a!" };
      const replacement = randomName(prng);
      const quoted = Object.values(strings).map((text) => `"${text}"`);
      const text = [...Object.values(numbers), ...quoted, replacement].join(" ");
      return ["NAPTR", { ...numbers, ...strings, replacement }, text];
    },
    (prng) => {
      const certificate = Buffer.from(prng.bytes(1 + prng.int(40)));
      const data = { usage: prng.int(4), selector: prng.int(2), matchingType: prng.int(3) };
      return [
        "TLSA",
        { ...data, certificate },
        `${Object.values(data).join(" ")} ` +
        encodeHex(certificate),
      ];
    },
  ];

function sample(prng: Prng): Sample {
  const [type, data, text] = prng.pick(SAMPLERS)(prng);
  const shown = type === "HINFO" ? `"A B" "${(data as { os: string }).os}"` : text;
  const answer = { type, name: randomName(prng), ttl: prng.next(), class: "IN", data };
  // The oracle's types can't follow a table; that it takes the record shows it was well formed.
  return { answer: answer as oracle.Answer, data: shown };
}

const MESSAGES = 3_000;
const seed = seedFromEnv();

Deno.test(`decodeMessage() reads what dns-packet writes, seed ${seed}`, none, () => {
  const prng = new Prng(seed);
  const types = new Set<string>();
  for (let i = 0; i < MESSAGES; i++) {
    const sections = [0, 1, 2].map(() => Array.from({ length: prng.int(4) }, () => sample(prng)));
    const id = prng.int(65536);
    const question = randomName(prng);
    const flags = prng.int(0x800) << 4 & 0x7b0;
    const opt = {
      type: "OPT",
      name: ".",
      udpPayloadSize: 1 + prng.int(65535), // For 0 it writes one of its own.
      extendedRcode: prng.int(256),
      ednsVersion: prng.int(256),
      flags: prng.chance(0.5) ? oracle.DNSSEC_OK : 0,
      options: [{ code: 65001, data: Buffer.from(prng.bytes(prng.int(9))) }],
    };
    const withOpt = prng.chance(0.5);
    const packet = oracle.encode({
      type: "response",
      id,
      flags,
      questions: [{ type: "A", name: question }],
      answers: sections[0].map(({ answer }) => answer),
      authorities: sections[1].map(({ answer }) => answer),
      additionals: [
        ...sections[2].map(({ answer }) => answer),
        ...(withOpt ? [opt as unknown as oracle.Answer] : []),
      ],
    });
    const message = decode(new Uint8Array(packet));
    assert.deepEqual(
      [message.id, message.response, message.aa, message.tc, message.rd, message.ra],
      [id, true, ...[10, 9, 8, 7].map((bit) => (flags & (1 << bit)) !== 0)],
    );
    assert.deepEqual([message.ad, message.cd], [5, 4].map((bit) => (flags & (1 << bit)) !== 0));
    assert.deepEqual(message.questions, [{ name: question, type: Qtype.A, cls: Qclass.IN }]);
    [message.answers, message.authorities, message.additionals].forEach((records, s) => {
      assert.deepEqual(
        records.map(show),
        sections[s].map(({ answer, data }) => {
          const ttl = (answer as oracle.StringAnswer).ttl;
          types.add(answer.type);
          return `${answer.name} ${ttl} ${answer.type} ${data}`;
        }),
      );
    });
    assert.equal(message.opt?.payload, withOpt ? opt.udpPayloadSize : undefined);
    if (withOpt) {
      assert.equal(message.opt?.extendedRcode, opt.extendedRcode);
      assert.equal(message.opt?.version, opt.ednsVersion);
      assert.equal(message.opt?.dnssecOk, opt.flags !== 0);
      assert.deepEqual(message.opt?.options, [
        { code: 65001, data: new Uint8Array(opt.options[0].data) },
      ]);
    }
  }
  assert.equal(types.size, SAMPLERS.length, "every sampler had its turn");
});

Deno.test(`dns-packet reads what MessageWriter writes, seed ${seed}`, none, () => {
  const prng = new Prng(seed ^ 0x77);
  const target = new Uint8Array(0xffff);
  const writer = new MessageWriter();
  const sectionOf = [Section.Answer, Section.Authority, Section.Additional];
  for (let i = 0; i < MESSAGES; i++) {
    const id = prng.int(65536);
    const question = randomName(prng);
    const sections = sectionOf.map(() => Array.from({ length: prng.int(5) }, () => sample(prng)));
    assert.ok(writer.start(target, i % 7, target.length, id, QR_BIT | RD_BIT));
    assert.ok(writer.question(name(question), Qtype.AAAA));
    sections.forEach((samples, s) => {
      for (const { answer } of samples) {
        const type = parseQtype(answer.type);
        assert(type !== null);
        // RDATA as the oracle writes it, behind the two bytes of its length.
        const rdata = new Uint8Array(oracleRdata(answer)).subarray(2);
        const ttl = (answer as oracle.StringAnswer).ttl ?? 0;
        assert.ok(writer.record(sectionOf[s], name(answer.name), type, Qclass.IN, ttl, rdata));
      }
    });
    assert.ok(writer.opt({ payload: 1232, extendedRcode: 0, version: 0, dnssecOk: true }));
    assert.ok(writer.option(EdnsOption.Nsid, prng.bytes(4)));
    const read = oracle.decode(Buffer.from(writer.bytes()));
    assert.equal(read.id, id);
    assert.deepEqual(read.questions?.map((q) => [q.name, q.type]), [[question, "AAAA"]]);
    [read.answers, read.authorities, read.additionals].forEach((answers, s) => {
      const got = (answers ?? []).filter(({ type }) => type !== "OPT");
      assert.deepEqual(
        got.map((answer) => [answer.name, answer.type, plain(answer)]),
        sections[s].map(({ answer }) => [answer.name, answer.type, plain(decodedAgain(answer))]),
      );
    });
    assert.equal(read.additionals?.filter(({ type }) => type === "OPT").length, 1);
  }
});

interface RdataCodec {
  encode(data: unknown): Uint8Array;
}

function oracleRdata(answer: oracle.Answer): Uint8Array {
  const codecs = oracle as unknown as { record(type: string): RdataCodec };
  return codecs.record(answer.type).encode((answer as oracle.StringAnswer).data);
}

/** A record as the oracle reads what it wrote itself: with its defaults filled in. */
function decodedAgain(answer: oracle.Answer): oracle.Answer {
  const packet = oracle.encode({ type: "response", answers: [answer] });
  const [again] = oracle.decode(packet).answers ?? [];
  return again;
}

function plain(answer: oracle.Answer): unknown {
  const { ttl, data } = answer as oracle.StringAnswer;
  return JSON.stringify({ ttl, data });
}

const seeds = readSeedPackets();
const withSeeds = { ...none, ignore: seeds.length === 0 };

Deno.test("every reader takes every captured and malformed packet", withSeeds, () => {
  assert.ok(seeds.length > 4_900);
  const [walk, record, opt] = [new SectionWalk(), new RecordView(), new OptView()];
  const target = new Uint8Array(255);
  let decoded = 0;
  let malformedRdata = 0;
  for (const { name: source, packet } of seeds) {
    let step: Walk = walk.start(packet, packet.length) ? walk.next(record) : Walk.Malformed;
    let records = 0;
    let at = 0;
    let sound = true;
    for (; step === Walk.Record; step = walk.next(record)) {
      assert.ok(record.end > at && record.end <= packet.length, source);
      at = record.end;
      sound &&= expandName(packet, record.ownerOffset, target, 0) > 0;
      if (!checkRdata(packet, record.type, record.rdataOffset, record.rdataLength)) {
        malformedRdata++;
      }
      if (record.type === Qtype.OPT && walk.section === Section.Additional) {
        sound &&= readOpt(packet, record.ownerOffset, packet.length, 1, opt) === OptRead.Found;
      } else records++;
    }
    const message = decodeMessage(packet);
    // Broken for the readers means broken for the decoder, which sees questions too.
    if (step === Walk.Malformed || !sound) assert.equal(message, null, source);
    if (message === null) continue;
    decoded++;
    const all = [message.answers, message.authorities, message.additionals].flat();
    assert.equal(all.length, records, source);
    assert.equal(message.trailingBytes, packet.length - walk.offset, source);
  }
  assert.ok(decoded > 4_000, `${decoded} decoded`);
  assert.ok(malformedRdata > 10, `${malformedRdata} records malformed`);
});

Deno.test("parseSvcb() gives RDATA that a message carries", none, () => {
  const rdata = parseSvcb("1 . alpn=h3 ipv4hint=192.0.2.1");
  assert(rdata !== null);
  const writer = new MessageWriter();
  assert.ok(writer.start(new Uint8Array(512), 0, 512, 0, QR_BIT));
  assert.ok(writer.record(Section.Answer, name("example"), Qtype.HTTPS, 1, 300, rdata));
  assert.deepEqual(decode(writer.bytes()).answers.map(show), [
    'example 300 HTTPS 1 . alpn="h3" ipv4hint=192.0.2.1',
  ]);
});
