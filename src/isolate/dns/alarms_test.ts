import assert from "node:assert/strict";
import { Alarms } from "./alarms.ts";

const none = { permissions: "none" } as const;

Deno.test(
  "Alarms does each thing once when it is due, and what sets itself again, again",
  none,
  () => {
    const alarms = new Alarms({ nowMs: () => assert.fail("the owner tells"), after: null });
    const done: string[] = [];
    const once = alarms.add(() => done.push("once"));
    const again = alarms.add(() => {
      done.push("again");
      again.set(20);
    });
    assert.equal(alarms.nextAtMs, Infinity);
    once.set(15);
    again.set(10);
    assert.equal(alarms.nextAtMs, 10);
    alarms.run(9.9);
    assert.deepEqual(done.splice(0), []);
    alarms.run(10);
    assert.deepEqual(done.splice(0), ["again"]);
    assert.equal(alarms.nextAtMs, 15);
    alarms.run(30);
    assert.deepEqual(done.splice(0), ["once", "again"]);
    again.set(40);
    alarms.clear();
    alarms.run(50);
    assert.deepEqual(done, []);
    assert.equal(alarms.nextAtMs, Infinity);
  },
);

Deno.test("Alarms.after() calls once, unless it is called off", none, () => {
  const alarms = new Alarms({ nowMs: () => 100, after: null });
  const done: string[] = [];
  alarms.after(10, () => {
    done.push("once");
    alarms.after(10, () => done.push("and what it began"));
  });
  const callOff = alarms.after(5, () => done.push("never"));
  assert.equal(alarms.nextAtMs, 105);
  callOff();
  alarms.run(110);
  assert.deepEqual(done.splice(0), ["once"]);
  alarms.run(120);
  alarms.run(130);
  assert.deepEqual(done, ["and what it began"]);
  assert.equal(alarms.nextAtMs, Infinity);
});

Deno.test("Alarms has one timer at most, for what is first", none, () => {
  let nowMs = 0;
  const timers = new Set<{ atMs: number; work: () => void }>();
  const after = (ms: number, work: () => void) => {
    const timer = { atMs: nowMs + ms, work };
    timers.add(timer);
    return () => void timers.delete(timer);
  };
  const alarms = new Alarms({ nowMs: () => nowMs, after });
  const done: string[] = [];
  const first = alarms.add(() => done.push("first"));
  alarms.add(() => done.push("second")).set(30);
  first.set(20);
  first.set(10);
  const fire = (atMs: number) => {
    const [timer, ...more] = timers;
    assert.deepEqual([timer.atMs, more.length], [atMs, 0]);
    timers.delete(timer);
    nowMs = atMs;
    timer.work();
  };
  fire(10);
  assert.deepEqual(done.splice(0), ["first"]);
  nowMs = 29.5;
  const [early] = timers;
  timers.delete(early);
  early.work(); // Timers come early by a little.
  assert.deepEqual(done.splice(0), []);
  fire(30);
  assert.deepEqual(done, ["second"]);
  assert.equal(timers.size, 0);
});
