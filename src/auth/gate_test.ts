import assert from "node:assert/strict";
import { Gate } from "./gate.ts";

const none = { permissions: "none" } as const;

Deno.test("Gate lets as many through as may, the rest in order", none, async () => {
  const gate = new Gate(2, 3);
  const ends: (() => void)[] = [];
  const began: number[] = [];
  const works = [0, 1, 2, 3, 4].map((i) =>
    gate.pass(() => {
      began.push(i);
      return new Promise<number>((resolve) => ends.push(() => resolve(i)));
    })
  );
  await assert.rejects(() => gate.pass(() => Promise.resolve(5)), { code: "unavailable" });
  assert.deepEqual(began, [0, 1]);
  for (const i of [0, 1, 2, 3, 4]) {
    ends[i]();
    assert.equal(await works[i], i);
    await Promise.resolve();
    assert.deepEqual(began, [0, 1, 2, 3, 4].slice(0, Math.min(5, i + 3)));
  }
});

Deno.test("Gate goes on after work that failed", none, async () => {
  const gate = new Gate(1, 1);
  const failing = gate.pass(() => Promise.reject(new Error("no")));
  const next = gate.pass(() => Promise.resolve("next"));
  await assert.rejects(failing, /no/);
  assert.equal(await next, "next");
  assert.equal(await gate.pass(() => Promise.resolve("after")), "after");
});
