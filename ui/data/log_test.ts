import assert from "node:assert/strict";
import { Log } from "./log.ts";

const entry = (id: string) => ({ id, time: new Date(0).toISOString() });

Deno.test("Log has wait what is new alone, whatever else it reads again", {
  permissions: "none",
}, async () => {
  const given = globalThis.fetch;
  const found = [entry("b"), entry("a")];
  let stream: ReadableStreamDefaultController<Uint8Array> | null = null;
  globalThis.fetch = (input) => {
    const isStream = String(input).includes("/stream");
    const body = isStream
      ? new ReadableStream<Uint8Array>({ start: (controller) => void (stream = controller) })
      : JSON.stringify({ entries: found, next: null });
    return Promise.resolve(new Response(body));
  };
  const log = new Log();
  try {
    await log.load({});
    log.isHeld.value = true;
    found.unshift(entry("c")); // Read when the stream opens, and told by it as well.
    const { promise, resolve } = Promise.withResolvers<void>();
    const stop = log.waiting.subscribe((waiting) => waiting.length > 0 && resolve());
    log.follow({});
    while (stream === null) await Promise.resolve();
    const event = `id: c\ndata: ${JSON.stringify(entry("c"))}\n\n`;
    (stream as ReadableStreamDefaultController<Uint8Array>).enqueue(
      new TextEncoder().encode(event),
    );
    await promise;
    assert.deepEqual(log.waiting.value.map(({ id }) => id), ["c"]);
    assert.deepEqual(log.entries.value.map(({ id }) => id), ["b", "a"]);
    log.release();
    assert.deepEqual(log.entries.value.map(({ id }) => id), ["c", "b", "a"]);
    stop();
  } finally {
    log.close();
    globalThis.fetch = given;
  }
});

Deno.test("Log begins anew where more came than it reads, and shows no list with a hole", {
  permissions: "none",
}, async (t) => {
  const given = globalThis.fetch;
  let page: { entries: readonly { id: string }[]; next: string | null };
  let opened = 0;
  globalThis.fetch = (input) => {
    const isStream = String(input).includes("/stream");
    if (isStream) opened++;
    return Promise.resolve(
      new Response(isStream ? new ReadableStream() : JSON.stringify(page)),
    );
  };
  for (const isHeld of [false, true]) {
    await t.step(isHeld ? "held" : "running", async () => {
      const log = new Log();
      try {
        page = { entries: [entry("b"), entry("a")], next: "older" };
        await log.load({});
        log.isHeld.value = isHeld;
        page = { entries: [entry("z"), entry("y")], next: "between" };
        const { promise, resolve } = Promise.withResolvers<void>();
        const shown = isHeld ? log.waiting : log.entries;
        const stop = shown.subscribe((all) => all[0]?.id === "z" && resolve());
        log.follow({});
        await promise;
        stop();
        if (isHeld) {
          assert.deepEqual(log.entries.value.map(({ id }) => id), ["b", "a"]);
          assert.equal(log.next.value, "older");
          log.release();
        }
        assert.deepEqual(log.entries.value.map(({ id }) => id), ["z", "y"]);
        assert.equal(log.next.value, "between");
      } finally {
        log.close();
      }
    });
  }
  globalThis.fetch = given;
  assert.equal(opened, 2);
});
