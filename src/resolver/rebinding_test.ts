import assert from "node:assert/strict";
import { formatIp } from "../addr/mod.ts";
import { getU32, setU16 } from "../bytes/mod.ts";
import { TTLS_MAX } from "../cache/mod.ts";
import {
  AD_BIT,
  decodeMessage,
  encodeQuery,
  QR_BIT,
  Qtype,
  qtypeName,
  RA_BIT,
} from "../dns/mod.ts";
import { a, decodeBoth, type FakeRecord, record, response, soaRdata, wire } from "./fakes.ts";
import { ScrubbingReader } from "./ask/fakes.ts";
import { RebindingProtection, TAKEN_BYTES_MAX } from "./rebinding.ts";

const none = { permissions: "none" } as const;
const ID = 0x1234;
const BOUNDS = { min: 0, max: 86_400, negativeMax: 3_600 };
const exempt = ["corp.example", "nas.dyn.example"].map(wire);

interface Kept {
  /** The very message that came in. */
  readonly isSame: boolean;
  readonly bytes: Uint8Array;
  readonly reader: ScrubbingReader;
}

/** What is kept of a response. */
function keep(name: string, type: number, records: readonly FakeRecord[], flags = 0): Kept {
  const packet = response({ id: ID, name, type, flags: QR_BIT | RA_BIT | flags, records });
  const asked = encodeQuery(name, type, { id: ID });
  const reader = new ScrubbingReader(BOUNDS);
  const fit = reader.read(packet, packet.length, asked, 12 + wire(name).length + 4, true);
  assert.equal(fit, "Answer");
  const kept = reader.message;
  const whole = kept.slice(0, reader.length);
  const message = new RebindingProtection(exempt).protect(kept, reader);
  assert.deepEqual(kept.slice(0, whole.length), whole, "what came in is left alone");
  return { isSame: message === kept, bytes: message.slice(0, reader.length), reader };
}

/** Answers and authorities in short. */
function show({ bytes, reader }: Kept): string {
  const message = decodeMessage(bytes);
  assert.ok(message !== null && message.trailingBytes === 0);
  const records = [...message.answers, ...message.authorities];
  const ttls = Array.from(
    reader.ttlOffsets.subarray(0, reader.ttlCount),
    (at) => getU32(bytes, at),
  );
  assert.deepEqual(ttls, records.map(({ ttl }) => ttl), "every TTL is noted");
  return records.map(({ name, type, data }) => `${name} ${qtypeName(type)} ${data}`).join("; ");
}

const N = "www.example";

Deno.test("RebindingProtection.protect() takes private addresses out", none, async (t) => {
  const rows: readonly (readonly [string, readonly string[], string])[] = [
    ["public", ["A 192.0.2.1", "A 198.51.100.1"], "all"],
    ["RFC 1918", ["A 10.0.0.1", "A 172.16.0.1", "A 192.168.0.1"], ""],
    ["some of them", ["A 192.0.2.1", "A 192.168.0.1", "A 192.0.2.2"], "A 192.0.2.1; A 192.0.2.2"],
    ["the first of two", ["A 192.168.0.1", "A 192.0.2.2"], "A 192.0.2.2"],
    ["carrier's NAT", ["A 100.64.0.1", "A 100.128.0.1"], "A 100.128.0.1"],
    ["link-local", ["A 169.254.169.254"], ""],
    ["loopback", ["A 127.0.0.1"], ""],
    ["this host", ["A 0.0.0.0"], ""],
    ["public IPv6", ["AAAA 2001:db8::1"], "all"],
    ["unique local", ["AAAA fd00::1", "AAAA fc00::1", "AAAA 2001:db8::1"], "AAAA 2001:db8::1"],
    ["link-local IPv6", ["AAAA fe80::1"], ""],
    ["loopback IPv6", ["AAAA ::1", "AAAA ::"], ""],
    ["IPv4-mapped", ["AAAA ::ffff:10.0.0.1", "AAAA 2001:db8::1"], "AAAA 2001:db8::1"],
    ["NAT64", ["AAAA 64:ff9b::192.168.0.1", "AAAA 64:ff9b::192.0.2.1"], "AAAA 64:ff9b::c000:201"],
    ["local NAT64", ["AAAA 64:ff9b:1::192.0.2.1"], ""],
    ["other types", ["TXT 10.0.0.1"], "all"],
  ];
  for (const [what, lines, want] of rows) {
    await t.step(what, () => {
      const type = lines[0].split(" ")[0] as keyof typeof Qtype;
      const records = lines.map((line) =>
        line.startsWith("TXT")
          ? {
            name: N,
            type: Qtype.TXT,
            ttl: 60,
            rdata: [8, ...new TextEncoder().encode("10.0.0.1")],
          }
          : record(`${N} 60 ${line}`)
      );
      const kept = keep(N, Qtype[type], records, AD_BIT);
      assert.equal(kept.isSame, want === "all");
      if (want !== "all") assert.equal(show(kept).replaceAll(`${N} `, ""), want);
      const { ad, rcode } = decodeBoth(kept.bytes);
      assert.equal(ad, want === "all", "nobody vouches for what was changed");
      assert.equal(rcode, 0);
    });
  }
});

