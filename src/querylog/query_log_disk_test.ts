// Goal: what was written is there through restarts and crashes, and a file, a disk or a folder that can't
// be used keeps nothing from being answered. Method: the real queues, a real file, a clock of the test;
// damage and a full disk are SQLite's own.
import assert from "node:assert/strict";
import { Prng } from "../../tests/prng.ts";
import { LogFigure, queueFigures } from "../logqueue/mod.ts";
import { FakeLog, quietly, whole } from "./fakes.ts";

const disk = { permissions: { read: true, write: true } } as const;

Deno.test("QueryLogStore keeps its entries through a restart, and through a crash", disk, () => {
  using bench = new FakeLog();
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
  using former = new FakeLog();
  former.ask({ name: "a.example" });
  assert.equal(former.names(), "a");
  using next = new FakeLog({ directory: `${former.directory}/querylog` });
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
      using bench = new FakeLog();
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
  using bench = new FakeLog();
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
        "names = x''",
        "names = substr(names, 2)",
        "answers = x'00'",
        "width = 3",
        "count = count + 1",
      ]
    ) {
      await t.step(damage, () => {
        using bench = new FakeLog();
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

Deno.test("QueryLogStore answers from the new file what it began with a damaged one", disk, () => {
  using bench = new FakeLog();
  for (let i = 0; i < 5_000; i++) {
    bench.ask({ name: `n${i}.example` });
    if (i % 1_000 === 999) bench.pass(2_000);
  }
  const seen = bench.store.seen(24);
  assert.ok(!seen.next().done, "in pieces");
  bench.db?.exec("UPDATE segments SET columns = x''");
  const { result } = quietly(() => whole(seen));
  assert.deepEqual(result, []);
  bench.ask({ name: "after.example" });
  assert.deepEqual(whole(bench.store.seen(24)).map(({ queries }) => queries), [1]);
});

Deno.test("QueryLogStore keeps few of the files it has set aside", disk, () => {
  using bench = new FakeLog();
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
  using bench = new FakeLog({}, 1, 32_768);
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
  using bench = new FakeLog({ directory: "/proc/svc/querylog" });
  assert.match(bench.problems[0] ?? "", /can't be written: store\.path: \/proc\/svc\/querylog/);
  bench.ask({ name: "a.example" });
  quietly(() => bench.pass(30_000));
  assert.equal(
    queueFigures(bench.queues[0]).waiting,
    1,
    "nothing is lost as long as there is room",
  );
  assert.throws(() => bench.search({}, 10), { name: "SvcError", code: "unavailable" });
});
