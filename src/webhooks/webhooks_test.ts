// Goal: each event reaches each receiver that is for it, signed, in order, or it is told what became of
// it; no receiver holds up another one, and nothing grows without end. Method: fake time and receivers.
import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { SvcError } from "../errors.ts";
import type { HttpPost, HttpResponse } from "../http/mod.ts";
import { ids } from "../model/fakes.ts";
import { FakeTime, settled, storedWebhooks } from "./fakes.ts";
import { ATTEMPTS_MAX, EVENTS_PER_HOUR, QUEUE_LENGTH_MAX, Webhooks } from "./mod.ts";

const none = { permissions: "none" } as const;

type Received = Parameters<HttpPost>[1] & { readonly url: string };

class Bench {
  readonly time = new FakeTime();
  readonly received: Received[] = [];
  stored = storedWebhooks(["list_failed", "client_seen"], "one", "two");
  /** What a receiver answers; by default it takes everything. */
  answer: (request: Received) => Promise<number> = () => Promise.resolve(200);
  readonly webhooks: Webhooks;

  constructor() {
    let ids = 0;
    this.webhooks = new Webhooks({
      ...{ node: "node-1", stored: () => this.stored, newId: () => `wd_${++ids}` },
      ...{ nowMs: this.time.nowMs, steadyMs: this.time.steadyMs, later: this.time.later },
      post: async (url, request): Promise<HttpResponse> => {
        const received = { ...request, url: url.href };
        this.received.push(received);
        const { promise, reject } = Promise.withResolvers<never>();
        request.signal.addEventListener("abort", () => reject(request.signal.reason));
        const status = await Promise.race([this.answer(received), promise]);
        return { status, headers: {}, body: (async function* () {})() };
      },
    });
  }

  /** Says of each delivery to the first webhook what became of it. */
  states(id = ids.webhook(1)): string[] {
    return this.webhooks.deliveries(id).map(({ id, state, attempts }) =>
      `${id} ${state} ${attempts}`
    );
  }

  bodies(name = "SECRET-1"): { id: string; data: { n?: number } }[] {
    return this.received.filter(({ url }) => url.endsWith(name))
      .map(({ body }) => JSON.parse(new TextDecoder().decode(body)));
  }
}

Deno.test("Webhooks sends an event to each that is for it, signed", none, async () => {
  const bench = new Bench();
  bench.webhooks.tell("list_failed", { list: "li_1", message: "x".repeat(9_999) });
  bench.webhooks.tell("member_lost", { member: "b" });
  await settled();
  const urls = bench.received.map(({ url }) => url);
  assert.deepEqual(urls, ["https://hook.example/SECRET-1", "https://hook.example/SECRET-2"]);
  const [{ headers, body }] = bench.received;
  const text = new TextDecoder().decode(body);
  const { id, event, node, time, data } = JSON.parse(text);
  assert.deepEqual([id, event, node], ["wd_1", "list_failed", "node-1"]);
  assert.equal(time, "2026-01-02T03:04:05.000Z");
  assert.equal(data.message.length, 512, "a text is cut");
  assert.deepEqual([headers["svc-event"], headers["svc-delivery"]], ["list_failed", "wd_1"]);
  const [, seconds, mac] = /^t=(\d+),v1=([0-9a-f]{64})$/.exec(headers["svc-signature"])!;
  assert.equal(Number(seconds), bench.time.ms / 1_000);
  const want = createHmac("sha256", "SECRET-key-1-1234567890").update(`${seconds}.${text}`);
  assert.equal(mac, want.digest("hex"));
  assert.deepEqual(bench.states(), ["wd_1 delivered 1"]);
  assert.deepEqual(bench.webhooks.figures, { delivered: 2, failed: 0, dropped: 0, waiting: 0 });
});

Deno.test("Webhooks tries again with growing pauses, and gives up in the end", none, async () => {
  const bench = new Bench();
  bench.stored = storedWebhooks(["list_failed"], "one");
  const triedMs: number[] = [];
  bench.answer = () => {
    triedMs.push(bench.time.ms);
    return Promise.resolve(503);
  };
  bench.webhooks.tell("list_failed", { n: 1 });
  bench.webhooks.tell("list_failed", { n: 2 });
  await settled();
  const [second, first] = bench.webhooks.deliveries(ids.webhook(1));
  assert.deepEqual([first.status, first.error], [503, "it answers 503"]);
  assert.equal(first.nextTryAtMs, bench.time.ms + 10_000);
  assert.equal(second.attempts, 0, "they come in their order");
  await bench.time.pass(24 * 3_600_000);
  const pauses = triedMs.slice(1, ATTEMPTS_MAX).map((ms, i) => (ms - triedMs[i]) / 1_000);
  assert.deepEqual(pauses, [10, 60, 300, 1_800, 7_200]);
  assert.deepEqual(bench.states(), [`wd_2 failed 6`, `wd_1 failed 6`]);
  const ids1 = bench.bodies().map(({ id }) => id);
  assert.deepEqual(ids1, [...Array(6).fill("wd_1"), ...Array(6).fill("wd_2")]);
  bench.answer = () => Promise.resolve(204);
  bench.webhooks.tell("list_failed", { n: 3 });
  await bench.time.pass(7_200_000);
  assert.equal(bench.states()[0], "wd_3 delivered 1");
});

