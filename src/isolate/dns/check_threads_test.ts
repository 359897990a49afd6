// Goal: checks find a thread with room, and none is lost between an isolate and its threads.
import assert from "node:assert/strict";
import type { SignatureCheck } from "../../dnssec/verify.ts";
import { Bell, CheckRing, CHECKS_MAX } from "../check/ring.ts";
import { CheckWays } from "./check_threads.ts";

const none = { permissions: "none" } as const;

function checkOf(id: number, size = id): SignatureCheck {
  return {
    algorithm: 13,
    publicKey: new Uint8Array(64).fill(id),
    data: new Uint8Array(size).fill(7),
    signature: new Uint8Array(64).fill(id + 1),
  };
}

/** A thread that does its work when it is told to. */
class FakeThread {
  readonly ring = new SharedArrayBuffer(CheckRing.MEMORY_BYTES);
  readonly bell = new SharedArrayBuffer(Bell.MEMORY_BYTES);
  readonly end = new CheckRing(this.ring);

  constructor(readonly thread: number) {}

  way() {
    const { thread, ring, bell } = this;
    return { thread, ring, bell, wake: 3, port: null };
  }

  /** How many checks it had. */
  work(): number {
    let count = 0;
    for (let next = this.end.take(); next !== null; next = this.end.take(), count++) {
      this.end.put(next.id, next.id % 2 === 0);
    }
    return count;
  }
}

Deno.test("CheckWays send what there is room for, and read what came of it", none, () => {
  const ways = new CheckWays();
  const threads = [new FakeThread(0), new FakeThread(1)];
  const wanted = Array.from({ length: 100 }, (_, id) => id);
  const done: number[] = [];
  let fed = 0;
  const feed = () => {
    while (wanted.length > 0 && ways.hasRoom) {
      const id = wanted.shift()!;
      ways.send(id, checkOf(id));
    }
  };
  ways.events = {
    onResult: (id, fits) => {
      assert.equal(fits, id % 2 === 0);
      done.push(id);
      feed();
    },
    onLost: () => assert.fail("nothing is lost"),
    feed: () => {
      fed++;
      feed();
    },
  };
  assert.equal(ways.hasRoom, false);
  for (const thread of threads) ways.take(thread.way());
  assert.equal(fed, 2);
  assert.equal(ways.usesPorts, false);
  assert.ok(threads.every(({ bell }) => new Bell(bell).count === CHECKS_MAX), "each is told");
  for (let i = 0; i < 10 && done.length < 100; i++) {
    for (const thread of threads) assert.ok(thread.work() <= CHECKS_MAX);
    ways.read();
  }
  assert.deepEqual(done.sort((a, b) => a - b), Array.from({ length: 100 }, (_, id) => id));
});

Deno.test("CheckWays give back what a thread had that was replaced", none, () => {
  const ways = new CheckWays();
  const lost: number[] = [];
  const results: number[] = [];
  ways.events = {
    onResult: (id) => results.push(id),
    onLost: (ids) => lost.push(...ids),
    feed: () => {},
  };
  const [first, second] = [new FakeThread(0), new FakeThread(0)];
  ways.take(first.way());
  for (const id of [100, 101, 102]) ways.send(id, checkOf(2));
  const { id } = first.end.take()!;
  first.end.put(id, true);
  ways.read();
  ways.take(second.way());
  assert.deepEqual([results, lost], [[100], [101, 102]]);
  first.work();
  ways.read();
  assert.deepEqual(results, [100], "the former one is not heard any more");
});

Deno.test(
  "CheckWays take what no way can carry for a signature that does not fit",
  none,
  async () => {
    const ways = new CheckWays();
    const { promise, resolve } = Promise.withResolvers<[number, boolean]>();
    ways.events = { onResult: (...result) => resolve(result), onLost: () => {}, feed: () => {} };
    const thread = new FakeThread(0);
    ways.take(thread.way());
    ways.send(5, checkOf(1, 1_000_000));
    assert.deepEqual(await promise, [5, false]);
    assert.equal(thread.work(), 0);
  },
);

Deno.test("CheckWays are told by messages where nobody can wake the isolate", none, async () => {
  const ways = new CheckWays();
  const { promise, resolve } = Promise.withResolvers<[number, boolean]>();
  ways.events = { onResult: (...result) => resolve(result), onLost: () => {}, feed: () => {} };
  const thread = new FakeThread(0);
  const { port1, port2 } = new MessageChannel();
  ways.take({ ...thread.way(), wake: null, port: port2 });
  assert.ok(ways.usesPorts);
  ways.send(6, checkOf(6));
  thread.work();
  port1.postMessage(null);
  assert.deepEqual(await promise, [6, true]);
  ways.close();
  port1.close();
});
