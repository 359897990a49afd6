// Goal: what is answered is in the log or counted as dropped, whatever happens to file and disk.
// Method: the real queues, a real file, a clock of the test; damage and a full disk are SQLite's own.
import assert from "node:assert/strict";
import type { DatabaseSync } from "node:sqlite";
import { Prng, seedFromEnv } from "../../tests/prng.ts";
import {
  figuresMemory,
  LogFigure,
  queueFigures,
  queueMemory,
  QueueWriter,
} from "../logqueue/mod.ts";
import { openDatabase } from "./database.ts";
import { type FakeQuery, note, NOW_MS } from "./fakes.ts";
import type { LiveBatch } from "./live_feed.ts";
import type { QueryLogOptions } from "./options.ts";
import { QueryLogStore } from "./query_log.ts";

const disk = { permissions: { read: true, write: true } } as const;

/** A log, its queues, and a clock that goes as the test says. */
class Bench {
  readonly directory = Deno.makeTempDirSync();
  readonly queues: SharedArrayBuffer[];
  readonly writers: QueueWriter[];
  readonly figures = figuresMemory();
  readonly problems: (string | null)[] = [];
  readonly live: LiveBatch[] = [];
  asked = 0;
  nowMs = NOW_MS;
  /** How far the system's clock is from the right one. */
  setMs = 0;
  db: DatabaseSync | null = null;
  store: QueryLogStore;

  constructor(readonly options: Partial<QueryLogOptions> = {}, queues = 1, queueBytes?: number) {
    this.queues = Array.from({ length: queues }, () => queueMemory(queueBytes));
    this.writers = this.queues.map((memory) => new QueueWriter(memory));
    this.store = this.open();
  }

  open(): QueryLogStore {
    const options = {
      directory: `${this.directory}/querylog`,
      maxEntries: 100_000,
      retentionMs: 86_400_000,
      anonymize: false,
      releasedMs: 0,
      upstreams: ["192.0.2.53:53"],
      exports: [],
      timeZone: "UTC",
      ...this.options,
      queues: this.queues,
      figures: this.figures,
    };
    return new QueryLogStore(options, {
      wallMs: () => this.nowMs + this.setMs,
      monotonicMs: () => this.nowMs,
      onProblem: (problem) => this.problems.push(problem),
      onLive: (batch) => this.live.push(batch),
      open: (directory, nowMs) => this.db = openDatabase(directory, nowMs),
    });
  }

  ask(query: FakeQuery = {}, queue = 0): void {
    this.asked++;
    note(this.writers[queue], { timeMs: this.nowMs + this.setMs, ...query });
  }

  /** Lets time pass, with the turns asked for. */
  pass(ms: number): void {
    const endMs = this.nowMs + ms;
    while (this.nowMs < endMs) this.nowMs += Math.min(this.store.turn().ms, endMs - this.nowMs);
  }

  names(limit = 1_000): string {
    return this.store.search({}, limit, null).entries.map(({ name }) => name.split(".")[0]).join(
      " ",
    );
  }

  get dropped(): number {
    const unreadable = new Float64Array(this.figures)[LogFigure.Unreadable];
    return this.queues.map((queue) => queueFigures(queue).dropped.reduce((a, b) => a + b))
      .reduce((a, b) => a + b, unreadable);
  }

  get entries(): number {
    return new Float64Array(this.figures)[LogFigure.Entries];
  }

  files(): string[] {
    return [...Deno.readDirSync(`${this.directory}/querylog`)].map(({ name }) => name).sort();
  }

  [Symbol.dispose](): void {
    this.store.close();
    Deno.removeSync(this.directory, { recursive: true });
  }
}

/** Keeps the log's lines of a test to itself. */
function quietly<T>(work: () => T): { result: T; lines: string } {
  const write = Deno.stderr.writeSync;
  let lines = "";
  Deno.stderr.writeSync = (bytes) => {
    lines += new TextDecoder().decode(bytes);
    return bytes.length;
  };
  try {
    return { result: work(), lines };
  } finally {
    Deno.stderr.writeSync = write;
  }
}

Deno.test("QueryLogStore answers with every query so far", disk, () => {
  using bench = new Bench();
  bench.ask({ name: "a.example" });
  assert.equal(bench.names(), "a");
  bench.ask({ name: "b.example", outcome: "blocked" });
  assert.equal(bench.store.statistics(1).outcomes.blocked, 1);
  assert.equal(bench.names(), "b a");
  assert.equal(bench.entries, 2);
});

