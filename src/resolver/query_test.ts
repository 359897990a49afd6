import assert from "node:assert/strict";
import { readJsonVector } from "../../tests/fuzz/dns_seeds.ts";
import { Prng, seedFromEnv } from "../../tests/prng.ts";
import { formatIp, parseIp } from "../addr/mod.ts";
import { decodeHex, setU16 } from "../bytes/mod.ts";
import { type EdnsOptionData, encodeQuery, HashedName, Qtype } from "../dns/mod.ts";
import { KEY_CD, KEY_DO, Query, QUESTION_BYTES_MAX, Read, readQuery, Transport } from "./query.ts";

const none = { permissions: "none" } as const;
const SEED = 99;
const NAMES = Object.entries(Read).map(([name, read]) => [read, name] as const);

function readName(read: Read): string {
  return new Map<Read, string>(NAMES).get(read) ?? `${read}`;
}

/** What reading a packet comes to, in words: the outcome and the fields that follow from it. */
function show(packet: Uint8Array, transport: Transport = Transport.Udp, start = 0): string {
  const query = new Query();
  query.transport = transport;
  const name = new HashedName();
  const within = new Uint8Array(start + packet.length + 16).fill(0xc0);
  within.set(packet, start);
  const read = readQuery(within, start, start + packet.length, SEED, query, name);
  if (read !== Read.Ok) return readName(read);
  const marks = [
    `labels ${name.count}`,
    `qname ${query.qnameLength}`,
    `type ${query.qtype}`,
    `class ${query.qclass}`,
    `limit ${query.limitBytes}`,
  ];
  if (query.edns) marks.push("edns");
  if (query.dnssecOk) marks.push("do");
  if ((query.keyBits & KEY_DO) !== 0) marks.push("key-do");
  if ((query.keyBits & KEY_CD) !== 0) marks.push("key-cd");
  return `Ok: ${marks.join(", ")}`;
}

/** A query for `www.example A` with fields of its header or its end changed. */
function changed(change: (packet: Uint8Array) => Uint8Array | void): Uint8Array {
  const packet = encodeQuery("www.example", Qtype.A, { id: 0x1234 });
  return change(packet) ?? packet;
}

function joined(...parts: (Uint8Array | readonly number[])[]): Uint8Array {
  return Uint8Array.from(parts.flatMap((part) => [...part]));
}

/** The query with records behind it. */
function withRecords(count: number, ...records: (readonly number[])[]): Uint8Array {
  return changed((packet) => {
    setU16(packet, 10, count);
    return joined(packet, ...records);
  });
}

/** A query without a question. */
function headerWith(count: number, ...records: (readonly number[])[]): Uint8Array {
  return joined([0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, count], ...records);
}

function ixfr(authority: number, additional: number, ...records: (readonly number[])[]) {
  const packet = encodeQuery("www.example", Qtype.IXFR);
  setU16(packet, 8, authority);
  setU16(packet, 10, additional);
  return joined(packet, ...records);
}

function withOptions(...options: EdnsOptionData[]): Uint8Array {
  return encodeQuery("www.example", Qtype.A, { edns: { payload: 4096, options } });
}

const cookie = (length: number) => ({ code: 10, data: new Uint8Array(length) });
const opt = (payload: number, version = 0, flags = 0) => [
  ...[0, 0, 41, payload >> 8, payload & 255, 0, version, flags >> 8, flags & 255, 0, 0],
];
const TXT = [0, 0, 16, 0, 1, 0, 0, 0, 0, 0, 2, 1, 0x61];
const SOA = [0, 0, 6, 0, 1, 0, 0, 0, 0, 0, 22, 0, 0, ...new Array<number>(20).fill(1)];
const PLAIN = "labels 2, qname 13, type 1, class 1";

/** A name of 255 bytes: three labels of 63 and one of `last`. */
function longName(last: number): Uint8Array {
  const label = (n: number) => [n, ...new Array<number>(n).fill(0x61)];
  return Uint8Array.from([...label(63), ...label(63), ...label(63), ...label(last), 0]);
}

function questionOf(wire: Uint8Array): Uint8Array {
  return joined([0, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0], wire, [0, 1, 0, 1]);
}

