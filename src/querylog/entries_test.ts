import assert from "node:assert/strict";
import type { DatabaseSync } from "node:sqlite";
import { Prng, seedFromEnv } from "../../tests/prng.ts";
import { openDatabase } from "./database.ts";
import { DICTIONARIES } from "./dictionary.ts";
import { Entries, type EntriesOptions } from "./entries.ts";
import { showEntry, type StoredEntry } from "./entry.ts";
import { fakeEntries, NOW_MS } from "./fakes.ts";
import { LogSearch } from "./search.ts";

const disk = { permissions: { read: true, write: true } } as const;
const HOUR_MS = 3_600_000;

/** A file of entries, opened once or several times. */
class Bench {
  readonly directory = Deno.makeTempDirSync();
  db: DatabaseSync = openDatabase(this.directory, NOW_MS);
  entries: Entries;

  constructor(readonly options: EntriesOptions, nowMs = NOW_MS) {
    this.entries = new Entries(this.db, options, nowMs);
  }

  reopen(nowMs = NOW_MS): void {
    this.db.close();
    this.db = openDatabase(this.directory, nowMs);
    this.entries = new Entries(this.db, this.options, nowMs);
  }

  add(entries: readonly StoredEntry[], nowMs = NOW_MS): void {
    this.db.exec("BEGIN");
    this.entries.add(entries, nowMs);
    this.db.exec("COMMIT");
  }

  /** Trims until there is nothing to do; returns the steps that took. */
  trim(nowMs: number): number {
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
    return new LogSearch(this.db, false).find({}, 1_000_000, null).entries.toReversed();
  }

  /** Texts of dictionaries that no entry uses; each entry's are there. */
  orphans(): number {
    const columns = { names: "name", clients: "client", kinds: "kind", rules: "rule" } as const;
    let orphans = 0;
    for (const table of DICTIONARIES) {
      const column = table === "answers" ? "answers" : columns[table];
      const missing = this.db.prepare(
        `SELECT count(*) AS n FROM entries WHERE ${column} NOT NULL AND ${column} NOT IN (SELECT id FROM ${table})`,
      ).get();
      assert.equal(missing?.n, 0, `${table}: what an entry uses is there`);
      orphans += Number(
        this.db.prepare(
          `SELECT count(*) AS n FROM ${table} WHERE id NOT IN (SELECT ${column} FROM entries WHERE ${column} NOT NULL)`,
        ).get()?.n,
      );
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
  for (const entry of entries) bench.add([entry], entry.timeMs);
  const last = entries[entries.length - 1].timeMs;
  bench.trim(last);
  const kept = entries.filter(({ timeMs }) => timeMs >= last - retentionMs);
  assert.deepEqual(bench.all(), kept.map(showEntry));
  bench.trim(last + 2 * retentionMs);
  assert.equal(bench.entries.count, 0);
  const later = { ...entries[0], timeMs: last + 2 * retentionMs, name: "later.example" };
  bench.add([later], later.timeMs);
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

Deno.test("Entries drops what a clock that was ahead has written", disk, () => {
  using bench = new Bench({ maxEntries: 1_000, retentionMs: 24 * HOUR_MS });
  const [entry] = fakeEntries(new Prng(1), 1, NOW_MS);
  const yearMs = 365 * 24 * HOUR_MS;
  bench.add([{ ...entry, timeMs: NOW_MS, name: "before.example" }]);
  bench.add([{ ...entry, timeMs: NOW_MS + yearMs, name: "ahead.example" }], NOW_MS + yearMs);
  const names = () => bench.all().map(({ name }) => name);
  assert.deepEqual(names(), ["before.example", "ahead.example"]);
  bench.add([{ ...entry, timeMs: NOW_MS + 5, name: "after.example" }], NOW_MS + 5);
  assert.deepEqual(names(), ["before.example", "after.example"]);
  assert.equal(bench.entries.count, 2);
  bench.add([{ ...entry, timeMs: NOW_MS + yearMs, name: "again.example" }], NOW_MS + yearMs);
  bench.reopen(NOW_MS + 10);
  assert.deepEqual(names(), ["before.example", "after.example"]);
  bench.trim(NOW_MS + 10);
});

Deno.test("Entries.undo() forgets what a transaction that was undone told it", disk, () => {
  using bench = new Bench({ maxEntries: 10_000, retentionMs: 24 * HOUR_MS });
  const entries = fakeEntries(new Prng(seedFromEnv()), 300, NOW_MS - HOUR_MS).map((entry, i) => ({
    ...entry,
    timeMs: NOW_MS - 300 + i,
  }));
  for (let i = 0; i < 3; i++) {
    bench.db.exec("BEGIN");
    bench.entries.add(entries.slice(i * 100, i * 100 + 100), NOW_MS);
    bench.db.exec("ROLLBACK");
    bench.entries.undo();
    assert.equal(bench.entries.count, i * 100);
    bench.add(entries.slice(i * 100, i * 100 + 100));
  }
  assert.equal(bench.orphans(), 0);
  const want = entries.map((entry) => showEntry(entry).name);
  assert.deepEqual(bench.all().map(({ name }) => name), want);
});
