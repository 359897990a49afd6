// Goal: no server and no disk, however slow, full or busy, holds up lists that it has nothing to do with
// or goes unnoticed. Method: a keeper on a disk, a network and a clock in memory; servers answer
// when a test tells them to.
import assert from "node:assert/strict";
import { DAY_MS, type FakeAnswer, KeeperBench as Bench, MemoryDisk } from "./fakes.ts";
import type { ListSource } from "./source.ts";

const ads: ListSource = { id: "li_a", name: "Ads", url: "https://lists.example/ads.txt" };
const more: ListSource = { id: "li_b", name: "More", url: "https://lists.example/more.txt" };
const own: ListSource = { id: "li_c", name: "Own", path: "own.txt" };

const lines = (count: number) => "||ads.example^\n".repeat(count);

/** Answers that begin, and end when they are told to, by path. */
function hanging() {
  const bodies = new Map<string, PromiseWithResolvers<void>>();
  async function* body(path: string) {
    const end = Promise.withResolvers<void>();
    bodies.set(path, end);
    try {
      yield new TextEncoder().encode(`||${path.slice(1)}.held.example^\n`);
      await end.promise;
    } finally {
      bodies.delete(path);
    }
  }
  const answer = (url: URL, _: unknown, signal: AbortSignal): FakeAnswer => {
    const { pathname } = url;
    signal.addEventListener("abort", () => bodies.get(pathname)?.reject(signal.reason));
    return { body: body(pathname) };
  };
  return { bodies, answer };
}

async function until(condition: () => boolean): Promise<void> {
  for (let i = 0; i < 10_000 && !condition(); i++) await new Promise((r) => setTimeout(r, 1));
  assert.ok(condition());
}

Deno.test("ListKeeper waits longer after each failure", { permissions: "none" }, async () => {
  const bench = await Bench.open();
  const waits = async (): Promise<number[]> => {
    const seconds: number[] = [];
    for (let i = 0; i < 12; i++) {
      assert.deepEqual(await bench.refresh([ads]), ["li_a failed"]);
      assert.deepEqual(await bench.refresh([ads]), []);
      const dueAtMs = bench.keeper.nextDueAtMs([ads], DAY_MS);
      seconds.push((dueAtMs - bench.clock.timeMs) / 1_000);
      bench.clock.timeMs = dueAtMs;
    }
    return seconds;
  };
  const { answer } = bench.network;
  const fails = () => {
    throw new Error("no route to host");
  };
  bench.network.answer = fails;
  const first = [5, 10, 20, 40, 80, 160, 320, 640, 1280, 2560, 3600, 3600];
  assert.deepEqual(await waits(), first, "nothing of it is filtered until it comes");
  assert.equal(bench.state(ads), "failed: lists.example: no route to host");
  bench.network.answer = answer;
  assert.deepEqual(await bench.refresh([ads]), ["li_a updated"]);
  assert.equal(bench.keeper.nextDueAtMs([ads], DAY_MS), bench.clock.timeMs + DAY_MS);
  bench.network.answer = fails;
  bench.clock.timeMs += DAY_MS;
  const later = [1, 2, 4, 8, 16, 32, 64, 128, 256, 360, 360, 360].map((minutes) => minutes * 60);
  assert.deepEqual(await waits(), later);
});

Deno.test("ListKeeper.keepOnly() ends what is no longer wanted, at once and without a trace", {
  permissions: "none",
}, async (t) => {
  const moved = { ...ads, url: "https://lists.example/moved.txt" };
  for (const [name, left] of [["gone", [more]], ["moved", [moved, more]], ["all", []]] as const) {
    await t.step(name, async () => {
      const bench = await Bench.open();
      await bench.refresh([ads]);
      const { bodies, answer } = hanging();
      bench.network.answer = answer;
      const refreshed = bench.refresh([ads, more], { force: true });
      await until(() => bodies.size === 2);
      if (name === "all") bench.keeper.stop();
      else bench.keeper.keepOnly(left, [ads.id]);
      await until(() => !bodies.has("/ads.txt"));
      assert.equal(bodies.has("/more.txt"), left.length > 0);
      bodies.get("/more.txt")?.resolve();
      assert.deepEqual(await refreshed, left.length > 0 ? ["li_b updated"] : []);
      assert.equal(bench.network.asked.length, 1 + 2, "it is asked for no more");
      assert.equal(bench.state(ads), "ok");
      assert.equal(bench.keeper.status(ads.id).downloading, null);
      assert.deepEqual(await bench.load([ads], [more.id]), ["li_a ||ads.txt.example^"]);
      assert.deepEqual(bench.disk.paths().filter((path) => path.endsWith(".part")), []);
    });
  }
});

