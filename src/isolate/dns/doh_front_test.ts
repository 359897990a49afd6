import assert from "node:assert/strict";
import { encodeQuery } from "../../dns/mod.ts";
import { a, describe } from "../../resolver/fakes.ts";
import { ForwarderBench, quietly } from "../../resolver/forward/fakes.ts";
import { Transport } from "../../resolver/mod.ts";
import { Counter } from "../../telemetry/mod.ts";
import type { HttpClient, HttpRequest } from "../../transport/mod.ts";
import { DohFront } from "./doh_front.ts";

const none = { permissions: "none" } as const;
const HEALTH = encodeQuery("health.svc.test", 1, { id: 0 });
const QUERY = encodeQuery("www.example", 1, { id: 0 });
const HEALTHY = "200 for 10: NOERROR rd ra; health.svc.test 10 A 127.0.0.1";
const ANSWER = "200 for 300: NOERROR rd ra; www.example 300 A 192.0.2.1";

/** A request that notes how it was answered. */
class FakeRequest implements HttpRequest {
  readonly method = 3;
  readonly mediaType = 2;
  readonly target = new Uint8Array(0);
  readonly targetStart = 0;
  readonly targetEnd = 0;
  readonly answers: string[] = [];

  constructor(readonly from: HttpClient) {}

  respond(
    { status }: { status: number },
    maxAge: number,
    bytes: Uint8Array,
    offset: number,
    length: number,
  ): void {
    const message = bytes.slice(offset, offset + length);
    this.answers.push(
      status === 200 ? `200 for ${maxAge}: ${describe(message)}` : String(status),
    );
  }
}

function newFront() {
  const bench = new ForwarderBench();
  const asked: string[] = [];
  const { resolver } = bench;
  const decide = resolver.decide.bind(resolver);
  resolver.decide = (transport, from, ...rest) => {
    const id = from.id === null ? "nobody" : new TextDecoder().decode(from.id);
    asked.push(`${transport === Transport.Odoh ? "odoh" : "doh"} ${id}`);
    return decide(transport, from, ...rest);
  };
  const front = new DohFront({
    resolver,
    counts: bench.front.counters.values,
    turn: () => {},
    admits: () => true,
    serverName: "dns.svc.test",
  });
  return { bench, front, asked };
}

Deno.test("DohFront answers now, later, or with 400", none, () => {
  const { bench, front } = newFront();
  const from = { client: "2001:db8::1", serverName: null, overLimit: () => {} };
  const ask = (packet: Uint8Array): string[] => {
    const request = new FakeRequest(from);
    const around = Uint8Array.of(9, ...packet, 9);
    front.onQuery(request, around, 1, 1 + packet.length, null);
    around.fill(0); // Its bytes are the connection's again.
    return request.answers;
  };
  assert.deepEqual(ask(HEALTH), [HEALTHY]);
  const waiting = [ask(QUERY), ask(QUERY)];
  assert.deepEqual(waiting, [[], []]);
  for (const sent of bench.open) {
    bench.answer(sent, { records: [a(sent.message.questions[0].name, 300)] });
  }
  assert.deepEqual(waiting, [[ANSWER], [ANSWER]]);
  assert.deepEqual(ask(QUERY), [ANSWER]); // From the cache.
  assert.deepEqual(ask(new Uint8Array(3)), ["400"]);
  assert.deepEqual(ask(HEALTH.map((byte, i) => i === 2 ? byte | 0x80 : byte)), ["400"]);
  const silent = ask(encodeQuery("silent.example", 1));
  quietly(() => bench.flights.close());
  assert.deepEqual(silent, ["200 for 0: SERVFAIL rd ra"]);
  front.onOpen();
  front.onRefused();
  front.onHandshakeFailure();
  const counters = [
    ...[Counter.QueriesDoh, Counter.HttpsRejected, Counter.DohConnections, Counter.DohRefused],
    ...[Counter.TlsHandshakeFailures, Counter.QueriesOdoh],
  ];
  assert.deepEqual(counters.map((counter) => bench.count(counter)), [7, 2, 1, 1, 1, 0]);
});

Deno.test("DohFront takes the client ID of the path, then that of the server name", none, () => {
  const { bench, front, asked } = newFront();
  const named = { client: "192.0.2.1", serverName: "Tv.dns.svc.test", overLimit: () => {} };
  const unnamed = { client: "192.0.2.1", serverName: "dns.svc.test", overLimit: () => {} };
  const ask = (from: HttpClient, id: string | null) => {
    const bytes = id === null ? null : new TextEncoder().encode(id);
    front.onQuery(new FakeRequest(from), HEALTH, 0, HEALTH.length, bytes);
  };
  ask(named, "phone");
  ask(named, null); // What a path says holds for its query alone.
  ask(unnamed, "phone");
  ask(unnamed, null);
  const oblivious = new FakeRequest(named);
  front.onObliviousQuery(oblivious, HEALTH);
  assert.deepEqual(asked, ["doh phone", "doh tv", "doh phone", "doh nobody", "odoh nobody"]);
  assert.deepEqual(oblivious.answers, [HEALTHY]);
  assert.equal(bench.count(Counter.QueriesOdoh), 1);
});
