// A witness votes, stores and never leads; what it alone holds is fetched from it (`fetch.ts`).
import assert from "node:assert/strict";
import { FakeCluster } from "./fakes.ts";
import { APPEND_ENTRIES_MAX } from "./limits.ts";
import type { Message } from "./messages.ts";

const WITNESSED = { voters: ["a", "b", "w"], witnesses: ["w"] };

/** Entries that a and the witness committed while b was away; then a is lost. */
function lost(commands: number): FakeCluster {
  const cluster = new FakeCluster(WITNESSED);
  cluster.elect("a");
  cluster.cuts.add("b");
  const encoder = new TextEncoder();
  const all = Array.from({ length: commands }, (_, i) => encoder.encode(`c${i}`));
  cluster.take("a", { type: "propose", commands: all });
  cluster.deliver();
  assert.equal(cluster.state("a").commitIndex, 2 + commands);
  cluster.cuts.clear();
  cluster.cuts.add("a");
  return cluster;
}

/** Holds what b, who has all, must know. */
function checkTookOver(cluster: FakeCluster, commands: number): void {
  assert.deepEqual(cluster.leaders.filter((leader) => !leader.startsWith("a")).length, 1);
  const { state, messages } = { state: cluster.state("b"), messages: cluster.commands("b") };
  assert.equal(state.role, "leader");
  assert.ok(state.commitIndex >= 3 + commands);
  assert.deepEqual(messages, Array.from({ length: commands }, (_, i) => `c${i}`));
}

Deno.test("a witness never campaigns, whatever it is told", { permissions: "none" }, () => {
  const cluster = new FakeCluster(WITNESSED);
  cluster.elect("a");
  cluster.cuts.add("a").add("b");
  cluster.run(300);
  const now: Message = { type: "timeoutNow", term: 2, from: "a", to: "w" };
  cluster.take("w", { type: "message", message: now });
  assert.deepEqual([cluster.state("w").role, cluster.state("w").currentTerm], ["follower", 2]);
  assert.deepEqual(cluster.messages, []);
});

Deno.test(
  "a witness's vote makes a leader of the node that is left",
  { permissions: "none" },
  () => {
    const cluster = new FakeCluster(WITNESSED);
    cluster.elect("a");
    cluster.propose("a", "x");
    cluster.deliver();
    cluster.cuts.add("a");
    cluster.run(60);
    assert.ok(cluster.leaders.includes("b 3"));
    cluster.propose("b", "y");
    cluster.deliver();
    assert.deepEqual([cluster.commands("b"), cluster.commands("w")], [["x", "y"], ["x", "y"]]);
  },
);

Deno.test("a node fetches what the witness alone holds, and leads", { permissions: "none" }, () => {
  const cluster = lost(3);
  cluster.run(60);
  checkTookOver(cluster, 3);
  cluster.propose("b", "y");
  cluster.cuts.clear();
  cluster.run(4);
  assert.deepEqual(cluster.commands("a"), ["c0", "c1", "c2", "y"]);
});

Deno.test(
  "it fetches in pieces, and a loss costs an election timeout",
  { permissions: "none" },
  () => {
    const count = 2 * APPEND_ENTRIES_MAX + 10;
    const cluster = lost(count);
    let pieces = 0;
    for (let i = 0; i < 300 && cluster.state("b").role !== "leader"; i++) {
      cluster.tick("b");
      cluster.tick("w");
      cluster.deliver(({ type }) => type !== "fetchedEntries" || ++pieces !== 2);
      cluster.messages = [];
    }
    assert.ok(pieces > 2);
    checkTookOver(cluster, count);
  },
);

Deno.test(
  "a crash after a piece of it leaves a log like any other",
  { permissions: "none" },
  () => {
    const cluster = lost(2 * APPEND_ENTRIES_MAX);
    cluster.tick("w", 25);
    cluster.tick("b", 25);
    let pieces = 0;
    cluster.deliver(({ type }) => type !== "fetchedEntries" || ++pieces < 2);
    assert.equal(cluster.state("b").log.lastIndex, 2 + APPEND_ENTRIES_MAX);
    cluster.messages = [];
    cluster.restart("b");
    cluster.run(100);
    assert.deepEqual(cluster.leaders.at(-1)?.[0], "b");
    assert.equal(cluster.state("b").log.termAt(2 + 2 * APPEND_ENTRIES_MAX), 2);
  },
);

