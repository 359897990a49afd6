// Goal: answers are kept as long as they may be and no longer, and asked for once. Method: a scripted
// upstream counts what it is asked; time is the real one, so waits are for conditions, never for it.

import assert from "node:assert/strict";
import { encodeQuery, type Message, Qtype, Rcode } from "../../src/dns/mod.ts";
import { Api } from "./api.ts";
import { ask, askTcp, decode, UdpClient } from "./clients.ts";
import { address, answer, FakeUpstream, type Seen, soaRdata, wireName } from "./fake_upstream.ts";
import { pause, PERMISSIONS, Service, sideBySide, until } from "./harness.ts";

const EDE_STALE = 3;
/** TTL of a stale answer (RFC 8767 §4). */
const STALE_TTL = 30;
const POLL_MS = 100;

const dataOf = ({ answers }: Message) => answers.map(({ data }) => data);
const soa = (ttl: number, minimum: number) => ({
  type: Qtype.SOA,
  ttl,
  name: "example",
  data: soaRdata("example", minimum),
});

/** Seconds that may pass between two questions of a test. */
const BETWEEN_SECONDS = 8;

/** TTLs an upstream gives, and what the client gets of them, asked twice. */
const TTLS: readonly (readonly [string, (query: Seen) => Uint8Array, number])[] = [
  ["within the bounds", (q) => address(q, "192.0.2.1", 50), 50],
  ["over max_ttl", (q) => address(q, "192.0.2.1", 86_400), 100],
  ["under min_ttl", (q) => address(q, "192.0.2.1", 1), 20],
  ["zero", (q) => address(q, "192.0.2.1", 0), 20],
  ["negative as a number: zero", (q) => address(q, "192.0.2.1", 0x80000001), 20],
  [
    "two records: the shorter one",
    (q) =>
      answer(q, {
        answers: [
          { type: Qtype.CNAME, ttl: 90, data: wireName("t.example") },
          { type: Qtype.A, ttl: 40, data: "192.0.2.1", name: "t.example" },
        ],
      }),
    40,
  ],
  ["NXDOMAIN by MINIMUM", (q) => answer(q, { rcode: 3, authorities: [soa(600, 25)] }), 25],
  ["NXDOMAIN by the SOA's TTL", (q) => answer(q, { rcode: 3, authorities: [soa(24, 600)] }), 24],
  ["NODATA", (q) => answer(q, { authorities: [soa(600, 26)] }), 26],
  [
    "NXDOMAIN over negative_max_ttl",
    (q) => answer(q, { rcode: 3, authorities: [soa(600, 600)] }),
    30,
  ],
  // Kept for a short while, with no record to say so.
  ["NXDOMAIN without SOA", (q) => answer(q, { rcode: 3 }), Infinity],
];

Deno.test("svc run clamps TTLs and keeps answers", { permissions: PERMISSIONS }, async (t) => {
  await using upstream = await FakeUpstream.start((query) =>
    TTLS[Number(/^t(\d+)\./i.exec(query.name)?.[1])][1](query)
  );
  await using service = await Service.start({
    config: {
      upstream: [{ address: upstream.text }],
      cache: { min_ttl: 20, max_ttl: 100, negative_max_ttl: 30 },
    },
  });
  for (const [i, [what, , ttl]] of TTLS.entries()) {
    await t.step(what, async () => {
      const name = `t${i}.example`;
      const asked: number[] = [];
      for (const exchange of [ask, askTcp]) {
        const { answers, authorities } = await exchange(service.address, name, Qtype.A);
        const records = [...answers, ...authorities];
        const got = Math.min(...records.map((record) => record.ttl));
        const isRight = got === ttl || (got < ttl && got > ttl - BETWEEN_SECONDS);
        assert(isRight, `${got}, not ${ttl}`);
        asked.push(await upstream.total(name));
      }
      assert.equal(asked[1], asked[0]);
    });
  }
  service.assertCalm();
});

