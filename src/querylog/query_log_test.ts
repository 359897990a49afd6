// Goal: what is answered is in the log or counted as dropped, whatever happens to file and disk.
// Method: the real queues, a real file, a clock of the test; damage and a full disk are SQLite's own.
import assert from "node:assert/strict";
import { Prng, seedFromEnv } from "../../tests/prng.ts";
import { LogFigure, queueFigures } from "../logqueue/mod.ts";
import { FakeLog, quietly } from "./fakes.ts";

const disk = { permissions: { read: true, write: true } } as const;

Deno.test("QueryLogStore answers with every query so far", disk, () => {
  using bench = new FakeLog();
  bench.ask({ name: "a.example" });
  assert.equal(bench.names(), "a");
  bench.ask({ name: "b.example", outcome: "blocked" });
  assert.equal(bench.store.statistics(1).outcomes.blocked, 1);
  assert.equal(bench.names(), "b a");
  assert.equal(bench.entries, 2);
});

Deno.test("QueryLogStore goes on writing behind a question that can't be answered", disk, () => {
  using bench = new FakeLog();
  bench.ask({ name: "a.example" });
  assert.equal(bench.names(), "a");
  // As of a mistake in who asks.
  assert.throws(() => bench.search({ name: 7 as unknown as string }, 9));
  assert.deepEqual(bench.problems.filter((problem) => problem !== null), []);
  bench.ask({ name: "b.example" });
  bench.pass(6_000);
  assert.equal(queueFigures(bench.queues[0]).waiting, 0);
  assert.equal(bench.names(), "b a");
});

Deno.test("QueryLogStore writes after a while, or when a queue fills up", disk, () => {
  using bench = new FakeLog({}, 1, 65_536);
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
    const written = (bench: FakeLog) => new Float64Array(bench.figures)[LogFigure.Written];
    using busy = new FakeLog();
    const asked: number[] = [];
    for (let i = 0; i < 400; i++) {
      for (let n = 0; n < 5; n++) busy.ask();
      asked.push(busy.asked);
      busy.pass(50);
      // All but what was answered within the last second, and the pause between two looks.
      if (i >= 24) assert.ok(written(busy) >= asked[i - 22], `${i}: ${written(busy)}`);
    }
    using quiet = new FakeLog();
    for (let i = 0; i < 100; i++) {
      quiet.ask();
      quiet.pass(1_000);
      if (i >= 6) assert.ok(written(quiet) >= i - 5, `${i}: ${written(quiet)}`);
    }
  },
);

const DAY_MS = 86_400_000;

/** Names with their times, oldest first. */
function dated(bench: FakeLog): [string, number][] {
  return bench.search({}, 1_000).entries.toReversed()
    .map(({ name, time }) => [name.split(".")[0], Date.parse(time)]);
}

Deno.test(
  "QueryLogStore keeps everything by a clock that is behind, and finds the times after",
  disk,
  () => {
    using bench = new FakeLog({ retentionMs: 7 * DAY_MS });
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
    assert.equal(bench.search({ sinceMs: newestMs }, 10).entries.length, 2);
    assert.equal(bench.search({ untilMs: x[1] }, 10).entries.length, 7);
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
      using bench = new FakeLog({ retentionMs: 7 * DAY_MS });
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
      using bench = new FakeLog({ retentionMs: 7 * DAY_MS });
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
  using bench = new FakeLog({}, 2);
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
    using bench = new FakeLog({}, queues);
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
  using bench = new FakeLog({}, 3);
  for (let i = 0; i < 30; i++) {
    bench.nowMs++;
    bench.ask({ name: `n${i}.example` }, i % 3);
  }
  const want = Array.from({ length: 30 }, (_, i) => `n${29 - i}`).join(" ");
  assert.equal(bench.names(), want);
});

Deno.test("QueryLogStore logs or counts every query, under any load", disk, () => {
  const prng = new Prng(seedFromEnv());
  using bench = new FakeLog({ maxEntries: 3_000 }, 2, 16_384);
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
      using bench = new FakeLog({}, 1, queueBytes);
      const clients = ["192.0.2.1", "192.0.2.2", "192.0.2.3"];
      for (let ms = 0; ms < floodMs; ms++) {
        for (let i = 0; i < perMs; i++) bench.ask({ address: clients[i % 3] });
        bench.pass(1);
      }
      bench.pass(10_000);
      for (const client of clients) {
        let kept = 0;
        for (let before: number | null = null;;) {
          const { entries, next } = bench.search({ client }, 1_000, before);
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

Deno.test("QueryLogStore keeps no entry where none is to be kept, and counts them", disk, () => {
  using bench = new FakeLog({ maxEntries: 0 });
  bench.ask({ name: "a.example" });
  assert.equal(bench.names(), "");
  assert.equal(bench.store.statistics(1).total, 1);
});

Deno.test("QueryLogStore stores no more of an address than it shows", disk, () => {
  using bench = new FakeLog({ anonymize: true });
  bench.ask({ address: "192.0.2.77", name: "a.example" });
  bench.ask({ address: "2001:db8:1:2aff::77", name: "b.example" });
  const { entries } = bench.search({}, 10, null);
  assert.deepEqual(entries.map(({ client }) => client), ["2001:db8:1:2a00::", "192.0.2.0"]);
  assert.equal(bench.search({ client: "192.0.2.78" }, 10).entries.length, 1);
  const { top } = bench.store.statistics(1);
  assert.deepEqual(top.clients.map(({ name }) => name), ["192.0.2.0", "2001:db8:1:2a00::"]);
  bench.store.close();
  const file = Deno.readFileSync(`${bench.directory}/querylog/querylog.db`);
  const text = new TextDecoder("latin1").decode(file);
  assert.ok(text.includes("192.0.2.0") && !text.includes("192.0.2.77") && !text.includes("::77"));
});

Deno.test("QueryLogStore tells watchers of what passes, as it comes", disk, () => {
  using bench = new FakeLog();
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
  const [found] = bench.search({}, 1).entries;
  assert.deepEqual(newest, found, "with the number that it is kept by");
  assert.equal(
    bench.search({ afterId: batch.entries[100].id }, 1_000).entries.length,
    99,
  );
});

Deno.test("QueryLogStore gives up a queue that holds no records, and counts them", disk, () => {
  using bench = new FakeLog();
  for (let i = 0; i < 3; i++) bench.ask();
  new Uint32Array(bench.queues[0], 512)[0] = 13;
  const { lines } = quietly(() => assert.equal(bench.names(), ""));
  assert.match(lines, /can't be read/);
  assert.equal(bench.dropped, 3);
  bench.ask({ name: "after.example" });
  assert.equal(bench.names(), "after");
});
