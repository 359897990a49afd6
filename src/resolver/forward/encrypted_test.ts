import assert from "node:assert/strict";
import { Prng } from "../../../tests/prng.ts";
import { QR_BIT, RA_BIT, Rcode, RD_BIT, TC_BIT } from "../../dns/mod.ts";
import { Counter } from "../../telemetry/mod.ts";
import { a } from "../fakes.ts";
import { ForwarderBench, quietly } from "./fakes.ts";
import { FLIGHTS_MAX } from "../flights/mod.ts";
import { RESTING_MAX } from "../flights/flight_table.ts";

const none = { permissions: "none" } as const;
const N = "www.example";
const OK = QR_BIT | RD_BIT | RA_BIT;
const ANSWER = `NOERROR rd ra; ${N} 300 A 192.0.2.1`;
const EDNS = { edns: { payload: 1232 } };
const PADDING = 12;

/** A bench with one upstream of each kind. */
function benchOf(...transports: ("udp" | "tls" | "https")[]): ForwarderBench {
  const letters = transports.map((transport, i) => ["abc"[i], transport] as const);
  return new ForwarderBench({
    upstreams: Object.fromEntries(letters.map(([letter]) => [letter, []])),
    transports: Object.fromEntries(letters),
  });
}

Deno.test("Forwarder pads what goes encrypted to blocks (RFC 8467), and nothing else", none, () => {
  const prng = new Prng(7);
  for (const transport of ["udp", "tls", "https"] as const) {
    const bench = benchOf(transport);
    const ids = new Set<number>();
    for (let length = 1; length <= 63; length++) {
      // Up to the longest name there is.
      const labels = Array.from({ length: 1 + length % 3 }, () => "x".repeat(length));
      const name = [...labels, "y".repeat(1 + prng.int(60))].join(".");
      bench.ask(name);
      const { packet, message } = bench.last;
      const paddings = message.opt?.options.filter(({ code }) => code === PADDING) ?? [];
      assert.equal(message.trailingBytes, 0);
      assert.equal(message.questions[0].name.toLowerCase(), name);
      assert.equal(paddings.length, transport === "udp" ? 0 : 1, name);
      if (transport !== "udp") assert.equal(packet.length % 128, 0, `${packet.length}`);
      assert.ok(paddings.every(({ data }) => data.every((byte) => byte === 0)));
      ids.add(message.id);
    }
    if (transport === "https") assert.deepEqual([...ids], [0]);
    else assert.ok(ids.size > 50);
  }
});

Deno.test("Forwarder asks an encrypted upstream in no other way", none, async (t) => {
  await t.step("an answer in another case is as good: nobody forges it", () => {
    const bench = benchOf("tls");
    const client = bench.ask(N);
    const packet = bench.packetFor(bench.last, { records: [a(N, 300)] });
    for (let i = 12; i < 28; i++) if (packet[i] > 0x40) packet[i] ^= 0x20;
    bench.deliver(bench.last, packet);
    assert.equal(client.answer, ANSWER);
    assert.equal(bench.looked(), "a");
    bench.checkIdle();
  });
  await t.step("a cut answer is taken as it is, and not kept", () => {
    const bench = benchOf("https");
    const client = bench.ask(N);
    bench.answer(bench.last, { flags: OK | TC_BIT, records: [a(N, 300)] });
    assert.match(client.answer, /^NOERROR rd ra; www\.example \d+ A 192\.0\.2\.1/);
    bench.ask(N);
    assert.equal(bench.looked(), "a a");
  });
  await t.step("one cut to nothing is none, and the next upstream is asked", () => {
    const bench = benchOf("tls", "udp");
    const client = bench.ask(N);
    bench.answer(bench.last, { flags: OK | TC_BIT });
    assert.equal(bench.looked(), "a b");
    bench.answer(bench.last, { records: [a(N, 300)] });
    assert.equal(client.answer, ANSWER);
    bench.checkIdle();
  });
  await t.step("answers that are none of ours are left aside", () => {
    const bench = benchOf("tls");
    const client = bench.ask(N);
    const other = bench.packetFor(bench.last, { records: [a(N, 300)] });
    for (let i = 0; i < 40; i++) {
      const wrong = other.slice();
      wrong[14] ^= 1; // Another name.
      bench.deliver(bench.last, wrong);
    }
    assert.equal(bench.looked(), "a");
    bench.deliver(bench.last, other);
    assert.equal(client.answer, ANSWER);
  });
});

Deno.test("Forwarder asks upstreams last whose address is not known yet", none, () => {
  const bench = benchOf("tls", "udp");
  const [named] = bench.forwarder.upstreams;
  named.isUnresolved = true;
  bench.ask(N);
  assert.equal(bench.looked(), "b");
  bench.ask("other.example");
  bench.advance(500); // The other one is slow.
  assert.equal(bench.looked(), "b a a", "it may be found by then");
  named.isUnresolved = false;
  bench.ask("third.example");
  assert.equal(bench.looked(), "a");
});