Deno.test("QueryLogStore goes on writing behind a question that can't be answered", disk, () => {
  using bench = new Bench();
  bench.ask({ name: "a.example" });
  assert.equal(bench.names(), "a");
  // As of a mistake in who asks.
  assert.throws(() => bench.store.search({ name: 7 as unknown as string }, 9, null));
  assert.deepEqual(bench.problems.filter((problem) => problem !== null), []);
  bench.ask({ name: "b.example" });
  bench.pass(6_000);
  assert.equal(queueFigures(bench.queues[0]).waiting, 0);
  assert.equal(bench.names(), "b a");
});

Deno.test("QueryLogStore writes after a while, or when a queue fills up", disk, () => {
  using bench = new Bench({}, 1, 65_536);
  bench.ask();
  bench.pass(4_000);
  assert.equal(queueFigures(bench.queues[0]).waiting, 1, "a quiet night is few writes");
  bench.pass(2_000);
  assert.equal(queueFigures(bench.queues[0]).waiting, 0);
  for (let i = 0; i < 200; i++) bench.ask();
  bench.pass(100);
  assert.equal(queueFigures(bench.queues[0]).waiting, 0);
  assert.equal(bench.entries, 201);
});

Deno.test(
  "QueryLogStore writes within a second under load, and within five otherwise",
  disk,
  () => {
    const written = (bench: Bench) => new Float64Array(bench.figures)[LogFigure.Written];
    using busy = new Bench();
    const asked: number[] = [];
    for (let i = 0; i < 400; i++) {
      for (let n = 0; n < 5; n++) busy.ask();
      asked.push(busy.asked);
      busy.pass(50);
      // All but what was answered within the last second, and the pause between two looks.
      if (i >= 24) assert.ok(written(busy) >= asked[i - 22], `${i}: ${written(busy)}`);
    }
    using quiet = new Bench();
    for (let i = 0; i < 100; i++) {
      quiet.ask();
      quiet.pass(1_000);
      if (i >= 6) assert.ok(written(quiet) >= i - 5, `${i}: ${written(quiet)}`);
    }
  },
);

const DAY_MS = 86_400_000;

/** Names with their times, oldest first. */
function dated(bench: Bench): [string, number][] {
  return bench.store.search({}, 1_000, null).entries.toReversed()
    .map(({ name, time }) => [name.split(".")[0], Date.parse(time)]);
}

Deno.test(
  "QueryLogStore keeps everything by a clock that is behind, and finds the times after",
  disk,
  () => {
    using bench = new Bench({ retentionMs: 7 * DAY_MS });
    for (let day = 6; day >= 0; day--) {
      bench.ask({ name: `d${day}.example` });
      bench.pass(DAY_MS - 10_000);
    }
    bench.store.close();
    // Switched off for two days, and started with a clock of last year.
    const newestMs = bench.nowMs - (DAY_MS - 10_000);
    bench.nowMs += 2 * DAY_MS;
    bench.setMs = -300 * DAY_MS;
    bench.store = bench.open();
    bench.ask({ name: "x.example" });
    bench.pass(60_000);
    bench.ask({ name: "y.example" });
    bench.pass(120_000); // Trims, and saves what was counted.
    assert.equal(bench.names(), "y x d0 d1 d2 d3 d4 d5 d6", "newest first");
    const [x, y] = dated(bench).slice(-2);
    assert.ok(x[1] >= newestMs && y[1] === x[1] + 60_000, "they go on from the newest");
    assert.equal(bench.store.search({ sinceMs: newestMs }, 10, null).entries.length, 2);
    assert.equal(bench.store.search({ untilMs: x[1] }, 10, null).entries.length, 7);
    assert.equal(bench.store.statistics(720).total, 9);
    // NTP comes, between two answers.
    bench.ask({ name: "z.example" });
    const zMs = bench.nowMs;
    bench.nowMs += 500;
    bench.setMs = 0;
    bench.pass(120_000);
    assert.deepEqual(dated(bench).slice(-3), [
      ["x", zMs - 180_000],
      ["y", zMs - 120_000],
      ["z", zMs],
    ]);
    assert.equal(
      bench.names(),
      "z y x d0 d1 d2 d3",
      "and what is too old by the right time goes",
    );
    bench.ask({ name: "after.example" });
    assert.equal(bench.names(1), "after");
  },
);