async function agesAnswers(): Promise<void> {
  const TTL = 6;
  await using upstream = await FakeUpstream.start((query) =>
    query.name.startsWith("0") ? address(query, "192.0.2.1", 0) : address(query, "192.0.2.1", TTL)
  );
  await using service = await Service.start({ config: { upstream: [{ address: upstream.text }] } });
  const ttlNow = async () => (await ask(service.address, "short.example", Qtype.A)).answers[0].ttl;
  const ttls = [await ttlNow()];
  const asked = await upstream.total("short.example");
  await until("a second query to the upstream", async () => {
    ttls.push(await ttlNow());
    await pause(POLL_MS);
    return await upstream.total("short.example") > asked;
  });
  const fresh = ttls.pop();
  assert.equal(fresh, TTL);
  // It only ever fell, it fell below what it was, and it never was negative or zero.
  assert.deepEqual(ttls, ttls.toSorted((a, b) => b - a));
  assert(ttls[0] === TTL && ttls.some((ttl) => ttl < TTL) && Math.min(...ttls) >= 1, ttls.join());
  // TTL 0 is for this query alone.
  for (let i = 0, before = 0; i < 3; i++) {
    await ask(service.address, "0.example", Qtype.A);
    const total = await upstream.total("0.example");
    assert(total > before);
    before = total;
  }
  service.assertCalm();
}

async function keepsFailures(): Promise<void> {
  await using upstream = await FakeUpstream.start((q) => answer(q, { rcode: Rcode.ServFail }));
  await using service = await Service.start({ config: { upstream: [{ address: upstream.text }] } });
  const first = await ask(service.address, "broken.example", Qtype.A, { edns: {} });
  assert.equal(first.rcode, Rcode.ServFail);
  assert.equal(first.opt?.errors.length, 1);
  const asked = await upstream.total("broken.example");
  const again = await ask(service.address, "broken.example", Qtype.A, { edns: {} });
  assert.deepEqual([again.rcode, again.opt?.errors.length], [Rcode.ServFail, 1]);
  assert.equal(await upstream.total("broken.example"), asked);
  upstream.script = (query) => address(query);
  await until("an end of the failure", async () => {
    await pause(POLL_MS);
    return (await ask(service.address, "broken.example", Qtype.A)).rcode === Rcode.NoError;
  });
  service.assertCalm();
}

Deno.test("svc run keeps answers with DO and CD apart", { permissions: PERMISSIONS }, async () => {
  await using upstream = await FakeUpstream.start((query) => {
    const { cd, opt } = query.message;
    return address(query, `192.0.2.${1 + Number(cd) + 2 * Number(opt?.dnssecOk)}`);
  });
  await using service = await Service.start({ config: { upstream: [{ address: upstream.text }] } });
  for (const isKept of [false, true]) {
    for (const dnssecOk of [false, true]) {
      for (const cd of [false, true]) {
        const before = await upstream.total("do.example");
        const got = await ask(service.address, "do.example", Qtype.A, { cd, edns: { dnssecOk } });
        assert.deepEqual(dataOf(got), [`192.0.2.${1 + Number(cd) + 2 * Number(dnssecOk)}`]);
        assert.deepEqual([got.cd, got.opt?.dnssecOk], [cd, dnssecOk]);
        assert.equal(await upstream.total("do.example") === before, isKept);
      }
    }
  }
  service.assertCalm();
});

Deno.test("svc run merges identical queries in flight", { permissions: PERMISSIONS }, async () => {
  const held = Promise.withResolvers<void>();
  await using upstream = await FakeUpstream.start(async (query) => {
    await held.promise;
    return address(query);
  });
  await using service = await Service.start({
    config: { upstream: [{ address: upstream.text, timeout: "5s" }] },
  });
  const CLIENTS = 60;
  const names = ["merged.example", "MERGED.example", "mErGeD.eXaMpLe"];
  using clients = new DisposableStack();
  const opened: UdpClient[] = [];
  for (let i = 0; i < CLIENTS; i++) {
    opened.push(clients.use(await UdpClient.open(service.address)));
    opened[i].send(encodeQuery(names[i % names.length], Qtype.A, { id: i }));
  }
  const overTcp = askTcp(service.address, "merged.example", Qtype.A);
  await upstream.asked("merged.example");
  // Whoever is asked about next was asked behind all of them.
  const behind = ask(service.address, "behind.example", Qtype.A);
  await upstream.asked("behind.example");
  // Each but the first one joined it, and nobody is behind who did not.
  const api = await Api.of(service);
  await until("all that join", async () => {
    const merged = /^svc_merged_queries_total (\d+)$/m.exec(await api.metrics())?.[1];
    assert.ok(Number(merged) <= CLIENTS, `${merged} joined`);
    return Number(merged) === CLIENTS;
  });
  held.resolve();
  await until("all answers", () => opened.every(({ received }) => received.length > 0));
  for (const [i, { received }] of opened.entries()) {
    const message = decode(received[0]);
    assert.deepEqual([message.id, dataOf(message)], [i, ["192.0.2.1"]]);
    assert.equal(message.questions[0].name, names[i % names.length]);
  }
  assert.deepEqual([dataOf(await overTcp), dataOf(await behind)], [["192.0.2.1"], ["192.0.2.1"]]);
  // One flight; a slow upstream may be asked again for it, but not once a client.
  assert(upstream.about("merged.example").length < CLIENTS / 2);
  service.assertCalm();
});

