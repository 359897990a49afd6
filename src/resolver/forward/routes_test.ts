import assert from "node:assert/strict";
import { parseName } from "../../dns/mod.ts";
import { a, wire } from "../fakes.ts";
import { ROUTES_MAX } from "../query.ts";
import { ForwarderBench, quietly } from "./fakes.ts";
import { upstreamsFor } from "./upstream.ts";

const none = { permissions: "none" } as const;
const EVERYBODY = { a: [], b: [], c: [], lan: ["lan"] };

/** Asks as the only group there is, which names these upstreams; who was asked. */
function asked(bench: ForwarderBench, upstreams: readonly string[], name: string): string {
  bench.front.pipeline.routes = bench.forwarder.routes.of(new Map([[0, upstreams]]), 1);
  const client = bench.ask(name);
  if (client.answer === "") bench.answer(bench.last, { records: [a(name, 300)] });
  return bench.looked();
}

Deno.test(
  "Routes give each list of upstreams answers of its own, and always the same",
  none,
  () => {
    const bench = new ForwarderBench({ upstreams: EVERYBODY });
    const name = "www.example";
    assert.equal(asked(bench, ["b"], name), "b");
    assert.equal(asked(bench, ["c"], name), "c");
    assert.equal(asked(bench, ["c", "b"], name), "c");
    assert.equal(asked(bench, ["b"], name), "", "from the cache, which holds as long as its time");
    assert.equal(asked(bench, ["b", "gone"], name), "", "those that there are count");
    bench.front.pipeline.routes = null;
    bench.ask(name);
    assert.equal(bench.looked(), "a");
  },
);

Deno.test("Routes leave names of one's own network to who serves them", none, () => {
  const bench = new ForwarderBench({ upstreams: EVERYBODY });
  assert.equal(asked(bench, ["b"], "nas.lan"), "d");
  assert.equal(asked(bench, ["lan"], "other.lan"), "d");
  assert.equal(bench.forwarder.routes.of(new Map(), 3), null);
});

Deno.test(
  "Routes have nobody asked for lists without an upstream, or too many of them",
  none,
  () => {
    const all = Object.fromEntries(Array.from({ length: 12 }, (_, i) => [`u${i}`, []]));
    const bench = new ForwarderBench({ upstreams: all });
    const fails = (names: readonly string[]) => {
      bench.front.pipeline.routes = bench.forwarder.routes.of(new Map([[0, names]]), 1);
      return bench.ask("fails.example").answer;
    };
    assert.match(fails(["gone"]), /^SERVFAIL/);
    const { lines } = quietly(() => {
      for (let i = 0; i <= ROUTES_MAX; i++) {
        const names = [...Array(12).keys()].filter((bit) => (i + 1) >> bit & 1).map((n) => `u${n}`);
        bench.forwarder.routes.of(new Map([[0, names]]), 1);
      }
    });
    assert.match(lines[0], /too many different lists of upstreams/);
    quietly(() => assert.match(fails(["u11", "u10"]), /^SERVFAIL/));
    assert.equal(bench.looked(), "");
    bench.checkIdle();
  },
);

Deno.test("upstreamsFor() names those that a query of the group goes to", none, () => {
  const { upstreams } = new ForwarderBench({ upstreams: EVERYBODY }).forwarder;
  const specs = upstreams.map(({ spec }) => spec);
  const CASES = [
    [[], "www.example", "a b c"],
    [["b"], "www.example", "b"],
    [["c", "b"], "www.example", "c b"],
    [["b"], "nas.lan", "lan"],
    [["lan"], "nas.lan", "lan"],
    [["gone"], "www.example", ""],
    [["gone"], "nas.lan", ""],
    // Of a domain whose upstream can't be used nobody is told, whoever asks.
    [[], "db.corp.example", ""],
    [["b"], "corp.example", ""],
    [["gone"], "corp.example", ""],
    // One that others serve as well has these.
    [[], "x.lan", "lan"],
  ] as const;
  const lost = [wire("corp.example"), wire("lan")];
  for (const [names, name, want] of CASES) {
    const found = upstreamsFor(specs, lost, names, parseName(name)!);
    assert.equal(found?.map(({ address }) => address).join(" "), want, `${names}: ${name}`);
  }
  assert.equal(upstreamsFor(specs.slice(3), [], [], parseName("www.example")!), null);
});
