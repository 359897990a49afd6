// Goal: no end of the process, loss of power or failing step of the disk loses a list or mixes its
// text. Method: one story of refreshes runs against a disk in memory that ends it at each writing
// step in turn; what is left is opened again, and the seed of what a loss of power took is printed.
import assert from "node:assert/strict";
import { CrashError, FakeClock, FakeNetwork, MemoryDisk, seededChance } from "./fakes.ts";
import { log } from "../log.ts";
import { ListKeeper, type RefreshEvent } from "./keeper.ts";
import type { ListSource } from "./source.ts";

const DAY_MS = 86_400_000;
const OUTAGES_A_STEP = 12;
/** Steps after a failing one at which power is lost as well; a commit has nine. */
const STEPS_AFTER_FAILURE = 9;
const SEED = Number(Deno.args.find((arg) => arg.startsWith("--seed="))?.slice(7) ?? 20260101);

const ads: ListSource = { id: "li_a", name: "Ads", url: "https://lists.example/a" };
const more: ListSource = { id: "li_b", name: "More", url: "https://lists.example/b" };
const moved: ListSource = { ...more, url: "https://other.example/b" };
const gone: ListSource = { id: "li_c", name: "Gone", url: "https://lists.example/c" };

/** Runs a test of thousands of failures, whose lines nobody would read. */
async function quietly(test: () => Promise<void>): Promise<void> {
  const { info, warn } = log;
  log.info = log.warn = () => undefined;
  try {
    await test();
  } finally {
    Object.assign(log, { info, warn });
  }
}

/** The newest version of each list that a refresh has reported, by ID. */
type Reported = Map<string, number>;

class Story {
  readonly clock = new FakeClock();
  readonly reported: Reported = new Map();
  #version = 0;
  readonly #network = new FakeNetwork((_, headers) => {
    const etag = `"${this.#version}"`;
    if (headers["if-none-match"] === etag) return { status: 304 };
    // Every line names the version, so that a mix of two texts shows.
    return { body: `||v${this.#version}.example^\n`.repeat(50), headers: { etag } };
  });

  open(disk: MemoryDisk): Promise<ListKeeper> {
    const { get } = this.#network;
    const options = { get, clock: this.clock, disk, chance: () => 0, localListsDirectory: "/l" };
    return ListKeeper.open("/kept", options);
  }

  async refresh(keeper: ListKeeper, version: number, sources: ListSource[]): Promise<void> {
    this.#version = version;
    this.clock.timeMs += 1000;
    // One after the other, so that the steps of the disk are the same each time.
    for (const each of sources) {
      const onFinished = ({ source: { id }, outcome }: RefreshEvent) => {
        if (outcome !== "failed") this.reported.set(id, version);
      };
      await keeper.refresh([each], { intervalMs: DAY_MS, force: true, onFinished }).done;
    }
  }

  /** What happens on the disk; `disk` may end it or have a step fail. */
  async run(disk: MemoryDisk): Promise<void> {
    let keeper = await this.open(disk);
    await this.refresh(keeper, 1, [ads, more, gone]);
    await this.refresh(keeper, 2, [ads]);
    await this.refresh(keeper, 2, [ads]); // Not modified.
    await this.refresh(keeper, 3, [ads, moved]);
    keeper = await this.open(disk);
    await versions(keeper, [ads, moved]); // Removes `gone`.
    this.reported.delete(gone.id);
    await this.refresh(keeper, 4, [ads, moved]);
  }

  /** Checks that what is left on a disk is what was reported, or newer. */
  async check(disk: MemoryDisk, reported: Reported, place: string): Promise<void> {
    const keeper = await this.open(disk);
    const loaded = await versions(keeper, [ads, moved, gone]);
    for (const [id, version] of reported) {
      const have = loaded.get(id);
      assert.ok(
        have !== undefined && have >= version,
        `${place}: ${id} has ${have}, not ${version}`,
      );
    }
    for (const path of disk.paths()) {
      assert.ok(!path.endsWith(".part"), `${place}: ${path} is left`);
    }
    await this.refresh(keeper, 9, [ads, moved]);
    const after = await versions(await this.open(disk), [ads, moved]);
    assert.deepEqual([...after], [[ads.id, 9], [moved.id, 9]], place);
  }
}

/** The version of each text that is at hand. */
async function versions(keeper: ListKeeper, sources: ListSource[]): Promise<Reported> {
  const loaded: Reported = new Map();
  for await (const { source, bytes } of keeper.load(sources)) {
    const lines = new Set(new TextDecoder().decode(bytes).trim().split("\n"));
    assert.equal(lines.size, 1, "a text is of one version");
    loaded.set(source.id, Number(/v(\d+)/.exec([...lines][0])?.[1]));
  }
  return loaded;
}

async function countSteps(): Promise<number> {
  const disk = new MemoryDisk();
  const story = new Story();
  await story.run(disk);
  assert.deepEqual([...story.reported], [[ads.id, 4], [more.id, 4]], "the story goes as told");
  return disk.steps;
}

Deno.test("ListKeeper loses no list when its process ends at any step", {
  permissions: "none",
}, () =>
  quietly(async () => {
    const steps = await countSteps();
    assert.ok(steps > 60, `${steps} steps are a story`);
    for (let step = 1; step <= steps; step++) {
      const disk = new MemoryDisk();
      disk.lastStep = step;
      const story = new Story();
      await story.run(disk).catch((error) => assert.ok(error instanceof CrashError, String(error)));
      const reported = new Map(story.reported);
      await story.check(disk.afterKill(), reported, `killed at step ${step}`);
      for (let i = 0; i < OUTAGES_A_STEP; i++) {
        const seed = SEED + step * 1000 + i;
        const place = `power lost at step ${step}, --seed=${SEED}, draw ${seed}`;
        await story.check(disk.afterOutage(seededChance(seed)), reported, place);
      }
    }
  }));

Deno.test(
  "ListKeeper loses no list when any one step fails",
  { permissions: "none" },
  () =>
    quietly(async () => {
      const steps = await countSteps();
      for (let step = 1; step <= steps; step++) {
        const disk = new MemoryDisk();
        disk.failingStep = step;
        const story = new Story();
        await story.run(disk);
        const reported = new Map(story.reported);
        await story.check(disk.afterKill(), reported, `step ${step} failed`);
        const seed = SEED + step;
        const place = `step ${step} failed, power lost at the end, --seed=${SEED}`;
        await story.check(disk.afterOutage(seededChance(seed)), reported, place);
      }
    }),
);

Deno.test("ListKeeper loses no list when power is lost soon after a failing step", {
  permissions: "none",
}, () =>
  quietly(async () => {
    const steps = await countSteps();
    for (let failing = 1; failing <= steps; failing++) {
      for (let last = failing + 1; last <= failing + STEPS_AFTER_FAILURE; last++) {
        const disk = new MemoryDisk();
        disk.failingStep = failing;
        disk.lastStep = last;
        const story = new Story();
        await story.run(disk).catch((error) =>
          assert.ok(error instanceof CrashError, String(error))
        );
        const chance = seededChance(SEED + failing * 1000 + last);
        const place = `step ${failing} failed, power lost at step ${last}, --seed=${SEED}`;
        await story.check(disk.afterOutage(chance), new Map(story.reported), place);
      }
    }
  }));