Deno.test("what differs is replaced by what the witness holds", { permissions: "none" }, () => {
  // b led term 3 and reached nobody; a came back, and committed in term 4 with the witness.
  const logs = { b: [2, 3, 3, 3, 3], w: [2, 4, 4], a: [2, 4, 4] };
  const cluster = new FakeCluster({ ...WITNESSED, logs, terms: { w: 4 } });
  cluster.cuts.add("a");
  cluster.run(80);
  assert.deepEqual(cluster.leaders, ["b 5"]);
  assert.equal(cluster.log("b"), "2 4 4 5e");
  assert.equal(cluster.log("w"), "2 4 4 5e");
});

Deno.test("a witness that is behind gives nothing", { permissions: "none" }, () => {
  const logs = { b: [2, 3], w: [2, 2, 2, 2] };
  const cluster = new FakeCluster({ ...WITNESSED, logs });
  cluster.cuts.add("a");
  cluster.run(80);
  assert.equal(cluster.log("w"), "2 3 4e");
});

Deno.test("a witness that has compacted gives a Raft snapshot", { permissions: "none" }, () => {
  const cluster = lost(5);
  cluster.run(1);
  const { commitIndex } = cluster.state("w");
  cluster.take("w", { type: "compact", index: commitIndex });
  cluster.run(60);
  assert.deepEqual(cluster.leaders.at(-1)?.[0], "b");
  assert.equal(cluster.disk("b").snapshot.index, commitIndex);
  assert.equal(cluster.log("b").split(" ").at(-1), "3e");
});

Deno.test("several nodes fetch at once, and one leads", { permissions: "none" }, () => {
  const voters = ["a", "b", "c", "d", "w"];
  const logs = { a: [2, 3, 3], b: [2, 2, 2], c: [2], d: [2, 3, 3], w: [2, 3, 3] };
  const cluster = new FakeCluster({ voters, witnesses: ["w"], logs, terms: { b: 3, c: 3 } });
  cluster.cuts.add("a").add("d");
  cluster.campaign("b");
  cluster.campaign("c");
  cluster.run(100);
  assert.equal(cluster.leaders.length, 1);
  for (const id of ["b", "c", "w"]) assert.match(cluster.log(id), /^2 3 3 \de$/);
});

Deno.test("a node that does not know that it votes learns so from the witness", {
  permissions: "none",
}, () => {
  const cluster = new FakeCluster({ voters: ["a"], learners: ["b", "w"], witnesses: ["w"] });
  cluster.elect("a");
  cluster.run(4);
  cluster.cuts.add("b");
  const target = { voters: ["a", "b", "w"], learners: [], witnesses: ["w"] };
  assert.equal(cluster.take("a", { type: "changeMembership", target }).refusal, null);
  cluster.deliver();
  assert.deepEqual(cluster.state("w").log.configuration.voters, ["a", "b", "w"]);
  assert.deepEqual(cluster.state("b").log.configuration.voters, ["a"]);
  cluster.cuts.clear();
  cluster.cuts.add("a");
  cluster.run(80);
  assert.ok(cluster.leaders.some((leader) => leader.startsWith("b")));
});

Deno.test("who follows a leader, or leads, fetches nothing", { permissions: "none" }, () => {
  const cluster = new FakeCluster(WITNESSED);
  cluster.elect("a");
  const end = { term: 9, lastLogIndex: 9, lastLogTerm: 9 };
  for (const to of ["a", "b"]) {
    const message: Message = { type: "offerLog", ...end, from: "w", to };
    assert.deepEqual(cluster.take(to, { type: "message", message }).ready.messages, [], to);
    const fetched: Message = {
      ...{ type: "fetchedEntries", ...end, prevLogIndex: 1, prevLogTerm: 1, from: "w", to },
      entries: [{ index: 2, term: 9, type: "empty" }],
    };
    cluster.take(to, { type: "message", message: fetched });
    assert.equal(cluster.log(to), "2e");
  }
});
