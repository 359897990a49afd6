import assert from "node:assert/strict";
import { RULES_BATCH_MAX } from "../model/mod.ts";
import type { Shown } from "../store/mod.ts";
import { EventFeed, READERS_MAX, WAITING_MAX } from "./event_feed.ts";
import { fakeDeps } from "./fakes.ts";
import { exampleOf } from "./schemas/common.ts";
import { StatusEvent } from "./schemas/events.ts";

const none = { permissions: "none" } as const;
const LOOK_MS = 1;

/** A feed over a store of its own, whose status is the test's to set. */
function feed() {
  const { deps } = fakeDeps();
  const { state } = deps.replicator;
  let listener: (shown: Shown) => void = () => undefined;
  const replicator = {
    state,
    subscribe: (one: typeof listener) => {
      listener = one;
      return () => undefined;
    },
  };
  const status = { now: exampleOf(StatusEvent) };
  const made = new EventFeed({ replicator, status: () => status.now, lookMs: LOOK_MS });
  return { feed: made, state, status, tell: (shown: Shown) => listener(shown) };
}

function reading(feed: EventFeed) {
  const reader = feed.read().body.getReader();
  return {
    /** The next piece; `null` at the end. */
    async next(): Promise<string | null> {
      const { value } = await reader.read();
      return value === undefined ? null : new TextDecoder().decode(value);
    },
    cancel: () => reader.cancel(),
  };
}

function ruleGone(i: number): Shown["change"] {
  return { type: "delete", collection: "rules", id: `ru_${i}`, ifMatch: null };
}

Deno.test("EventFeed tells the status at first, and when it is another", none, async () => {
  const { feed: made, status } = feed();
  const { next, cancel } = reading(made);
  const text = () => `event: status\ndata: ${JSON.stringify(status.now)}\n\n`;
  assert.equal(await next(), text());
  status.now = { ...status.now, protection: false };
  assert.equal(await next(), text());
  await cancel();
  assert.equal(made.readers, 0);
});

Deno.test("EventFeed tells what was changed, and of many to read them again", none, async (t) => {
  const { feed: made, state, tell } = feed();
  const { next, cancel } = reading(made);
  await next();
  const group = "gr_0000000000000000";
  const spec = state.collections.groups.get(group)!.spec;
  const rows: readonly (readonly [Shown["change"], readonly unknown[]])[] = [
    [{ type: "replace", collection: "groups", id: group, spec, ifMatch: null }, [
      { type: "group", id: group, revision: 1 },
    ]],
    [ruleGone(1), [{ type: "rule", id: "ru_1", revision: null }]],
    [{ type: "rules_batch", add: [], remove: [] }, [{ type: "rule", id: null, revision: null }]],
    [{ type: "settings", spec: state.settings.spec, ifMatch: null }, [
      { type: "settings", id: null, revision: 1 },
    ]],
    [{ type: "user_delete", id: "us_1", ifMatch: null }, [
      { type: "user", id: "us_1", revision: null },
    ]],
    [
      null,
      [
        "schedule",
        "list",
        "record",
        "group",
        "client",
        "rule",
        "settings",
        "user",
        "token",
        "webhook",
      ].map((type) => ({
        type,
        id: null,
        revision: type === "settings" ? 1 : null,
      })),
    ],
  ];
  for (const [change, want] of rows) {
    await t.step(change?.type ?? "the whole state", async () => {
      tell({ change, state });
      const events = want.map((one) => `event: change\ndata: ${JSON.stringify(one)}\n\n`);
      assert.equal(await next(), events.join(""));
    });
  }
  await cancel();
});

Deno.test("EventFeed drops and counts who does not read, and no other", none, async () => {
  const { feed: made, state, tell } = feed();
  const [slow, quick] = [reading(made), reading(made)];
  await Promise.all([slow.next(), quick.next()]);
  for (let i = 0; i <= WAITING_MAX; i++) {
    tell({ change: ruleGone(i), state });
    if (i % 100 === 99) await quick.next();
  }
  assert.deepEqual([made.readers, made.dropped], [1, 1]);
  assert.equal(await slow.next(), null);
  assert.match(await quick.next() ?? "", new RegExp(`"ru_${WAITING_MAX}"`));
  await quick.cancel();
  assert.deepEqual([made.readers, made.dropped], [0, 1]);
});

Deno.test("EventFeed.read() refuses one reader too many", none, async () => {
  const { feed: made } = feed();
  const readers = Array.from({ length: READERS_MAX }, () => reading(made));
  assert.throws(() => made.read(), { code: "unavailable" });
  await readers[0].cancel();
  await reading(made).cancel();
  for (const { cancel } of readers) await cancel();
  assert.equal(made.readers, 0);
});

Deno.test("EventFeed.end() ends every reader", none, async () => {
  const { feed: made } = feed();
  const { next } = reading(made);
  await next();
  made.end();
  assert.equal(await next(), null);
  assert.equal(made.readers, 0);
  assert.ok(RULES_BATCH_MAX > WAITING_MAX, "so that a batch is one event");
});
