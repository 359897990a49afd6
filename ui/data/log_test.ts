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
