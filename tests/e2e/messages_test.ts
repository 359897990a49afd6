// Goal: whatever comes in as a query or as an answer, the service says what the RFCs say, or nothing,
// and goes on. Method: dig and kdig read its answers; broken packets that others collected are sent
// to it, first as queries, then as answers of its upstream.

import assert from "node:assert/strict";
import { decodeHex, encodeHex, getU16, setU16 } from "../../src/bytes/mod.ts";
import { encodeQuery, HEADER_BYTES, type Message, Qtype, Rcode } from "../../src/dns/mod.ts";
import { ask, askTcp, decode, lookUp, nextId, TcpClient, UdpClient } from "./clients.ts";
import { address, answer, FakeUpstream, type Seen, soaRdata, wireName } from "./fake_upstream.ts";
import { hasProgram, PERMISSIONS, Service, sharedFile, sideBySide, until } from "./harness.ts";

interface Malformed {
  readonly name: string;
  readonly direction: "query" | "response";
  readonly hex: string;
  readonly expect: string;
}

const MALFORMED_FILE = sharedFile("vectors/malformed.json");
const PACKETS_FILE = sharedFile("vectors/packets.tsv.gz");
/** Bytes the service may hold more than soon after the begin of a replay; its cache is 32 MiB. */
const GROWTH_BYTES_MAX = 80 * 1024 * 1024;
const ID = 0x1234;

async function malformed(direction: Malformed["direction"]): Promise<Malformed[]> {
  const { packets } = JSON.parse(await Deno.readTextFile(MALFORMED_FILE!)) as {
    packets: Malformed[];
  };
  return packets.filter((packet) => packet.direction === direction);
}

async function packets(): Promise<Uint8Array[]> {
  const file = await Deno.open(PACKETS_FILE!);
  const unpacked = file.readable.pipeThrough(new DecompressionStream("gzip"));
  const rows = (await new Response(unpacked).text()).trim().split("\n");
  return rows.map((row) => decodeHex(row.split("\t")[1])!);
}

/** Answers by QNAME: what the table of dig and kdig asks for. */
function zone(query: Seen): Uint8Array {
  const soa = { type: Qtype.SOA, ttl: 600, name: "example", data: soaRdata("example", 60) };
  switch (query.name.toLowerCase()) {
    case "gone.example":
      return answer(query, { rcode: Rcode.NXDomain, authorities: [soa] });
    case "empty.example":
      return answer(query, { authorities: [soa] });
    case "alias.example":
      return answer(query, {
        answers: [
          { type: Qtype.CNAME, ttl: 60, data: wireName("target.example") },
          { type: Qtype.A, ttl: 30, data: "192.0.2.7", name: "target.example" },
        ],
      });
    case "refused.example":
      return answer(query, { rcode: Rcode.Refused });
    case "censored.example":
      return answer(query, { rcode: Rcode.NXDomain, authorities: [soa], ede: 16 });
    default:
      return address(query);
  }
}

