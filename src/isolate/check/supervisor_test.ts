// Goal: whoever checks signatures is there again after it has crashed, and everybody who needs it
// finds the way to it. Method: the real isolate, told to be gone.
import assert from "node:assert/strict";
import { generateKeyPairSync, sign } from "node:crypto";
import type { SignatureCheck } from "../../dnssec/verify.ts";
import { CheckWays } from "../dns/check_threads.ts";
import { closeSocket, EventQueue, openEpoll, openNative } from "../../native/mod.ts";
import { startIsolate } from "../scopes.ts";
import { CheckSupervisor } from "./supervisor.ts";

const OPTIONS = {
  permissions: { read: true, ffi: true } as const, // None for the priority, which is no failure.
  // A worker that was ended is gone a little later.
  sanitizeResources: false,
  sanitizeOps: false,
};

function checkOf(fits: boolean): SignatureCheck {
  const { publicKey, privateKey } = generateKeyPairSync("ed25519");
  const data = Uint8Array.of(1, 2, 3);
  const signature = new Uint8Array(sign(null, data, privateKey));
  if (!fits) signature[5] ^= 1;
  const key = publicKey.export({ type: "spki", format: "der" }).subarray(-32);
  return { algorithm: 15, publicKey: new Uint8Array(key), data, signature };
}

Deno.test(
  "CheckSupervisor leads ways to its threads, and new ones after a crash",
  OPTIONS,
  async (t) => {
    for (const waits of [false, true]) {
      await t.step(waits ? "told by a descriptor" : "told by messages", () => run(waits));
    }
  },
);

async function run(waits: boolean): Promise<void> {
  const workers: Worker[] = [];
  const supervisor = new CheckSupervisor(2, () => {
    const worker = startIsolate("check");
    workers.push(worker);
    return worker;
  });
  const ways = new CheckWays();
  const lost: number[] = [];
  const results: number[] = [];
  let told: (result: [number, boolean]) => void = () => {};
  let fed = Promise.withResolvers<void>();
  let led = 0;
  ways.events = {
    onResult: (id, fits) => {
      results.push(id);
      told([id, fits]);
    },
    onLost: (ids) => {
      lost.push(...ids);
      fed.resolve();
    },
    feed: () => void ++led,
  };
  const ask = (id: number, check: SignatureCheck) => {
    const { promise, resolve } = Promise.withResolvers<[number, boolean]>();
    told = resolve;
    ways.send(id, check);
    return promise;
  };
  // What waits for the descriptor in a dns isolate.
  const native = waits ? openNative() : null;
  const epoll = native === null ? null : openEpoll(native);
  const queue = native === null || epoll === null
    ? null
    : new EventQueue(native, epoll, new SharedArrayBuffer(EventQueue.MEMORY_BYTES));
  let isOver = false;
  const waiting = (async () => {
    while (queue !== null && !isOver) if (await queue.wait(100) > 0) ways.read();
  })();
  let wake: number | null = null;
  try {
    supervisor.start();
    supervisor.connect(0, queue !== null, (way) => {
      if (way.wake !== null && way.wake !== wake) {
        assert.equal(wake, null, "it stays the same");
        wake = way.wake;
        queue?.watch(wake, 1);
      }
      ways.take(way);
    });
    assert.equal(led, 2);
    assert.equal(ways.usesPorts, queue === null);
    assert.deepEqual(await ask(1, checkOf(true)), [1, true]);
    assert.deepEqual(await ask(2, checkOf(false)), [2, false]);
    // Both crash with what they have.
    fed = Promise.withResolvers();
    const [first, second] = workers;
    ways.send(3, checkOf(true));
    ways.send(4, checkOf(true));
    first.terminate();
    second.terminate();
    first.dispatchEvent(new ErrorEvent("error", { message: "thrown by the test" }));
    await fed.promise;
    fed = Promise.withResolvers();
    second.dispatchEvent(new ErrorEvent("error", { message: "thrown by the test" }));
    await fed.promise;
    const given = [3, 4].every((id) => lost.includes(id) !== results.includes(id));
    assert.ok(given, "what they had not done is given back");
    assert.equal(supervisor.crashes, 2);
    assert.deepEqual(await ask(5, checkOf(true)), [5, true]);
    assert.deepEqual(await ask(6, checkOf(true)), [6, true]);
  } finally {
    supervisor.stop();
    ways.close();
    isOver = true;
    await waiting;
    if (native !== null && epoll !== null) closeSocket(native, epoll);
  }
}
