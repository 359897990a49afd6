import assert from "node:assert/strict";
import { HashedName, parseName } from "../dns/mod.ts";
import { SvcError } from "../errors.ts";
import { ListKeeper, ServiceCatalogue, type ServicesPlace } from "../lists/mod.ts";
import { FakeClock, FakeNetwork, MemoryDisk } from "../lists/fakes.ts";
import { Matcher, NO_RULE } from "../filter/mod.ts";
import type { Base } from "../snapshot/mod.ts";
import { Filtering, type Uses } from "./filtering.ts";

/** Longest wait for a build in the background. */
const WAIT_MS_MAX = 20_000;

// Compiled rules are kept in a folder of the test's own; the compiler is an isolate.
const disk = { permissions: { read: true, write: true } } as const;

const ADS = { id: "li_ads", name: "ads", url: "https://lists.example/ads.txt" };
const MORE = { id: "li_more", name: "more", url: "https://lists.example/more.txt" };

class Bench {
  readonly network = new FakeNetwork(() => ({ body: this.listText }));
  readonly published: Base[] = [];
  /** Rules that the status had counted when each was published. */
  readonly counted: number[] = [];
  place: ServicesPlace = { kind: "off" };
  listText = "||ads.example^\n";
  uses: Uses = { lists: [ADS.id], services: false, rules: false };
  readonly clock = new FakeClock(Date.now());
  readonly lines: string[] = [];

  constructor(readonly dir: string, readonly disk: MemoryDisk) {}

  async open(onFailure: "open" | "closed" = "open"): Promise<Filtering> {
    const keeper = await ListKeeper.open("/kept", {
      get: this.network.get,
      clock: this.clock,
      chance: () => 0,
      disk: this.disk,
      localListsDirectory: "/local",
    });
    return new Filtering({
      onFailure,
      lists: { sources: [ADS], off: [] },
      uses: () => this.uses,
      updateInterval: () => 86_400,
      keeper,
      services: new ServiceCatalogue(this.place, keeper, this.disk),
      rulesFile: `${this.dir}/rules.bin`,
      publish: (base) => {
        this.counted.push(keeper.status(ADS.id).rules);
        this.published.push(base);
        return Promise.resolve();
      },
    });
  }

  /** How often the log said this. */
  said(message: string): number {
    return this.lines.filter((line) => line.includes(`"message":"${message}"`)).length;
  }
}

async function withBench(use: (bench: Bench) => Promise<void>): Promise<void> {
  const bench = new Bench(await Deno.makeTempDir(), new MemoryDisk());
  const write = Deno.stderr.writeSync;
  Deno.stderr.writeSync = (bytes) => {
    bench.lines.push(new TextDecoder().decode(bytes));
    return bytes.length;
  };
  try {
    await use(bench);
  } finally {
    Deno.stderr.writeSync = write;
    await Deno.remove(bench.dir, { recursive: true });
  }
}