/** Arguments of dig or kdig, and what must and must not be printed. */
const LOOKUPS: readonly (readonly [string, ...RegExp[]])[] = [
  ["www.example A", /NOERROR/, /^www\.example\.\s+(300|29\d)\s+IN\s+A\s+192\.0\.2\.1$/m],
  ["www.example AAAA", /NOERROR/, /IN\s+AAAA\s+2001:db8::1$/m],
  ["gone.example A", /NXDOMAIN/, /^example\.\s+(60|5\d)\s+IN\s+SOA\s+ns\.example\./m],
  ["empty.example A", /NOERROR/, /ANSWER: 0/, /^example\.\s+(60|5\d)\s+IN\s+SOA/m],
  ["alias.example A", /IN\s+CNAME\s+target\.example\./, /^target\.example\.\s+(30|2\d)\s+IN\s+A/m],
  ["refused.example A", /SERVFAIL/],
  ["+edns censored.example A", /NXDOMAIN/, /EDE: 16 \(Censored\)/],
  ["+edns refused.example A", /SERVFAIL/, /EDE: \d+ /],
  ["health.svc.test A", /NOERROR/, /IN\s+A\s+127\.0\.0\.1$/m],
  ["health.svc.test AAAA", /NOERROR/, /IN\s+AAAA\s+::1$/m],
  ["health.svc.test TXT", /NOERROR/, /ANSWER: 0/, /IN\s+SOA/],
  ["HEALTH.svc.TEST A", /IN\s+A\s+127\.0\.0\.1$/m],
  ["svc.test A", /NOERROR/, /ANSWER: 0/, /IN\s+SOA/],
  ["other.svc.test A", /NXDOMAIN/, /IN\s+SOA/],
  ["deep.health.svc.test A", /NXDOMAIN/, /IN\s+SOA/],
  ["www.example ANY", /NOERROR/, /IN\s+HINFO\s+"RFC8482" ""/],
  ["version.bind CH TXT", /REFUSED/],
  ["id.server CH TXT", /REFUSED/],
  ["example IXFR=1 +tcp", /REFUSED|failed/i],
  ["example AXFR +tcp", /REFUSED|failed/i],
  ["+norec never-asked.example A", /REFUSED/],
  ["+norec www.example A", /NOERROR/, /192\.0\.2\.1/],
  ["blocked.example A", /NOERROR/, /^blocked\.example\.\s+10\s+IN\s+A\s+0\.0\.0\.0$/m],
  ["blocked.example AAAA", /NOERROR/, /IN\s+AAAA\s+::$/m],
  ["blocked.example MX", /NOERROR/, /ANSWER: 0/, /^blocked\.example\.\s+10\s+IN\s+SOA.* 10$/m],
  ["+edns blocked.example A", /EDE: 15 \(Blocked\): '?\(?.*\|\|blocked\.example\^/],
  ["+tcp +edns below.blocked.example A", /0\.0\.0\.0/, /EDE: 15 \(Blocked\)/],
];

for (const program of ["dig", "kdig"] as const) {
  Deno.test(`svc run and ${program} agree`, {
    permissions: PERMISSIONS,
    ignore: !hasProgram(program),
  }, async (t) => {
    await using upstream = await FakeUpstream.start(zone);
    await using service = await Service.start({
      config: {
        upstream: [{ address: upstream.text }],
        filter: { rules: ["||blocked.example^"] },
      },
    });
    const extra: [string, ...RegExp[]][] = program === "kdig" ? [] : [
      // kdig itself folds names.
      ["WWW.eXample A", /^WWW\.eXample\.\s+\d+\s+IN\s+A/m],
      ["+noedns +opcode=NOTIFY www.example SOA", /NOTIMP/],
      ["+noedns +opcode=UPDATE www.example SOA", /NOTIMP/],
      ["+noedns +opcode=STATUS www.example SOA", /NOTIMP/],
      ["+edns=1 +noednsnegotiation www.example A", /BADVERS/, /EDNS: version: 0/],
      ["+noedns www.example A", /NOERROR/, /ADDITIONAL: 0/],
      ["+ednsopt=65001:00ff www.example A", /NOERROR/],
      ["+subnet=192.0.2.0/24 www.example A", /NOERROR/],
      ["+cookie www.example A", /NOERROR/],
    ];
    for (const server of service.listening) {
      for (const [args, ...patterns] of [...LOOKUPS, ...extra]) {
        await t.step(`${server.ip.length === 4 ? "IPv4" : "IPv6"} ${args}`, async () => {
          const text = await lookUp(program, server, args);
          for (const pattern of patterns) assert.match(text, pattern);
          assert.doesNotMatch(
            text,
            /malformed|extra bytes|mismatch|timed out|WARNING(?!.*recurs)/i,
          );
        });
      }
    }
    // Own names, blocked ones and refused questions never reach an upstream.
    const leaked = upstream.seen.filter(({ name }) => /svc\.test|blocked|bind|server/i.test(name));
    assert.deepEqual(leaked.map(({ name }) => name), []);
    service.assertCalm();
  });
}

/** What the file expects of the answer to a broken query, as what the service may do. */
const QUERY_EXPECTATIONS: Readonly<Record<string, readonly (string | null)[]>> = {
  "no answer or FORMERR (never a crash, never a hang); the next good query is answered": [
    null,
    "FormErr",
  ],
  "FORMERR": ["FormErr"],
  "FORMERR or no answer": ["FormErr", null],
  "FORMERR (RFC 9619: qdcount > 1)": ["FormErr"],
  "no answer at all (loops)": [null],
  "NOTIMP": ["NotImp"],
  "NOTIMP or REFUSED": ["NotImp", "Refused"],
  "REFUSED, NOTIMP or FORMERR": ["Refused", "NotImp", "FormErr"],
  "REFUSED/NOTIMP or own text, never forwarded": ["Refused", "NotImp"],
  "FORMERR/NOTIMP or refused": ["FormErr", "NotImp", "Refused"],
  "FORMERR/REFUSED or normal": ["FormErr", "Refused", "NoError"],
  "FORMERR or normal": ["FormErr", "NoError"],
  "FORMERR or normal, never cached": ["FormErr", "NoError"],
  "BADVERS (extended rcode 16) with version 0": ["BadVers"],
  "answered from cache or REFUSED, must not recurse (cache snooping: see spec)": [
    "Refused",
    "NoError", // A rule covers this name, and rules answer without asking anybody.
  ],
};

function rcodeOf({ rcode }: Message): string {
  return Object.entries(Rcode).find(([, value]) => value === rcode)?.[0] ?? String(rcode);
}

Deno.test("svc run answers or drops malformed queries", {
  permissions: PERMISSIONS,
  ignore: MALFORMED_FILE === null,
}, async (t) => {
  await using upstream = await FakeUpstream.start();
  await using service = await Service.start({
    config: {
      upstream: [{ address: upstream.text }],
      filter: { rules: ["||www.example.test^", "|example^"] },
    },
  });
  const { address: server } = service;
  const good = async () => {
    const name = `good-${nextId()}.example`;
    assert.equal((await ask(server, name, Qtype.A)).answers.length, 1);
  };
  for (const { name, hex, expect } of await malformed("query")) {
    const may = QUERY_EXPECTATIONS[expect] ?? ["NoError"]; // The others describe a normal answer.
    const packet = decodeHex(hex)!;
    await t.step(`UDP: ${name}`, async () => {
      using client = await UdpClient.open(server);
      client.send(packet);
      // Answers that wait for nobody come in the order of their queries.
      if (may.includes(null)) {
        await client.exchange(encodeQuery("svc.test", Qtype.A, { id: ID + 1 }));
      } else await until("an answer", () => client.received.length > 0);
      const got = decode(client.received[0]);
      if (got.id === ID + 1) return await good();
      assert(may.includes(rcodeOf(got)), `${expect}: got ${rcodeOf(got)}`);
      assert(got.response && got.id === getU16(packet, 0));
      if (rcodeOf(got) === "BadVers") assert.equal(got.opt?.version, 0);
      await good();
    });
    await t.step(`TCP: ${name}`, async () => {
      using client = await TcpClient.connect(server);
      const check = encodeQuery("health.svc.test", Qtype.A, { id: ID + 1 });
      await client.send(packet, check);
      const first = await client.message();
      if (first.id === ID + 1) {
        assert(may.includes(null), `${expect}: got nothing`);
      } else {
        assert(may.includes(rcodeOf(first)), `${expect}: got ${rcodeOf(first)}`);
        assert.equal((await client.message()).id, ID + 1);
      }
    });
  }
  // A dot or NUL inside a label is no separator and no end: no rule matched these, and they were
  // forwarded as what they are.
  const forwarded = upstream.seen.map(({ name }) => name.toLowerCase());
  assert(forwarded.includes("www\\.example.test"), forwarded.join(" "));
  assert(forwarded.some((name) => name.startsWith("example\\000")), forwarded.join(" "));
  assert(!upstream.seen.some(({ type }) => type === Qtype.AXFR || type === Qtype.ANY));
  service.assertCalm();
});

/** Waits until the service answers a name that nobody asked for before. */
async function stillAnswers(service: Service): Promise<void> {
  const { rcode } = await ask(service.address, `good-${nextId()}.example`, Qtype.A);
  assert.equal(rcode, Rcode.NoError, service.transcript());
}

Deno.test("svc run goes on under replayed packets as queries", {
  permissions: PERMISSIONS,
  ignore: PACKETS_FILE === null,
}, async () => {
  await using upstream = await FakeUpstream.start();
  await using service = await Service.start({
    config: { upstream: [{ address: upstream.text }] },
  });
  await stillAnswers(service);
  let before = 0;
  let tcp = await TcpClient.connect(service.address);
  using udp = await UdpClient.open(service.address);
  let count = 0;
  let marker = 0;
  try {
    for (const packet of await packets()) {
      udp.send(packet);
      await tcp.send(packet);
      if (++count % 200 !== 0) continue;
      await stillAnswers(service);
      if (count === 200) before = await service.residentBytes();
      // The same connection still carries messages.
      const check = encodeQuery(`marker-${++marker}.svc.test`, Qtype.A, { id: ID });
      await tcp.send(check);
      for (;;) {
        const frame = await tcp.next();
        assert(frame !== null, `the connection ended within packets ${count - 200} to ${count}`);
        // No answer to the others need be a message that we can read; ours is.
        if (getU16(frame, 0) !== ID || !encodeHex(frame).includes(markerHex(marker))) continue;
        break;
      }
      tcp[Symbol.dispose]();
      tcp = await TcpClient.connect(service.address);
    }
  } finally {
    tcp[Symbol.dispose]();
  }
  assert(count > 4_000);
  const grownBytes = await service.residentBytes() - before;
  assert(grownBytes < GROWTH_BYTES_MAX, `${grownBytes} bytes more`);
  assert.equal((await service.stop()).code, 0);
  service.assertCalm();
});

function markerHex(marker: number): string {
  return encodeHex(new TextEncoder().encode(`marker-${marker}`));
}

/** A packet as the answer to a query: its ID and question are those that were sent. */
function asAnswer(packet: Uint8Array, query: Seen): Uint8Array {
  const asked = query.bytes;
  let questionEnd = HEADER_BYTES;
  while (asked[questionEnd] !== 0) questionEnd += 1 + asked[questionEnd];
  questionEnd += 5;
  // What stands behind the packet's own question, as far as it has one.
  let at = HEADER_BYTES;
  if (packet.length > HEADER_BYTES && getU16(packet, 4) === 1) {
    while (at < packet.length && packet[at] !== 0 && packet[at] < 0xc0) at += 1 + packet[at];
    at += (packet[at] ?? 0) >= 0xc0 ? 6 : 5;
  }
  const rest = packet.subarray(Math.min(at, packet.length));
  const head = new Uint8Array(HEADER_BYTES);
  head.set(packet.subarray(0, HEADER_BYTES));
  head.set(asked.subarray(0, 2));
  head[2] |= 0x80;
  setU16(head, 4, 1);
  const bytes = new Uint8Array(questionEnd + rest.length);
  bytes.set(head);
  bytes.set(asked.subarray(HEADER_BYTES, questionEnd), HEADER_BYTES);
  bytes.set(rest, questionEnd);
  return bytes;
}

Deno.test("svc run goes on under replayed packets as answers", {
  permissions: PERMISSIONS,
  ignore: PACKETS_FILE === null,
}, async () => {
  const replayed = await packets();
  await using upstream = await FakeUpstream.start((query) => {
    const number = /^p(\d+)\./i.exec(query.name)?.[1];
    if (number === undefined) return address(query);
    // The replayed packet first, then the true answer.
    return [asAnswer(replayed[Number(number)], query), address(query, "192.0.2.99")];
  });
  await using service = await Service.start({
    config: { upstream: [{ address: upstream.text }] },
  });
  await stillAnswers(service);
  let before = 0;
  const AT_ONCE = 50;
  let trueAnswers = 0;
  for (let from = 0; from < replayed.length; from += AT_ONCE) {
    const batch = replayed.slice(from, from + AT_ONCE).map((_, i) => `p${from + i}.example`);
    const got = await Promise.all(batch.map((name) => ask(service.address, name, Qtype.A)));
    for (const { answers } of got) if (answers[0]?.data === "192.0.2.99") trueAnswers++;
    if (from % 200 === 0) await stillAnswers(service);
    if (from === 200) before = await service.residentBytes();
  }
  // Most of the packets are broken or are queries, and are not taken for the answer.
  assert(trueAnswers > 1_000, `${trueAnswers} true answers`);
  const grownBytes = await service.residentBytes() - before;
  assert(grownBytes < GROWTH_BYTES_MAX, `${grownBytes} bytes more`);
  assert.equal((await service.stop()).code, 0);
  service.assertCalm();
});

/** Offsets of QNAME's first label in the file's answers, to `www.example.test`. */
const FIRST_LABEL = { from: HEADER_BYTES + 1, to: HEADER_BYTES + 4 } as const;
const THROWN_AWAY = "the answer is thrown away (retry, other server or SERVFAIL); " +
  "nothing from it is cached; the process lives";

Deno.test("svc run throws malformed answers away", {
  permissions: PERMISSIONS,
  ignore: MALFORMED_FILE === null,
}, async (t) => {
  const rows = (await malformed("response")).filter(({ expect }) => expect === THROWN_AWAY);
  assert(rows.length > 20);
  // The first packet for a name is the broken one, and the true answer follows only later.
  await using upstream = await FakeUpstream.start((query) => {
    const row = rows[Number(/^r(\d\d)\./i.exec(query.name)?.[1])];
    if (row === undefined || upstream.about(query.name).length > 1) {
      return address(query, "192.0.2.99");
    }
    const packet = decodeHex(row.hex)!;
    packet.set(query.bytes.subarray(0, 2));
    const about = /question (of another name|absent)/.test(row.name);
    if (!about && packet.length >= FIRST_LABEL.to + 13) {
      // The question as it was sent, letter by letter.
      packet.set(query.bytes.subarray(HEADER_BYTES, HEADER_BYTES + 22), HEADER_BYTES);
    }
    return packet;
  });
  await using service = await Service.start({
    config: { upstream: [{ address: upstream.text, timeout: "4s" }] },
  });
  const steps = rows.map((row, i): [string, () => Promise<void>] => [row.name, async () => {
    const name = `r${String(i).padStart(2, "0")}.example.test`;
    const packet = decodeHex(row.hex)!;
    const type = packet.length >= 34 && /^(SOA|TXT|MX|SVCB|HTTPS|NSEC|AAAA)/.test(row.name)
      ? getU16(packet, 30)
      : Qtype.A;
    const got = await ask(service.address, name, type);
    // A type of its own has no address as its answer; what matters is whose answer it is.
    const data = got.answers.map((record) => record.data);
    assert(
      got.rcode === Rcode.ServFail || data.join() === "192.0.2.99" ||
        data.join() === "2001:db8::1",
      `${row.name}: ${rcodeOf(got)} ${data}`,
    );
    const again = await askTcp(service.address, name, type);
    assert.deepEqual(again.answers.map((record) => record.data), data);
  }]);
  await sideBySide(t, steps);
  await until("a good answer", async () => {
    return (await ask(service.address, `w${nextId()}.example`, Qtype.A)).answers.length === 1;
  });
  service.assertCalm();
});
