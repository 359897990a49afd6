import assert from "node:assert/strict";
import { OdohKeys } from "./odoh_keys.ts";

const DAY_MS = 86_400_000;

/** A clock, and what waits for it. */
class Clock {
  ms = 1_000;
  waits: { readonly atMs: number; readonly work: () => void }[] = [];

  nowMs(): number {
    return this.ms;
  }

  after(ms: number, work: () => void): () => void {
    const wait = { atMs: this.ms + ms, work };
    this.waits.push(wait);
    return () => void (this.waits = this.waits.filter((other) => other !== wait));
  }

  advance(ms: number): void {
    this.ms += ms;
    const due = this.waits.filter(({ atMs }) => atMs <= this.ms);
    this.waits = this.waits.filter((wait) => !due.includes(wait));
    for (const { work } of due) work();
  }
}

Deno.test("OdohKeys rotate daily and keep the former one", { permissions: "none" }, () => {
  const clock = new Clock();
  const keys = new OdohKeys([], 0, clock);
  const first = keys.seeds[0];
  assert.deepEqual([keys.seeds.length, first.length], [1, 32]);
  const told: (readonly Uint8Array[])[] = [];
  const end = keys.rotateDaily((seeds) => told.push(seeds));
  clock.advance(DAY_MS - 1);
  assert.deepEqual(keys.seeds, [first]);
  clock.advance(1);
  const [second] = keys.seeds;
  assert.deepEqual(keys.seeds, [second, first]);
  assert.notDeepEqual(second, first);
  clock.advance(DAY_MS);
  assert.deepEqual(keys.seeds.slice(1), [second]);
  assert.deepEqual(told, [[second, first], keys.seeds]);
  end();
  assert.deepEqual(clock.waits, []);
});

Deno.test("OdohKeys are as old in the next process as they were", { permissions: "none" }, () => {
  const clock = new Clock();
  let keys = new OdohKeys([], 0, clock);
  const first = keys.seeds[0];
  // A process after the other, none of them for a day.
  for (let i = 0; i < 3; i++) {
    const end = keys.rotateDaily(() => {});
    clock.advance(DAY_MS / 4);
    end();
    keys = new OdohKeys(keys.seeds, keys.ageMs, clock);
  }
  assert.deepEqual(keys.seeds, [first]);
  keys.rotateDaily(() => {});
  clock.advance(DAY_MS / 4);
  assert.deepEqual(keys.seeds.slice(1), [first]);
  assert.equal(keys.ageMs, 0);
});