Deno.test("ListKeeper joins calls for what is on its way, and asks once more by force", {
  permissions: "none",
}, async () => {
  const bench = await Bench.open();
  const outcomes = await Promise.all([
    bench.refresh([ads, more]),
    bench.refresh([ads, more]),
    bench.load([ads, more]),
  ]);
  assert.deepEqual(outcomes, [["li_a updated", "li_b updated"], [], []]);
  assert.equal(bench.network.asked.length, 2);

  const { bodies, answer } = hanging();
  bench.network.answer = answer;
  const options = { intervalMs: DAY_MS, force: true };
  const first = bench.keeper.refresh([ads], options);
  assert.deepEqual([first.started, first.loading], [["li_a"], []]);
  await until(() => bodies.has("/ads.txt"));
  const others = Array.from({ length: 10 }, () => bench.keeper.refresh([ads, more], options));
  assert.deepEqual([others[0].started, others[0].loading], [["li_b"], ["li_a"]]);
  assert.deepEqual([others[9].started, others[9].loading], [[], ["li_a", "li_b"]]);
  bench.network.answer = () => ({ body: "||ads.example^" });
  for (const { resolve } of bodies.values()) resolve();
  await Promise.all([first, ...others].map(({ done }) => done));
  assert.equal(bench.network.asked.filter(({ url }) => url === ads.url).length, 1 + 1 + 1);
});

Deno.test("ListKeeper takes no more from servers than the disk takes from it", {
  permissions: "none",
}, async () => {
  const bench = await Bench.open();
  const gate = Promise.withResolvers<void>();
  const { create } = MemoryDisk.prototype;
  bench.disk.create = async (path) => {
    const file = await create.call(bench.disk, path);
    return { ...file, write: (bytes) => gate.promise.then(() => file.write(bytes)) };
  };
  let pieces = 0;
  async function* endless() {
    for (let i = 0; i < 100; i++) {
      pieces++;
      yield new TextEncoder().encode(lines(10));
      await undefined;
    }
  }
  bench.network.answer = () => ({ body: endless() });
  const four = [ads, more, { ...ads, id: "li_e" }, { ...ads, id: "li_f" }];
  const refreshed = bench.refresh(four);
  await until(() => pieces === 4);
  for (let i = 0; i < 100; i++) await undefined;
  assert.equal(pieces, 4, "one piece each is on its way");
  gate.resolve();
  // Two lists of one URL are two lists.
  assert.deepEqual((await refreshed).sort(), four.map(({ id }) => `${id} updated`).sort());
  assert.equal(bench.network.asked.filter(({ url }) => url === ads.url).length, 3);
});

Deno.test("ListKeeper tells how far a download is", { permissions: "none" }, async () => {
  const bench = await Bench.open();
  const { bodies, answer } = hanging();
  const { answer: first } = bench.network;
  for (const state of ["pending", "ok"]) {
    bench.network.answer = answer;
    const refreshed = bench.refresh([ads], { force: true });
    await until(() => bench.keeper.status("li_a").downloading?.bytes === 24);
    assert.equal(bench.state(ads), state, "what else is told is of the text in force");
    assert.deepEqual(bench.keeper.status("li_a").downloading, {
      bytes: 24,
      total_bytes: null,
      started_at: "2026-01-01T00:00:00.000Z",
    });
    bench.network.answer = first;
    bodies.get("/ads.txt")?.resolve();
    await refreshed;
    assert.equal(bench.keeper.status("li_a").downloading, null);
  }
});

