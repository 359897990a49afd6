// Goal: what is told of a client or a day is what was asked, whatever the clock, the calendar and the
// program did meanwhile, and no entry is read for it. Method: the log over fake queues and clocks, sums
// by hand, and every statement of the file written down with what it returned.
import assert from "node:assert/strict";
import { figuresMemory, queueMemory, QueueWriter } from "../logqueue/mod.ts";
import { openDatabase } from "./database.ts";
import { type FakeQuery, note, whole } from "./fakes.ts";
import { LocalDays } from "./local_days.ts";
import type { HourSeries } from "./client_hours.ts";
import type { CountsQuery, SeriesQuery } from "./log_counts.ts";
import type { LogStatistics } from "./log_statistics.ts";
import type { QueryLogOptions } from "./options.ts";
import { QueryLogStore } from "./query_log.ts";

const disk = { permissions: { read: true, write: true } } as const;
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** A Friday, some days before clocks are set forward in Berlin. */
const START_MS = Date.UTC(2026, 2, 27, 10);

/** A log whose clock goes when it is told to. */
class Bench implements Disposable {
  readonly directory = Deno.makeTempDirSync();
  readonly queue = queueMemory();
  readonly writer = new QueueWriter(this.queue);
  nowMs = START_MS;
  /** How far the system's clock is from the right one. */
  setMs = 0;
  /** Statements and the rows that they returned since it was emptied. */
  readonly read: { readonly sql: string; readonly rows: number }[] = [];
  store: QueryLogStore;

  constructor(readonly options: Partial<QueryLogOptions> = {}) {
    this.store = this.open();
  }

  open(): QueryLogStore {
    return new QueryLogStore({
      directory: `${this.directory}/querylog`,
      maxEntries: 1_000_000,
      retentionMs: 30 * DAY_MS,
      anonymize: false,
      timeZone: "Europe/Berlin",
      releasedMs: 0,
      upstreams: [],
      exports: [],
      ...this.options,
      queues: [this.queue],
      figures: figuresMemory(),
    }, {
      wallMs: () => this.nowMs + this.setMs,
      monotonicMs: () => this.nowMs,
      onProblem: (problem) => assert.equal(problem, null),
      onLive: () => {},
      open: (directory, nowMs) => this.#watched(openDatabase(directory, nowMs)),
    });
  }

  #watched(db: ReturnType<typeof openDatabase>): ReturnType<typeof openDatabase> {
    const prepare = db.prepare.bind(db);
    db.prepare = (sql: string) => {
      const statement = prepare(sql);
      const [all, get] = [statement.all.bind(statement), statement.get.bind(statement)];
      const noted = <T>(rows: T, count: number) => (this.read.push({ sql, rows: count }), rows);
      statement.all = ((...args: Parameters<typeof all>) => {
        const rows = all(...args);
        return noted(rows, rows.length);
      }) as typeof all;
      statement.get = ((...args: Parameters<typeof get>) => {
        const row = get(...args);
        return noted(row, row === undefined ? 0 : 1);
      }) as typeof get;
      return statement;
    };
    return db;
  }

  /** Asks, and lets time pass until that is written. */
  ask(count: number, query: FakeQuery = {}): void {
    for (let i = 0; i < count; i++) {
      note(this.writer, { timeMs: this.nowMs + this.setMs, ...query });
      if (i % 1_000 === 999) this.pass(1_000);
    }
    this.pass(20_000);
  }

  pass(ms: number): void {
    const endMs = this.nowMs + ms;
    while (this.nowMs < endMs) this.nowMs += Math.min(this.store.turn().ms, endMs - this.nowMs);
  }

  count(query: CountsQuery): LogStatistics {
    return whole(this.store.counts(query));
  }

  series(query: SeriesQuery): HourSeries {
    return whole(this.store.series(query));
  }

  days(count: number, more: Partial<CountsQuery> = {}): Record<string, number> {
    const { series } = this.count({ hours: count * 24, stepMs: DAY_MS, ...more });
    const found = series.map(({ date, time: _, latency: __, ...counts }) =>
      [date!, Object.values(counts).reduce((sum, n) => sum + n, 0)] as const
    );
    return Object.fromEntries(found.filter(([, total]) => total > 0));
  }

  [Symbol.dispose](): void {
    this.store.close();
    Deno.removeSync(this.directory, { recursive: true });
  }
}