async function until(condition: () => boolean): Promise<void> {
  const endsAtMs = performance.now() + WAIT_MS_MAX;
  while (!condition()) {
    assert.ok(performance.now() < endsAtMs, `not within ${WAIT_MS_MAX} ms`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

/** The rule and list that decide about a name, or "". */
function decided({ rules, sources }: Base, text: string, seed: number): string {
  if (rules === null) return "";
  const [name, wire] = [new HashedName(), parseName(text)!];
  name.read(wire, 0, wire.length, seed);
  const matcher = new Matcher(rules);
  const ref = matcher.match(wire, name, new Uint32Array(1).fill(0xffffffff));
  return ref === NO_RULE ? "" : `${matcher.ruleText(ref)} (${sources[matcher.source(ref)].name})`;
}

Deno.test(
  "Filtering starts with what is at hand and builds what a refresh brings",
  disk,
  () =>
    withBench(async (bench) => {
      const filtering = await bench.open();
      const first = await filtering.first();
      assert.equal(bench.network.asked.length, 0, "a start asks no server");
      assert.equal(decided(first, "ads.example", filtering.seed), "");
      await filtering.reload().done;
      const [built] = bench.published;
      assert.deepEqual(built.sources, [{ id: "li_ads", name: "ads" }]);
      assert.equal(decided(built, "www.ads.example", filtering.seed), "||ads.example^ (ads)");
      await filtering.reload().done;
      assert.equal(bench.published.length, 1, "nothing new, nothing built");
      assert.deepEqual(bench.counted, [0], "a status counts what is in force");
      bench.listText = "||other.example^\n";
      await Promise.all([filtering.reload().done, filtering.reload().done]);
      assert.equal(bench.published.length, 2);
      assert.equal(decided(bench.published[1], "ads.example", filtering.seed), "");
      filtering.stop();
    }),
);

Deno.test(
  "Filtering builds again when a list is to let through what it blocked",
  disk,
  () =>
    withBench(async (bench) => {
      const filtering = await bench.open();
      await filtering.first();
      await filtering.reload().done;
      filtering.setLists({ sources: [{ ...ADS, allows: true }], off: [] });
      await until(() => bench.published.length === 2);
      assert.equal(
        decided(bench.published[1], "www.ads.example", filtering.seed),
        "@@||ads.example^ (ads)",
      );
      filtering.stop();
      const after = await bench.open();
      const loaded = await after.first();
      assert.equal(
        decided(loaded, "www.ads.example", after.seed),
        "||ads.example^ (ads)",
        "what is kept of the same text lets through",
      );
    }),
);

Deno.test(
  "Filtering reads kept rules instead of compiling the same texts again",
  disk,
  () =>
    withBench(async (bench) => {
      const before = await bench.open();
      await before.first();
      await before.reload().done;
      const after = await bench.open();
      const loaded = await after.first();
      assert.equal(after.seed, before.seed, "rules are found by their seed");
      assert.equal(bench.said("filter loaded"), 1);
      assert.equal(bench.said("filter built"), 2);
      assert.equal(decided(loaded, "ads.example", after.seed), "||ads.example^ (ads)");
      const file = `${bench.dir}/rules.bin`;
      await Deno.writeFile(file, (await Deno.readFile(file)).fill(0, 0, 40));
      const damaged = await bench.open();
      const rebuilt = await damaged.first();
      assert.equal(bench.said("filter built"), 3);
      assert.equal(decided(rebuilt, "ads.example", damaged.seed), "||ads.example^ (ads)");
    }),
);

Deno.test(
  "Filtering.setLists() fetches what is new and builds, and leaves a new name alone",
  disk,
  () =>
    withBench(async (bench) => {
      bench.listText = "||ads.example^\n||good.example^$badfilter\n";
      const filtering = await bench.open();
      await filtering.first();
      await filtering.reload().done;
      assert.deepEqual(bench.published[0].badfilters, [{
        source: 0,
        text: "||good.example^$badfilter",
      }]);
      bench.listText = "||more.example^\n";
      filtering.setLists({ sources: [ADS, MORE], off: [] });
      await until(() => bench.published.length === 2);
      const [, both] = bench.published;
      assert.equal(decided(both, "ads.example", filtering.seed), "||ads.example^ (ads)");
      assert.equal(decided(both, "more.example", filtering.seed), "||more.example^ (more)");
      filtering.setLists({ sources: [ADS], off: ["li_more"] });
      await until(() => bench.published.length === 3);
      assert.equal(decided(bench.published[2], "more.example", filtering.seed), "");
      const asked = bench.network.asked.length;
      // Its text was kept: it is on again without a server.
      filtering.setLists({ sources: [ADS, MORE], off: [] });
      await until(() => bench.published.length === 4);
      assert.equal(
        decided(bench.published[3], "more.example", filtering.seed),
        "||more.example^ (more)",
      );
      assert.equal(bench.network.asked.length, asked);
      filtering.setLists({ sources: [{ ...ADS, name: "other" }, MORE], off: [] });
      filtering.setLists({ sources: [{ ...ADS, name: "other" }], off: ["li_more"] });
      await until(() => bench.published.length === 5);
      assert.equal(bench.said("filter built"), 1 + 5, "one for the start, and none for a name");
      filtering.stop();
    }),
);

Deno.test(
  "Filtering goes open or stays closed when the filter can't be built",
  disk,
  () =>
    withBench(async (bench) => {
      const broken = () => {
        throw new Error("unreadable on purpose");
      };
      const open = await bench.open("open");
      const closed = await bench.open("closed");
      const load = ListKeeper.prototype.load;
      ListKeeper.prototype.load = broken;
      try {
        const snapshot = await open.first();
        assert.deepEqual(snapshot, { rules: null, sources: [], badfilters: [] });
        assert.equal(bench.said("the filter can't be built: names are answered unfiltered"), 1);
        await assert.rejects(
          closed.first(),
          (error) => error instanceof SvcError && error.message === "filter: unreadable on purpose",
        );
        await open.reload().done; // What fails is logged; the next one gets its turn.
      } finally {
        ListKeeper.prototype.load = load;
      }
      assert.equal(bench.said("the filter can't be renewed: the rules in force stay"), 1);
      assert.equal(bench.published.length, 0);
    }),
);

const catalogue = (services: Record<string, string>, icon = "") =>
  JSON.stringify({
    blocked_services: Object.entries(services).map(([id, rule]) => ({
      id,
      name: id.toUpperCase(),
      icon_svg: icon,
      rules: [rule],
    })),
  });

Deno.test(
  "Filtering compiles each service as a source and builds only for other rules",
  disk,
  () =>
    withBench(async (bench) => {
      const url = "https://lists.example/services.json";
      bench.place = { kind: "url", url };
      let services = catalogue({ chat: "||chat.example^", video: "||video.example^" });
      bench.network.answer = ({ href }) => ({ body: href === url ? services : bench.listText });
      const filtering = await bench.open();
      await filtering.first();
      await filtering.reload().done;
      const [built] = bench.published;
      const ids = ["li_ads", "service:chat", "service:video"];
      assert.deepEqual(built.sources.map(({ id }) => id), ids);
      assert.equal(decided(built, "www.video.example", filtering.seed), "||video.example^ (VIDEO)");

      services = catalogue({ chat: "||chat.example^", video: "||video.example^" }, "<svg/>");
      await filtering.reload().done;
      assert.equal(bench.published.length, 1, "another icon is no other rule");
      const restarted = await bench.open();
      const loaded = await restarted.first();
      assert.equal(bench.said("filter loaded"), 1);
      assert.deepEqual(loaded.sources.map(({ id }) => id), ids);

      services = catalogue({ chat: "||chat.example^", video: "||film.example^" });
      await restarted.reload().done;
      const [, changed] = bench.published;
      assert.equal(decided(changed, "film.example", restarted.seed), "||film.example^ (VIDEO)");
      bench.place = { kind: "off" };
      const without = await (await bench.open()).first();
      assert.deepEqual(without.sources.map(({ id }) => id), ["li_ads"]);
      filtering.stop();
      restarted.stop();
    }),
);

Deno.test(
  "Filtering tells what is not filtered, until it is",
  disk,
  () =>
    withBench(async (bench) => {
      bench.place = { kind: "file", path: "/etc/services.json" };
      bench.network.answer = () => ({ status: 404 });
      const filtering = await bench.open();
      const shown = () => filtering.problems.map(({ message }) => message).join("\n");
      await filtering.first();
      assert.match(shown(), /^filter\.services_file: .*$/, "nobody was asked yet");
      await filtering.reload().done;
      const missing = [
        "filter: no group has a rule yet: nothing is filtered",
        "lists: ads: nothing of it is filtered yet: lists.example: the server answered 404",
      ];
      const lists = () =>
        filtering.problems.map(({ message }) => message)
          .filter((problem) => !/services_file/.test(problem));
      assert.deepEqual(lists(), missing);
      // Somebody who chose no list, or has rules of another kind, misses nothing of a node's.
      for (
        const uses of [
          { lists: [], services: false, rules: false },
          { lists: [ADS.id], services: false, rules: true },
        ]
      ) {
        bench.uses = uses;
        assert.deepEqual(lists(), missing.slice(1));
      }
      bench.uses = { lists: [ADS.id], services: true, rules: false };
      assert.deepEqual(lists(), missing, "there is no service");
      bench.network.answer = () => ({ body: bench.listText });
      await filtering.reload().done;
      assert.deepEqual(lists(), []);
      filtering.stop();
    }),
);

Deno.test(
  "Filtering.start() asks again within seconds for what never came, and beside what hangs",
  disk,
  () =>
    withBench(async (bench) => {
      const end = Promise.withResolvers<void>();
      async function* hanging() {
        yield new TextEncoder().encode("||more.example^\n");
        await end.promise;
      }
      let tries = 0;
      bench.clock.nowMs = Date.now;
      bench.network.answer = ({ pathname }) => {
        if (pathname === "/more.txt") return { body: hanging() };
        return ++tries < 2 ? { status: 503 } : { body: bench.listText };
      };
      const filtering = await bench.open();
      await filtering.first();
      filtering.setLists({ sources: [ADS, MORE], off: [] });
      filtering.start();
      await until(() => bench.published.length > 0);
      assert.equal(tries, 2);
      assert.equal(
        decided(bench.published.at(-1)!, "ads.example", filtering.seed),
        "||ads.example^ (ads)",
      );
      end.resolve();
      await until(() =>
        decided(bench.published.at(-1)!, "more.example", filtering.seed) ===
          "||more.example^ (more)"
      );
      filtering.stop();
    }),
);

Deno.test(
  "Filtering.reload() asks and builds a few times at most, however often it is called",
  disk,
  () =>
    withBench(async (bench) => {
      let texts = 0;
      bench.network.answer = () => ({ body: `||ads${++texts}.example^\n` });
      const filtering = await bench.open();
      await filtering.first();
      const reloads = Array.from({ length: 50 }, () => filtering.reload());
      assert.deepEqual([reloads[0].started, reloads[0].loading], [[ADS.id], []]);
      assert.deepEqual([reloads[1].started, reloads[1].loading], [[], [ADS.id]]);
      await Promise.all(reloads.map(({ done }) => done));
      assert.ok(texts <= 2, `${texts} downloads`);
      assert.ok(bench.published.length <= 2, `${bench.published.length} builds`);
      const newest = decided(bench.published.at(-1)!, `ads${texts}.example`, filtering.seed);
      assert.equal(newest, `||ads${texts}.example^ (ads)`);
      filtering.stop();
      assert.deepEqual(filtering.reload().started, [], "nothing is begun behind the end");
    }),
);
