import assert from "node:assert/strict";
import type { DatabaseSync } from "node:sqlite";
import { Prng, seedFromEnv } from "../../tests/prng.ts";
import { openDatabase } from "./database.ts";
import { DICTIONARIES } from "./dictionary.ts";
import type { Correction } from "../clock/mod.ts";
import { Entries, type EntriesOptions, type Moved } from "./entries.ts";
import { showEntry, type StoredEntry } from "./entry.ts";
import { fakeEntries, NOW_MS } from "./fakes.ts";
import { LogSearch } from "./search.ts";
import { storedLog } from "./segments.ts";

const disk = { permissions: { read: true, write: true } } as const;
const HOUR_MS = 3_600_000;

/** A file of entries, opened once or several times. */
class Bench {
  readonly directory = Deno.makeTempDirSync();
  db: DatabaseSync = openDatabase(this.directory, NOW_MS);
  entries: Entries;

  constructor(readonly options: EntriesOptions) {
    this.entries = new Entries(this.db, options);
  }

  reopen(): void {
    this.db.close();
    this.db = openDatabase(this.directory, NOW_MS);
    this.entries = new Entries(this.db, this.options);
  }

  add(entries: readonly StoredEntry[]): void {
    this.db.exec("BEGIN");
    this.entries.add(entries);
    this.db.exec("COMMIT");
  }

  /** Trims until there is nothing to do; returns the steps that took. */
  trim(nowMs: number | null): number {
    for (let steps = 1;; steps++) {
      this.db.exec("BEGIN");
      const isMore = this.entries.trim(nowMs);
      this.db.exec("COMMIT");
      this.entries.vacuum();
      if (!isMore) return steps;
      assert.ok(steps < 10_000, "trimming comes to an end");
    }
  }

  all() {
    const search = new LogSearch(storedLog(this.db), false);
    return search.find({}, 1_000_000, null).entries.toReversed().map(({ id: _, ...shown }) =>
      shown
    );
  }

  /** Texts of dictionaries that no entry uses; each entry's are there. */
  orphans(): number {
    const parts = [...storedLog(this.db).segments.oldestFirst(0, Number.MAX_SAFE_INTEGER)];
    let orphans = 0;
    for (const table of DICTIONARIES) {
      const rows = this.db.prepare(`SELECT id FROM ${table}`).all();
      const there = new Set(rows.map(({ id }) => Number(id)));
      const used = new Set(parts.flatMap(({ numbers }) => [...numbers[table]]));
      used.delete(0);
      assert.ok(used.isSubsetOf(there), `${table}: what an entry uses is there`);
      orphans += there.size - used.size;
    }
    this.db.exec("INSERT INTO names_text (names_text) VALUES ('integrity-check')");
    return orphans;
  }

  [Symbol.dispose](): void {
    this.db.close();
    Deno.removeSync(this.directory, { recursive: true });
  }
}

Deno.test("Entries keeps what it is given, through the end of the process", disk, () => {
  using bench = new Bench({ maxEntries: 10_000, retentionMs: 24 * HOUR_MS });
  const entries = fakeEntries(new Prng(seedFromEnv()), 500, NOW_MS - HOUR_MS).map((entry) => ({
    ...entry,
    timeMs: Math.min(entry.timeMs, NOW_MS),
  }));
  bench.add(entries.slice(0, 200));
  bench.reopen();
  bench.add(entries.slice(200));
  assert.equal(bench.entries.count, 500);
  bench.reopen();
  assert.equal(bench.entries.count, 500);
  assert.deepEqual(bench.all(), entries.map(showEntry));
});

Deno.test("Entries.trim() keeps the newest, in steps, and what they use", disk, () => {
  using bench = new Bench({ maxEntries: 2_500, retentionMs: 24 * HOUR_MS });
  const prng = new Prng(seedFromEnv());
  const entries = fakeEntries(prng, 9_000, NOW_MS - 9 * HOUR_MS).map((entry, i) => ({
    ...entry,
    timeMs: NOW_MS - 9_000 + i,
    name: `n${Math.floor(i / 3)}.example`,
    answers: `192.0.2.${i % 250}\nn${i}.example`,
  }));
  for (let i = 0; i < entries.length; i += 1_000) {
    bench.add(entries.slice(i, i + 1_000));
    const steps = bench.trim(NOW_MS);
    assert.ok(i < 3_000 || steps > 1, "in steps");
    assert.equal(bench.entries.count, Math.min(2_500, i + 1_000));
    assert.ok(bench.orphans() <= 2 * 1_000 + 100, "at most an epoch's worth is left behind");
  }
  assert.deepEqual(bench.all(), entries.slice(-2_500).map(showEntry));
  const names = bench.db.prepare("SELECT count(*) AS n FROM names").get();
  assert.ok(Number(names?.n) < 2_000, `${names?.n} names`);
});