Deno.test(
  "QueryLogStore keeps its log through a clock that is far ahead for a while",
  disk,
  async (t) => {
    const yearsMs = 73 * 365 * DAY_MS;
    await t.step("while it runs", () => {
      using bench = new Bench({ retentionMs: 7 * DAY_MS });
      bench.pass(DAY_MS);
      bench.ask({ name: "a.example" });
      bench.pass(6_000);
      bench.setMs = yearsMs;
      bench.ask({ name: "b.example" });
      bench.pass(5 * 3_600_000);
      assert.deepEqual(dated(bench).map(([name]) => name), ["a", "b"]);
      const bMs = bench.nowMs - 5 * 3_600_000;
      bench.setMs = 0;
      bench.pass(10_000);
      assert.deepEqual(dated(bench), [["a", bMs - 6_000], ["b", bMs]]);
      assert.equal(bench.store.statistics(720).total, 2);
    });
    await t.step("from its start, and through another one", () => {
      using bench = new Bench({ retentionMs: 7 * DAY_MS });
      bench.ask({ name: "a.example" });
      bench.store.close();
      bench.setMs = yearsMs;
      bench.store = bench.open();
      bench.ask({ name: "b.example" });
      bench.pass(3_600_000);
      bench.store.close();
      bench.setMs = 0;
      bench.store = bench.open();
      bench.ask({ name: "c.example" });
      bench.pass(3_600_000);
      assert.equal(bench.names(), "c b a", "nothing is removed for lying in the future");
      bench.pass(6 * 3_600_000);
      const times = dated(bench);
      assert.deepEqual(times.map(([name]) => name), ["a", "b", "c"]);
      assert.ok(times.every(([, ms]) => ms <= bench.nowMs), "all are in the past again");
      bench.ask({ name: "d.example" });
      assert.deepEqual(dated(bench)[3], ["d", bench.nowMs]);
    });
  },
);

Deno.test("QueryLogStore looks at nothing until something happens", disk, () => {
  using bench = new Bench({}, 2);
  const { store } = bench;
  /** The first pause in which nothing is left to be done. */
  const rest = () => {
    for (;;) {
      const pause = store.turn();
      if (pause.bytes < Infinity) return pause;
    }
  };
  rest(); // The first look for what is too old.
  assert.deepEqual(rest(), { ms: 60_000, bytes: 1 }, "a first record, or old ones");
  bench.ask({}, 1);
  const { ms, bytes } = rest();
  assert.equal(ms, 5_000, "until it is written");
  assert.ok(bytes > 1_000 && bytes < 20_000, `some dozens of records are no quiet night: ${bytes}`);
  bench.nowMs += 5_000;
  assert.deepEqual(rest(), { ms: 10_000, bytes: 1 }, "it is written; its count is to be saved");
  bench.nowMs += 10_000;
  assert.deepEqual(rest(), { ms: 50_000, bytes: 1 }, "all is as it was");
  store.live.watch(7, {});
  assert.equal(rest().bytes, 1, "nothing happens, whoever watches");
  bench.ask();
  assert.equal(rest().ms, 250);
  assert.deepEqual(bench.live, []);
  bench.nowMs += 250;
  rest();
  assert.equal(bench.live.length, 1);
});

Deno.test("QueryLogStore is told of what fills its queues in time", disk, async () => {
  // A runtime with nothing else to do does not wait for a word of another thread.
  const awake = setInterval(() => {}, 1_000);
  for (const queues of [1, 2, 4]) {
    using bench = new Bench({}, queues);
    bench.store.turn();
    let told = 0;
    // 100,000 queries a second; it is late for its turns by as much as 2 ms.
    for (let i = 0; i < 10_000; i += 200) {
      const { bytes } = bench.store.turn();
      const wait = bench.store.waitFor(bytes).then(() => told++);
      for (let k = 0; k < 200; k++) bench.ask({ answers: ["192.0.2.1"] }, k % queues);
      bench.store.endWait();
      await wait;
      bench.nowMs += 2;
    }
    assert.equal(bench.dropped, 0, `${queues} queues`);
    assert.equal(told, 50);
  }
  clearInterval(awake);
});

Deno.test("QueryLogStore brings several queues into the order of time", disk, () => {
  using bench = new Bench({}, 3);
  for (let i = 0; i < 30; i++) {
    bench.nowMs++;
    bench.ask({ name: `n${i}.example` }, i % 3);
  }
  const want = Array.from({ length: 30 }, (_, i) => `n${29 - i}`).join(" ");
  assert.equal(bench.names(), want);
});

