// Goal: what is remembered of zones that anybody can make stays within its bounds, whatever they hold.
import assert from "node:assert/strict";
import { Qtype } from "../../dns/mod.ts";
import { type Cut, type RrSet, Security } from "../../dnssec/mod.ts";
import { wire } from "../fakes.ts";
import { CUTS_BYTES_MAX, CutTable } from "./cut_table.ts";
import { ValidationBench } from "./fakes.ts";
import { Gaps, GAPS_BYTES_MAX } from "./gaps.ts";
import { ACTIVE_BYTES_MAX } from "./validation.ts";
import { WeighedMap } from "./weighed_map.ts";

const none = { permissions: "none" } as const;

Deno.test("WeighedMap lets the oldest go that are not in use", none, () => {
  const map = new WeighedMap<number>(100);
  for (let i = 0; i < 10; i++) map.set(`${i}`, i, 10);
  assert.equal(map.get("0"), 0);
  map.set("new", 10, 15);
  assert.deepEqual([map.get("1"), map.get("2"), map.get("0")], [undefined, undefined, 0]);
  assert.equal(map.bytes, 95);
  map.set("new", 11, 5);
  assert.deepEqual([map.get("new"), map.bytes], [11, 85]);
  map.set("huge", 12, 101);
  assert.equal(map.get("huge"), undefined, "one that has no room at all is not kept");
  assert.ok(map.bytes <= 100);
  assert.deepEqual([map.get("new"), map.get("0")], [11, 0], "those in use stay");
  map.set("a", 1, 1);
  map.clear();
  assert.deepEqual([map.size, map.bytes], [0, 0]);
});

Deno.test("CutTable keeps its bound for zones of many large keys", none, () => {
  const table = new CutTable();
  for (let i = 0; i < 400; i++) {
    const name = wire(`z${i}.test`);
    const rdata = new Uint8Array(900);
    const keys = Array.from({ length: 64 }, () => ({ rdata, publicKey: rdata.subarray(4) }));
    table.set(name, { kind: "zone", zone: { name, keys }, expiresAtS: 1 } as unknown as Cut);
    assert.ok(table.bytes <= CUTS_BYTES_MAX);
  }
  assert.equal(table.get(wire("z0.test")), undefined);
  assert.ok(table.get(wire("Z399.TEST")) !== undefined);
});

/** An NSEC with types that take some bytes. */
function nsecOf(zone: string, i: number, types: number): RrSet {
  const owner = wire(`n${String(i).padStart(6, "0")}.${zone}`);
  const next = wire(`n${String(i).padStart(6, "0")}x.${zone}`);
  const rdata = Uint8Array.of(...next, 0, types, ...new Array(types).fill(1));
  return { owner, type: Qtype.NSEC, cls: 1, ttl: 60, rdatas: [rdata], signatures: [] };
}

Deno.test("Gaps keep their bound for zones of many gaps, and for large ones", none, () => {
  const gaps = new Gaps();
  for (let i = 0; i < 9_000; i++) {
    const zone = `z${i % 100}.test`;
    const rrset = nsecOf(zone, i, 250);
    gaps.learn({
      answer: [],
      authority: [{ rrset, security: Security.Secure, ttl: 60, zone: wire(zone) }],
    }, 0);
    assert.ok(gaps.bytes <= GAPS_BYTES_MAX);
  }
  const before = gaps.bytes;
  const rrset = { ...nsecOf("large.test", 0, 32), signatures: [new Uint8Array(4_000)] };
  gaps.learn({
    answer: [],
    authority: [{ rrset, security: Security.Secure, ttl: 60, zone: wire("large.test") }],
  }, 0);
  assert.equal(gaps.bytes, before, "what is not worth its room");
});

Deno.test("Validation refuses more than it may hold at a time", none, async () => {
  const bench = new ValidationBench();
  bench.threads.isHeld = true;
  const count = 46;
  const lines = Array.from(
    { length: 3_000 },
    (_, i) => `big.test 300 IN A 198.51.${i >> 8}.${i & 255}`,
  );
  const big = bench.signed(...lines);
  for (let i = 0; i < count; i++) {
    const owner = wire(`n${i}.test`);
    bench.said.set(`n${i}.test A`, { answer: [{ ...big, owner }] });
  }
  const clients = Array.from(
    { length: count },
    (_, i) => bench.bench.ask(`n${i}.test`, { edns: {} }),
  );
  await bench.settle();
  const refused = clients.filter(({ answer }) => /too many answers wait/.test(answer)).length;
  const each = 3_000 * (256 + 16);
  assert.ok(refused >= count - ACTIVE_BYTES_MAX / each, `${refused}`);
  assert.ok(bench.validation.active > 0 && bench.validation.active + refused <= count);
  bench.bench.flights.close();
  assert.equal(bench.validation.active, 0);
});