Deno.test("Webhooks: a receiver that hangs is left, and holds up no other", none, async () => {
  const bench = new Bench();
  bench.answer = ({ url }) =>
    url.endsWith("1") ? Promise.withResolvers<number>().promise : Promise.resolve(200);
  bench.webhooks.tell("list_failed", { n: 1 });
  await settled();
  assert.deepEqual(bench.states(ids.webhook(2)), ["wd_1 delivered 1"]);
  assert.deepEqual(bench.states(), ["wd_1 waiting 1"]);
  await bench.time.pass(10_000);
  const [{ error, durationMs }] = bench.webhooks.deliveries(ids.webhook(1));
  assert.deepEqual([error, durationMs], ["hook.example: no answer in 10 s", 10_000]);
});

Deno.test(
  "Webhooks drops the oldest that waits where too many do, and counts it",
  none,
  async () => {
    const bench = new Bench();
    bench.stored = storedWebhooks(["list_failed"], "one");
    bench.answer = () => Promise.withResolvers<number>().promise;
    for (let n = 0; n < QUEUE_LENGTH_MAX + 3; n++) bench.webhooks.tell("list_failed", { n });
    await settled();
    const { waiting, dropped } = bench.webhooks.figures;
    assert.deepEqual([waiting, dropped], [QUEUE_LENGTH_MAX, 3]);
    const states = bench.states().toReversed();
    assert.equal(states[0], "wd_1 waiting 1", "one on its way stays");
    assert.deepEqual(states.slice(1, 4).map((one) => one.split(" ")[1]), Array(3).fill("dropped"));
  },
);

Deno.test("Webhooks tells so many of a kind in an hour, and counts the rest", none, async () => {
  const bench = new Bench();
  const most = EVENTS_PER_HOUR.client_seen;
  for (let n = 0; n < 1_000; n++) bench.webhooks.tell("client_seen", { n });
  bench.webhooks.tell("list_failed", {});
  await settled();
  assert.equal(bench.bodies().length, most + 1);
  assert.equal(bench.webhooks.figures.dropped, 1_000 - most);
  await bench.time.pass(3_600_000 / most);
  bench.webhooks.tell("client_seen", {});
  await settled();
  assert.equal(bench.bodies().length, most + 2);
});

Deno.test(
  "Webhooks follows what is stored: gone and off is dropped, a new address counts",
  none,
  async () => {
    const bench = new Bench();
    bench.answer = () => Promise.resolve(500);
    bench.webhooks.tell("list_failed", {});
    await settled();
    const [first, second] = [...bench.stored.values()];
    const elsewhere = { ...first, secret: { ...first.secret, url: "https://new.example/x" } };
    bench.stored = new Map([[first.id, elsewhere]]);
    bench.webhooks.follow();
    await settled();
    assert.equal(bench.received.at(-1)?.url, "https://new.example/x", "at once");
    assert.throws(() => bench.webhooks.deliveries(second.id), /there is no such webhook/);
    bench.stored = new Map([[first.id, { ...elsewhere, spec: { ...first.spec, enabled: false } }]]);
    bench.webhooks.follow();
    bench.webhooks.tell("list_failed", {});
    await bench.time.pass(24 * 3_600_000);
    assert.equal(bench.received.length, 3);
    assert.deepEqual(bench.webhooks.figures, { delivered: 0, failed: 0, dropped: 2, waiting: 0 });
    assert.equal(bench.time.timers, 0);
  },
);

Deno.test("Webhooks tests one at once and once, whatever waits for it", none, async () => {
  const bench = new Bench();
  bench.answer = ({ headers }) => Promise.resolve(headers["svc-event"] === "test" ? 302 : 500);
  bench.webhooks.tell("list_failed", {});
  await settled();
  const { event, state, status, error, nextTryAtMs } = await bench.webhooks.test(ids.webhook(1));
  assert.deepEqual([event, state, status, nextTryAtMs], ["test", "failed", 302, null]);
  assert.equal(error, "it redirects, which is not followed");
  await assert.rejects(bench.webhooks.test("wh_7"), /there is no such webhook/);
});

Deno.test("Webhooks tells of a failure nothing of the path", none, async () => {
  const bench = new Bench();
  bench.answer = ({ url }) =>
    Promise.reject(new SvcError("unavailable", `can't ask ${url}: /SECRET-1`));
  bench.webhooks.tell("list_failed", {});
  await settled();
  const [{ error }] = bench.webhooks.deliveries(ids.webhook(1));
  assert.equal(error, "hook.example: can't ask …: …");
});

Deno.test("Webhooks drops what waits when it stops, and sends nothing more", none, async () => {
  const bench = new Bench();
  bench.answer = () => Promise.withResolvers<number>().promise;
  bench.webhooks.tell("list_failed", {});
  await settled();
  bench.webhooks.stop();
  bench.webhooks.tell("list_failed", {});
  await bench.time.pass(24 * 3_600_000);
  assert.equal(bench.received.length, 2);
  assert.ok(bench.received.every(({ signal }) => signal.aborted));
  assert.equal(bench.webhooks.figures.dropped, 2);
  assert.equal(bench.time.timers, 0);
});