Deno.test("Entries.trim() removes what is past its time, to the last text", disk, () => {
  const retentionMs = 24 * HOUR_MS;
  using bench = new Bench({ maxEntries: 100_000, retentionMs });
  const entries = fakeEntries(new Prng(seedFromEnv()), 4_000, NOW_MS).map((entry, i) => ({
    ...entry,
    timeMs: NOW_MS + i * 60_000,
    name: `n${i}.example`,
  }));
  for (const entry of entries) bench.add([entry]);
  const last = entries[entries.length - 1].timeMs;
  bench.trim(last);
  const kept = entries.filter(({ timeMs }) => timeMs >= last - retentionMs);
  assert.deepEqual(bench.all(), kept.map(showEntry));
  bench.trim(last + 2 * retentionMs);
  assert.equal(bench.entries.count, 0);
  const later = { ...entries[0], timeMs: last + 2 * retentionMs, name: "later.example" };
  bench.add([later]);
  bench.trim(later.timeMs);
  // An epoch has ended since: nothing of the former ones is left.
  assert.deepEqual(bench.all(), [showEntry(later)]);
  assert.equal(bench.orphans(), 0);
});

Deno.test("Entries gives the space of what it removes back", disk, () => {
  using bench = new Bench({ maxEntries: 100_000, retentionMs: HOUR_MS });
  const entries = fakeEntries(new Prng(1), 60_000, NOW_MS - HOUR_MS / 2).map((entry, i) => ({
    ...entry,
    timeMs: NOW_MS - 60_000 + i,
    answers: `a${i}.${"long".repeat(20)}.example`,
  }));
  bench.add(entries);
  const before = Number(bench.db.prepare("PRAGMA page_count").get()?.page_count);
  bench.trim(NOW_MS + 2 * HOUR_MS);
  for (let i = 0; i < 200; i++) bench.entries.vacuum();
  const after = Number(bench.db.prepare("PRAGMA page_count").get()?.page_count);
  assert.ok(after < before / 2, `${before} pages, then ${after}`);
});

Deno.test(
  "Entries keeps the order in which they came when the clock goes back a little",
  disk,
  () => {
    using bench = new Bench({ maxEntries: 1_000, retentionMs: 24 * HOUR_MS });
    const [entry] = fakeEntries(new Prng(1), 1, NOW_MS);
    const at = (offsetMs: number, name: string) => ({ ...entry, timeMs: NOW_MS + offsetMs, name });
    bench.add([
      at(0, "a.example"),
      at(-500, "b.example"),
      at(-400, "c.example"),
      at(1, "d.example"),
    ]);
    assert.deepEqual(bench.all().map(({ name }) => name[0]).join(""), "abcd");
    assert.equal(bench.all()[1].time, bench.all()[0].time);
  },
);

Deno.test("Entries takes more of one millisecond than it has numbers for", disk, () => {
  using bench = new Bench({ maxEntries: 10_000, retentionMs: 24 * HOUR_MS });
  const [entry] = fakeEntries(new Prng(1), 1, NOW_MS);
  bench.add(Array.from({ length: 3_000 }, () => ({ ...entry, timeMs: NOW_MS })));
  const times = bench.all().map(({ time }) => Date.parse(time) - NOW_MS);
  assert.deepEqual([times[0], times[1_023], times[1_024], times[2_999]], [0, 0, 1, 2]);
});

Deno.test(
  "Entries removes nothing for lying in the future, nor for its age without a time",
  disk,
  () => {
    using bench = new Bench({ maxEntries: 1_000, retentionMs: 24 * HOUR_MS });
    const [entry] = fakeEntries(new Prng(1), 1, NOW_MS);
    const yearMs = 365 * 24 * HOUR_MS;
    for (const timeMs of [NOW_MS - yearMs, NOW_MS, NOW_MS + yearMs]) {
      bench.add([{
        ...entry,
        timeMs,
      }]);
    }
    bench.reopen();
    bench.trim(null);
    assert.equal(bench.all().length, 3);
    assert.equal(bench.entries.newestMs, NOW_MS + yearMs);
    bench.trim(NOW_MS);
    assert.deepEqual(bench.all().map(({ time }) => Date.parse(time)), [NOW_MS, NOW_MS + yearMs]);
  },
);

