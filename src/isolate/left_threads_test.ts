import assert from "node:assert/strict";
import { openNative, threadCpuMs, threadId } from "../native/mod.ts";
import { FakeTime } from "./fakes.ts";
import { LeftThreads } from "./left_threads.ts";

const none = { permissions: "none" } as const;

/** Threads that run for a part of the time, by number; `null`: it has ended. */
function threads() {
  const time = new FakeTime();
  const cpuMs = new Map<number, number>();
  const left = new LeftThreads((thread) => cpuMs.get(thread) ?? null, time);
  const told: string[] = [];
  left.onBusy = (isolate) => void told.push(isolate);
  /** Until the next look, in which each thread runs for so long. */
  const look = (runs: Readonly<Record<number, number>>) => {
    for (const [thread, ms] of Object.entries(runs)) {
      cpuMs.set(Number(thread), (cpuMs.get(Number(thread)) ?? 0) + ms);
    }
    return time.next();
  };
  return { time, cpuMs, left, told, look };
}

Deno.test(
  "LeftThreads tells of a thread that goes on after ten seconds, until it ends",
  none,
  () => {
    const { time, cpuMs, left, told, look } = threads();
    for (const thread of [1, 2, 3]) cpuMs.set(thread, 500);
    left.watch("dns isolate 0", 1);
    left.watch("dns isolate 1", 2);
    left.watch("dns isolate 2", 3);
    left.watch("dns isolate 3", 4); // Gone already.
    assert.deepEqual(left.problems, []);
    cpuMs.delete(3);
    assert.equal(look({ 1: 9_900, 2: 10 }), 10_000);
    assert.deepEqual(left.problems, [
      "dns isolate 0 hung and was replaced, but its thread still uses a processor: restart svc",
    ]);
    look({ 1: 9_900, 2: 10 });
    assert.deepEqual(told, ["dns isolate 0"], "once");
    look({ 1: 10, 2: 600 }); // A loop among many others that want the processor.
    assert.match(left.problems.join(), /^dns isolate 1 hung/);
    cpuMs.delete(1);
    cpuMs.set(2, 3); // Another thread that got its number.
    look({});
    assert.deepEqual([left.problems, time.waiting], [[], 0], "nothing is left to look at");
    left.watch("dns isolate 0", 2);
    assert.equal(time.waiting, 1);
    left.stop();
    assert.equal(time.waiting, 0);
  },
);

Deno.test("LeftThreads watches no more than its bound", none, () => {
  const { cpuMs, left, look } = threads();
  const runs: Record<number, number> = {};
  for (let thread = 0; thread < 1_000; thread++) {
    cpuMs.set(thread, 1);
    left.watch(`dns isolate ${thread}`, thread);
    runs[thread] = 10_000;
  }
  look(runs);
  assert.equal(left.problems.length, 64);
  assert.match(left.problems[63], /^dns isolate 999 /);
});

Deno.test({
  name: "threadCpuMs() tells how long a thread has run, and when it has ended",
  ignore: Deno.build.os !== "linux",
  fn: async () => {
    const native = openNative();
    assert.ok(native !== null);
    const own = threadCpuMs(native, threadId(native)!);
    assert.ok(own !== null && own > 0);
    const source = `import { openNative, threadId } from ${
      JSON.stringify(new URL("../native/mod.ts", import.meta.url))
    };
    self.onmessage = () => {
      for (let i = 0; i < 3e7; i++) Math.sqrt(i);
      self.postMessage(threadId(openNative()));
    };
    self.postMessage(threadId(openNative()));`;
    const url = `data:application/javascript,${encodeURIComponent(source)}`;
    const worker = new Worker(url, { type: "module" });
    const said = () => new Promise<number>((resolve) => worker.onmessage = (e) => resolve(e.data));
    const thread = await said();
    const before = threadCpuMs(native, thread);
    worker.postMessage("work");
    assert.equal(await said(), thread);
    const after = threadCpuMs(native, thread);
    assert.ok(before !== null && after !== null && after > before);
    worker.terminate();
    while (threadCpuMs(native, thread) !== null) await new Promise((go) => setTimeout(go, 10));
  },
});
