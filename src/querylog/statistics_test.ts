// Goal: reports say what was counted, whatever was written and read again in between. Method: random
// entries over days in a real file, against counts over all of them.
import assert from "node:assert/strict";
import { Prng, seedFromEnv } from "../../tests/prng.ts";
import { OUTCOME_NAMES } from "../logqueue/mod.ts";
import { openDatabase } from "./database.ts";
import { clientKey, showEntry, type StoredEntry } from "./entry.ts";
import { LATENCY_COUNTS, latencyBucket, latencyOf } from "./latency.ts";
import { Entries } from "./entries.ts";
import { type CountsQuery, LogCounts } from "./log_counts.ts";
import { fakeEntries, NOW_MS } from "./fakes.ts";
import type { LogStatistics } from "./log_statistics.ts";
import { OpenShares } from "./open_shares.ts";
import { storedLog } from "./segments.ts";
import { Statistics } from "./statistics.ts";

const disk = { permissions: { read: true, write: true } } as const;
const HOUR_MS = 3_600_000;

/** What counting every entry gives. */
function naive(
  entries: readonly StoredEntry[],
  hours: number,
  nowMs: number,
  stepMs = HOUR_MS,
): LogStatistics {
  const endMs = (Math.floor(nowMs / stepMs) + 1) * stepMs;
  const between = (fromMs: number, toMs: number) =>
    entries.filter(({ timeMs }) => timeMs >= fromMs && timeMs < toMs);
  const startMs = endMs - hours * HOUR_MS;
  const within = between(startMs, endMs);
  const latency = (some: readonly StoredEntry[]) => {
    const counts = Array.from({ length: LATENCY_COUNTS }, () => 0);
    for (const { durationUs } of some) counts[latencyBucket(durationUs)]++;
    return latencyOf(counts);
  };
  const counts = (some: readonly StoredEntry[]) =>
    Object.fromEntries(
      OUTCOME_NAMES.map((name, i) => [name, some.filter(({ outcome }) => outcome === i).length]),
    ) as LogStatistics["outcomes"];
  const totals = (some: readonly StoredEntry[]) => ({
    total: some.length,
    outcomes: counts(some),
    latency: latency(some),
  });
  const top = (names: readonly string[]) =>
    [...Map.groupBy(names.filter((name) => name !== ""), (name) => name)]
      .map(([name, all]) => ({ name, count: all.length }))
      .sort((a, b) => b.count - a.count || (a.name < b.name ? -1 : 1)).slice(0, 100);
  const blocked = within.filter((entry) => showEntry(entry).outcome === "blocked");
  const steps = Array.from({ length: hours * HOUR_MS / stepMs }, (_, i) => startMs + i * stepMs);
  const asked = Map.groupBy(within, (entry) => showEntry(entry).upstream);
  asked.delete(null);
  return {
    ...totals(within),
    series: steps.map((timeMs) => {
      const some = within.filter((one) => one.timeMs >= timeMs && one.timeMs < timeMs + stepMs);
      return { time: new Date(timeMs).toISOString(), ...counts(some), latency: latency(some) };
    }),
    previous: 2 * hours > 720 ? null : totals(between(startMs - hours * HOUR_MS, startMs)),
    top: {
      names: top(within.map(({ name }) => name)),
      blocked: top(blocked.map(({ name }) => name)),
      clients: top(within.map(({ client }) => clientKey(client, false))),
      blocked_clients: top(blocked.map(({ client }) => clientKey(client, false))),
      lists: top(blocked.map((entry) => showEntry(entry).list ?? "")),
    },
    upstreams: [...asked].sort(([a, x], [b, y]) =>
      y.length - x.length || (String(a) < String(b) ? -1 : 1)
    ).map(([address, all]) => ({
      address: address!,
      series: steps.map((timeMs) => {
        const some = all.filter((one) => one.timeMs >= timeMs && one.timeMs < timeMs + stepMs);
        const { p50_ms, p95_ms } = latency(some);
        const failures = some.filter((one) => showEntry(one).outcome === "failed").length;
        const time = new Date(timeMs).toISOString();
        return { time, queries: some.length, failures, p50_ms, p95_ms };
      }),
    })),
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
    assert.ok(Object.values(top).every(({ length }) => length === 0));
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

/** Runs work that is done in pieces; `between` comes behind each. */
function inOne<T>(pieces: Generator<undefined, T>, between: () => void = () => {}): T {
  for (;;) {
    const { done, value } = pieces.next();
    if (done) return value;
    between();
  }
}

function shares(db: ReturnType<typeof openDatabase>): OpenShares {
  const retentionMs = 400 * 24 * HOUR_MS;
  return new OpenShares(storedLog(db), {
    maxEntries: 1,
    retentionMs,
    anonymize: false,
    timeZone: "UTC",
  });
}

function addTo(db: ReturnType<typeof openDatabase>, entries: readonly StoredEntry[]): void {
  db.exec("BEGIN");
  new Entries(storedLog(db), { maxEntries: 1_000_000, retentionMs: 400 * 86_400_000 }).add(entries);
  db.exec("COMMIT");
}

Deno.test("LogCounts counts by steps what was counted when it came, or is in the log", disk, () => {
  const prng = new Prng(seedFromEnv());
  const directory = Deno.makeTempDirSync();
  const db = openDatabase(directory, NOW_MS);
  try {
    const entries = fakeEntries(prng, 3_000, NOW_MS - 3 * HOUR_MS);
    const nowMs = entries[2_999].timeMs;
    const kept = new Statistics(db);
    const [early, late] = [entries.slice(0, 2_900), entries.slice(2_900)];
    addTo(db, early);
    for (const entry of early) kept.add(entry);
    kept.save(nowMs);
    const assertRight = (statistics: Statistics, what: string, between?: () => void) => {
      const counts = new LogCounts(storedLog(db), statistics, shares(db), false);
      for (const [hours, stepMs] of [[1, 60_000], [4, 600_000], [24, 60_000]] as const) {
        const pieces = counts.count({ hours, stepMs }, nowMs);
        const want = naive(entries, hours, nowMs, stepMs);
        assert.deepEqual(inOne(pieces, between), want, `${what}, ${hours} hours`);
      }
    };
    // Another program had the log: it knew hours alone, the present one among them.
    db.exec("DELETE FROM minutes");
    const statistics = new Statistics(db);
    let isAdded = false;
    const add = () => {
      if (isAdded) return;
      isAdded = true;
      addTo(db, late);
      for (const entry of late) statistics.add(entry);
    };
    assertRight(statistics, "counted anew while more come", add);
    add();
    assertRight(statistics, "from memory");
    statistics.save(nowMs);
    assertRight(new Statistics(db), "from the file");
    statistics.forgetMinutes({ fromMs: nowMs - 2 * HOUR_MS, shiftMs: 0 });
    assertRight(statistics, "behind a clock that was set");
    // What the log has not any more is counted all the same; the tops of a part of an hour are guessed.
    statistics.save(nowMs);
    db.exec("DELETE FROM segments");
    const counts = new LogCounts(storedLog(db), statistics, shares(db), false);
    const want = naive(entries, 4, nowMs, 600_000);
    const { top, ...got } = inOne(counts.count({ hours: 4, stepMs: 600_000 }, nowMs));
    assert.deepEqual({ ...got, top: want.top }, want);
    const sum = top.clients.reduce((all, { count }) => all + count, 0);
    const wantSum = want.top.clients.reduce((all, { count }) => all + count, 0);
    assert.ok(Math.abs(sum - wantSum) <= 0.05 * wantSum + 10, `${sum}, not ${wantSum}`);
  } finally {
    db.close();
    Deno.removeSync(directory, { recursive: true });
  }
});

Deno.test("LogCounts counts for some clients what the log still has", disk, () => {
  const prng = new Prng(seedFromEnv());
  const directory = Deno.makeTempDirSync();
  const db = openDatabase(directory, NOW_MS);
  try {
    const entries = fakeEntries(prng, 3_000, NOW_MS - 3 * HOUR_MS);
    const nowMs = entries[2_999].timeMs;
    addTo(db, entries);
    const counts = new LogCounts(storedLog(db), new Statistics(db), shares(db), false);
    const count = (query: CountsQuery) => inOne(counts.count(query, nowMs));
    const of = (test: (entry: ReturnType<typeof showEntry>) => boolean) =>
      naive(entries.filter((entry) => test(showEntry(entry))), 2, nowMs, 600_000);
    const query = { hours: 2, stepMs: 600_000 };
    const clients = ["192.0.2.0/28", "tablet"];
    const isOne = (client: string | null) => client === "192.0.2.1" || client === "192.0.2.10";
    assert.deepEqual(
      count({ ...query, clients }),
      of(({ client, client_id }) => isOne(client) || client_id === "tablet"),
    );
    assert.deepEqual(count({ ...query, group: "gr_2" }), of(({ group }) => group === "gr_2"));
    assert.deepEqual(count({ ...query, clients: ["nobody"] }), of(() => false));
  } finally {
    db.close();
    Deno.removeSync(directory, { recursive: true });
  }
});

Deno.test(
  "LogCounts tells who asked, and of who was counted only what has come since",
  disk,
  () => {
    const prng = new Prng(seedFromEnv());
    const directory = Deno.makeTempDirSync();
    const db = openDatabase(directory, NOW_MS);
    try {
      const entries = fakeEntries(prng, 3_000, NOW_MS - 3 * HOUR_MS);
      const counts = new LogCounts(storedLog(db), new Statistics(db), shares(db), false);
      for (
        const [from, to] of [[0, 1_000], [1_000, 1_000], [1_000, 2_990], [2_990, 3_000]] as const
      ) {
        addTo(db, entries.slice(from, to));
        assertSeen(counts, entries.slice(0, to));
      }
      counts.forget();
      assertSeen(counts, entries);
    } finally {
      db.close();
      Deno.removeSync(directory, { recursive: true });
    }
  },
);

function assertSeen(counts: LogCounts, entries: readonly StoredEntry[]): void {
  const nowMs = entries.at(-1)!.timeMs;
  const fromMs = (Math.floor(nowMs / HOUR_MS) - 1) * HOUR_MS;
  const all = entries.map(showEntry).filter(({ client }) => client !== null);
  const within = all.filter(({ time }) => Date.parse(time) >= fromMs);
  const want = [...Map.groupBy(within, ({ client }) => client!)].map(([address, some]) => ({
    address,
    first_seen: all.find(({ client }) => client === address)!.time,
    last_seen: some.at(-1)!.time,
    queries: some.length,
    blocked: some.filter(({ outcome }) => outcome === "blocked").length,
  }));
  const byAddress = (a: { address: string }, b: { address: string }) =>
    a.address < b.address ? -1 : 1;
  const seen = inOne(counts.seen(2, nowMs));
  assert.deepEqual(seen.toSorted(byAddress), want.toSorted(byAddress));
}

Deno.test("latencyOf() reads percentiles from counts", { permissions: "none" }, () => {
  const counts = Array.from({ length: LATENCY_COUNTS }, () => 0);
  assert.deepEqual(latencyOf(counts), { p50_ms: null, p95_ms: null, p99_ms: null });
  for (let us = 10; us <= 100_000; us += 10) counts[latencyBucket(us)]++;
  const { p50_ms, p95_ms, p99_ms } = latencyOf(counts);
  assert.deepEqual([p50_ms, p95_ms, p99_ms], [50, 95, 99]);
  counts.fill(0);
  counts[latencyBucket(4_000_000_000)]++;
  assert.equal(latencyOf(counts).p50_ms, 5_000, "there is no bound above");
});

Deno.test("Statistics reads hours that an earlier version counted", disk, () => {
  const directory = Deno.makeTempDirSync();
  const db = openDatabase(directory, NOW_MS);
  try {
    const hour = Math.floor(NOW_MS / HOUR_MS);
    const top = { names: [["a.example", 3]], blocked: [], clients: [["Tablet", 3]] };
    const write = db.prepare("INSERT INTO hours VALUES (?, ?, ?)");
    write.run(hour - 1, JSON.stringify([3, 0, 0, 0, 0, 0, 0, 0, 0]), JSON.stringify(top));
    const statistics = new Statistics(db);
    const [entry] = fakeEntries(new Prng(1), 1, NOW_MS);
    statistics.add({ ...entry, timeMs: NOW_MS - HOUR_MS });
    const { total, top: found, latency } = statistics.report(2, NOW_MS);
    assert.deepEqual([total, found.clients[0].name], [4, "Tablet"]);
    assert.ok(latency.p50_ms !== null);
  } finally {
    db.close();
    Deno.removeSync(directory, { recursive: true });
  }
});