Deno.test("QueryLogStore logs or counts every query, under any load", disk, () => {
  const prng = new Prng(seedFromEnv());
  using bench = new Bench({ maxEntries: 3_000 }, 2, 16_384);
  for (let i = 0; i < 60; i++) {
    for (let n = prng.int(300); n > 0; n--) bench.ask({ name: `n${prng.int(500)}.example` }, n % 2);
    bench.pass(prng.int(3) * 30);
    if (i % 20 === 10) {
      bench.store.close();
      bench.store = bench.open();
    }
  }
  const { total } = bench.store.statistics(2);
  const written = new Float64Array(bench.figures)[LogFigure.Written];
  assert.equal(written + bench.dropped, bench.asked);
  assert.equal(total, bench.asked, "statistics count both");
  assert.ok(bench.dropped > 100 && written > 1_000);
  bench.pass(70_000);
  assert.ok(bench.entries <= 3_000);
});

Deno.test(
  "QueryLogStore keeps all of a busy second, and of a flood some of each client's",
  disk,
  () => {
    for (
      const { perMs, floodMs, keptMin, keptMax, queueBytes } of [
        { perMs: 21, floodMs: 1_000, keptMin: 1, keptMax: 1 },
        { perMs: 120, floodMs: 500, keptMin: 1 / 5, keptMax: 2 / 3 },
        { perMs: 250, floodMs: 500, keptMin: 1 / 5, keptMax: 1 / 3, queueBytes: 256 * 1024 },
      ]
    ) {
      using bench = new Bench({}, 1, queueBytes);
      const clients = ["192.0.2.1", "192.0.2.2", "192.0.2.3"];
      for (let ms = 0; ms < floodMs; ms++) {
        for (let i = 0; i < perMs; i++) bench.ask({ address: clients[i % 3] });
        bench.pass(1);
      }
      bench.pass(10_000);
      for (const client of clients) {
        let kept = 0;
        for (let before: number | null = null;;) {
          const { entries, next } = bench.store.search({ client }, 1_000, before);
          kept += entries.length;
          if (next === null) break;
          before = next;
        }
        const share = kept / (bench.asked / clients.length);
        assert.ok(
          share >= keptMin && share <= keptMax,
          `${perMs} a millisecond: ${share} of ${client}`,
        );
      }
    }
  },
);

Deno.test("QueryLogStore keeps its entries through a restart, and through a crash", disk, () => {
  using bench = new Bench();
  for (const name of ["a", "b", "c"]) bench.ask({ name: `${name}.example` });
  bench.store.close();
  bench.store = bench.open();
  assert.equal(bench.names(), "c b a");
  assert.equal(bench.store.statistics(1).total, 3);
  bench.ask({ name: "d.example" });
  bench.pass(20_000);
  bench.ask({ name: "e.example" });
  bench.store = bench.open(); // Nobody closed the former one, and e is in the queue.
  assert.equal(bench.names(), "e d c b a");
  assert.equal(bench.store.statistics(1).total, 5);
});

Deno.test("QueryLogStore shares its file with the process that takes its place", disk, () => {
  using former = new Bench();
  former.ask({ name: "a.example" });
  assert.equal(former.names(), "a");
  using next = new Bench({ directory: `${former.directory}/querylog` });
  for (const [bench, name] of [[next, "b"], [former, "c"], [next, "d"], [former, "e"]] as const) {
    bench.ask({ name: `${name}.example` });
    bench.pass(6_000);
  }
  former.ask({ name: "b.example" });
  former.store.close();
  assert.equal(next.names().split(" ").sort().join(" "), "a b b c d e");
  assert.deepEqual([next.problems, former.problems], [[], []]);
});

