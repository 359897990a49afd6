import assert from "node:assert/strict";
import { denoDisk, type Disk } from "../lists/mod.ts";
import { readBackup } from "../backup/mod.ts";
import { ids, newUser, ruleSpec, stateAfter } from "../model/fakes.ts";
import { emptyState, type LiveState } from "../model/mod.ts";
import { COPIES_MAX, DailyBackups } from "./daily_backups.ts";

const disk = { permissions: { read: true, write: true } } as const;
const DAY_MS = 86_400_000;

/** A folder of copies, and a clock that is set. */
class Bench {
  readonly path: string;
  nowMs: number | null = Date.UTC(2026, 0, 2, 12);
  state: LiveState | null = stateAfter(
    { type: "create", collection: "rules", id: ids.rule(1), spec: ruleSpec("||a.example^") },
    { type: "user_create", user: newUser(1, "ann") },
  );
  readonly copies: DailyBackups;

  constructor(over: Partial<Disk> = {}) {
    this.path = `${Deno.makeTempDirSync({ prefix: "svc-daily-" })}/backups`;
    this.copies = new DailyBackups({
      directory: this.path,
      state: () => this.state,
      program: "0.7.0",
      nowMs: () => this.nowMs,
      disk: { ...denoDisk, ...over },
    });
  }

  names(): string[] {
    return [...Deno.readDirSync(this.path)].map(({ name }) => name).sort();
  }

  [Symbol.dispose](): void {
    Deno.removeSync(this.path.slice(0, this.path.lastIndexOf("/")), { recursive: true });
  }
}

Deno.test("DailyBackups keeps a copy that can be restored, for the owner alone", disk, async () => {
  using bench = new Bench();
  await bench.copies.look();
  assert.deepEqual(bench.names(), ["svc-2026-01-02.json"]);
  const path = `${bench.path}/svc-2026-01-02.json`;
  assert.equal(Deno.statSync(path).mode! & 0o777, 0o600);
  const text = Deno.readTextFileSync(path);
  assert.ok(!text.includes("SECRET"));
  const read = await readBackup(JSON.parse(text), null);
  assert.ok(read.ok);
  assert.equal(read.spec.resources.rules[0].spec.rule, "||a.example^");
  // One a day: what it has stays.
  bench.state = stateAfter();
  await bench.copies.look();
  assert.equal(Deno.readTextFileSync(path), text);
});

Deno.test("DailyBackups keeps a week of them, and none of days to come", disk, async () => {
  using bench = new Bench();
  const start = bench.nowMs!;
  bench.nowMs = start + 400 * DAY_MS; // The clock is ahead.
  await bench.copies.look();
  for (let day = 0; day < 10; day++) {
    bench.nowMs = start + day * DAY_MS;
    await bench.copies.look();
  }
  const names = bench.names();
  assert.equal(names.length, COPIES_MAX);
  assert.equal(names[0], "svc-2026-01-05.json");
  assert.equal(names.at(-1), "svc-2026-01-11.json");
});

Deno.test("DailyBackups leaves what is not its own", disk, async () => {
  using bench = new Bench();
  Deno.mkdirSync(bench.path);
  Deno.writeTextFileSync(`${bench.path}/mine.json`, "");
  Deno.writeTextFileSync(`${bench.path}/svc-2025-01-01.json.new`, "half");
  await bench.copies.look();
  assert.deepEqual(bench.names(), ["mine.json", "svc-2026-01-02.json"]);
});

Deno.test("DailyBackups waits for the time, and for a configuration", disk, async () => {
  using bench = new Bench();
  const { nowMs, state } = bench;
  bench.nowMs = null;
  await bench.copies.look();
  [bench.nowMs, bench.state] = [nowMs, emptyState()];
  await bench.copies.look();
  assert.throws(() => bench.names(), Deno.errors.NotFound);
  bench.state = null; // It is of a store that can't be read.
  await bench.copies.look();
  assert.throws(() => bench.names(), Deno.errors.NotFound);
  bench.state = state;
  await bench.copies.look();
  assert.equal(bench.names().length, 1);
});

Deno.test("DailyBackups says that the disk is full, and keeps what it has", disk, async () => {
  let isFull = true;
  using bench = new Bench({
    create: async (path) => {
      const file = await denoDisk.create(path);
      return {
        write: (bytes) => {
          if (!isFull) return file.write(bytes);
          return Promise.reject(new Error("No space left on device (os error 28)"));
        },
        sync: () => file.sync(),
        close: () => file.close(),
      };
    },
  });
  Deno.mkdirSync(bench.path);
  const olds = Array.from({ length: COPIES_MAX }, (_, n) => `svc-2025-12-0${n + 1}.json`);
  for (const name of olds) Deno.writeTextFileSync(`${bench.path}/${name}`, "{}");
  await bench.copies.look();
  assert.match(bench.copies.problems.join(), /backups: today's copy .*No space left.*has room/);
  assert.deepEqual(bench.names(), olds, "neither a draft, nor one less");
  isFull = false;
  await bench.copies.look();
  assert.deepEqual(bench.copies.problems, []);
  assert.deepEqual(bench.names(), [...olds.slice(1), "svc-2026-01-02.json"]);
});
