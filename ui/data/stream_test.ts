import assert from "node:assert/strict";
import { readEvents } from "./stream.ts";

Deno.test("readEvents() ends with a stream that has fallen silent", {
  permissions: "none",
}, async () => {
  const { fetch: givenFetch, setTimeout: givenTimeout } = globalThis;
  const timers: (() => void)[] = [];
  globalThis.setTimeout = ((work: () => void) => -timers.push(work)) as typeof setTimeout;
  globalThis.fetch = (_input, init) => {
    const body = new ReadableStream<Uint8Array>({
      start(controller) {
        controller.enqueue(new TextEncoder().encode(":\n\nid: a\ndata: 1\n\n"));
        const { signal } = init!;
        signal!.addEventListener("abort", () => controller.error(signal!.reason));
      },
    });
    return Promise.resolve(new Response(body));
  };
  try {
    const heard = Promise.withResolvers<void>();
    const over = readEvents(
      "events",
      {},
      new AbortController().signal,
      () => undefined,
      ({ data }) => {
        assert.equal(data, "1");
        heard.resolve();
      },
    );
    await heard.promise;
    timers.at(-1)!(); // The longest silence has passed since.
    await assert.rejects(over);
  } finally {
    globalThis.fetch = givenFetch;
    globalThis.setTimeout = givenTimeout;
  }
});
