import assert from "node:assert/strict";
import { parseIp } from "../addr/mod.ts";
import { encodeQuery, Qtype } from "../dns/mod.ts";
import { PROTOCOL_NAMES } from "../logqueue/mod.ts";
import { Snapshot } from "../snapshot/mod.ts";
import { type FakePolicy, policyData } from "../snapshot/fakes.ts";
import { Counter } from "../telemetry/mod.ts";
import { describe, PipelineBench, SEED, snapshotOf, START_SECONDS } from "./fakes.ts";
import { Outcome } from "./outcome.ts";
import type { PipelineOptions } from "./pipeline.ts";
import { ClientAddress, Transport } from "./query.ts";
import { RateLimiter } from "./rate_limit.ts";
import { Verdict } from "./verdict.ts";

const none = { permissions: "none" } as const;
const HEALTH = encodeQuery("health.svc.test", Qtype.A, { id: 0xbeef });
const APEX = encodeQuery("svc.test", Qtype.A, { id: 0xbeef });
const ANSWER = "NOERROR rd ra; health.svc.test 10 A 127.0.0.1";
const ALL = Object.entries(Transport);

function id(text: string | null): Uint8Array | null {
  return text === null ? null : new TextEncoder().encode(text);
}

function benchOf(policy: FakePolicy, more: Partial<PipelineOptions> = {}): PipelineBench {
  return new PipelineBench(snapshotOf({}, {}, policy), 0, false, more);
}

/** What becomes of a query: its answer, or that there is none. */
function outcome(
  bench: PipelineBench,
  transport: Transport,
  from: string,
  clientId: string | null = null,
  packet = HEALTH,
): string {
  bench.clientId = id(clientId);
  const verdict = bench.decide(packet, transport, parseIp(from)!);
  const { bytes, offset, length } = bench.reply;
  return verdict === Verdict.Send ? describe(bytes.slice(offset, offset + length)) : "silence";
}

/** Counts of a family that are not 0, by transport. */
function counts(bench: PipelineBench, first: Counter): Record<string, number> {
  const rows = ALL.map(([name, transport]) =>
    [name.toLowerCase(), bench.counters.values[first + transport]] as const
  );
  return Object.fromEntries(rows.filter(([, count]) => count > 0));
}

Deno.test("Admission refuses by address over every transport", none, () => {
  const bench = benchOf({ settings: { access: { allowed: ["192.0.2.0/24"], disallowed: [] } } });
  for (const [, transport] of ALL) {
    assert.equal(outcome(bench, transport, "192.0.2.1"), ANSWER, PROTOCOL_NAMES[transport]);
    assert.equal(outcome(bench, transport, "127.0.0.1"), ANSWER);
    const refused = transport === Transport.Udp ? "silence" : "REFUSED rd ra";
    assert.equal(outcome(bench, transport, "203.0.113.1"), refused, PROTOCOL_NAMES[transport]);
  }
  const once = { udp: 1, tcp: 1, dot: 1, doh: 1, doq: 1, odoh: 1 };
  assert.deepEqual(counts(bench, Counter.AccessRefusedUdp), once);
});

Deno.test("Admission leaves nonsense of refused clients unanswered as well", none, () => {
  const bench = benchOf({ settings: { access: { allowed: ["192.0.2.0/24"], disallowed: [] } } });
  const notify = HEALTH.slice();
  notify[2] |= 4 << 3;
  const compressed = HEALTH.slice();
  compressed[12] = 0xc0;
  for (const packet of [notify, compressed]) {
    assert.equal(outcome(bench, Transport.Udp, "203.0.113.1", null, packet), "silence");
    assert.notEqual(outcome(bench, Transport.Udp, "192.0.2.1", null, packet), "silence");
  }
});

Deno.test("Admission looks at client IDs once they are known", none, () => {
  const bench = benchOf({
    settings: { access: { allowed: ["192.0.2.0/24", "phone"], disallowed: ["tablet"] } },
  });
  assert.equal(outcome(bench, Transport.Dot, "203.0.113.1", "phone"), ANSWER);
  assert.equal(outcome(bench, Transport.Dot, "203.0.113.1", "other"), "REFUSED rd ra");
  assert.equal(outcome(bench, Transport.Doh, "192.0.2.1", "tablet"), "REFUSED rd ra");
  assert.equal(outcome(bench, Transport.Doq, "127.0.0.1", "tablet"), ANSWER);
});

Deno.test("Admission lets connections in whose client ID may do so", none, () => {
  const bench = benchOf({
    settings: { access: { allowed: ["192.0.2.0/24", "phone"], disallowed: ["198.51.100.0/24"] } },
  });
  const connects = (transport: Transport, from: string) => {
    const client = new ClientAddress();
    client.aim(parseIp(from)!, 0, parseIp(from)!.length);
    return bench.pipeline.admitsConnection(transport, client);
  };
  const rows = ["192.0.2.1", "203.0.113.1", "198.51.100.1", "127.0.0.1"].map((from) =>
    [Transport.Tcp, Transport.Dot, Transport.Doh, Transport.Doq].map((t) => connects(t, from))
  );
  assert.deepEqual(rows, [
    [true, true, true, true],
    [false, true, true, true],
    [false, false, false, false],
    [true, true, true, true],
  ]);
  const refused = counts(bench, Counter.AccessRefusedUdp);
  assert.deepEqual(refused, { tcp: 2, dot: 1, doh: 1, doq: 1 });
});