Deno.test("RebindingProtection.protect() keeps the rest of an answer", none, () => {
  const lines = [
    `${N} 300 CNAME a.cdn.example`,
    "a.cdn.example 200 CNAME b.cdn.example",
    "b.cdn.example 100 A 10.1.2.3",
    "b.cdn.example 90 A 192.0.2.3",
    "b.cdn.example 80 A 192.168.2.3",
    "b.cdn.example 70 A 192.0.2.4",
  ];
  const kept = keep(N, Qtype.A, lines.map(record));
  assert.equal(
    show(kept),
    `${N} CNAME a.cdn.example; a.cdn.example CNAME b.cdn.example; ` +
      "b.cdn.example A 192.0.2.3; b.cdn.example A 192.0.2.4",
  );
  const { answers } = decodeBoth(kept.bytes);
  assert.deepEqual(answers.map(({ ttl }) => ttl), [300, 200, 90, 70]);
  // A chain that loses every address is NODATA at its end.
  const bare = keep(N, Qtype.A, lines.slice(0, 3).map(record));
  assert.equal(show(bare), `${N} CNAME a.cdn.example; a.cdn.example CNAME b.cdn.example`);
});

Deno.test("RebindingProtection.protect() drops signatures over what it changed", none, () => {
  const covers = (type: number, name: string): FakeRecord => ({
    name,
    type: Qtype.RRSIG,
    ttl: 60,
    rdata: [0, type, 13, 2, ...new Array(14).fill(0), ...wire("example"), 1, 2, 3],
  });
  const records = [
    record(`${N} 60 CNAME b.example`),
    covers(Qtype.CNAME, N),
    a("b.example", 60),
    record("b.example 60 A 10.0.0.1"),
    covers(Qtype.A, "b.example"),
  ];
  const { answers } = decodeBoth(keep(N, Qtype.A, records).bytes);
  assert.deepEqual(answers.map(({ type }) => type), [Qtype.CNAME, Qtype.RRSIG, Qtype.A]);
  assert.match(answers[1].data, /^CNAME /);
});

Deno.test("RebindingProtection.protect() strips hints of SVCB and HTTPS", none, async (t) => {
  const rows = [
    ["1 . alpn=h2 ipv4hint=192.0.2.1", "all"],
    ["1 . ipv4hint=192.0.2.1,10.0.0.1,192.0.2.2", "1 . ipv4hint=192.0.2.1,192.0.2.2"],
    ["1 . alpn=h2 ipv4hint=10.0.0.1,192.168.0.1", "1 . alpn=h2"],
    ["1 . ipv4hint=127.0.0.1", "1 ."],
    ["1 . ipv6hint=fd00::1,2001:db8::1", "1 . ipv6hint=2001:db8::1"],
    [
      "1 . alpn=h2 port=8443 ipv4hint=10.0.0.1 ech=AQID ipv6hint=::1 dohpath=/q{?dns}",
      "1 . alpn=h2 port=8443 ech=AQID dohpath=/q{?dns}",
    ],
    ["1 . mandatory=alpn,ipv4hint alpn=h2 ipv4hint=10.0.0.1", "1 . mandatory=alpn alpn=h2"],
    ["1 . mandatory=ipv4hint ipv4hint=10.0.0.1", "1 ."],
    [
      "1 . mandatory=ipv4hint,ipv6hint ipv4hint=10.0.0.1,192.0.2.1 ipv6hint=fe80::1",
      "1 . mandatory=ipv4hint ipv4hint=192.0.2.1",
    ],
    ["1 . alpn=h2 no-default-alpn ipv4hint=10.0.0.1", "1 . alpn=h2 no-default-alpn"],
    ["1 svc.example ipv4hint=10.0.0.1 key65280=abc", "1 svc.example key65280=abc"],
    ["0 alias.example", "all"],
  ] as const;
  for (const type of ["HTTPS", "SVCB"] as const) {
    for (const [text, want] of rows) {
      await t.step(`${type} ${text}`, () => {
        const kept = keep(N, Qtype[type], [record(`${N} 60 ${type} ${text}`)]);
        assert.equal(kept.isSame, want === "all");
        const plain = show(kept).replace(`${N} ${type} `, "").replaceAll('"', "");
        if (want !== "all") assert.equal(plain, want);
        // What is left is well formed still: every mandatory key is there.
        const again = new ScrubbingReader(BOUNDS);
        const asked = encodeQuery(N, Qtype[type], { id: ID });
        const end = 12 + wire(N).length + 4;
        const fit = again.read(kept.bytes, kept.bytes.length, asked, end, false);
        assert.equal(fit, "Answer");
      });
    }
  }
});

