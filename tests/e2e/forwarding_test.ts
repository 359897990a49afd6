// Goal: nobody but the asked upstream can answer, and what it says is fetched whole. Method: a scripted
// upstream records each query as it was sent, and answers wrongly in one field at a time.

import assert from "node:assert/strict";
import { createSocket } from "node:dgram";
import { type Message, QR_BIT, Qtype, Rcode } from "../../src/dns/mod.ts";
import { setU16 } from "../../src/bytes/mod.ts";
import { ask } from "./clients.ts";
import { address, answer, FakeUpstream, type Seen, truncated, txtRdata } from "./fake_upstream.ts";
import { HAS_IPV6, PERMISSIONS, Service, until } from "./harness.ts";

const TRUE_ADDRESS = "192.0.2.99";
const FORGED = "203.0.113.66";

const dataOf = ({ answers }: Message) => answers.map(({ data }) => data);

/** Sends a packet to where a query came from, from another socket than the upstream's. */
async function sendFrom(ip: string, port: number, packet: Uint8Array): Promise<void> {
  const socket = createSocket("udp4");
  await new Promise<void>((resolve) => socket.bind(0, ip, () => resolve()));
  await new Promise<void>((resolve) => socket.send(packet, port, "127.0.0.1", () => resolve()));
  socket.close();
}

Deno.test("svc run asks from random ports with random IDs and case", {
  permissions: PERMISSIONS,
}, async () => {
  await using upstream = await FakeUpstream.start();
  await using service = await Service.start({ config: { upstream: [{ address: upstream.text }] } });
  const TOTAL = 1_000;
  const AT_ONCE = 50;
  const nameOf = (i: number) => `some-letters-and-${String(i).padStart(4, "0")}.example.test`;
  for (let from = 0; from < TOTAL; from += AT_ONCE) {
    await Promise.all(
      Array.from({ length: AT_ONCE }, (_, i) => ask(service.address, nameOf(from + i), Qtype.A)),
    );
  }
  // The first query for each name: one that waited long was sent again.
  const seen = Array.from({ length: TOTAL }, (_, i) => upstream.about(nameOf(i))[0]);
  assert(new Set(seen.map(({ port }) => port)).size > 0.9 * TOTAL);
  const ids = seen.map(({ message }) => message.id);
  assert(new Set(ids).size > 0.9 * TOTAL);
  // A fair bit is set in 500 of 1,000, give or take 16; 100 away is no chance at all.
  const around = (count: number) => Math.abs(count - TOTAL / 2) < 100;
  for (let bit = 0; bit < 16; bit++) {
    assert(around(ids.filter((id) => (id >> bit & 1) !== 0).length), `bit ${bit} of IDs`);
  }
  const ports = seen.map(({ port }) => port);
  for (let bit = 0; bit < 15; bit++) {
    assert(around(ports.filter((port) => (port >> bit & 1) !== 0).length), `bit ${bit} of ports`);
  }
  const name = nameOf(0);
  for (let at = 0; at < name.length; at++) {
    if (!/[a-z]/.test(name[at])) continue;
    const upper = seen.filter((query) => /[A-Z]/.test(query.name[at])).length;
    assert(around(upper), `case of letter ${at}: ${upper}`);
  }
  // Neither follows from the one before.
  const runs = ids.filter((id, i) => i > 0 && Math.abs(id - ids[i - 1]) <= 4).length;
  assert(runs < 0.01 * TOTAL, `${runs} IDs next to the one before`);
  for (const { message } of upstream.seen) {
    assert(message.rd && message.opt !== null && message.opt.payload <= 1_232);
  }
  service.assertCalm();
});

/** What a forger sends, each before the true answer comes. */
const FORGERIES: readonly (readonly [string, (query: Seen) => Uint8Array])[] = [
  ["wrong ID", (q) => answer(q, { id: q.message.id ^ 1, answers: forged(q) })],
  ["swapped ID", (q) => {
    const packet = answer(q, { answers: forged(q) });
    return packet.with(0, packet[1]).with(1, packet[0] ^ 0x80);
  }],
  ["another name", (q) => answer(q, { question: "other.example", answers: forged(q) })],
  ["another type", (q) => {
    const packet = address(q, FORGED);
    setU16(packet, 12 + q.name.length + 2, Qtype.MX);
    return packet;
  }],
  ["a query", (q) => {
    const packet = address(q, FORGED);
    setU16(packet, 2, (packet[2] << 8 | packet[3]) & ~QR_BIT);
    return packet;
  }],
  ["nothing", () => new Uint8Array(0)],
  ["a header alone", (q) => address(q, FORGED).subarray(0, 12)],
  ["an opcode", (q) => address(q, FORGED).with(2, 0xa9)],
  ["no question", (q) => {
    const packet = address(q, FORGED);
    setU16(packet, 4, 0);
    return packet;
  }],
];
const forged = (q: Seen) => [{ type: q.type, ttl: 300, data: FORGED }];

