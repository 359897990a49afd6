// Goal: whatever an isolate does, there is one again, soon at first and ever more slowly, and nothing
// of those before it is left. Method: workers and time that do what the test says.
import assert from "node:assert/strict";
import { FakeTime } from "./fakes.ts";
import { type KeepLimits, KeptIsolate } from "./kept_isolate.ts";

const none = { permissions: "none" } as const;

const LIMITS: KeepLimits = {
  startMsMax: 10_000,
  lookMs: 2_000,
  silenceMsMax: 10_000,
  restartMsMin: 50,
  restartMsMax: 5_000,
  stableMs: 30_000,
};
const LINES = { crashed: "crashed", startedAgain: "started again", notStarted: "not started" };

/** What the supervision needs of a worker. */
class FakeWorker {
  onmessage: ((event: { data: unknown }) => void) | null = null;
  onerror: ((event: { message: string; preventDefault(): void }) => void) | null = null;
  readonly heard: unknown[] = [];
  isTerminated = false;

  postMessage(message: unknown): void {
    this.heard.push(message);
  }

  terminate(): void {
    assert.ok(!this.isTerminated, "once");
    this.isTerminated = true;
  }

  says(data: unknown): void {
    this.onmessage?.({ data });
  }

  throws(message: string): void {
    this.onerror?.({ message, preventDefault: () => undefined });
  }
}

/** An isolate that is kept, and everything that becomes of it. */
class Kept {
  readonly time = new FakeTime();
  readonly workers: FakeWorker[] = [];
  readonly crashes = { count: 0 };
  readonly heard: unknown[] = [];
  readonly left: number[] = [];
  begun = 0;
  ended = 0;
  /** Why there is no worker, or why it can't begin. */
  noWorker: string | null = null;
  noBegin: string | null = null;
  readonly isolate: KeptIsolate<{ type: "own" }, { type: string }>;

  constructor() {
    this.isolate = new KeptIsolate<{ type: "own" }, { type: string }>({
      limits: LIMITS,
      lines: LINES,
      fields: {},
      crashes: this.crashes,
      startWorker: () => {
        if (this.noWorker !== null) throw new Error(this.noWorker);
        const worker = new FakeWorker();
        this.workers.push(worker);
        return worker as unknown as Worker;
      },
      begin: () => {
        this.begun++;
        if (this.noBegin !== null) throw new Error(this.noBegin);
      },
      hear: (message) => this.heard.push(message),
      ended: () => this.ended++,
      left: (thread) => this.left.push(thread),
    }, this.time);
  }

  get worker(): FakeWorker {
    return this.workers[this.workers.length - 1];
  }

  /** Those of them that run. */
  get running(): number {
    return this.workers.filter(({ isTerminated }) => !isTerminated).length;
  }
}

Deno.test("KeptIsolate starts one again whose launch failed, for as long as it fails", none, () => {
  for (const where of ["noWorker", "noBegin"] as const) {
    const kept = new Kept();
    kept[where] = "no more descriptors";
    kept.isolate.start();
    const pausesMs: number[] = [];
    for (let i = 0; i < 20; i++) pausesMs.push(kept.time.next());
    assert.deepEqual(pausesMs.slice(0, 9), [50, 100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000]);
    assert.equal(Math.max(...pausesMs), LIMITS.restartMsMax);
    assert.equal(kept.running, 0, "no worker of a launch that failed stays");
    assert.equal(kept.ended, 21, "what each held is let go");
    assert.equal(kept.isolate.isThere, false);
    kept[where] = null;
    kept.time.next();
    assert.deepEqual([kept.isolate.isThere, kept.running], [true, 1]);
    assert.equal(kept.crashes.count, 0, "one that never ran did not crash");
    kept.isolate.end();
    assert.equal(kept.time.waiting, 0);
  }
});

Deno.test("KeptIsolate replaces one that crashes, soon again once it was stable", none, () => {
  const kept = new Kept();
  kept.isolate.start();
  const crash = () => {
    kept.worker.says({ type: "ready" });
    kept.worker.says({ type: "crashed", error: "by the test" });
    return kept.time.next();
  };
  assert.deepEqual([crash(), crash(), crash(), crash()], [50, 100, 200, 400]);
  kept.worker.says({ type: "ready" });
  for (let passedMs = 0; passedMs < LIMITS.stableMs; passedMs += kept.time.next()) {
    kept.worker.says({ type: "pong" });
  }
  kept.worker.throws("outside of everything");
  assert.equal(kept.time.next(), 50);
  assert.deepEqual([kept.crashes.count, kept.running, kept.time.waiting], [5, 1, 1]);
});

