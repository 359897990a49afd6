import assert from "node:assert/strict";
import { Query, Reply } from "../../resolver/mod.ts";
import { Counter, COUNTERS_BYTES } from "../../telemetry/mod.ts";
import { LINES_MAX, LogLines } from "../log_lines.ts";
import { SLOW_QUERIES_MAX, SlowQueries, type SlowSample } from "./slow_queries.ts";

const none = { permissions: "none" } as const;

function slow(sample: SlowSample, chance = () => 0) {
  const counts = new Float64Array(COUNTERS_BYTES / 8);
  const queries = new SlowQueries(sample, chance, counts);
  const query = new Query();
  // Header, then a.b. and the rest of the packet, which is another's soon.
  query.packet = Uint8Array.of(...new Uint8Array(12), 1, 97, 1, 98, 0, 0, 1, 0, 1);
  query.qnameLength = 5;
  query.qtype = 1;
  query.upstream = 2;
  const reply = new Reply();
  reply.bytes = Uint8Array.of(9, 9, 0, 0, 0x81, 0x83);
  reply.offset = 2;
  const note = () => queries.note(query, reply, 1_000, 250);
  return { queries, counts, query, note };
}

Deno.test("SlowQueries tells what a query was, with its name where that is asked for", none, () => {
  for (const withNames of [true, false]) {
    const { queries, query, note } = slow({ ratio: 1, withNames });
    note();
    query.packet.fill(0xff);
    assert.deepEqual(queries.take(), [{
      startMs: 750,
      durationMs: 250,
      transport: 0,
      outcome: 0,
      qtype: 1,
      rcode: 3,
      upstream: 2,
      name: withNames ? Uint8Array.of(1, 97, 1, 98, 0) : null,
    }]);
    assert.deepEqual(queries.take(), [], "once");
  }
});

Deno.test("SlowQueries draws the share it is asked for", none, () => {
  let draw = 0;
  const { queries, counts, note } = slow({ ratio: 0.05, withNames: false }, () => draw++ / 100);
  for (let i = 0; i < 100; i++) note();
  assert.equal(queries.take().length, 5);
  const off = slow({ ratio: 0, withNames: false });
  off.note();
  assert.equal(off.queries.take().length, 0);
  assert.equal(counts[Counter.TracesDropped], 0);
});

Deno.test("SlowQueries keeps a bounded number and counts the rest", none, () => {
  const { queries, counts, note } = slow({ ratio: 1, withNames: true });
  for (let i = 0; i < SLOW_QUERIES_MAX + 10; i++) note();
  assert.equal(queries.take().length, SLOW_QUERIES_MAX);
  assert.equal(counts[Counter.TracesDropped], 10);
  note();
  assert.equal(queries.take().length, 1);
});

Deno.test("LogLines hands a bounded number on until it is reset", none, () => {
  let told = 0;
  const lines = new LogLines(() => told++);
  const line = { timeMs: 0, level: "info", message: "m", fields: {} } as const;
  for (let i = 0; i < LINES_MAX + 5; i++) lines.take(line);
  assert.equal(told, LINES_MAX);
  lines.reset();
  lines.take(line);
  assert.equal(told, LINES_MAX + 1);
});
