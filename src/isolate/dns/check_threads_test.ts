// Goal: checks that wait go together, and none is lost between an isolate and its threads.
import assert from "node:assert/strict";
import type { SignatureCheck } from "../../dnssec/verify.ts";
import { type NumberedCheck, packChecks, unpackChecks } from "../check/messages.ts";
import { CheckWays } from "./check_threads.ts";

const none = { permissions: "none" } as const;

function checkOf(id: number): SignatureCheck {
  return {
    algorithm: 13,
    publicKey: new Uint8Array(64).fill(id),
    data: new Uint8Array(id).fill(7),
    signature: new Uint8Array(64).fill(id + 1),
  };
}

Deno.test("packChecks() and unpackChecks() hand on what they are given", none, () => {
  const checks: NumberedCheck[] = [0, 1, 300, 70_000].map((id) => ({ id, check: checkOf(id) }));
  assert.deepEqual([...unpackChecks(packChecks(checks))], checks);
  assert.deepEqual([...unpackChecks(packChecks([]))], []);
});

Deno.test("CheckWays send what waits in few messages, and have an end", none, async () => {
  const ways = new CheckWays();
  const { port1: thread, port2 } = new MessageChannel();
  const sizes: number[] = [];
  const done = new Set<number>();
  const all = Promise.withResolvers<void>();
  const wanted = Array.from({ length: 50 }, (_, id) => id);
  const feed = () => {
    while (wanted.length > 0 && ways.hasRoom) {
      const id = wanted.shift()!;
      ways.send(id, checkOf(id));
    }
  };
  ways.events = {
    onResult: (id, fits) => {
      assert.equal(fits, id % 2 === 0);
      done.add(id);
      feed();
      if (done.size === 50) all.resolve();
    },
    onLost: () => assert.fail("nothing is lost"),
    feed,
  };
  thread.onmessage = ({ data }: MessageEvent<Uint8Array>) => {
    const checks = [...unpackChecks(data)];
    sizes.push(checks.length);
    thread.postMessage(checks.map(({ id }) => ({ id, fits: id % 2 === 0 })));
  };
  ways.take(0, port2);
  await all.promise;
  assert.ok(sizes.length <= 12 && Math.max(...sizes) <= 8, sizes.join());
  // A thread that is replaced gives back what it had.
  const lost: number[] = [];
  ways.events = { onResult: () => {}, onLost: (ids) => lost.push(...ids), feed: () => {} };
  thread.onmessage = () => {};
  ways.send(100, checkOf(1));
  ways.send(101, checkOf(2));
  const { port1: other, port2: next } = new MessageChannel();
  ways.take(0, next);
  assert.deepEqual(lost, [100, 101]);
  ways.close();
  thread.close();
  other.close();
});