Deno.test("svc run waits on after a wrong answer", { permissions: PERMISSIONS }, async (t) => {
  const genuine = Promise.withResolvers<void>();
  await using upstream = await FakeUpstream.start(async (query) => {
    const forge = FORGERIES[Number(/^f(\d+)\./i.exec(query.name)?.[1])]?.[1];
    if (forge !== undefined) {
      // The wrong one goes first; the right one is on the same socket, so behind it.
      return [forge(query), address(query, TRUE_ADDRESS)];
    }
    if (/^elsewhere/i.test(query.name)) {
      const packet = address(query, FORGED);
      await sendFrom("127.0.0.1", query.port, packet); // Another port of the upstream.
      await sendFrom("127.0.0.2", query.port, packet); // Another address.
    }
    await genuine.promise;
    return address(query, TRUE_ADDRESS);
  });
  await using service = await Service.start({
    config: { upstream: [{ address: upstream.text, timeout: "5s" }] },
  });
  for (const [i, [name]] of FORGERIES.entries()) {
    await t.step(name, async () => {
      const got = await ask(service.address, `f${i}.example`, Qtype.A);
      assert.deepEqual([got.rcode, dataOf(got)], [Rcode.NoError, [TRUE_ADDRESS]]);
      const ways = upstream.about(`f${i}.example`).map((q) => q.transport);
      assert.deepEqual(new Set(ways), new Set(["udp"]));
    });
  }
  await t.step("from another port and another address", async () => {
    const asked = ask(service.address, "elsewhere.example", Qtype.A);
    await upstream.asked("elsewhere.example");
    // Answered behind the forged ones, which have been there by then.
    await ask(service.address, "f0.example", Qtype.A);
    genuine.resolve();
    assert.deepEqual(dataOf(await asked), [TRUE_ADDRESS]);
  });
  // Nothing of what was forged was kept.
  const kept = await ask(service.address, "other.example", Qtype.A);
  assert.deepEqual(dataOf(kept), [TRUE_ADDRESS]);
  service.assertCalm();
});

Deno.test("svc run turns to TCP where UDP is doubtful or too small", {
  permissions: PERMISSIONS,
}, async (t) => {
  const large = txtRdata(20_000);
  const ways = (name: string) => upstream.about(name).map((query) => query.transport).join(" ");
  /** By UDP and then by TCP; a question that waited long was sent again. */
  const TURNED = /^udp( udp)* tcp/;
  await using upstream = await FakeUpstream.start((query) => {
    const [first] = query.name.toLowerCase().split(".");
    const udp = query.transport === "udp";
    if (first.startsWith("large")) {
      if (udp) return truncated(query);
      return answer(query, { answers: [{ type: Qtype.TXT, ttl: 300, data: large }] });
    }
    if (first === "folded" && udp) {
      const packet = address(query, FORGED);
      for (let at = 13; packet[at] !== 0; at++) {
        if (packet[at] >= 0x41 && packet[at] <= 0x5a) packet[at] |= 0x20;
      }
      return packet;
    }
    if (first === "flooded" && udp) {
      return Array.from(
        { length: 100 },
        (_, i) => answer(query, { id: query.message.id ^ (i + 1), answers: forged(query) }),
      );
    }
    if (first === "cut-off" && ways(query.name).split("tcp").length <= 2) {
      return udp ? truncated(query) : "close";
    }
    return address(query, TRUE_ADDRESS);
  });
  await using service = await Service.start({
    config: { upstream: [{ address: upstream.text, timeout: "5s" }] },
  });
  for (const name of ["folded.example", "flooded.example"]) {
    await t.step(name, async () => {
      assert.deepEqual(dataOf(await ask(service.address, name, Qtype.A)), [TRUE_ADDRESS]);
      assert.match(ways(name), TURNED);
    });
  }
  await t.step("a connection that is closed on the way", async () => {
    const got = await ask(service.address, "cut-off.example", Qtype.A);
    assert.deepEqual(dataOf(got), [TRUE_ADDRESS]);
    // Asked once more, by whichever way.
    assert.match(ways("cut-off.example"), /^udp( udp)* tcp (tcp|udp)/);
  });
  await t.step("truncated ones, on shared connections", async () => {
    const names = Array.from({ length: 60 }, (_, i) => `large-${i}.example`);
    const got = await Promise.all(names.map((name) => ask(service.address, name, Qtype.TXT)));
    for (const message of got) assert.deepEqual([message.tc, message.rcode], [true, 0]);
    for (const name of names) assert.match(ways(name), TURNED);
    const streams = upstream.seen.filter(({ transport }) => transport === "tcp");
    assert(new Set(streams.map(({ port }) => port)).size <= 8);
  });
  service.assertCalm();
});

