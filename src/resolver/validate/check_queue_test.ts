// Goal: nobody's signatures keep those of others waiting for long, nothing grows without bound, and
// no check is lost. Method: threads that check when they are told to, on a clock of the test's own.
import assert from "node:assert/strict";
import type { SignatureCheck } from "../../dnssec/mod.ts";
import { Counter, CounterBlock, COUNTERS_BYTES } from "../../telemetry/mod.ts";
import { wire } from "../fakes.ts";
import { CheckQueue, ChecksRefused, REMEMBERED_BYTES_MAX, WAITING_MAX } from "./check_queue.ts";
import { FakeThreads } from "./fakes.ts";

const none = { permissions: "none" } as const;

/** A check of a zone's signature, one of its own for each number. */
function checkOf(zone: string, number: number): SignatureCheck {
  return {
    algorithm: 15,
    publicKey: Uint8Array.of(1),
    data: Uint8Array.of(...new Uint8Array(18), ...wire(zone)),
    signature: Uint8Array.of(number >> 8, number),
  };
}

class Bench {
  readonly threads = new FakeThreads(1);
  readonly counters = new CounterBlock(new ArrayBuffer(COUNTERS_BYTES));
  nowMs = 0;
  readonly queue = new CheckQueue({
    threads: this.threads,
    counters: this.counters,
    nowMs: () => this.nowMs,
  });
  /** Who had an end, in order. */
  readonly ended: string[] = [];
  #number = 0;

  want(who: string, client: number, zone: string): { readonly client: number } {
    const owner = { client };
    this.queue.check(owner, checkOf(zone, ++this.#number)).then(
      () => this.ended.push(who),
      (error) => {
        assert.ok(error instanceof ChecksRefused);
        this.ended.push(`${who} refused`);
      },
    );
    return owner;
  }

  /** Has `count` checks made; returns who had an end. */
  async step(count: number): Promise<string[]> {
    for (let i = 0; i < count && this.threads.sent.length > 0; i++) this.threads.step(this.queue);
    await Promise.resolve();
    await Promise.resolve();
    return this.ended.splice(0);
  }
}

Deno.test("CheckQueue lets others in before a client that asks for much", none, async () => {
  const bench = new Bench();
  // One client, many zones of one hand and of many.
  for (let i = 0; i < 200; i++) bench.want("evil", 1, `z${i}.evil${i % 50}.test`);
  await bench.step(20);
  bench.want("good", 2, "good.test");
  const ended = await bench.step(3);
  assert.ok(ended.includes("good"), ended.join());
});

Deno.test("CheckQueue lets others in before a zone that has much to check", none, async () => {
  const bench = new Bench();
  // Many clients, led to one zone.
  for (let i = 0; i < 200; i++) bench.want("evil", i + 10, `z${i}.evil.test`);
  await bench.step(20);
  bench.want("good", 2, "good.test");
  const ended = await bench.step(3);
  assert.ok(ended.includes("good"), ended.join());
});

Deno.test("CheckQueue refuses whoever has the most where too many wait", none, async () => {
  const bench = new Bench();
  bench.want("good", 2, "good.test");
  bench.want("good", 3, "other.test");
  for (let i = 0; i < 3 * WAITING_MAX; i++) bench.want("evil", 1, `z${i}.evil${i % 9}.test`);
  assert.ok(bench.queue.waiting <= WAITING_MAX, `${bench.queue.waiting}`);
  bench.want("late", 4, "late.test");
  const refused = await bench.step(0);
  assert.deepEqual(new Set(refused), new Set(["evil refused"]));
  assert.equal(bench.counters.values[Counter.ChecksRefused], refused.length);
  const ended = await bench.step(4);
  assert.deepEqual(ended.filter((who) => who !== "evil").sort(), ["good", "good", "late"]);
});

Deno.test("CheckQueue checks the same once, and remembers what came of it", none, async () => {
  const bench = new Bench();
  const same = checkOf("a.test", 7);
  const wanted = [1, 2, 3].map((client) => bench.queue.check({ client }, same));
  assert.equal(bench.threads.sent.length + bench.queue.waiting, 1);
  bench.threads.step(bench.queue);
  assert.deepEqual(await Promise.all(wanted), [false, false, false]);
  assert.equal(await bench.queue.check({ client: 4 }, same), false);
  assert.equal(bench.threads.checked, 1);
  // What has not been asked for of late is forgotten.
  for (let i = 0; i < 2 * REMEMBERED_BYTES_MAX / 500; i++) {
    const large = { ...checkOf("b.test", i), data: new Uint8Array(500) };
    void bench.queue.check({ client: 1 }, large);
    await bench.step(1);
  }
  void bench.queue.check({ client: 4 }, same);
  assert.equal(bench.threads.sent.length, 1);
});

Deno.test(
  "CheckQueue tells checks apart that differ in one byte, or in where a field ends",
  none,
  async () => {
    const bench = new Bench();
    const check = { ...checkOf("a.test", 7), publicKey: Uint8Array.of(1, 2, 3) };
    const { data } = check;
    const others: SignatureCheck[] = [
      { ...check, algorithm: 13 },
      { ...check, publicKey: Uint8Array.of(1, 2), data: Uint8Array.of(3, ...data) },
      { ...check, signature: Uint8Array.of(...check.signature, 0) },
      ...Array.from(
        data,
        (byte, at) => ({ ...check, data: data.with(at, byte ^ 1) }),
      ),
    ];
    const long = new Uint8Array(3_000);
    others.push(...[0, 1_500, 2_999].map((at) => ({ ...check, data: long.with(at, 1) })));
    for (const one of [check, ...others, check, ...others]) {
      void bench.queue.check({ client: 1 }, one);
      await bench.step(1);
    }
    assert.equal(bench.threads.checked, 1 + others.length);
  },
);

Deno.test("CheckQueue tells nobody who is gone, and checks for nobody", none, async () => {
  const bench = new Bench();
  const first = bench.want("first", 1, "a.test");
  const second = bench.want("second", 1, "b.test");
  bench.want("third", 1, "c.test");
  bench.queue.forget(first);
  bench.queue.forget(second);
  assert.deepEqual(await bench.step(9), ["third"]);
  assert.equal(bench.threads.checked, 2, "what was with a thread already, and the third");
});

Deno.test("CheckQueue has what was lost with a thread checked by another", none, async () => {
  const bench = new Bench();
  const first = bench.want("first", 1, "a.test");
  bench.want("second", 1, "b.test");
  const lost = bench.threads.sent.splice(0).map(({ id }) => id);
  bench.queue.onLost(lost);
  assert.deepEqual((await bench.step(9)).sort(), ["first", "second"]);
  // Of those that nobody wants by then, nothing is left.
  const third = bench.want("third", 1, "c.test");
  bench.queue.forget(first);
  bench.queue.forget(third);
  bench.queue.onLost(bench.threads.sent.splice(0).map(({ id }) => id));
  assert.equal(bench.threads.sent.length + bench.queue.waiting, 0);
});