Deno.test(
  "Admission asks for a known client ID where that is required",
  none,
  () => {
    const policy = { clients: { phone: { ids: ["phone"] }, tv: { addresses: ["192.0.2.9"] } } };
    const bench = benchOf(policy, { requireClientId: true });
    for (const [name, transport] of ALL) {
      const isPlain = transport === Transport.Udp || transport === Transport.Tcp;
      const without = transport === Transport.Udp ? "silence" : "REFUSED rd ra";
      assert.equal(outcome(bench, transport, "192.0.2.1", "phone"), ANSWER, name);
      assert.equal(outcome(bench, transport, "192.0.2.1"), without, name);
      // Known by its address is not known by its ID.
      assert.equal(outcome(bench, transport, "192.0.2.9"), without, name);
      assert.equal(outcome(bench, transport, "192.0.2.1", "other"), without, name);
      // Nor is loopback, but for the node's own question how it is.
      assert.equal(outcome(bench, transport, "127.0.0.1"), isPlain ? ANSWER : without, name);
      assert.equal(outcome(bench, transport, "127.0.0.1", null, APEX), without, name);
    }
  },
);

function limits(burst: number): RateLimiter {
  const options = { queriesPerSecond: 1, burst, exempt: [] };
  const memory = new SharedArrayBuffer(RateLimiter.MEMORY_BYTES);
  const limiter = new RateLimiter(options, memory, SEED);
  limiter.setTime(START_SECONDS * 1_000);
  return limiter;
}

Deno.test("Admission limits all transports of a client together, but for ODoH", none, () => {
  const bench = benchOf({}, { limits: limits(4) });
  const client = "192.0.2.1";
  for (const transport of [Transport.Udp, Transport.Tcp, Transport.Dot, Transport.Doq]) {
    assert.equal(outcome(bench, transport, client), ANSWER);
    assert.equal(bench.query.isLogged, false, "the health name is never logged");
  }
  assert.equal(outcome(bench, Transport.Udp, client), "NOERROR tc rd ra");
  for (const transport of [Transport.Tcp, Transport.Dot, Transport.Doh, Transport.Doq]) {
    assert.equal(outcome(bench, transport, client), "REFUSED rd ra", PROTOCOL_NAMES[transport]);
    assert.equal(bench.query.isLogged, false);
  }
  assert.equal(outcome(bench, Transport.Odoh, client), ANSWER);
  assert.equal(outcome(bench, Transport.Udp, "192.0.2.2"), ANSWER);
  const limited = counts(bench, Counter.RateLimitedUdp);
  assert.deepEqual(limited, { udp: 1, tcp: 1, dot: 1, doh: 1, doq: 1 });
  assert.equal(bench.outcomes(Outcome.Refused), 0);
});

Deno.test("Admission counts no query against the limit that is refused", none, () => {
  const policy = { settings: { access: { allowed: [], disallowed: ["192.0.2.0/24"] } } };
  const bench = benchOf(policy, { limits: limits(2) });
  for (let i = 0; i < 5; i++) assert.equal(outcome(bench, Transport.Udp, "192.0.2.1"), "silence");
  bench.pipeline.snapshot = new Snapshot(policyData({}, SEED, 2), START_SECONDS * 1_000);
  // The change holds for the next query, and the bucket is full.
  assert.equal(outcome(bench, Transport.Udp, "192.0.2.1"), ANSWER);
  assert.equal(outcome(bench, Transport.Udp, "192.0.2.1"), ANSWER);
  assert.equal(outcome(bench, Transport.Udp, "192.0.2.1"), "NOERROR tc rd ra");
});

Deno.test("Pipeline takes a client by its known ID before its address", none, () => {
  const bench = benchOf({
    lists: { ads: "||health.example^" },
    groups: { open: { filtering: false } },
    clients: {
      lan: { addresses: ["192.0.2.0/24"] },
      tv: { addresses: ["192.0.2.9"] },
      phone: { ids: ["phone", "phone-2"], group: "open" },
    },
  });
  const who = (from: string, clientId: string | null) => {
    outcome(bench, Transport.Dot, from, clientId);
    const { client, group } = bench.query;
    const { snapshot } = bench.pipeline;
    return client < 0
      ? "nobody"
      : `${snapshot.client(client).name} in ${snapshot.group(group).name}`;
  };
  assert.equal(who("192.0.2.9", "phone"), "phone in open");
  assert.equal(who("203.0.113.1", "phone-2"), "phone in open");
  assert.equal(who("192.0.2.9", null), "tv in default");
  assert.equal(who("192.0.2.9", "unknown"), "tv in default");
  assert.equal(who("192.0.2.10", "unknown"), "lan in default");
  assert.equal(who("203.0.113.1", "unknown"), "nobody");
});