async function servesStale(): Promise<void> {
  await using upstream = await FakeUpstream.start((q) => address(q, "192.0.2.1", 1));
  await using service = await Service.start({
    config: { upstream: [{ address: upstream.text }], cache: { serve_stale: "1h" } },
  });
  const names = ["silent.example", "failing.example", "gone.example"];
  for (const name of names) await ask(service.address, name, Qtype.A);
  // Expired now: a TTL of one second, and the answer to the third name changes.
  await until("the end of the answers' time", async () => {
    await pause(POLL_MS);
    upstream.script = (q) => address(q, "192.0.2.2", 300);
    return dataOf(await ask(service.address, "gone.example", Qtype.A))[0] === "192.0.2.2";
  });
  upstream.script = (query) =>
    query.name.toLowerCase() === "silent.example" ? null : answer(query, { rcode: Rcode.ServFail });
  const stale = await Promise.all(
    names.slice(0, 2).map((name) => ask(service.address, name, Qtype.A, { edns: {} })),
  );
  for (const message of stale) {
    assert.deepEqual([message.rcode, dataOf(message)], [Rcode.NoError, ["192.0.2.1"]]);
    assert.equal(message.answers[0].ttl, STALE_TTL);
    assert.deepEqual(message.opt?.errors.map(({ code }) => code), [EDE_STALE]);
  }
  upstream.script = (query) => address(query, "192.0.2.3", 300);
  for (const name of names.slice(0, 2)) {
    await until("a fresh answer", async () => {
      await pause(POLL_MS);
      return dataOf(await ask(service.address, name, Qtype.A))[0] === "192.0.2.3";
    });
  }
  service.assertCalm();
}

async function prefetches(): Promise<void> {
  const released = Promise.withResolvers<void>();
  const NAME = "popular.example";
  await using upstream = await FakeUpstream.start(async (query) => {
    const second = upstream.about(NAME).length > 1;
    if (second) await released.promise;
    return address(query, second ? "192.0.2.2" : "192.0.2.1", second ? 300 : 12);
  });
  await using service = await Service.start({
    config: { upstream: [{ address: upstream.text, timeout: "5s" }], cache: { prefetch: true } },
  });
  await until("a second query to the upstream", async () => {
    assert.deepEqual(dataOf(await ask(service.address, NAME, Qtype.A)), ["192.0.2.1"]);
    await pause(POLL_MS);
    return upstream.about(NAME).length > 1;
  });
  // It is held back, and clients do not wait for it.
  assert.deepEqual(dataOf(await ask(service.address, NAME, Qtype.A)), ["192.0.2.1"]);
  released.resolve();
  await until("the new answer", async () => {
    return dataOf(await ask(service.address, NAME, Qtype.A))[0] === "192.0.2.2";
  });
  service.assertCalm();
}

Deno.test(
  "svc run holds answers for their time",
  { permissions: PERMISSIONS },
  (t) =>
    sideBySide(t, [
      ["ages answers and forgets them", agesAnswers],
      ["keeps failures for a short while", keepsFailures],
      ["serves stale answers while upstreams fail", servesStale],
      ["fetches popular answers ahead of their end", prefetches],
    ]),
);
