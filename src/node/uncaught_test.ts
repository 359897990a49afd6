import assert from "node:assert/strict";
import { UNCAUGHT_QUIET_MS, UncaughtErrors } from "./uncaught.ts";

const none = { permissions: "none" } as const;

/** Errors of a target and clock of the test's own, with the log lines they make. */
function errors() {
  const target = new EventTarget();
  const lines: Record<string, unknown>[] = [];
  const clock = { nowMs: 1_000 };
  const write = Deno.stderr.writeSync;
  const isTerminal = Deno.stderr.isTerminal;
  Deno.stderr.isTerminal = () => false;
  Deno.stderr.writeSync = (bytes) => {
    lines.push(JSON.parse(new TextDecoder().decode(bytes)));
    return bytes.length;
  };
  const uncaught = new UncaughtErrors({ target, nowMs: () => clock.nowMs });
  const restore = () => Object.assign(Deno.stderr, { writeSync: write, isTerminal });
  return { target, lines, clock, uncaught, [Symbol.dispose]: restore };
}

/** Dispatches what the runtime would; returns whether it would end the process. */
function thrown(target: EventTarget, error: unknown): boolean {
  return target.dispatchEvent(new ErrorEvent("error", { error, cancelable: true }));
}

Deno.test("UncaughtErrors takes over once it is armed, and not before", none, () => {
  using all = errors();
  const { target, uncaught, lines } = all;
  assert.equal(thrown(target, new Error("at the start")), true);
  uncaught.arm();
  assert.equal(thrown(target, new Error("of a timer")), false);
  const promise = Promise.resolve();
  const rejected = new PromiseRejectionEvent("unhandledrejection", {
    promise,
    reason: "of a promise",
    cancelable: true,
  });
  assert.equal(target.dispatchEvent(rejected), false);
  assert.equal(uncaught.count, 2);
  assert.deepEqual(lines.map(({ level }) => level), ["error", "error"]);
  assert.match(String(lines[0].error), /^Error: of a timer\n/);
  assert.match(uncaught.problems.join(), /^2 errors .*; last: of a promise$/);
});

Deno.test("UncaughtErrors.problems go away after the quiet time", none, () => {
  using all = errors();
  const { clock, uncaught } = all;
  assert.deepEqual(uncaught.problems, []);
  uncaught.note(new Error("one"));
  clock.nowMs += UNCAUGHT_QUIET_MS - 1;
  assert.match(uncaught.problems.join(), /^an error .*last: one$/);
  clock.nowMs += 1;
  assert.deepEqual(uncaught.problems, []);
  uncaught.note(new Error("another"));
  assert.match(uncaught.problems.join(), /^an error .*last: another$/);
  assert.equal(uncaught.count, 2);
});

Deno.test("UncaughtErrors logs few lines of a storm, and how many it left out", none, () => {
  using all = errors();
  const { clock, uncaught, lines } = all;
  for (let i = 0; i < 10_000; i++) uncaught.note(new Error(`number ${i}\nsecond line`));
  assert.equal(lines.length, 20);
  clock.nowMs += 1_000;
  uncaught.note("x".repeat(100_000));
  assert.equal(lines.length, 21);
  assert.equal(lines[20].unlogged, 9_980);
  assert.equal(uncaught.count, 10_001);
  assert.ok(uncaught.problems.join().length < 400);
});

Deno.test("UncaughtErrors.note() takes whatever can be thrown", none, () => {
  using all = errors();
  const { uncaught } = all;
  const hostile = { toString: () => assert.fail("called") };
  for (const error of [null, undefined, 7, Symbol("s"), hostile, Object.create(null), 1n]) {
    uncaught.note(error);
  }
  assert.equal(uncaught.count, 7);
});

Deno.test("UncaughtErrors.survive() counts what a step throws, now or later", none, async () => {
  using all = errors();
  const { uncaught } = all;
  assert.equal(await uncaught.survive(() => 3), 3);
  assert.equal(await uncaught.survive(() => assert.fail("now")), null);
  assert.equal(await uncaught.survive(() => Promise.reject(new Error("later"))), null);
  assert.equal(uncaught.count, 2);
});