Deno.test("KeptIsolate replaces one that is silent or never begins to work", none, () => {
  const kept = new Kept();
  kept.isolate.start();
  let passedMs = 0;
  while (kept.crashes.count === 0) passedMs += kept.time.next();
  assert.equal(passedMs, LIMITS.startMsMax, "it never began");
  kept.time.next();
  kept.worker.says({ type: "ready" });
  for (let i = 0; i < 20; i++) {
    kept.time.next();
    kept.worker.says({ type: "pong" });
  }
  assert.deepEqual(kept.worker.heard, new Array(20).fill({ type: "ping" }));
  passedMs = 0;
  while (kept.crashes.count === 1) passedMs += kept.time.next();
  assert.equal(passedMs, LIMITS.silenceMsMax + LIMITS.lookMs, "and then it was silent");
});

Deno.test("KeptIsolate looks at all that work in one turn, whenever each began", none, () => {
  const kept = [new Kept(), new Kept()];
  kept[1].time.sleep(777);
  for (const one of kept) {
    one.isolate.start();
    one.worker.says({ type: "ready" });
    one.time.next(); // The first look is a while after the start.
    one.worker.says({ type: "pong" });
    for (let i = 0; i < 3; i++) {
      one.time.next();
      one.worker.says({ type: "pong" });
      assert.equal(one.time.nowMs() % LIMITS.lookMs, 0);
    }
  }
});

Deno.test("KeptIsolate takes its own sleep for nobody's silence", none, () => {
  const kept = new Kept();
  kept.isolate.start();
  kept.worker.says({ type: "ready" });
  kept.time.next();
  // The process was stopped for an hour: the look comes before the answer that waits.
  kept.time.sleep(3_600_000);
  kept.time.next();
  kept.worker.says({ type: "pong" });
  assert.deepEqual([kept.crashes.count, kept.running], [0, 1]);
});

Deno.test("KeptIsolate hears nothing of one that was replaced", none, () => {
  const kept = new Kept();
  kept.isolate.start();
  const [first] = kept.workers;
  first.says({ type: "thread", thread: 4_711 });
  first.says({ type: "ready" });
  first.says({ type: "crashed", error: "by the test" });
  assert.deepEqual(kept.left, [4_711]);
  kept.time.next();
  const heard = kept.heard.length;
  for (const type of ["ready", "pong", "own"]) first.says({ type });
  first.says({ type: "crashed", error: "once more" });
  first.throws("and again");
  assert.deepEqual([kept.heard.length, kept.crashes.count, kept.running], [heard, 1, 1]);
});

Deno.test("KeptIsolate.retire() leaves the one that runs, and starts no other", none, () => {
  const kept = new Kept();
  kept.isolate.start();
  kept.worker.says({ type: "ready" });
  kept.isolate.retire();
  assert.equal(kept.isolate.isThere, true);
  kept.worker.says({ type: "crashed", error: "by the test" });
  assert.deepEqual([kept.running, kept.ended, kept.time.waiting], [0, 1, 0]);

  const paused = new Kept();
  paused.isolate.start();
  paused.worker.throws("by the test");
  assert.equal(paused.time.waiting, 1);
  paused.isolate.retire();
  paused.isolate.end();
  assert.deepEqual([paused.running, paused.ended, paused.time.waiting], [0, 1, 0]);
});

Deno.test("KeptIsolate holds one worker and one timer after a thousand crashes", none, () => {
  const kept = new Kept();
  kept.isolate.start();
  for (let i = 0; i < 1_000; i++) {
    if (i % 3 > 0) kept.worker.says({ type: "ready" });
    if (i % 5 === 0) kept.noBegin = "not this time";
    kept.worker.says({ type: "crashed", error: "by the test" });
    while (!kept.isolate.isThere) {
      kept.time.next();
      kept.noBegin = null;
    }
    assert.deepEqual([kept.running, kept.time.waiting], [1, 1]);
  }
  assert.equal(kept.crashes.count, 1_000);
  assert.equal(kept.begun - kept.ended, 1);
  kept.isolate.end();
  assert.deepEqual([kept.running, kept.begun - kept.ended, kept.time.waiting], [0, 0, 0]);
});