Deno.test("a client's figures are read from its hours, however many entries it has", disk, () => {
  using bench = new Bench();
  for (let hour = 0; hour < 3; hour++) {
    bench.ask(3_000, { address: "192.0.2.7", name: `n${hour}.example` });
    bench.ask(20, { address: "192.0.2.8", outcome: "blocked", rule: "rules\t||ads.example^" });
    bench.nowMs = START_MS + (hour + 1) * HOUR_MS;
  }
  const query = { hours: 24, stepMs: HOUR_MS };
  for (const client of ["192.0.2.7", "192.0.2.8"]) {
    bench.read.length = 0;
    const { total, top } = bench.count({ ...query, clients: [client] });
    assert.equal(total, client.endsWith("7") ? 9_000 : 60);
    assert.deepEqual(top.clients, [{ name: client, count: total }]);
    assert.equal(top.names.length, client.endsWith("7") ? 3 : 1);
    const rows = bench.read.reduce((sum, one) => sum + one.rows, 0);
    assert.ok(rows <= 2 * 24 + 10, `${rows} rows`);
    const entries = bench.read.filter(({ sql }) => /columns FROM/.test(sql));
    assert.deepEqual(entries, []);
  }
});

Deno.test("hours that an earlier program wrote are counted of the log, once", disk, () => {
  using bench = new Bench();
  bench.ask(50, { address: "192.0.2.7", clientName: "Tablet", group: "gr_2" });
  const query = { hours: 2, stepMs: HOUR_MS, clients: ["tablet"] };
  const want = bench.count(query);
  assert.equal(want.total, 50);
  bench.store.close();
  const db = openDatabase(`${bench.directory}/querylog`, bench.nowMs);
  for (const table of ["sharers", "client_hours", "client_hours_since", "client_days"]) {
    db.exec(`DROP TABLE ${table}`);
  }
  db.close();
  bench.store = bench.open();
  bench.ask(7, { address: "192.0.2.7", clientName: "Tablet", group: "gr_2" });
  assert.equal(bench.count(query).total, 57);
  assert.equal(bench.count({ hours: 2, stepMs: 600_000, group: "gr_2" }).total, 57);
  bench.ask(1, { address: "192.0.2.7", clientName: "Tablet", group: "gr_2" });
  bench.read.length = 0;
  assert.equal(bench.count(query).total, 58);
  const read = bench.read.filter(({ sql, rows }) => /columns FROM/.test(sql) && rows > 0);
  assert.deepEqual(read, []);
});

Deno.test("clients' queries by the hour are told without an entry that is read", disk, () => {
  using bench = new Bench();
  const ask = (...addresses: string[]) => {
    for (const address of addresses) bench.ask(3, { address });
    bench.ask(2, { address: "198.51.100.9", clientId: "phone", clientName: "Phone" });
    bench.nowMs = (Math.floor(bench.nowMs / HOUR_MS) + 1) * HOUR_MS;
  };
  ask("192.0.2.7", "192.0.2.8");
  ask("192.0.2.8", "2001:db8::1");
  ask();
  ask("192.0.2.7", "192.0.2.7", "203.0.113.1");
  // A network has those of its addresses that are nobody else's.
  const clients = [["192.0.2.7"], ["192.0.2.0/24", "2001:db8::/64"], ["phone"], ["192.0.2.99"]];
  bench.read.length = 0;
  const want = {
    since: "2026-03-27T10:00:00.000Z",
    active: [3, 3, 1, 3, 0],
    counts: [[3, 0, 0, 6, 0], [3, 6, 0, 0, 0], [2, 2, 2, 2, 0], [0, 0, 0, 0, 0]],
  };
  assert.deepEqual(bench.series({ clients, hours: 5 }), want);
  assert.deepEqual(bench.read.filter(({ sql }) => /columns FROM/.test(sql)), []);
  assert.deepEqual(bench.series({ clients, hours: 2 }).counts[0], [6, 0]);
  bench.store.close();
  bench.store = bench.open();
  assert.deepEqual(bench.series({ clients, hours: 5 }), want);
});