Deno.test("RebindingProtection.protect() leaves names of one's own network alone", none, () => {
  const own = ["lan", "nas.lan", "NAS.Lan", "a.b.home.arpa", "x.internal", "printer.local"];
  own.push("corp.example", "x.corp.example", "Nas.Dyn.Example", "a.nas.dyn.example");
  for (const name of own) {
    assert.ok(keep(name, Qtype.A, [record(`${name} 60 A 192.168.0.1`)]).isSame, name);
  }
  const foreign = [
    "xlan",
    "lan.example",
    "nas.lan.example",
    "arpa",
    "xcorp.example",
    "dyn.example",
  ];
  for (const name of foreign) {
    assert.equal(show(keep(name, Qtype.A, [record(`${name} 60 A 192.168.0.1`)])), "", name);
  }
  // The asked name counts: who answers for it chose where its alias leads.
  const alias = [record(`${N} 60 CNAME nas.lan`), record("nas.lan 60 A 192.168.0.1")];
  assert.equal(show(keep(N, Qtype.A, alias)), `${N} CNAME nas.lan`);
});

Deno.test("RebindingProtection.protect() looks into the authority section, too", none, () => {
  const soa = {
    section: 1,
    name: "example",
    type: Qtype.SOA,
    ttl: 60,
    rdata: soaRdata(60),
  } as const;
  const hidden = { ...record("ns.example 60 A 10.0.0.1"), section: 1 } as const;
  const kept = keep(N, Qtype.A, [soa, hidden], 3);
  assert.match(show(kept), /^example SOA [^;]*$/);
  assert.equal(decodeBoth(kept.bytes).rcode, 3);
});

Deno.test("RebindingProtection.taken notes what was taken out of answers", none, () => {
  const protection = new RebindingProtection();
  const taken = (type: number, records: readonly FakeRecord[]) => {
    const packet = response({ id: ID, name: N, type, records });
    const reader = new ScrubbingReader(BOUNDS);
    const asked = encodeQuery(N, type, { id: ID });
    reader.read(packet, packet.length, asked, 12 + wire(N).length + 4, true);
    protection.protect(reader.message, reader);
    const bytes = protection.taken;
    const found: string[] = [];
    for (let at = 0; at < bytes.length; at += 1 + bytes[at]) {
      found.push(formatIp(bytes.subarray(at + 1, at + 1 + bytes[at])));
    }
    return found;
  };
  const lines = (...all: string[]) => all.map((line) => record(`${N} 60 ${line}`));
  assert.deepEqual(taken(Qtype.A, lines("A 10.0.0.1", "A 192.0.2.1", "A 192.168.0.1")), [
    "10.0.0.1",
    "192.168.0.1",
  ]);
  assert.deepEqual(taken(Qtype.A, lines("A 192.0.2.1")), []);
  assert.deepEqual(taken(Qtype.AAAA, lines("AAAA fd00::1")), ["fd00::1"]);
  assert.deepEqual(
    taken(Qtype.HTTPS, lines("HTTPS 1 . ipv4hint=10.0.0.1,192.0.2.1,10.0.0.2 ipv6hint=::1")),
    ["10.0.0.1", "10.0.0.2", "::1"],
  );
  const hidden = { ...record("ns.example 60 A 10.0.0.1"), section: 1 } as const;
  assert.deepEqual(taken(Qtype.A, [hidden]), []);
  // A message of some 40 KiB.
  const many = Array.from({ length: 1_500 }, () => "A 10.0.0.1");
  assert.equal(taken(Qtype.A, lines(...many)).length, Math.floor(TAKEN_BYTES_MAX / 5));
});

Deno.test("RebindingProtection.protect() empties an answer that outgrows a message", none, () => {
  // More long names than are remembered for pointers, and hundreds of records of the last one.
  const names = Array.from({ length: 80 }, (_, i) => {
    const label = String(i).padStart(60, "x");
    return `${label}.${label}.${label}.example`;
  });
  const records = names.map((name, i) => {
    return record(`${name} 60 A ${i < names.length - 1 ? "192.0.2.1" : "10.0.0.1"}`);
  });
  const before = response({ id: ID, name: N, type: Qtype.A, records: records.slice(0, -1) });
  const start = response({ id: ID, name: N, type: Qtype.A, records });
  const one = [0xc0 | before.length >> 8, before.length & 255, ...[0, 1, 0, 1, 0, 0, 0, 60, 0, 4]];
  one.push(192, 0, 2, 1);
  const packet = Uint8Array.from([...start, ...new Array(400).fill(one).flat()]);
  setU16(packet, 6, records.length + 400);
  const kept = { length: packet.length, ttlOffsets: new Uint16Array(TTLS_MAX), ttlCount: 0 };
  const message = new RebindingProtection().protect(packet, kept);
  const { rcode, answers } = decodeBoth(message.slice(0, kept.length));
  assert.deepEqual([rcode, answers, kept.ttlCount], [0, [], 0]);
});
