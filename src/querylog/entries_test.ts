import assert from "node:assert/strict";
import type { DatabaseSync } from "node:sqlite";
import { Prng, seedFromEnv } from "../../tests/prng.ts";
import { type KeptText, newText } from "./byte_texts.ts";
import { openDatabase } from "./database.ts";
import { DICTIONARIES, Dictionary } from "./dictionary.ts";
import type { Correction } from "../clock/mod.ts";
import { Entries, type EntriesOptions, type Moved } from "./entries.ts";
import { showEntry, type StoredEntry } from "./entry.ts";
import { fakeEntries, NOW_MS, whole } from "./fakes.ts";
import { LogSearch } from "./search.ts";
import { IDS_PER_MS, SEGMENT_ENTRIES } from "./segment.ts";
import { storedLog } from "./segments.ts";

const disk = { permissions: { read: true, write: true } } as const;
const HOUR_MS = 3_600_000;

/** A file of entries, opened once or several times. */
class Bench {
  readonly directory = Deno.makeTempDirSync();
  db: DatabaseSync = openDatabase(this.directory, NOW_MS);
  entries: Entries;

  constructor(readonly options: EntriesOptions) {
    this.entries = new Entries(storedLog(this.db), options);
  }

  reopen(): void {
    this.db.close();
    this.db = openDatabase(this.directory, NOW_MS);
    this.entries = new Entries(storedLog(this.db), this.options);
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
    return whole(search.find({}, 1_000_000, null)).entries.toReversed().map(({ id: _, ...shown }) =>
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
      const used = new Set(parts.flatMap((part) => {
        // What lies before the floor may have lost its texts already.
        const { columns, lists, start, stop } = part.open();
        return Array.from(columns.places(table).subarray(start, stop), (i) => lists[table][i]);
      }));
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

/** What programs before segments made of a new file, and entries as they wrote them. */
const ROWS_SCHEMA = `
DROP TABLE segments;
DROP TABLE floor;
CREATE TABLE entries (
  id INTEGER PRIMARY KEY, name INTEGER NOT NULL, client INTEGER NOT NULL, outcome INTEGER NOT NULL,
  kind INTEGER NOT NULL, rule INTEGER, answers INTEGER, duration INTEGER NOT NULL
) STRICT;
CREATE INDEX entries_name ON entries (name);
CREATE INDEX entries_client ON entries (client);
CREATE INDEX entries_outcome ON entries (outcome);
INSERT INTO epochs VALUES (1, 0);
PRAGMA user_version = 1;
`;

function writeRows(db: DatabaseSync, entries: readonly StoredEntry[]): void {
  const insert = db.prepare("INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?, ?, ?)");
  const [names, clients, kinds, rules, answers] = DICTIONARIES.map((name) =>
    new Dictionary(db, name)
  );
  const epoch = Number(db.prepare("SELECT max(epoch) AS n FROM epochs").get()?.n);
  db.exec("BEGIN");
  for (const [i, entry] of entries.entries()) {
    insert.run(
      entry.timeMs * IDS_PER_MS + i % 3,
      names.idOf(entry.name, epoch),
      clients.idOf(entry.client, epoch),
      entry.outcome,
      kinds.idOf(entry.kind, epoch),
      entry.rule === "" ? null : rules.idOf(entry.rule, epoch),
      entry.answers === "" ? null : answers.idOf(entry.answers, epoch),
      entry.durationUs,
    );
  }
  db.exec("COMMIT");
}

Deno.test("Entries takes over what an earlier program wrote, and goes on writing", disk, () => {
  const options = { maxEntries: 100_000, retentionMs: 24 * HOUR_MS };
  using bench = new Bench(options);
  const all = numbered(9_000, NOW_MS);
  const [before, mine, late, last] = [0, 7_000, 7_500, 8_500].map((from, i) =>
    all.slice(from, [7_000, 7_500, 8_500, 9_000][i])
  );
  bench.db.exec(ROWS_SCHEMA);
  writeRows(bench.db, before);
  bench.reopen();
  // The newest are found first, while the rest is on its way.
  bench.add(mine);
  bench.db.exec("BEGIN");
  assert.ok(bench.entries.trim(NOW_MS), "in steps");
  bench.db.exec("COMMIT");
  assert.ok(bench.entries.isPartial);
  const found = bench.all().map(({ name }) => name);
  assert.deepEqual(found, all.slice(7_500 - found.length, 7_500).map(({ name }) => name));
  bench.trim(NOW_MS);
  assert.ok(!bench.entries.isPartial);
  // The earlier program has a few more, from before, between and behind what is there already.
  bench.add(last);
  writeRows(bench.db, late);
  bench.reopen();
  bench.trim(NOW_MS);
  assert.equal(bench.entries.count, 9_000);
  assert.deepEqual(bench.all(), all.map(showEntry));
  assert.equal(bench.orphans(), 0);
  const tables = () => bench.db.prepare("SELECT name FROM sqlite_master WHERE name = 'entries'");
  assert.equal(tables().all().length, 1, "as long as an earlier program may write to it");
  bench.reopen();
  assert.equal(tables().all().length, 0);
  assert.deepEqual(bench.all(), all.map(showEntry));
});

Deno.test(
  "Entries of an earlier program among newer ones keep their time, and all a number",
  disk,
  () => {
    using bench = new Bench({ maxEntries: 100_000, retentionMs: 24 * HOUR_MS });
    const all = numbered(6_000, NOW_MS);
    const odd = all.filter((_, i) => i % 2 === 1);
    bench.db.exec(ROWS_SCHEMA);
    bench.reopen();
    bench.add(all.filter((_, i) => i % 2 === 0));
    writeRows(bench.db, odd);
    bench.reopen();
    bench.trim(NOW_MS);
    const found = bench.all();
    assert.deepEqual(
      found.map(({ name, time }) => `${time} ${name}`).sort(),
      all.map(showEntry).map(({ name, time }) => `${time} ${name}`).sort(),
    );
    const times = found.map(({ time }) => time);
    assert.deepEqual(times, times.toSorted(), "in the order of their times");
  },
);

Deno.test("Entries writes what comes one by one in few segments, each few times", disk, () => {
  using bench = new Bench({ maxEntries: 100_000, retentionMs: 24 * HOUR_MS });
  const all = numbered(5_000, NOW_MS);
  const segments = () => Number(bench.db.prepare("SELECT count(*) AS n FROM segments").get()?.n);
  for (const [i, entry] of all.entries()) {
    bench.add([entry]);
    if (i % 500 === 0) assert.ok(segments() <= 5_000 / SEGMENT_ENTRIES + 14, `${segments()}`);
  }
  assert.deepEqual(bench.all(), all.map(showEntry));
});

Deno.test("Entries shows at most as many as are to be kept, at once", disk, () => {
  using bench = new Bench({ maxEntries: 50, retentionMs: 24 * HOUR_MS });
  const all = numbered(6_000, NOW_MS);
  for (let i = 0; i < all.length; i += 37) {
    bench.add(all.slice(i, i + 37));
    bench.trim(NOW_MS);
    const want = all.slice(0, i + 37).slice(-50);
    assert.equal(bench.entries.count, want.length);
    assert.deepEqual(bench.all(), want.map(showEntry));
    if (i % 5 === 0) bench.reopen();
    assert.equal(bench.entries.count, want.length);
  }
  const { stored } = bench.db.prepare("SELECT sum(count) AS stored FROM segments").get()!;
  assert.ok(Number(stored) <= 2 * 50, `${stored} are in the file`);
});

Deno.test("Entries cuts what is past its time out of the file within an hour", disk, () => {
  using bench = new Bench({ maxEntries: 10_000, retentionMs: HOUR_MS });
  const all = numbered(2_000, NOW_MS);
  bench.add(all);
  const lastMs = all[all.length - 1].timeMs;
  const stored = () =>
    Number(bench.db.prepare("SELECT coalesce(sum(count), 0) AS n FROM segments").get()?.n);
  bench.trim(all[3].timeMs + HOUR_MS);
  assert.deepEqual(bench.all(), all.slice(3).map(showEntry));
  for (let nowMs = NOW_MS + HOUR_MS; nowMs <= lastMs + HOUR_MS; nowMs += 60_000) bench.trim(nowMs);
  bench.trim(lastMs + 2 * HOUR_MS);
  assert.deepEqual([bench.entries.count, stored()], [0, 0]);
});

Deno.test("Entries leaves nothing in the file for longer where no more is removed", disk, () => {
  using bench = new Bench({ maxEntries: 100, retentionMs: 48 * HOUR_MS });
  const all = numbered(105, NOW_MS);
  const stored = () => Number(bench.db.prepare("SELECT sum(count) AS n FROM segments").get()?.n);
  bench.add(all.slice(0, 103));
  bench.trim(NOW_MS);
  assert.equal(stored(), 100);
  bench.add(all.slice(103));
  bench.trim(NOW_MS + 1_000);
  bench.trim(NOW_MS + HOUR_MS - 1);
  assert.deepEqual(
    [bench.entries.count, stored()],
    [100, 102],
    "a segment is not written for each",
  );
  bench.trim(NOW_MS + HOUR_MS);
  assert.equal(stored(), 100);
  assert.deepEqual(bench.all(), all.slice(5).map(showEntry));
});

Deno.test("Entries keeps nothing of an earlier program's that is past its time", disk, () => {
  const retentionMs = 24 * HOUR_MS;
  using bench = new Bench({ maxEntries: 100_000, retentionMs });
  const all = numbered(9_000, NOW_MS);
  bench.db.exec(ROWS_SCHEMA);
  writeRows(bench.db, all);
  bench.reopen();
  const kept = all.filter(({ timeMs }) => timeMs >= all[5_000].timeMs);
  bench.trim(all[5_000].timeMs + retentionMs);
  assert.deepEqual(bench.all(), kept.map(showEntry));
  const stored = () =>
    Number(bench.db.prepare("SELECT coalesce(sum(count), 0) AS n FROM segments").get()?.n);
  assert.ok(stored() < kept.length + SEGMENT_ENTRIES, `${stored()} are in the file`);
  assert.equal(bench.entries.count, kept.length);
  bench.reopen();
  assert.equal(bench.entries.count, kept.length);
  bench.trim(all[8_999].timeMs + 2 * retentionMs);
  assert.deepEqual([bench.entries.count, stored(), bench.orphans()], [0, 0, 0]);
});

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

Deno.test("Entries trusts what is known of texts only as long as it holds", disk, () => {
  const prng = new Prng(seedFromEnv());
  using bench = new Bench({ maxEntries: 3_000, retentionMs: 24 * HOUR_MS });
  // Few at a time, and others with time: texts go, and come again when their numbers are others'.
  const texts = new Map<string, KeptText>();
  const kept = (text: string) => {
    const known = texts.get(text) ?? newText(text);
    texts.set(text, known);
    return known;
  };
  const templates = fakeEntries(prng, 400, NOW_MS);
  const all: StoredEntry[] = [];
  let timeMs = NOW_MS;
  for (let round = 0; round < 120; round++) {
    timeMs += 60_000;
    const around = Math.floor(prng.int(4) * 100);
    const batch = Array.from({ length: prng.int(500) }, () => {
      const stored = { ...templates[around + prng.int(100)], timeMs };
      const { name, client, kind, rule, answers } = stored;
      return { ...stored, texts: [name, client, kind, rule, answers].map(kept) };
    });
    const isUndone = prng.chance(0.2);
    bench.db.exec("BEGIN");
    bench.entries.add(batch);
    if (prng.chance(0.5)) bench.entries.trim(timeMs);
    bench.db.exec(isUndone ? "ROLLBACK" : "COMMIT");
    if (isUndone) bench.entries.undo();
    else all.push(...batch);
    if (prng.chance(0.1)) bench.reopen();
    if (prng.chance(0.1)) {
      // As at an upgrade.
      using other = openDatabase(bench.directory, NOW_MS);
      const entries = new Entries(storedLog(other), bench.options);
      const more = Array.from({ length: 300 }, () => ({ ...prng.pick(templates), timeMs }));
      other.exec("BEGIN");
      entries.add(more);
      while (entries.trim(timeMs));
      other.exec("COMMIT");
      all.push(...more);
    }
    if (prng.chance(0.3)) bench.trim(timeMs);
    if (round % 10 === 9) {
      bench.orphans();
      const shown = bench.all();
      assert.deepEqual(shown, all.slice(-shown.length).map(showEntry));
      assert.ok(shown.length >= Math.min(all.length, 3_000));
    }
  }
});