Deno.test("hours that were not counted by client are not told as empty", disk, () => {
  using bench = new Bench();
  bench.ask(5, { address: "192.0.2.7" });
  bench.store.close();
  const db = openDatabase(`${bench.directory}/querylog`, bench.nowMs);
  for (const table of ["sharers", "client_hours", "client_hours_since", "client_days"]) {
    db.exec(`DROP TABLE ${table}`);
  }
  db.close();
  bench.store = bench.open();
  bench.nowMs += HOUR_MS;
  bench.ask(7, { address: "192.0.2.7" });
  bench.read.length = 0;
  const { since, active, counts } = bench.series({ clients: [["192.0.2.7"]], hours: 24 });
  assert.deepEqual([since, active, counts], ["2026-03-27T11:00:00.000Z", [1], [[7]]]);
  assert.deepEqual(bench.read.filter(({ sql }) => /columns FROM/.test(sql)), []);
});

Deno.test("many addresses of one query each push nobody out who asks more", disk, () => {
  using bench = new Bench();
  bench.ask(5, { address: "192.0.2.7" });
  for (let i = 0; i < 2_000; i++) {
    note(bench.writer, {
      timeMs: bench.nowMs,
      address: `198.51.${100 + (i >> 8)}.${i & 255}`,
    });
  }
  bench.pass(30_000);
  bench.ask(5, { address: "192.0.2.7" });
  const own = { clients: ["192.0.2.7"] };
  assert.equal(bench.count({ hours: 1, stepMs: HOUR_MS, ...own }).total, 10);
  assert.deepEqual(bench.days(1, own), { "2026-03-27": 10 });
  assert.deepEqual(bench.days(1), { "2026-03-27": 2_010 });
});

Deno.test("days are those of the calendar, for a year, and stay when entries go", disk, () => {
  using bench = new Bench({ retentionMs: DAY_MS });
  const at = (text: string) => bench.nowMs = Date.parse(text);
  at("2026-03-27T22:59:00Z"); // 23:59 in Berlin, in winter.
  bench.ask(1, { address: "192.0.2.7" });
  at("2026-03-27T23:01:00Z");
  bench.ask(2, { address: "192.0.2.7", group: "gr_2" });
  at("2026-03-29T21:59:00Z"); // 23:59 in summer: the day has had 23 hours.
  bench.ask(4, { address: "192.0.2.8" });
  at("2026-03-29T22:01:00Z");
  bench.ask(8, { address: "192.0.2.8", outcome: "blocked" });
  const want = { "2026-03-27": 1, "2026-03-28": 2, "2026-03-29": 4, "2026-03-30": 8 };
  assert.deepEqual(bench.days(30), want);
  assert.deepEqual(bench.days(30, { clients: ["192.0.2.8"] }), {
    ...{ "2026-03-29": 4, "2026-03-30": 8 },
  });
  assert.deepEqual(bench.days(30, { group: "gr_2" }), { "2026-03-28": 2 });
  const { top, series, previous, total } = bench.count({ hours: 4 * 24, stepMs: DAY_MS });
  assert.equal(total, 15);
  assert.deepEqual(top.clients.map(({ count }) => count), [12, 3]);
  assert.deepEqual(top.blocked_clients, [{ name: "192.0.2.8", count: 8 }]);
  assert.deepEqual(series.map(({ time }) => time), [
    "2026-03-26T23:00:00.000Z",
    "2026-03-27T23:00:00.000Z",
    "2026-03-28T23:00:00.000Z",
    "2026-03-29T22:00:00.000Z",
  ]);
  assert.equal(previous?.total, 0);
  bench.store.close();
  bench.store = bench.open();
  assert.deepEqual(bench.days(30), want, "by the next program");
  at("2027-01-15T12:00:00Z");
  bench.ask(1);
  assert.deepEqual(bench.days(366), { ...want, "2027-01-15": 1 }, "entries are gone");
  at("2027-03-28T22:30:00Z"); // The 29th of March: a year ends with the 28th of the former one.
  bench.ask(1);
  assert.deepEqual(bench.days(366), {
    "2026-03-29": 4,
    "2026-03-30": 8,
    "2027-01-15": 1,
    "2027-03-29": 1,
  });
  assert.equal(bench.count({ hours: 366 * 24, stepMs: DAY_MS }).previous, null);
});

