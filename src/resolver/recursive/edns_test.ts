// What becomes of servers that drop queries with EDNS, or that a box before them keeps these from: they
// are asked without, for a while; and nobody who knows EDNS is taken for one of them.
import assert from "node:assert/strict";
import { DROPS_EDNS_MS, TRY_PLAIN_MS_MIN } from "../ask/server.ts";
import {
  benchOf,
  COM,
  type FakeServer,
  FakeZone,
  type RecursorBench,
  ROOT,
  serverOf,
} from "./fakes.ts";

const none = { permissions: "none" } as const;

const zone = serverOf(
  new FakeZone("example.com", [
    ...Array.from({ length: 40 }, (_, i) => `n${i}.example.com A 203.0.113.3`),
  ]),
);
/** Answers what comes without EDNS, and nothing else. */
const dropping: FakeServer = (query) => query.message.opt === null ? zone(query) : [];
const dead: FakeServer = () => [];

function bench(...servers: FakeServer[]): RecursorBench {
  return benchOf(Object.fromEntries(servers.map((server, i) => [`192.0.2.${10 + i}`, server])));
}

/** Queries to the zone's servers since `from`: `+` with EDNS, `-` without. */
function kinds(b: RecursorBench, from = 0): string {
  return b.sent.slice(from).filter(({ address }) => address !== ROOT && address !== COM)
    .map(({ message }) => message.opt === null ? "-" : "+").join("");
}

/** Names that end with an answer, of those asked for one after the other from `i` on. */
function answered(b: RecursorBench, i: number, count: number): number {
  let answers = 0;
  for (let k = i; k < i + count; k++) {
    if (/203\.0\.113\.3$/.test(b.resolve(`n${k}.example.com`).answer)) answers++;
  }
  return answers;
}

for (const count of [1, 2, 4, 6]) {
  Deno.test(
    `a zone whose ${count} servers drop EDNS is resolved, by the first question`,
    none,
    () => {
      const b = bench(...Array<FakeServer>(count).fill(dropping));
      const { answer, tookMs } = b.resolve("n0.example.com");
      assert.match(answer, /203\.0\.113\.3$/);
      assert.ok(tookMs < 3_000, `${tookMs} ms of the clock of this test`);
      b.run();
      b.checkIdle();
    },
  );
}

Deno.test("a server that drops EDNS is asked without for a while, then with it again", none, () => {
  const b = bench(dropping);
  b.resolve("n0.example.com");
  b.run();
  assert.equal(kinds(b), "+++-");
  let before = b.count();
  assert.equal(answered(b, 1, 10), 10);
  assert.equal(kinds(b, before), "-".repeat(10));
  b.advance(DROPS_EDNS_MS);
  before = b.count();
  assert.equal(answered(b, 11, 1), 1);
  assert.equal(kinds(b, before), "+++-");
  // The box is gone.
  b.advance(DROPS_EDNS_MS);
  b.servers.set("192.0.2.10", zone);
  before = b.count();
  assert.equal(answered(b, 12, 3), 3);
  assert.equal(kinds(b, before), "+++");
});

Deno.test("a server that drops EDNS beside one that is dead is found", none, () => {
  const b = bench(dead, dropping);
  assert.equal(answered(b, 0, 5), 5);
});

Deno.test("a server that answers EDNS is never asked without for its silence", none, () => {
  const b = bench(zone);
  assert.equal(answered(b, 0, 1), 1);
  b.servers.set("192.0.2.10", dropping);
  for (let i = 1; i < 6; i++) {
    assert.match(b.resolve(`n${i}.example.com`).answer, /^SERVFAIL/);
    b.advance(60_000);
  }
  assert.doesNotMatch(kinds(b), /-/);
});

Deno.test("a server that is slow is not taken for one that drops EDNS", none, () => {
  for (const ms of [500, 900, 1_400, 2_000, 2_600]) {
    const b = bench(zone);
    b.latencyMs.set("192.0.2.10", ms);
    assert.equal(answered(b, 0, 1), 1);
    b.run();
    const before = b.count();
    assert.equal(answered(b, 1, 1), 1);
    assert.doesNotMatch(kinds(b, before), /-/, `${ms} ms`);
  }
});

Deno.test("a dead server is asked once without EDNS, and not again for a while", none, () => {
  const b = bench(dead);
  assert.match(b.resolve("n0.example.com").answer, /^SERVFAIL/);
  for (let i = 1; i < 4; i++) b.resolve(`n${i}.example.com`);
  assert.equal(kinds(b).replaceAll("+", ""), "-", kinds(b));
  b.advance(TRY_PLAIN_MS_MIN);
  for (let i = 4; i < 8; i++) b.resolve(`n${i}.example.com`);
  assert.equal(kinds(b).replaceAll("+", ""), "--", kinds(b));
});

Deno.test("a trace shows what goes without EDNS", none, () => {
  const { steps } = bench(dropping).trace("n0.example.com");
  const asked = steps.filter(({ event, zone }) => event === "asked" && zone === "example.com");
  assert.deepEqual(asked.map(({ detail }) => detail), [
    undefined,
    undefined,
    undefined,
    "without EDNS",
  ]);
});