const ROWS: readonly (readonly [string, Uint8Array, string])[] = [
  ["a plain query", changed(() => {}), `Ok: ${PLAIN}, limit 512`],
  [
    "any type and class",
    encodeQuery("a", 65280, { cls: 254 }),
    "Ok: labels 1, qname 3, type 65280, class 254, limit 512",
  ],
  ["the root", encodeQuery(".", Qtype.NS), "Ok: labels 0, qname 1, type 2, class 1, limit 512"],
  ["CD", encodeQuery("www.example", Qtype.A, { cd: true }), `Ok: ${PLAIN}, limit 512, key-cd`],
  ["RD clear", encodeQuery("www.example", Qtype.A, { rd: false }), `Ok: ${PLAIN}, limit 512`],
  ["EDNS", withRecords(1, opt(1232)), `Ok: ${PLAIN}, limit 1232, edns`],
  ["DO", withRecords(1, opt(1232, 0, 0x8000)), `Ok: ${PLAIN}, limit 1232, edns, do, key-do`],
  ["payload below 512", withRecords(1, opt(100)), `Ok: ${PLAIN}, limit 512, edns`],
  ["payload between", withRecords(1, opt(900)), `Ok: ${PLAIN}, limit 900, edns`],
  ["payload above 1232", withRecords(1, opt(65535)), `Ok: ${PLAIN}, limit 1232, edns`],
  ["another record before OPT", withRecords(2, TXT, opt(1232)), `Ok: ${PLAIN}, limit 1232, edns`],
  ["four records", withRecords(4, TXT, TXT, TXT, TXT), `Ok: ${PLAIN}, limit 512`],
  ["five records", withRecords(5, TXT, TXT, TXT, TXT, TXT), "FormErr"],
  ["two OPTs", withRecords(2, opt(1232), opt(1232)), "FormErr"],
  ["OPT with a name", withRecords(1, [1, 0x61, ...opt(1232)]), "FormErr"],
  ["OPT of version 1", withRecords(1, opt(1232, 1)), "BadVers"],
  ["OPT cut", withRecords(1, opt(1232).slice(0, -1)), "FormErr"],
  ["OPT missing", withRecords(1), "FormErr"],
  ["RDLENGTH over the end", withRecords(1, [...opt(1232).slice(0, -1), 1]), "FormErr"],
  ["an option cut", withRecords(1, [...opt(1232).slice(0, -1), 4, 0, 12, 0, 1]), "FormErr"],
  ["half an option", withRecords(1, [...opt(1232).slice(0, -1), 3, 0, 12, 0]), "FormErr"],
  [
    "an unknown option",
    withOptions({ code: 65001, data: new Uint8Array(3) }),
    `Ok: ${PLAIN}, limit 1232, edns`,
  ],
  ["client cookie", withOptions(cookie(8)), `Ok: ${PLAIN}, limit 1232, edns`],
  ["cookie of 7 bytes", withOptions(cookie(7)), "FormErr"],
  ["cookie of 9 bytes", withOptions(cookie(9)), "FormErr"],
  ["cookie of 15 bytes", withOptions(cookie(15)), "FormErr"],
  ["cookie of 16 bytes", withOptions(cookie(16)), `Ok: ${PLAIN}, limit 1232, edns`],
  ["cookie of 40 bytes", withOptions(cookie(40)), `Ok: ${PLAIN}, limit 1232, edns`],
  ["cookie of 41 bytes", withOptions(cookie(41)), "FormErr"],
  ["nothing", new Uint8Array(0), "Drop"],
  ["eleven bytes", new Uint8Array(11), "Drop"],
  ["a response", changed((p) => void (p[2] |= 0x80)), "Drop"],
  ["STATUS", changed((p) => void (p[2] |= 2 << 3)), "NotImp"],
  ["UPDATE", changed((p) => void (p[2] |= 5 << 3)), "NotImp"],
  ["a response to UPDATE", changed((p) => void (p[2] |= 0x80 | 5 << 3)), "Drop"],
  ["QDCOUNT 0", changed((p) => setU16(p, 4, 0)), "FormErr"],
  ["no question", headerWith(0), "FormErr"],
  ["no question, and OPT", headerWith(1, opt(1232)), "FormErr"],
  ["no question, and OPT of version 1", headerWith(1, opt(1232, 1)), "BadVers"],
  ["no question, and OPT missing", headerWith(1), "FormErr"],
  ["IXFR with its SOA", ixfr(1, 0, SOA), "Ok: labels 2, qname 13, type 251, class 1, limit 512"],
  [
    "IXFR with its SOA and OPT",
    ixfr(1, 1, SOA, opt(1232)),
    "Ok: labels 2, qname 13, type 251, class 1, limit 1232, edns",
  ],
  ["IXFR whose SOA is missing", ixfr(1, 0), "FormErr"],
  [
    "SOA of another query",
    Uint8Array.from([...changed((p) => setU16(p, 8, 1)), ...SOA]),
    "FormErr",
  ],
  ["QDCOUNT 2", changed((p) => setU16(p, 4, 2)), "FormErr"],
  ["ANCOUNT 1", changed((p) => setU16(p, 6, 1)), "FormErr"],
  ["NSCOUNT 1", changed((p) => setU16(p, 8, 1)), "FormErr"],
  ["ARCOUNT 65535", changed((p) => setU16(p, 10, 65535)), "FormErr"],
  ["the type cut", changed((p) => p.slice(0, -3)), "FormErr"],
  ["a byte behind the question", changed((p) => joined(p, [0])), "FormErr"],
  ["a byte behind OPT", withRecords(1, opt(1232), [0]), "FormErr"],
  ["a compressed QNAME", questionOf(Uint8Array.of(1, 0x61, 0xc0, 12)), "FormErr"],
  ["QNAME that points to itself", questionOf(Uint8Array.of(0xc0, 12)), "FormErr"],
  ["a label of 64 bytes", questionOf(Uint8Array.of(64, ...new Array(64).fill(97), 0)), "FormErr"],
  ["QNAME without its root", changed((p) => p.slice(0, 24)), "FormErr"],
  [
    "QNAME of 255 bytes",
    questionOf(longName(61)),
    "Ok: labels 4, qname 255, type 1, class 1, limit 512",
  ],
  ["QNAME of 256 bytes", questionOf(longName(62)), "FormErr"],
];