Deno.test("svc run asks without EDNS where it is not understood", {
  permissions: PERMISSIONS,
}, async () => {
  await using upstream = await FakeUpstream.start((query) =>
    query.message.opt === null
      ? address(query, TRUE_ADDRESS)
      : answer(query, { rcode: Rcode.FormErr, edns: false })
  );
  await using service = await Service.start({ config: { upstream: [{ address: upstream.text }] } });
  const got = await ask(service.address, "old.example", Qtype.A, { edns: {} });
  assert.deepEqual([got.rcode, dataOf(got)], [Rcode.NoError, [TRUE_ADDRESS]]);
  service.assertCalm();
});

Deno.test("svc run forwards names to the upstreams of their domain", {
  permissions: PERMISSIONS,
}, async (t) => {
  const by = (data: string) => FakeUpstream.start((query) => address(query, data));
  await using everything = await by("192.0.2.1");
  await using corp = await by("192.0.2.2");
  await using lab = await by("192.0.2.3");
  await using service = await Service.start({
    config: {
      upstream: [
        { address: corp.text, domains: ["corp.example", "2.0.192.in-addr.arpa"] },
        { address: everything.text },
        { address: lab.text, domains: ["lab.corp.example"] },
      ],
    },
  });
  const rows = [
    ["www.example", "192.0.2.1"],
    ["example", "192.0.2.1"],
    ["corp.example", "192.0.2.2"],
    ["CORP.Example", "192.0.2.2"],
    ["a.b.corp.example", "192.0.2.2"],
    ["notcorp.example", "192.0.2.1"],
    ["corp.example.test", "192.0.2.1"],
    ["lab.corp.example", "192.0.2.3"],
    ["x.lab.corp.EXAMPLE", "192.0.2.3"],
    ["1.2.0.192.in-addr.arpa", "192.0.2.2"],
    ["1.2.0.193.in-addr.arpa", "192.0.2.1"],
  ] as const;
  for (const [name, data] of rows) {
    await t.step(name, async () => {
      assert.deepEqual(dataOf(await ask(service.address, name, Qtype.A)), [data]);
    });
  }
  await t.step("no other upstream is asked for them", async () => {
    await lab.close();
    const got = await ask(service.address, "new.lab.corp.example", Qtype.A, { edns: {} });
    assert.equal(got.rcode, Rcode.ServFail);
    assert.equal(got.opt?.errors.length, 1);
    assert.deepEqual([...corp.seen, ...everything.seen].filter((q) => /lab/i.test(q.name)), []);
  });
  service.assertCalm();
});

Deno.test("svc run asks upstreams over IPv6", {
  permissions: PERMISSIONS,
  ignore: !HAS_IPV6,
}, async () => {
  await using upstream = await FakeUpstream.start((query) => {
    if (/^cut/i.test(query.name) && query.transport === "udp") return truncated(query);
    return address(query, TRUE_ADDRESS);
  }, "::1");
  await using service = await Service.start({ config: { upstream: [{ address: upstream.text }] } });
  for (const name of ["whole.example", "cut.example"]) {
    assert.deepEqual(dataOf(await ask(service.address, name, Qtype.A)), [TRUE_ADDRESS]);
  }
  await until("both ways", () => upstream.seen.some(({ transport }) => transport === "tcp"));
  service.assertCalm();
});
