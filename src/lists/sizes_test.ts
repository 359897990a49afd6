import assert from "node:assert/strict";
import { FakeClock, FakeNetwork } from "./fakes.ts";
import type { HttpGet } from "../http/mod.ts";
import { RECOMMENDED } from "./recommended.ts";
import { RecommendedSizes } from "./sizes.ts";

const none = { permissions: "none" } as const;
const [FIRST, SECOND, THIRD] = RECOMMENDED;
const DAY_MS = 86_400_000;

Deno.test(
  "RecommendedSizes shows what is fetched and asks for the rest, once a day",
  none,
  async () => {
    const clock = new FakeClock();
    const network = new FakeNetwork(({ href }) => {
      if (href === SECOND.url) return { status: 302, headers: { location: "/moved" } };
      if (href.endsWith("/moved")) return { headers: { "content-length": "456" } };
      if (href === THIRD.url) {
        return { headers: { "content-length": "4", "content-encoding": "br" } };
      }
      throw new Error("unreachable");
    });
    const methods = new Set<string | undefined>();
    const get: HttpGet = (url, options) => {
      methods.add(options.method);
      return network.get(url, options);
    };
    const fetched = (url: string) => url === FIRST.url ? { rules: 12, bytes: 123 } : null;
    const sizes = new RecommendedSizes(get, clock, fetched);
    const want = [
      { id: FIRST.id, rules: 12, bytes: 123 },
      { id: SECOND.id, rules: null, bytes: 456 },
    ];
    const both = await Promise.all([sizes.sizes(), sizes.sizes()]);
    assert.deepEqual(both, [want, want]);
    assert.equal(network.asked.length, RECOMMENDED.length, "35 lists and one redirect");
    assert.deepEqual([...methods], ["HEAD"]);
    assert.deepEqual(await sizes.sizes(), want);
    assert.equal(network.asked.length, RECOMMENDED.length, "told for a day, or left alone");
    clock.timeMs += DAY_MS;
    assert.deepEqual(await sizes.sizes(), want);
    assert.equal(network.asked.length, 2 * RECOMMENDED.length);
  },
);