Deno.test("readQuery() makes an outcome and numbers of a packet", none, async (t) => {
  for (const [name, packet, want] of ROWS) {
    await t.step(name, () => {
      assert.equal(show(packet), want);
      // Anywhere in a batch: offsets beyond 16 bits included.
      assert.equal(show(packet, Transport.Udp, 3), want, "at 3");
      assert.equal(show(packet, Transport.Udp, 70_001), want, "at 70001");
    });
  }
});

Deno.test("readQuery() lets a response over TCP have any size", none, () => {
  const want = `Ok: ${PLAIN}, limit 65535`;
  assert.equal(show(changed(() => {}), Transport.Tcp), want);
  assert.equal(show(withRecords(1, opt(512)), Transport.Tcp), `${want}, edns`);
});

Deno.test("readQuery() sees the name where it stands, whatever its case", none, () => {
  const hashOf = (text: string, start: number) => {
    const packet = encodeQuery(text, Qtype.A);
    const within = new Uint8Array(start + packet.length);
    within.set(packet, start);
    const [query, name] = [new Query(), new HashedName()];
    assert.equal(readQuery(within, start, within.length, SEED, query, name), Read.Ok);
    assert.deepEqual([...name.offsets.subarray(0, 3)], [12, 16, 24].map((at) => at + start));
    return name.hashes[0];
  };
  assert.equal(hashOf("www.example", 0), hashOf("wWw.EXAMPLE", 80_000));
  assert.notEqual(hashOf("www.example", 0), hashOf("ww2.example", 0));
});

Deno.test("readQuery() reads OPT of other operations, which their refusals have too", none, () => {
  const read = (packet: Uint8Array) => {
    const query = new Query();
    const read = readQuery(packet, 0, packet.length, SEED, query, new HashedName());
    return [readName(read), query.qnameLength, query.edns, query.dnssecOk];
  };
  const as = (opcode: number, packet: Uint8Array) => {
    packet[2] |= opcode << 3;
    return packet;
  };
  for (const opcode of [1, 2, 3, 4, 5, 6, 15]) {
    assert.deepEqual(read(as(opcode, changed(() => {}))), ["NotImp", 13, false, false]);
    const full = withRecords(1, opt(1232, 0, 0x8000));
    assert.deepEqual(read(as(opcode, full)), ["NotImp", 13, true, true], `${opcode}`);
    assert.deepEqual(read(as(opcode, headerWith(1, opt(1232)))), ["NotImp", 0, true, false]);
    const cut = full.slice(0, -1);
    assert.deepEqual(read(as(opcode, cut)), ["NotImp", 13, false, false]);
  }
  // An update has a prerequisite and a change before its OPT (RFC 2136 §2).
  const update = as(5, withRecords(1, TXT, TXT, opt(1232)));
  setU16(update, 6, 1);
  setU16(update, 8, 1);
  assert.deepEqual(read(update), ["NotImp", 13, true, false]);
});

