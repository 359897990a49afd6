import assert from "node:assert/strict";
import { LeakTests } from "./leak_tests.ts";

const none = { permissions: "none" } as const;
const HOUR_MS = 3_600_000;
const lookup = { address: "192.0.2.7", protocol: "doh", client: null } as const;

function make() {
  const clock = { ms: 1_000, nowMs: () => clock.ms };
  let drawn = 0;
  const randomHex = (bytes: number) => (++drawn).toString(16).padStart(2 * bytes, "0");
  return { clock, tests: new LeakTests({ clock, randomHex }) };
}

Deno.test("LeakTests gives eight names and notes who asked for them", none, () => {
  const { tests } = make();
  const { id, names } = tests.start();
  assert.equal(new Set(names).size, 8);
  assert.ok(names.every((name) => name.endsWith(".leak.svc.test")), names[0]);
  assert.equal(tests.note(names[0], lookup), true);
  assert.equal(tests.note(names[0], lookup), true);
  assert.equal(tests.note(names[1], { ...lookup, address: "192.0.2.8" }), true);
  assert.equal(tests.note("other.leak.svc.test", lookup), false);
  assert.equal(tests.note(names[0].replace(/^0/, "9"), lookup), false);
  const found = tests.find(id);
  assert.equal(found?.reached, 2);
  assert.deepEqual(found?.lookups.map(({ address }) => address), ["192.0.2.7", "192.0.2.8"]);
});

Deno.test("LeakTests keeps tests for an hour, and only so many", none, () => {
  const { clock, tests } = make();
  const { id, names } = tests.start();
  clock.ms += HOUR_MS - 1;
  assert.deepEqual(tests.all().map((test) => test.id), [id]);
  clock.ms += 1;
  assert.equal(tests.find(id), null);
  assert.deepEqual(tests.all(), []);
  assert.equal(tests.note(names[0], lookup), false);
  const first = tests.start();
  for (let i = 0; i < 200; i++) tests.start();
  assert.equal(tests.find(first.id), null);
  assert.equal(tests.all().length, 64);
  const last = tests.start();
  for (let i = 0; i < 1_000; i++) tests.note(last.names[0], { ...lookup, client: `c-${i}` });
  assert.equal(tests.find(last.id)?.lookups.length, 256);
});