Deno.test("what a wrong clock counted is told of the right hours and days", disk, async (t) => {
  const own = { clients: ["192.0.2.7"] };
  const hours = (bench: Bench) =>
    bench.count({ hours: 24, stepMs: HOUR_MS, ...own }).series
      .map(({ forwarded }) => forwarded).filter((count) => count > 0);
  await t.step("a clock that is years ahead for a while", () => {
    using bench = new Bench();
    bench.ask(1, { address: "192.0.2.7" });
    bench.setMs = 73 * 365 * DAY_MS;
    bench.nowMs += 2 * HOUR_MS;
    bench.ask(2, { address: "192.0.2.7" });
    bench.pass(5 * HOUR_MS);
    bench.setMs = 0;
    bench.pass(10_000);
    assert.deepEqual(bench.days(3, own), { "2026-03-27": 3 });
    assert.deepEqual(hours(bench), [1, 2]);
    bench.ask(4, { address: "192.0.2.7" });
    assert.deepEqual(bench.days(3), { "2026-03-27": 7 });
    assert.deepEqual(hours(bench), [1, 2, 4]);
  });
  await t.step("one that was behind from the start", () => {
    using bench = new Bench();
    bench.ask(1, { address: "192.0.2.7" });
    bench.store.close();
    bench.nowMs += 2 * DAY_MS;
    bench.setMs = -300 * DAY_MS;
    bench.store = bench.open();
    bench.ask(2, { address: "192.0.2.7" });
    bench.setMs = 0;
    bench.pass(120_000);
    assert.deepEqual(bench.days(3, own), { "2026-03-27": 1, "2026-03-29": 2 });
    assert.deepEqual(hours(bench), [2]);
    bench.ask(4, { address: "192.0.2.7" });
    assert.deepEqual(bench.days(3), { "2026-03-27": 1, "2026-03-29": 6 });
  });
});

Deno.test("without entries clients are counted, and no name of theirs is kept", disk, () => {
  using bench = new Bench({ maxEntries: 0 });
  bench.ask(3, { address: "192.0.2.7", name: "secret.example" });
  const { total, top } = bench.count({ hours: 1, stepMs: HOUR_MS, clients: ["192.0.2.7"] });
  assert.equal(total, 3);
  assert.deepEqual(top.names, []);
  assert.deepEqual(bench.days(1, { clients: ["192.0.2.7"] }), { "2026-03-27": 3 });
});

Deno.test("LocalDays knows when days begin", { permissions: "none" }, async (t) => {
  const cases = [
    ["UTC", "2026-01-02T00:00:00Z", "2026-01-03T00:00:00Z"],
    ["Asia/Kolkata", "2026-01-01T18:30:00Z", "2026-01-02T18:30:00Z"],
    ["America/New_York", "2026-03-08T05:00:00Z", "2026-03-09T04:00:00Z"],
    ["America/New_York", "2026-11-01T04:00:00Z", "2026-11-02T05:00:00Z"],
    // Clocks went from midnight to one.
    ["America/Sao_Paulo", "2018-11-04T03:00:00Z", "2018-11-05T02:00:00Z"],
    ["Pacific/Auckland", "2026-01-01T11:00:00Z", "2026-01-02T11:00:00Z"],
  ] as const;
  for (const [zone, start, end] of cases) {
    await t.step(`${zone} ${start}`, () => {
      const days = new LocalDays(zone);
      const [startMs, endMs] = [start, end].map((text) => Date.parse(text));
      const day = days.dayOf(startMs);
      assert.deepEqual([days.startMs(day), days.startMs(day + 1)], [startMs, endMs]);
      assert.deepEqual(
        [days.dayOf(startMs - 1), days.dayOf(endMs - 1), days.dayOf(endMs)],
        [day - 1, day, day + 1],
      );
    });
  }
});