Deno.test("QueryLogStore sets a file aside that it can't use, and begins anew", disk, async (t) => {
  const damages: Readonly<Record<string, (path: string) => void>> = {
    "no database": (path) => Deno.writeTextFileSync(path, "something else entirely".repeat(500)),
    "pages of noise": (path) => {
      const bytes = Deno.readFileSync(path);
      const prng = new Prng(1);
      for (let i = 100; i < bytes.length; i++) bytes[i] = prng.next();
      Deno.writeFileSync(path, bytes);
    },
    "another version": (path) => {
      const bytes = Deno.readFileSync(path);
      bytes[63] = 99; // The end of user_version.
      Deno.writeFileSync(path, bytes);
    },
  };
  for (const [name, damage] of Object.entries(damages)) {
    await t.step(name, () => {
      using bench = new Bench();
      for (let i = 0; i < 300; i++) bench.ask({ name: `n${i}.example` });
      bench.store.close();
      damage(`${bench.directory}/querylog/querylog.db`);
      const { lines } = quietly(() => {
        bench.store = bench.open();
        bench.ask({ name: "after.example" });
        assert.equal(bench.names(), "after");
      });
      assert.match(lines, /can't be used: it is set aside/);
      const files = bench.files().filter((name) => !/-(wal|shm)$/.test(name));
      assert.deepEqual(files, ["querylog.db", "querylog.db.bad-20260102T030405Z"]);
    });
  }
});

Deno.test("QueryLogStore sets a file aside that is damaged while it is open", disk, () => {
  using bench = new Bench();
  for (let i = 0; i < 3_000; i++) bench.ask({ name: `n${i}.example` });
  bench.pass(30_000);
  assert.equal(bench.entries, 3_000);
  bench.db?.exec("PRAGMA wal_checkpoint(TRUNCATE); PRAGMA shrink_memory");
  const path = `${bench.directory}/querylog/querylog.db`;
  const file = Deno.openSync(path, { write: true });
  const { size } = file.statSync();
  file.seekSync(4_096, Deno.SeekMode.Start);
  for (let at = 4_096; at < size; at += 4_096) file.writeSync(new Uint8Array(4_096).fill(0xa5));
  file.close();
  const { lines } = quietly(() => {
    bench.ask({ name: "after.example" });
    bench.pass(10_000);
    bench.ask({ name: "later.example" });
    bench.pass(10_000);
    assert.equal(bench.names(), "later after");
  });
  assert.match(lines, /set aside/);
  assert.equal(bench.problems.at(-1) ?? null, null);
});

Deno.test(
  "QueryLogStore sets a file aside whose entries do not fit their texts",
  disk,
  async (t) => {
    for (
      const damage of [
        "columns = zeroblob(length(columns) - 1)",
        "columns = randomblob(length(columns))",
        "columns = x''",
        "texts = randomblob(length(texts))",
        "texts = zeroblob(length(texts))",
        "texts = x'00'",
        "count = count + 1",
      ]
    ) {
      await t.step(damage, () => {
        using bench = new Bench();
        for (let i = 0; i < 300; i++) bench.ask({ name: `n${i}.example` });
        bench.pass(30_000);
        bench.db?.exec(`UPDATE segments SET ${damage}`);
        const { lines } = quietly(() => {
          assert.equal(bench.names(), "");
          bench.ask({ name: "after.example" });
          assert.equal(bench.names(), "after");
        });
        assert.match(lines, /set aside/);
      });
    }
  },
);

Deno.test("QueryLogStore keeps few of the files it has set aside", disk, () => {
  using bench = new Bench();
  for (let i = 0; i < 5; i++) {
    bench.store.close();
    Deno.writeTextFileSync(`${bench.directory}/querylog/querylog.db`, "damaged ".repeat(1_000));
    bench.nowMs += 1_000;
    quietly(() => bench.store = bench.open());
  }
  const bad = bench.files().filter((name) => name.includes("bad"));
  assert.deepEqual(bad, ["querylog.db.bad-20260102T030409Z", "querylog.db.bad-20260102T030410Z"]);
});

Deno.test("QueryLogStore counts what a full disk has no room for, and goes on after", disk, () => {
  using bench = new Bench({}, 1, 32_768);
  for (let i = 0; i < 100; i++) bench.ask({ name: `before${i}.example` });
  bench.pass(10_000);
  const db = bench.db;
  assert.ok(db !== null);
  const pages = Number(db.prepare("PRAGMA page_count").get()?.page_count);
  db.exec(`PRAGMA max_page_count = ${pages}`);
  const { lines } = quietly(() => {
    for (let second = 0; second < 200; second++) {
      for (let i = 0; i < 20; i++) bench.ask({ name: `during${second}x${i}.example` });
      bench.pass(1_000);
    }
  });
  const [problem] = bench.problems;
  assert.match(problem ?? "", /^the query log can't be written: .*full/);
  assert.ok(lines.split("\n").length < 10, "said once, and not each time");
  assert.ok(bench.dropped > 1_000, "what finds no room in the queue is counted");
  db.exec("PRAGMA max_page_count = 1000000");
  quietly(() => bench.pass(120_000));
  assert.equal(bench.problems.at(-1), null);
  bench.ask({ name: "after.example" });
  assert.equal(bench.names(1), "after");
  const written = new Float64Array(bench.figures)[LogFigure.Written];
  assert.equal(written + bench.dropped, bench.asked);
  assert.equal(bench.store.statistics(2).total, bench.asked);
});

Deno.test("QueryLogStore waits for a folder that it can't write", disk, () => {
  using bench = new Bench({ directory: "/proc/svc/querylog" });
  assert.match(bench.problems[0] ?? "", /can't be written: store\.path: \/proc\/svc\/querylog/);
  bench.ask({ name: "a.example" });
  quietly(() => bench.pass(30_000));
  assert.equal(
    queueFigures(bench.queues[0]).waiting,
    1,
    "nothing is lost as long as there is room",
  );
  assert.throws(() => bench.store.search({}, 10, null), { name: "SvcError", code: "unavailable" });
});

Deno.test("QueryLogStore keeps no entry where none is to be kept, and counts them", disk, () => {
  using bench = new Bench({ maxEntries: 0 });
  bench.ask({ name: "a.example" });
  assert.equal(bench.names(), "");
  assert.equal(bench.store.statistics(1).total, 1);
});

Deno.test("QueryLogStore stores no more of an address than it shows", disk, () => {
  using bench = new Bench({ anonymize: true });
  bench.ask({ address: "192.0.2.77", name: "a.example" });
  bench.ask({ address: "2001:db8:1:2aff::77", name: "b.example" });
  const { entries } = bench.store.search({}, 10, null);
  assert.deepEqual(entries.map(({ client }) => client), ["2001:db8:1:2a00::", "192.0.2.0"]);
  assert.equal(bench.store.search({ client: "192.0.2.78" }, 10, null).entries.length, 1);
  const { top } = bench.store.statistics(1);
  assert.deepEqual(top.clients.map(({ name }) => name), ["192.0.2.0", "2001:db8:1:2a00::"]);
  bench.store.close();
  const file = Deno.readFileSync(`${bench.directory}/querylog/querylog.db`);
  const text = new TextDecoder("latin1").decode(file);
  assert.ok(text.includes("192.0.2.0") && !text.includes("192.0.2.77") && !text.includes("::77"));
});

Deno.test("QueryLogStore tells watchers of what passes, as it comes", disk, () => {
  using bench = new Bench();
  bench.ask({ name: "early.example" });
  bench.pass(10_000);
  bench.store.live.watch(7, { outcomes: ["blocked"], name: "ADS" });
  bench.store.live.watch(8, {});
  bench.ask({ name: "ads.example" });
  bench.ask({ name: "ads.example", outcome: "blocked" });
  bench.pass(400);
  const told = bench.live.map(({ watcher, entries, skipped }) =>
    `${watcher}: ${entries.map(({ name, outcome }) => `${name} ${outcome}`)}, ${skipped}`
  );
  assert.deepEqual(told, [
    "7: ads.example blocked, 0",
    "8: ads.example forwarded,ads.example blocked, 0",
  ]);
  bench.store.live.unwatch(8);
  bench.live.length = 0;
  for (let i = 0; i < 500; i++) bench.ask({ name: `ads${i}.example`, outcome: "blocked" });
  bench.pass(400);
  const [batch] = bench.live;
  assert.deepEqual([batch.watcher, batch.entries.length, batch.skipped], [7, 200, 300]);
  const newest = batch.entries[199];
  assert.equal(newest.name, "ads499.example");
  const [found] = bench.store.search({}, 1, null).entries;
  assert.deepEqual(newest, found, "with the number that it is kept by");
  assert.equal(
    bench.store.search({ afterId: batch.entries[100].id }, 1_000, null).entries.length,
    99,
  );
});

Deno.test("QueryLogStore gives up a queue that holds no records, and counts them", disk, () => {
  using bench = new Bench();
  for (let i = 0; i < 3; i++) bench.ask();
  new Uint32Array(bench.queues[0], 512)[0] = 13;
  const { lines } = quietly(() => assert.equal(bench.names(), ""));
  assert.match(lines, /can't be read/);
  assert.equal(bench.dropped, 3);
  bench.ask({ name: "after.example" });
  assert.equal(bench.names(), "after");
});