Deno.test("ListKeeper.refresh() asks those that failed last", { permissions: "none" }, async () => {
  const bench = await Bench.open();
  const { answer } = bench.network;
  bench.network.answer = () => ({ status: 500 });
  assert.deepEqual(await bench.refresh([ads]), ["li_a failed"]);
  bench.network.answer = answer;
  assert.deepEqual(await bench.refresh([ads, more], { force: true }), [
    "li_b updated",
    "li_a updated",
  ]);
});

Deno.test("ListKeeper.problems() names a list that fails for long", {
  permissions: "none",
}, async () => {
  const fail = async (bench: Bench) =>
    assert.deepEqual(await bench.refresh([ads], { force: true }), ["li_a failed"]);
  const message =
    "Ads: fails since 2026-01-01T00:00:00.000Z: lists.example: the server answered 500; " +
    "the text of 2026-01-01T00:00:00.000Z stays in use";
  const bench = await Bench.open();
  const { answer } = bench.network;
  await bench.refresh([ads]);
  bench.network.answer = () => ({ status: 500 });
  assert.deepEqual([...bench.keeper.problems([ads]).values()], []);
  await fail(bench);
  bench.clock.timeMs += 2 * DAY_MS - 1;
  assert.deepEqual([...bench.keeper.problems([ads]).values()], []);
  bench.clock.timeMs += 1;
  assert.deepEqual([...bench.keeper.problems([ads, more]).values()], [message]);
  bench.network.answer = answer;
  assert.deepEqual(await bench.refresh([ads], { force: true }), ["li_a unchanged"]);
  assert.deepEqual([...bench.keeper.problems([ads]).values()], []);

  const often = await Bench.open();
  await often.refresh([ads]);
  often.network.answer = () => ({ status: 500 });
  for (let i = 0; i < 11; i++) await fail(often);
  assert.deepEqual([...often.keeper.problems([ads]).values()], []);
  await fail(often);
  assert.deepEqual([...often.keeper.problems([ads]).values()], [message]);
});

Deno.test("ListKeeper asks again whatever the clock does", { permissions: "none" }, async () => {
  const bench = await Bench.open();
  const { answer } = bench.network;
  const YEAR_MS = 365 * DAY_MS;
  const jump = async (jumpMs: number) => {
    bench.clock.timeMs += jumpMs;
    assert.equal(bench.keeper.nextDueAtMs([ads], DAY_MS), bench.clock.timeMs);
    return await bench.refresh([ads]);
  };
  await bench.refresh([ads]);
  assert.deepEqual(await jump(-YEAR_MS), ["li_a unchanged"]);
  bench.network.answer = () => ({ status: 500 });
  assert.deepEqual(await jump(-1), ["li_a failed"]);
  assert.deepEqual(await jump(-1), ["li_a failed"], "and so does a pause that was begun later");
  // A text of the future, as it is met after a restart.
  bench.clock.timeMs += 2 * YEAR_MS;
  bench.network.answer = answer;
  await bench.refresh([ads], { force: true });
  bench.clock.timeMs -= YEAR_MS;
  await bench.reopen();
  await bench.load([ads]);
  assert.deepEqual(await bench.refresh([ads]), ["li_a unchanged"]);
  assert.deepEqual(await bench.refresh([ads]), []);
});

Deno.test(
  "ListKeeper downloads four texts at once, urgent ones first, and reads files beside them",
  {
    permissions: "none",
  },
  async () => {
    const bench = await Bench.open();
    bench.disk.put("/local/own.txt", "||own.example^");
    const { bodies, answer } = hanging();
    bench.network.answer = answer;
    const many = Array.from({ length: 256 }, (_, i) => ({
      id: `li_${i}`,
      name: `${i}`,
      url: `https://lists.example/${i}`,
    }));
    const all = bench.refresh(many);
    await until(() => bodies.size === 4);
    assert.deepEqual([...bodies.keys()], ["/0", "/1", "/2", "/3"]);
    assert.deepEqual(await bench.refresh([own], { force: true }), ["li_c updated"]);
    const urgent = bench.refresh([more], { urgent: true });
    bodies.get("/2")?.resolve();
    await until(() => bodies.size === 4 && !bodies.has("/2"));
    assert.deepEqual([...bodies.keys()], ["/0", "/1", "/3", "/more.txt"]);
    bodies.get("/more.txt")?.resolve();
    assert.deepEqual(await urgent, ["li_b updated"]);
    let most = 0;
    while (bench.network.asked.length < 257 || bodies.size > 0) {
      most = Math.max(most, bodies.size);
      for (const { resolve } of [...bodies.values()]) resolve();
      await new Promise((resolve) => setTimeout(resolve, 0));
    }
    assert.equal((await all).length, 256);
    assert.equal(most, 4);
  },
);

