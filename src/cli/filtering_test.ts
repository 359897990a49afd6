import assert from "node:assert/strict";
import { defaultConfig } from "../config/mod.ts";
import { HashedName, parseName } from "../dns/mod.ts";
import { SvcError } from "../errors.ts";
import { ListKeeper } from "../lists/mod.ts";
import { FakeClock, FakeNetwork, MemoryDisk } from "../lists/fakes.ts";
import { FRESH_NODE_SETTINGS } from "../model/mod.ts";
import { Snapshot, type SnapshotData } from "../snapshot/mod.ts";
import { Filtering } from "./filtering.ts";

// Compiled rules are kept in a folder of the test's own; the compiler is an isolate.
const disk = { permissions: { read: true, write: true } } as const;

class Bench {
  readonly network = new FakeNetwork(() => ({ body: this.listText }));
  readonly published: SnapshotData[] = [];
  listText = "||ads.example^\n";
  readonly lines: string[] = [];

  constructor(readonly dir: string, readonly disk: MemoryDisk) {}

  async open(onFailure: "open" | "closed" = "open"): Promise<Filtering> {
    const keeper = await ListKeeper.open("/kept", {
      get: this.network.get,
      clock: new FakeClock(Date.now()),
      chance: () => 0,
      disk: this.disk,
      localListsDirectory: "/local",
    });
    return new Filtering({
      config: {
        ...defaultConfig("/etc/svc").filter,
        lists: [{ kind: "url", name: "ads", url: "https://lists.example/ads.txt" }],
        rules: ["||custom.example^", "no rule at all$script"],
        onFailure,
      },
      settings: FRESH_NODE_SETTINGS,
      keeper,
      rulesFile: `${this.dir}/rules.bin`,
      publish: (snapshot) => {
        this.published.push(snapshot);
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

/** The rule and list that block a name, or "". */
function decided(data: SnapshotData, text: string, seed: number): string {
  const [name, wire] = [new HashedName(), parseName(text)!];
  name.read(wire, 0, wire.length, seed);
  const snapshot = new Snapshot(data);
  const rule = snapshot.match(wire, name);
  return rule < 0 ? "" : new TextDecoder().decode(snapshot.blockedText(rule));
}

Deno.test(
  "Filtering starts with what is at hand and builds what a refresh brings",
  disk,
  () =>
    withBench(async (bench) => {
      const filtering = await bench.open();
      const first = await filtering.first();
      assert.equal(bench.network.asked.length, 0, "a start asks no server");
      assert.equal(
        decided(first, "custom.example", filtering.seed),
        "||custom.example^ (custom rules)",
      );
      assert.equal(decided(first, "ads.example", filtering.seed), "");
      assert.equal(bench.said("filter.rules: some rules can't be read and are left out"), 1);
      await filtering.reload();
      const [built] = bench.published;
      assert.ok(built.generation > first.generation);
      assert.deepEqual(built.sources.map(({ name }) => name), ["ads", "custom rules"]);
      assert.equal(decided(built, "www.ads.example", filtering.seed), "||ads.example^ (ads)");
      await filtering.reload();
      assert.equal(bench.published.length, 1, "nothing new, nothing built");
      bench.listText = "||other.example^\n";
      await Promise.all([filtering.reload(), filtering.reload()]);
      assert.equal(bench.published.length, 2);
      assert.equal(decided(bench.published[1], "ads.example", filtering.seed), "");
      filtering.stop();
    }),
);

Deno.test(
  "Filtering reads kept rules instead of compiling the same texts again",
  disk,
  () =>
    withBench(async (bench) => {
      const before = await bench.open();
      await before.first();
      await before.reload();
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
        assert.equal(snapshot.rules, null);
        assert.equal(decided(snapshot, "custom.example", open.seed), "");
        assert.equal(bench.said("the filter can't be built: names are answered unfiltered"), 1);
        await assert.rejects(
          closed.first(),
          (error) => error instanceof SvcError && error.message === "filter: unreadable on purpose",
        );
        await open.reload(); // What fails is logged; the next one gets its turn.
      } finally {
        ListKeeper.prototype.load = load;
      }
      assert.equal(bench.said("the filter can't be renewed: the rules in force stay"), 1);
      assert.equal(bench.published.length, 0);
    }),
);