Deno.test("readQuery() forgets what the packet before had", none, () => {
  const [query, name] = [new Query(), new HashedName()];
  const read = (packet: Uint8Array) => readQuery(packet, 0, packet.length, SEED, query, name);
  const first = encodeQuery("www.example", Qtype.A, { cd: true, edns: { dnssecOk: true } });
  assert.equal(read(first), Read.Ok);
  query.rule = 7;
  assert.equal(read(encodeQuery("example", Qtype.MX, { id: 5 })), Read.Ok);
  const { id, qtype, edns, dnssecOk, keyBits, limitBytes, rule } = query;
  assert.deepEqual(
    { id, qtype, edns, dnssecOk, keyBits, limitBytes, rule },
    { id: 5, qtype: 15, edns: false, dnssecOk: false, keyBits: 0, limitBytes: 512, rule: -1 },
  );
});

Deno.test("Query.keep() copies what a waiting query needs", none, () => {
  const packet = encodeQuery(longName(61), Qtype.AAAA, { id: 77, edns: { dnssecOk: true } });
  const within = new Uint8Array(66_000 + packet.length);
  within.set(packet, 66_000);
  const [query, kept] = [new Query(), new Query()];
  const address = parseIp("::ffff:192.0.2.7")!;
  query.address.aim(address, 0, 16);
  [query.client, query.group] = [5, 3];
  assert.equal(readQuery(within, 66_000, within.length, SEED, query, new HashedName()), Read.Ok);
  kept.packet = new Uint8Array(QUESTION_BYTES_MAX);
  kept.keep(query);
  within.fill(0);
  address.fill(0);
  const { bytes, offset, lengthBytes } = kept.address;
  assert.equal(formatIp(bytes, offset, lengthBytes), "192.0.2.7");
  const without = { packet: null, address: null, start: 66_000 };
  assert.deepEqual({ ...kept, ...without }, { ...query, ...without });
  assert.deepEqual(kept.packet, packet.slice(0, QUESTION_BYTES_MAX));
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

/** What the words of the vectors allow. */
function allowed(expect: string): readonly string[] {
  if (/^no answer at all/.test(expect)) return ["Drop"];
  if (/^no answer or FORMERR/.test(expect)) return ["Drop", "FormErr"];
  if (/^FORMERR or no answer/.test(expect)) return ["Drop", "FormErr"];
  if (/^FORMERR( \(.*)?$/.test(expect)) return ["FormErr"];
  if (/^FORMERR or normal/.test(expect)) return ["FormErr", "Ok"];
  if (/^NOTIMP/.test(expect)) return ["NotImp"];
  if (/^BADVERS/.test(expect)) return ["BadVers"];
  return ["Ok"]; // What becomes of a query that can be read is the pipeline's.
}

Deno.test({
  name: "readQuery() treats the malformed queries as they deserve",
  permissions: "none",
  ignore: vectors === null,
  fn: async (t) => {
    const queries = (vectors?.packets ?? []).filter(({ direction }) => direction === "query");
    assert.ok(queries.length > 40, `${queries.length} queries`);
    for (const { name, hex, expect } of queries) {
      await t.step(name, () => {
        const packet = decodeHex(hex);
        assert.ok(packet !== null);
        const shown = show(packet);
        assert.ok(allowed(expect).includes(shown.split(":")[0]), `${shown}, wanted: ${expect}`);
        assert.equal(show(packet, Transport.Udp, 65_537), shown);
      });
    }
  },
});

Deno.test("readQuery() neither throws nor reads past the end, seeded", {
  permissions: { env: ["SVC_SEED"] },
}, () => {
  const prng = new Prng(seedFromEnv());
  const packets = ROWS.map(([, packet]) => packet).filter((packet) => packet.length > 0);
  for (let i = 0; i < 20_000; i++) {
    const packet = prng.pick(packets).slice();
    for (let n = prng.int(4); n > 0; n--) packet[prng.int(packet.length)] = prng.next();
    const cut = packet.subarray(0, prng.chance(0.3) ? prng.int(packet.length + 1) : packet.length);
    // What stands behind the packet makes no difference.
    const outcomes = [0x00, 0xff].map((fill) => {
      const within = new Uint8Array(cut.length + 300).fill(fill);
      within.set(cut);
      const query = new Query();
      const read = readQuery(within, 0, cut.length, SEED, query, new HashedName());
      if (read === Read.Ok) assert.ok(query.qnameLength + 16 <= cut.length);
      return `${read} ${query.qnameLength} ${query.qtype} ${query.edns} ${query.keyBits}`;
    });
    assert.equal(outcomes[0], outcomes[1], `case ${i}`);
  }
});