Deno.test(
  "ListKeeper.problems() names a list without a text at once, but waits for the first try",
  {
    permissions: "none",
  },
  async () => {
    const bench = await Bench.open();
    const { answer } = bench.network;
    const { bodies, answer: hangs } = hanging();
    bench.network.answer = hangs;
    await bench.load([ads]);
    const refreshed = bench.refresh([ads]);
    await until(() => bodies.size === 1);
    bench.clock.timeMs += 59_999;
    assert.deepEqual([...bench.keeper.problems([ads]).values()], []);
    bench.clock.timeMs += 1;
    const late = "Ads: nothing of it is filtered yet: its first text is still on its way";
    assert.deepEqual([...bench.keeper.problems([ads]).values()], [late]);
    bodies.get("/ads.txt")?.reject(new Error("gone"));
    assert.deepEqual(await refreshed, ["li_a failed"]);
    const failed = "Ads: nothing of it is filtered yet: lists.example: gone";
    assert.deepEqual([...bench.keeper.problems([ads]).values()], [failed]);
    bench.network.answer = answer;
    await bench.refresh([ads], { force: true });
    assert.deepEqual([...bench.keeper.problems([ads]).values()], []);

    // A list that is read from nowhere filters nothing either, and one without a rule.
    await bench.load([own]);
    assert.match(
      [...bench.keeper.problems([own]).values()][0],
      /^Own: nothing of it is filtered yet: own\.txt: /,
    );
    bench.disk.put("/local/own.txt", "# nothing yet");
    await bench.load([own]);
    assert.deepEqual([...bench.keeper.problems([own]).values()], [
      "Own: nothing of it is filtered yet: own.txt: no rules in it",
    ]);
  },
);

Deno.test(
  "ListKeeper goes on with the text at hand while the disk is full, and recovers by itself",
  {
    permissions: "none",
  },
  async () => {
    const bench = await Bench.open();
    await bench.refresh([ads]);
    bench.disk.put("/local/own.txt", "||own.example^");
    const { create } = MemoryDisk.prototype;
    const full = () => Promise.reject(new Error("No space left on device (os error 28)"));
    bench.disk.create = full;
    bench.network.answer = () => ({ body: "||new.example^" });
    assert.deepEqual(await bench.refresh([ads, own], { force: true }), [
      "li_a failed",
      "li_c updated",
    ]);
    assert.match(bench.state(ads), /^failed: lists\.example: No space left .* stays in use$/);
    assert.deepEqual(await bench.load([ads, own]), [
      "li_a ||ads.txt.example^",
      "li_c ||own.example^",
    ], "a list by path needs no room");
    assert.equal(bench.state(own), "ok");
    bench.disk.create = create;
    const dueAtMs = bench.keeper.nextDueAtMs([ads], DAY_MS);
    assert.equal(dueAtMs - bench.clock.timeMs, 60_000);
    bench.clock.timeMs = dueAtMs;
    assert.deepEqual(await bench.refresh([ads]), ["li_a updated"]);
    assert.deepEqual(bench.disk.paths().filter((path) => path.endsWith(".part")), []);
  },
);

Deno.test(
  "ListKeeper.refresh() asks for what is due at that moment, however time goes on meanwhile",
  {
    permissions: "none",
  },
  async () => {
    const bench = await Bench.open();
    bench.clock.nowMs = () => bench.clock.timeMs++;
    assert.deepEqual(await bench.refresh([ads, more]), ["li_a updated", "li_b updated"]);
  },
);
