// Goal: reports say what was counted, whatever was written and read again in between. Method: random
// entries over days in a real file, against counts over all of them.
import assert from "node:assert/strict";
import { Prng, seedFromEnv } from "../../tests/prng.ts";
import { OUTCOME_NAMES } from "../logqueue/mod.ts";
import { openDatabase } from "./database.ts";
import { clientLabel, showEntry, type StoredEntry } from "./entry.ts";
import { fakeEntries, NOW_MS } from "./fakes.ts";
import { type LogStatistics, Statistics } from "./statistics.ts";

const disk = { permissions: { read: true, write: true } } as const;
const HOUR_MS = 3_600_000;

/** What counting every entry gives. */
function naive(entries: readonly StoredEntry[], hours: number, nowMs: number): LogStatistics {
  const last = Math.floor(nowMs / HOUR_MS);
  const hourOf = ({ timeMs }: StoredEntry) => Math.floor(timeMs / HOUR_MS);
  const within = entries.filter((entry) => hourOf(entry) > last - hours && hourOf(entry) <= last);
  const counts = (some: readonly StoredEntry[]) =>
    Object.fromEntries(
      OUTCOME_NAMES.map((name, i) => [name, some.filter(({ outcome }) => outcome === i).length]),
    ) as LogStatistics["outcomes"];
  const top = (names: readonly string[]) =>
    [...Map.groupBy(names, (name) => name)]
      .map(([name, all]) => ({ name, count: all.length }))
      .sort((a, b) => b.count - a.count || (a.name < b.name ? -1 : 1)).slice(0, 100);
  return {
    total: within.length,
    outcomes: counts(within),
    series: Array.from({ length: hours }, (_, i) => ({
      time: new Date((last - hours + 1 + i) * HOUR_MS).toISOString(),
      ...counts(within.filter((entry) => hourOf(entry) === last - hours + 1 + i)),
    })),
    top: {
      names: top(within.map(({ name }) => name)),
      blocked: top(
        within.filter((entry) => showEntry(entry).outcome === "blocked").map(({ name }) => name),
      ),
      clients: top(within.map(({ client }) => clientLabel(client)).filter((name) => name !== "")),
    },
  };
}

Deno.test("Statistics reports what was counted, from memory and from the file", disk, () => {
  const prng = new Prng(seedFromEnv());
  const directory = Deno.makeTempDirSync();
  const db = openDatabase(directory, NOW_MS);
  try {
    // Some 40 a day for 100 days: 30 are kept.
    const entries = fakeEntries(prng, 4_000, NOW_MS).map((entry, i) => ({
      ...entry,
      timeMs: NOW_MS + i * 0.6 * HOUR_MS,
    }));
    let statistics = new Statistics(db);
    for (const [i, entry] of entries.entries()) {
      statistics.add(entry);
      if (prng.chance(0.2)) statistics.save(entry.timeMs);
      if (prng.chance(0.02)) {
        statistics.save(entry.timeMs);
        statistics = new Statistics(db); // Another process.
      }
      if (i % 200 !== 199) continue;
      for (const hours of [1, 2, 24, 25, 168, 720, 1 + prng.int(720)]) {
        const want = naive(entries.slice(0, i + 1), hours, entry.timeMs);
        assert.deepEqual(statistics.report(hours, entry.timeMs), want, `${hours} hours`);
      }
    }
    statistics.save(entries[3_999].timeMs);
    const hours = db.prepare("SELECT count(*) AS n FROM hours").get();
    assert.ok(Number(hours?.n) <= 721, `${hours?.n} hours are kept`);
  } finally {
    db.close();
    Deno.removeSync(directory, { recursive: true });
  }
});

Deno.test("Statistics counts by outcome what the log had no room for", disk, () => {
  const directory = Deno.makeTempDirSync();
  const db = openDatabase(directory, NOW_MS);
  try {
    const statistics = new Statistics(db);
    statistics.addDropped([0, 0, 5, 0, 2], NOW_MS);
    const { total, outcomes, top } = statistics.report(1, NOW_MS);
    assert.deepEqual([total, outcomes.cached, outcomes.blocked], [7, 5, 2]);
    assert.deepEqual(top, { names: [], blocked: [], clients: [] });
  } finally {
    db.close();
    Deno.removeSync(directory, { recursive: true });
  }
});

Deno.test("Statistics keeps the tops of a busy hour small", disk, () => {
  const directory = Deno.makeTempDirSync();
  const db = openDatabase(directory, NOW_MS);
  try {
    const prng = new Prng(seedFromEnv());
    const statistics = new Statistics(db);
    const [entry] = fakeEntries(prng, 1, NOW_MS);
    for (let i = 0; i < 20_000; i++) {
      const name = i % 4 === 0 ? "busy.example" : `random${i}.example`;
      statistics.add({ ...entry, name, timeMs: NOW_MS });
    }
    statistics.save(NOW_MS);
    const { top } = new Statistics(db).report(1, NOW_MS);
    assert.deepEqual(top.names[0], { name: "busy.example", count: 5_000 });
    assert.equal(top.names.length, 100);
    const row = db.prepare("SELECT length(top) AS n FROM hours").get();
    assert.ok(Number(row?.n) < 30_000, `${row?.n} bytes`);
  } finally {
    db.close();
    Deno.removeSync(directory, { recursive: true });
  }
});

Deno.test("Statistics.move() counts the hours of a wrong clock where they belong", disk, () => {
  const directory = Deno.makeTempDirSync();
  const db = openDatabase(directory, NOW_MS);
  try {
    const statistics = new Statistics(db);
    const [entry] = fakeEntries(new Prng(1), 1, NOW_MS);
    const at = (timeMs: number, name: string) => ({ ...entry, timeMs, name });
    const yearMs = 365 * 24 * HOUR_MS;
    const before = [at(NOW_MS - 2 * HOUR_MS, "a.example"), at(NOW_MS, "b.example")];
    const ahead = [at(NOW_MS + yearMs + HOUR_MS, "b.example"), at(NOW_MS + yearMs, "c.example")];
    for (const one of [...before, ...ahead]) statistics.add(one);
    statistics.save(null);
    db.exec("BEGIN");
    statistics.move({ fromMs: NOW_MS + yearMs - HOUR_MS, shiftMs: -yearMs });
    db.exec("COMMIT");
    const right = ahead.map((one) => ({ ...one, timeMs: one.timeMs - yearMs }));
    const nowMs = NOW_MS + HOUR_MS;
    const want = naive([...before, ...right], 720, nowMs);
    assert.deepEqual(statistics.report(720, nowMs), want);
    assert.deepEqual(new Statistics(db).report(720, nowMs), want);
    // And where it was behind, the other way.
    statistics.move({ fromMs: NOW_MS - 3 * HOUR_MS, shiftMs: 40 * 24 * HOUR_MS });
    const later = [...before, ...right].map((one) => ({
      ...one,
      timeMs: one.timeMs + 40 * 24 * HOUR_MS,
    }));
    const thenMs = nowMs + 40 * 24 * HOUR_MS;
    assert.deepEqual(statistics.report(720, thenMs), naive(later, 720, thenMs));
  } finally {
    db.close();
    Deno.removeSync(directory, { recursive: true });
  }
});
