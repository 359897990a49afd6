import assert from "node:assert/strict";
import { Prng, seedFromEnv } from "../../../tests/prng.ts";
import { wire } from "../fakes.ts";
import { Query } from "../query.ts";
import type { Flight, FlightOwner } from "./flight.ts";
import { FLIGHTS_MAX, FlightTable, RESTING_MAX } from "./flight_table.ts";
import type { Share } from "./source.ts";

function queryOf(name: string, keyHash: number): Query {
  const qname = wire(name);
  const query = new Query();
  query.packet = Uint8Array.of(...new Uint8Array(12), ...qname, 0, 1, 0, 1);
  query.qnameLength = qname.length;
  query.qtype = query.qclass = 1;
  query.keyHash = keyHash;
  return query;
}

const set = (): Share => ({ flights: 0, flightMs: 0, flightsMax: Infinity });
const nobody: FlightOwner = {
  answer: () => {},
  settle: () => {},
  askElsewhere: () => {},
  fail: () => {},
  move: () => {},
  ask: () => false,
};

Deno.test("FlightTable finds what a plain list would, with few hashes, seeded", {
  permissions: { env: ["SVC_SEED"] },
}, () => {
  const prng = new Prng(seedFromEnv());
  const table = new FlightTable(nobody);
  // Chains of many.
  const queries = Array.from({ length: 300 }, (_, i) => queryOf(`n${i}.example`, i % 7));
  const model = new Map<number, Flight>();
  for (let step = 0; step < 20_000; step++) {
    const i = prng.int(queries.length);
    const found = table.find(queries[i]);
    assert.equal(found, model.get(i) ?? null);
    if (found === null) model.set(i, table.open(queries[i], set(), step));
    else if (prng.chance(0.7)) {
      table.close(found);
      model.delete(i);
    }
    if (prng.chance(0.05)) table.recycle();
    assert.equal(table.active.length, model.size);
  }
  assert.deepEqual(new Set(table.active), new Set(model.values()));
  for (const flight of [...table.active]) table.close(flight);
  table.recycle();
  assert.ok(table.pooled <= queries.length, "each was used again and again");
});

Deno.test("FlightTable keeps a flight that is done readable until it recycles", {
  permissions: "none",
}, () => {
  const table = new FlightTable(nobody);
  const first = table.open(queryOf("first.example", 1), set(), 0);
  table.close(first);
  const second = table.open(queryOf("second.example", 2), set(), 0);
  assert.notEqual(second, first);
  assert.ok(first.done);
  table.recycle();
  const third = table.open(queryOf("third.example", 3), set(), 5);
  assert.equal(third, first);
  assert.deepEqual([third.done, third.startedAtMs, third.waiterCount], [false, 5, 0]);
  assert.equal(table.find(queryOf("FIRST.example", 1)), null);
  assert.equal(table.find(queryOf("Third.Example", 3)), third);
});

Deno.test("FlightTable keeps no more flights than can be asked at a time", {
  permissions: "none",
}, () => {
  const table = new FlightTable(nobody);
  for (let round = 0; round < 3; round++) {
    for (let i = 0; i < FLIGHTS_MAX; i++) table.open(queryOf("n.example", i), set(), 0);
    for (const flight of [...table.active]) table.close(flight);
    for (let i = 0; i < FLIGHTS_MAX; i++) table.open(queryOf("n.example", i), set(), 0);
    for (const flight of [...table.active]) table.close(flight);
    table.recycle();
    assert.equal(table.pooled, FLIGHTS_MAX);
  }
});

Deno.test("FlightTable lets go of most flights while there is nothing to do", {
  permissions: "none",
}, () => {
  const table = new FlightTable(nobody);
  const ask = (i: number) => table.open(queryOf(`n${i}.example`, i), set(), 0);
  for (const flight of Array.from({ length: 3 * RESTING_MAX }, (_, i) => ask(i))) {
    table.close(flight);
  }
  table.rest();
  assert.equal(table.pooled, RESTING_MAX);
  ask(1);
  assert.equal(table.pooled, RESTING_MAX - 1);
});