/** Entries with names in order, some at one time, and their texts. */
function numbered(count: number, fromMs: number): StoredEntry[] {
  const entries = fakeEntries(new Prng(seedFromEnv()), count, 0);
  return entries.map((entry, i) => ({
    ...entry,
    timeMs: fromMs + Math.floor(i / 3) * 7,
    name: `n${i}.example`,
  }));
}

/** Moves in steps, each a transaction of which every third is undone at first. */
function moveAll(bench: Bench, correction: Correction): number {
  let moved: Moved | null = null;
  for (let steps = 1;; steps++) {
    if (steps % 3 === 0) {
      bench.db.exec("BEGIN");
      bench.entries.move(correction, moved);
      bench.db.exec("ROLLBACK");
      bench.entries.undo();
    }
    bench.db.exec("BEGIN");
    moved = bench.entries.move(correction, moved);
    bench.db.exec("COMMIT");
    if (moved === null) return steps;
  }
}

for (const shiftMs of [90_000, 400 * 24 * HOUR_MS, -90_000, -400 * 24 * HOUR_MS, 6, -6]) {
  Deno.test(`Entries.move() keeps order and texts, by ${shiftMs} ms`, disk, () => {
    using bench = new Bench({ maxEntries: 100_000, retentionMs: 24 * HOUR_MS });
    const before = numbered(2_500, NOW_MS - 1_000_000);
    const wrong = numbered(2_500, NOW_MS).map((entry) => ({ ...entry, name: `w${entry.name}` }));
    bench.add(before);
    bench.add(wrong);
    const steps = moveAll(bench, { fromMs: NOW_MS, shiftMs });
    assert.ok(steps >= 3, "in steps");
    const all = bench.all();
    assert.deepEqual(
      all.map(({ name }) => name),
      [...before, ...wrong].map(({ name }) => name),
      "in the order in which they came",
    );
    const times = all.map(({ time }) => Date.parse(time));
    assert.deepEqual(times.slice(0, 2_500), before.map(({ timeMs }) => timeMs));
    const last = before[before.length - 1].timeMs;
    // Where there is no room among those before them, they stand right behind.
    for (const [i, { timeMs }] of wrong.entries()) {
      const wantMs = Math.max(timeMs + shiftMs, last);
      const isSqueezed = timeMs + shiftMs <= last;
      const atMs = times[2_500 + i];
      assert.ok(isSqueezed ? atMs - wantMs <= 3 : atMs === wantMs, `${i}: ${atMs - wantMs} ms`);
    }
    assert.ok(times.slice(2_500).every((ms) => ms >= last));
    // What comes next, and what goes, finds all as it should be.
    bench.add([{ ...wrong[0], timeMs: Math.max(...times) + 5, name: "next.example" }]);
    assert.equal(bench.orphans(), 0);
    bench.trim(Math.max(...times) + 24 * HOUR_MS + 1);
    assert.deepEqual(bench.all().map(({ name }) => name), ["next.example"]);
    bench.trim(Math.max(...times) + 50 * HOUR_MS);
    assert.deepEqual([bench.entries.count, bench.orphans()], [0, 0]);
  });
}

Deno.test("Entries.undo() forgets what a transaction that was undone told it", disk, () => {
  using bench = new Bench({ maxEntries: 10_000, retentionMs: 24 * HOUR_MS });
  const entries = fakeEntries(new Prng(seedFromEnv()), 300, NOW_MS - HOUR_MS).map((entry, i) => ({
    ...entry,
    timeMs: NOW_MS - 300 + i,
  }));
  for (let i = 0; i < 3; i++) {
    bench.db.exec("BEGIN");
    bench.entries.add(entries.slice(i * 100, i * 100 + 100));
    bench.db.exec("ROLLBACK");
    bench.entries.undo();
    assert.equal(bench.entries.count, i * 100);
    bench.add(entries.slice(i * 100, i * 100 + 100));
  }
  assert.equal(bench.orphans(), 0);
  const want = entries.map((entry) => showEntry(entry).name);
  assert.deepEqual(bench.all().map(({ name }) => name), want);
});
