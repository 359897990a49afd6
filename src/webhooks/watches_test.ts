// Goal: what lasts is told once, when it begins and when it ends, by one member and by one process.
import assert from "node:assert/strict";
import { ClientWatch, MemberWatch, ProblemWatch, type WatchedReport } from "./mod.ts";

const none = { permissions: "none" } as const;
const START_MS = Date.parse("2026-01-02T03:04:05Z");

function problemBench(told: unknown = null) {
  const bench = {
    nowMs: START_MS,
    said: [] as string[],
    kept: null as unknown,
    look(...keys: string[]) {
      watch.look(keys.map((key) => ({ key, code: "dns", message: `${key}!`, resource: null })));
      bench.nowMs += 5_000;
    },
  };
  const watch = new ProblemWatch({
    nowMs: () => bench.nowMs,
    steadyMs: () => bench.nowMs,
    told,
    began: ({ key }) => void bench.said.push(`began ${key}`),
    ended: ({ key }) => void bench.said.push(`ended ${key}`),
    keep: (problems) => bench.kept = JSON.parse(JSON.stringify(problems)),
  });
  return bench;
}

Deno.test("ProblemWatch tells of what lasts, once, and of its end", none, () => {
  const bench = problemBench();
  bench.look("a", "flicker");
  bench.look("a");
  assert.deepEqual(bench.said, []);
  for (let i = 0; i < 5; i++) bench.look("a");
  assert.deepEqual(bench.said, ["began a"]);
  bench.look();
  bench.look("a"); // It was gone for a moment.
  bench.look();
  bench.look();
  assert.deepEqual(bench.said, ["began a"]);
  bench.look();
  assert.deepEqual(bench.said, ["began a", "ended a"]);
  assert.deepEqual(bench.kept, []);
});

Deno.test("ProblemWatch goes on where a former process left it", none, () => {
  const former = problemBench();
  for (let i = 0; i < 3; i++) former.look("stays", "goes");
  const bench = problemBench(former.kept);
  for (let i = 0; i < 12; i++) bench.look("stays");
  assert.deepEqual(bench.said, [], "it takes its time to see what there is");
  bench.look("stays");
  assert.deepEqual(bench.said, ["ended goes"]);
  for (const damaged of ["text", [null], [{ key: 1 }], { a: 1 }]) {
    const again = problemBench(damaged);
    for (let i = 0; i < 3; i++) again.look("stays");
    assert.deepEqual(again.said, ["began stays"]);
  }
});

Deno.test("ProblemWatch keeps track of so many, and forgets what went", none, () => {
  const bench = problemBench();
  const many = Array.from({ length: 1_000 }, (_, i) => `p${i}`);
  for (let i = 0; i < 3; i++) bench.look(...many);
  assert.equal(bench.said.length, 64);
  for (let i = 0; i < 3; i++) bench.look("new");
  assert.equal(bench.said.filter((one) => one.startsWith("ended")).length, 64);
  for (let i = 0; i < 3; i++) bench.look("new");
  assert.equal(bench.said.at(-1), "began new");
});

function memberBench() {
  const bench = {
    ms: 0,
    said: [] as string[],
    look(state: string, leader: string | null, reachable: Readonly<Record<string, boolean>>) {
      const members: WatchedReport["members"] = [
        { node: "self", this_node: true, reachable: true },
        ...Object.entries(reachable).map(([node, is]) => {
          return { node, this_node: false, reachable: is };
        }),
      ];
      for (let i = 0; i < 4; i++, bench.ms += 5_000) watch.look({ state, leader, members });
    },
  };
  const watch = new MemberWatch({
    steadyMs: () => bench.ms,
    lost: (node) => void bench.said.push(`lost ${node}`),
    back: (node) => void bench.said.push(`back ${node}`),
  });
  return bench;
}

Deno.test("MemberWatch has the leader tell who is lost and back", none, () => {
  const [leader, follower] = [memberBench(), memberBench()];
  for (const reachable of [{ b: true }, { b: false }, { b: false }, { b: true }, { b: true }]) {
    leader.look("leader", "self", reachable);
    follower.look("follower", "other", reachable);
  }
  assert.deepEqual(leader.said, ["lost b", "back b"]);
  assert.deepEqual(follower.said, []);
});

Deno.test(
  "MemberWatch waits for who leads next, and tells by itself where nobody does",
  none,
  () => {
    const next = memberBench();
    next.look("candidate", null, { old: false });
    assert.deepEqual(next.said, []);
    next.look("leader", "self", { old: false });
    assert.deepEqual(next.said, ["lost old"]);
    const alone = memberBench();
    for (let i = 0; i < 3; i++) alone.look("follower", null, { old: false });
    assert.deepEqual(alone.said, ["lost old"]);
  },
);

Deno.test("ClientWatch tells of each address once, after it settled, over a restart", none, () => {
  let nowMs = START_MS;
  let kept: unknown = null;
  const said: string[] = [];
  const start = () =>
    new ClientWatch({
      nowMs: () => nowMs,
      toldUntilMs: kept,
      seen: ({ address }) => void said.push(address),
      keep: (ms) => kept = ms,
    });
  const at = (address: string, ms: number) => ({
    address,
    hostname: null,
    first_seen: new Date(START_MS + ms).toISOString(),
  });
  let watch = start();
  const seen = [at("before", -1), at("a", 1_000)];
  watch.look(seen);
  assert.deepEqual(said, [], "it may still be on its way");
  nowMs += 31_000;
  watch.look(seen);
  watch.look(seen);
  assert.deepEqual(said, ["a"]);
  watch = start();
  seen.push(at("b", 31_500));
  nowMs += 60_000;
  watch.look(seen);
  assert.deepEqual(said, ["a", "b"], "it came while nobody watched");
  nowMs += 7_200_000;
  watch = start();
  watch.look([...seen, at("c", 95_000)]);
  assert.deepEqual(said, ["a", "b"], "what is long ago is no news");
  kept = nowMs + 1e9; // By a clock that was ahead.
  watch = start();
  nowMs += 60_000;
  watch.look([at("d", nowMs - START_MS - 31_000)]);
  assert.deepEqual(said, ["a", "b", "d"]);
});
