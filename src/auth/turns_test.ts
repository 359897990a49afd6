import assert from "node:assert/strict";
import { Turns } from "./turns.ts";

const none = { permissions: "none" } as const;

Deno.test("Turns lets as many through as may, the rest in order", none, async () => {
  const turns = new Turns(2, 3);
  const ends: (() => void)[] = [];
  const began: number[] = [];
  const works = [0, 1, 2, 3, 4].map((i) =>
    turns.take(() => {
      began.push(i);
      return new Promise<number>((resolve) => ends.push(() => resolve(i)));
    })
  );
  await assert.rejects(() => turns.take(() => Promise.resolve(5)), { code: "unavailable" });
  assert.deepEqual(began, [0, 1]);
  for (const i of [0, 1, 2, 3, 4]) {
    ends[i]();
    assert.equal(await works[i], i);
    await Promise.resolve();
    assert.deepEqual(began, [0, 1, 2, 3, 4].slice(0, Math.min(5, i + 3)));
  }
});

Deno.test("Turns goes on after work that failed", none, async () => {
  const turns = new Turns(1, 1);
  const failing = turns.take(() => Promise.reject(new Error("no")));
  const next = turns.take(() => Promise.resolve("next"));
  await assert.rejects(failing, /no/);
  assert.equal(await next, "next");
  assert.equal(await turns.take(() => Promise.resolve("after")), "after");
});