Deno.test("Forwarder gives an upstream that can't be reached a moment, and says why", none, () => {
  quietly(() => {
    const bench = benchOf("tls");
    const client = bench.ask(N, EDNS);
    for (const pauseMs of [200, 400, 800]) {
      bench.asker.onFailure(bench.last.token, "refused the connection");
      assert.equal(client.answer, "");
      bench.advance(pauseMs - 50);
      assert.equal(bench.open.length, 0, `not before ${pauseMs} ms`);
      bench.advance(50);
      assert.equal(bench.open.length, 1);
    }
    bench.answer(bench.last, { records: [a(N, 300)] });
    assert.match(client.answer, /^NOERROR/);

    const unlucky = bench.ask("other.example", EDNS);
    while (unlucky.answer === "") {
      if (bench.open.length > 0) {
        bench.asker.onFailure(bench.last.token, "shows a certificate that expired");
      } else bench.advance(50);
    }
    assert.match(unlucky.answer, /OPT No Reachable Authority: a shows a certificate that expired$/);
    const [upstream] = bench.forwarder.upstreams;
    assert.deepEqual([upstream.healthy, upstream.reason], [
      false,
      "shows a certificate that expired",
    ]);
  });
});

Deno.test("Forwarder turns to the next upstream at once when one can't be reached", none, () => {
  quietly(() => {
    const bench = benchOf("tls", "https");
    const client = bench.ask(N);
    bench.asker.onFailure(bench.last.token, "refused the connection");
    assert.equal(bench.looked(), "a b");
    bench.answer(bench.last, { records: [a(N, 300)] });
    assert.equal(client.answer, ANSWER);
    bench.checkIdle();
  });
});

Deno.test("Forwarder logs the reason of a failure once an outage", none, () => {
  const bench = benchOf("tls");
  const { lines } = quietly(() => {
    for (let i = 0; i < 6; i++) {
      bench.ask(`n${i}.example`);
      bench.asker.onFailure(bench.last.token, "shows a certificate that expired");
    }
    return null;
  });
  assert.equal(lines.length, 1);
  assert.match(lines[0], /"reason":"shows a certificate that expired"/);
});

Deno.test("Forwarder uses flights again, and keeps no more than it can use", none, () => {
  const bench = benchOf("udp");
  const askMany = (round: number, count: number) => {
    const from = bench.sent.length;
    const clients = Array.from({ length: count }, (_, i) => bench.ask(`r${round}n${i}.example`));
    for (const sent of bench.sent.slice(from)) {
      const { name } = sent.message.questions[0];
      bench.answer(sent, { name, records: [a(name, 300)] });
    }
    assert.ok(clients.every(({ answer }) => answer.startsWith("NOERROR")));
  };
  askMany(0, 100);
  assert.equal(bench.flights.pooledFlights, 0, "whoever ended one may still look at it");
  bench.advance(50);
  assert.equal(bench.flights.pooledFlights, RESTING_MAX, "there is nothing to do for more");
  // Those are taken first; a tick makes them free again, and no more of them come to be.
  for (let round = 1; round < 20; round++) {
    askMany(round, 100);
    bench.ask(`tick${round}.example`); // Ticks come while there is something to wait for.
    bench.advance(50);
    bench.answer(bench.last, { records: [a(`tick${round}.example`, 300)] });
    assert.ok(bench.flights.pooledFlights <= 101, `${bench.flights.pooledFlights}`);
  }
  // More at a time than may be kept.
  for (let i = 0; i < 3; i++) askMany(100 + i, FLIGHTS_MAX / 2);
  bench.advance(50);
  assert.ok(bench.flights.pooledFlights <= FLIGHTS_MAX);
  assert.equal(bench.count(Counter.FlightsFull), 0);
});

Deno.test("Forwarder keeps flights apart that end in any order", none, () => {
  const prng = new Prng(11);
  const bench = benchOf("udp");
  const waiting = new Map<string, ReturnType<ForwarderBench["ask"]>>();
  for (let step = 0; step < 3_000; step++) {
    const name = `n${prng.int(200)}.example`;
    if (prng.chance(0.5)) {
      const client = bench.ask(name);
      if (client.answer === "") waiting.set(name, client);
    } else if (bench.open.length > 0) {
      const sent = prng.pick(bench.open);
      const asked = sent.message.questions[0].name.toLowerCase();
      bench.answer(sent, { records: [a(asked, 0)] });
      const client = waiting.get(asked);
      assert.match(client?.answer ?? "", new RegExp(`; ${asked} `));
      waiting.delete(asked);
    }
    if (prng.chance(0.1)) bench.advance(50);
  }
  for (const sent of bench.open) bench.answer(sent, { flags: OK | Rcode.NXDomain });
  bench.checkIdle();
});
