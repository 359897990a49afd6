// The elections of the paper (§5.2, §5.4), of the dissertation (§3.10, §9.6), and of the tests of
// etcd-io/raft and hashicorp/raft whose names stand beside them.
import assert from "node:assert/strict";
import { entriesOf, FakeCluster } from "./fakes.ts";
import type { Message, VoteRequest } from "./messages.ts";
import { restore, step } from "./mod.ts";

const THREE = { voters: ["a", "b", "c"] };

// TestVoter: the voter's log and the candidate's last entry; the vote.
const VOTES = [
  [[1], 1, 2, true],
  [[1], 1, 3, true],
  [[1, 1], 1, 2, false],
  [[1], 2, 2, true],
  [[1], 2, 3, true],
  [[1, 1], 2, 2, true],
  [[2], 1, 2, false],
  [[2], 1, 3, false],
  [[2, 2], 1, 2, false],
] as const;

Deno.test("a vote goes to logs that are up to date", { permissions: "none" }, () => {
  for (const type of ["requestVote", "preVote"] as const) {
    for (const [log, lastLogTerm, lastLogIndex, want] of VOTES) {
      const cluster = new FakeCluster({ ...THREE, logs: { a: log } });
      const request = { type, term: 3, lastLogTerm, lastLogIndex, isTransfer: false };
      cluster.take("a", { type: "message", message: { ...request, from: "b", to: "a" } });
      const [answer] = cluster.messages;
      assert.ok(answer.type === `${type}Response` && "voteGranted" in answer);
      assert.equal(answer.voteGranted, want, `${type}: ${log} ${lastLogTerm}/${lastLogIndex}`);
      assert.equal(
        cluster.disk("a").hardState.votedFor,
        want && type === "requestVote" ? "b" : null,
      );
    }
  }
});

Deno.test(
  "a member has one vote a term, and keeps to it after a crash",
  { permissions: "none" },
  () => {
    const cluster = new FakeCluster(THREE);
    const ask = (from: string, term: number): boolean | undefined => {
      const request: VoteRequest = {
        ...{ type: "requestVote", term, lastLogTerm: 1, lastLogIndex: 1, isTransfer: false },
      };
      const message: Message = { ...request, from, to: "a" };
      const { ready } = cluster.take("a", { type: "message", message });
      const [answer] = ready.messages;
      return answer?.type === "requestVoteResponse" ? answer.voteGranted : undefined;
    };
    assert.deepEqual([ask("b", 2), ask("c", 2), ask("b", 2)], [true, false, true]);
    cluster.restart("a");
    assert.deepEqual([ask("c", 2), ask("b", 2), ask("c", 3), ask("b", 2)], [
      false,
      true,
      true,
      false,
    ]);
  },
);

Deno.test(
  "an election goes through PreVote to a leader with an entry",
  { permissions: "none" },
  () => {
    const cluster = new FakeCluster(THREE);
    cluster.campaign("a");
    assert.equal(cluster.state("a").role, "preCandidate");
    assert.equal(cluster.state("a").currentTerm, 1, "nothing has been risked yet");
    cluster.deliver();
    assert.deepEqual(cluster.leaders, ["a 2"]);
    assert.deepEqual(["a", "b", "c"].map((id) => cluster.log(id)), ["2e", "2e", "2e"]);
    assert.deepEqual(["a", "b", "c"].map((id) => cluster.state(id).leader), ["a", "a", "a"]);
    assert.deepEqual(["a", "b", "c"].map((id) => cluster.state(id).commitIndex), [2, 2, 2]);
  },
);

Deno.test("one member alone leads at once (single_node)", { permissions: "none" }, () => {
  const cluster = new FakeCluster({ voters: ["a"] });
  cluster.campaign("a");
  assert.deepEqual(cluster.leaders, ["a 2"]);
  assert.deepEqual(cluster.messages, []);
  cluster.propose("a", "x", "y");
  assert.deepEqual(cluster.commands("a"), ["x", "y"]);
});

Deno.test("duelling candidates: the vote of the third decides", { permissions: "none" }, () => {
  const cluster = new FakeCluster(THREE);
  cluster.cuts.add("a>c").add("c>a");
  cluster.campaign("a");
  cluster.campaign("c");
  cluster.deliver();
  assert.deepEqual(cluster.leaders, ["a 2"], "b had promised c nothing");
  cluster.cuts.clear();
  cluster.run(4);
  assert.deepEqual(cluster.leaders, ["a 2"]);
  assert.equal(cluster.state("c").role, "follower");
});

Deno.test("who was cut off comes back and disturbs nobody", { permissions: "none" }, async (t) => {
  await t.step("it did not raise its term (PreVoteAvoidElectionWithPartition)", () => {
    const cluster = new FakeCluster(THREE);
    cluster.elect("a");
    cluster.cuts.add("c");
    cluster.run(200);
    assert.equal(cluster.state("c").currentTerm, 2);
    cluster.cuts.clear();
    cluster.run(4);
    assert.deepEqual(cluster.leaders, ["a 2"]);
    assert.equal(cluster.state("c").leader, "a");
  });
  await t.step("nor does a candidate of a later term end a lease (DisruptiveFollower)", () => {
    const cluster = new FakeCluster(THREE);
    cluster.elect("a");
    const request = { type: "requestVote", term: 9, lastLogTerm: 2, lastLogIndex: 9 } as const;
    const message: Message = { ...request, isTransfer: false, from: "c", to: "b" };
    cluster.take("b", { type: "message", message });
    cluster.take("a", { type: "message", message: { ...message, to: "a" } });
    assert.deepEqual(cluster.messages, []);
    assert.deepEqual([cluster.leaders, cluster.state("b").currentTerm], [["a 2"], 2]);
  });
  await t.step("but one of a later term gets a leader (NonVoterWithHigherTermJoin)", () => {
    const cluster = new FakeCluster({ ...THREE, terms: { c: 7 } });
    cluster.cuts.add("c");
    cluster.elect("a");
    cluster.cuts.clear();
    cluster.run(120);
    assert.equal(cluster.leaders.length, 1);
    assert.equal(cluster.state("c").leader, cluster.leaders[0].split(" ")[0]);
    assert.ok(cluster.state("c").currentTerm > 7);
  });
});

Deno.test("a leader without a quorum steps down (checkquorum, LeaderLeaseExpire)", {
  permissions: "none",
}, () => {
  const cluster = new FakeCluster(THREE);
  cluster.elect("a");
  cluster.cuts.add("a");
  cluster.run(15);
  assert.deepEqual(cluster.leaders, ["a 2"]);
  cluster.run(1);
  assert.equal(cluster.state("a").role, "follower");
  assert.equal(cluster.propose("a", "x").refusal, "not leader");
  const other = new FakeCluster(THREE);
  other.elect("a");
  other.cuts.add("c");
  other.run(100);
  assert.deepEqual(other.leaders, ["a 2"], "two of three are enough");
});

Deno.test("a leader that comes back follows (LeaderSupersedingWithCheckQuorum)", {
  permissions: "none",
}, () => {
  const cluster = new FakeCluster(THREE);
  cluster.elect("a");
  cluster.cuts.add("a");
  cluster.propose("a", "lost");
  cluster.elect("b");
  cluster.propose("b", "kept");
  cluster.deliver();
  assert.deepEqual(cluster.leaders, ["a 2", "b 3"], "in one term there is one");
  cluster.cuts.clear();
  cluster.run(4);
  assert.deepEqual(cluster.leaders, ["b 3"]);
  assert.deepEqual(["a", "b", "c"].map((id) => cluster.commands(id)), [["kept"], ["kept"], [
    "kept",
  ]]);
});

Deno.test("messages of former terms do nothing (TestOldMessages)", { permissions: "none" }, () => {
  const cluster = new FakeCluster(THREE);
  cluster.elect("a");
  cluster.cuts.add("a");
  cluster.elect("b");
  cluster.cuts.clear();
  cluster.run(4);
  const before = cluster.log("b");
  const old = { type: "appendEntries", term: 2, prevLogIndex: 2, prevLogTerm: 2 } as const;
  const message: Message = {
    ...{ ...old, entries: entriesOf([2], 3), leaderCommit: 3, round: 0, from: "a", to: "c" },
  };
  const { ready } = cluster.take("c", { type: "message", message });
  assert.equal(cluster.log("c"), before);
  assert.deepEqual(ready.messages.map(({ type, term }) => [type, term]), [
    ["appendEntriesResponse", 3],
  ]);
});

Deno.test("transferLeadership hands over", { permissions: "none" }, async (t) => {
  await t.step("at once, within the lease", () => {
    const cluster = new FakeCluster(THREE);
    cluster.elect("a");
    assert.equal(cluster.take("a", { type: "transferLeadership", to: "b" }).refusal, null);
    cluster.deliver();
    assert.deepEqual(cluster.leaders, ["b 3"]);
  });
  await t.step("to one that must catch up first, and refuses proposals until then", () => {
    const cluster = new FakeCluster(THREE);
    cluster.elect("a");
    cluster.cuts.add("a>b");
    cluster.propose("a", "x");
    cluster.deliver();
    cluster.take("a", { type: "transferLeadership", to: "b" });
    assert.equal(cluster.propose("a", "y").refusal, "transfer under way");
    const again = cluster.take("a", { type: "transferLeadership", to: "c" });
    assert.equal(again.refusal, "transfer under way");
    cluster.cuts.clear();
    cluster.run(6);
    assert.deepEqual(cluster.leaders, ["b 3"]);
    assert.deepEqual(cluster.commands("b"), ["x"]);
  });
  await t.step("and leads on when nothing comes of it", () => {
    const cluster = new FakeCluster(THREE);
    cluster.elect("a");
    cluster.cuts.add("b");
    cluster.take("a", { type: "transferLeadership", to: "b" });
    cluster.run(16);
    assert.equal(cluster.propose("a", "x").refusal, null);
  });
  await t.step("and not to whoever can't lead", () => {
    const cluster = new FakeCluster({ voters: ["a", "b", "w"], learners: ["l"], witnesses: ["w"] });
    cluster.elect("a");
    for (const to of ["a", "w", "l", "x"]) {
      const { refusal } = cluster.take("a", { type: "transferLeadership", to });
      assert.equal(refusal, "not allowed", to);
    }
    assert.equal(cluster.take("b", { type: "transferLeadership", to: "a" }).refusal, "not leader");
  });
  await t.step("resign names the one with the longest log", () => {
    const cluster = new FakeCluster(THREE);
    cluster.elect("a");
    cluster.cuts.add("b");
    cluster.propose("a", "x");
    cluster.deliver();
    cluster.cuts.clear();
    cluster.take("a", { type: "resign" });
    cluster.deliver();
    assert.deepEqual(cluster.leaders, ["c 3"]);
  });
});

Deno.test(
  "a member that lost entries has no vote until it is whole",
  { permissions: "none" },
  () => {
    const cluster = new FakeCluster(THREE);
    cluster.elect("a");
    cluster.cuts.add("c");
    cluster.propose("a", "x");
    cluster.deliver();
    // The disk of b loses what b had acknowledged, and c never had it.
    const disk = { ...cluster.disk("b"), entries: [], appliedIndex: 1 };
    const restored = restore({ id: "b", random: 1 }, disk);
    const damaged = step(restored, { type: "damaged" });
    assert.deepEqual(damaged.ready.hardState, { currentTerm: 3, votedFor: null, damagedTerm: 2 });
    const request = { type: "requestVote", term: 9, lastLogTerm: 1, lastLogIndex: 1 } as const;
    const asked = step(damaged.state, {
      type: "message",
      message: { ...request, isTransfer: false, from: "c", to: "b" },
    });
    assert.deepEqual(asked.ready.messages.map((m) => "voteGranted" in m && m.voteGranted), [false]);
    let { state } = damaged;
    for (let i = 0; i < 100; i++) state = step(state, { type: "tick" }).state;
    assert.deepEqual([state.role, state.currentTerm], ["follower", 3], "nor does it campaign");
    // An entry of a later term is committed: everything before it is there again.
    const append = { type: "appendEntries", term: 4, prevLogIndex: 1, prevLogTerm: 1 } as const;
    const entries = entriesOf([2, 2, 4]);
    const message: Message = { ...append, entries, leaderCommit: 3, round: 0, from: "a", to: "b" };
    state = step(state, { type: "message", message }).state;
    assert.equal(state.damagedTerm, 2, "of an entry that it may have lost nothing follows");
    const committed = { ...message, prevLogIndex: 4, prevLogTerm: 4, entries: [], leaderCommit: 4 };
    assert.equal(step(state, { type: "message", message: committed }).state.damagedTerm, 0);
  },
);

Deno.test("restore() takes no log that contradicts itself", { permissions: "none" }, () => {
  const { snapshot, hardState } = new FakeCluster(THREE).disk("a");
  const at = (currentTerm: number, terms: number[], appliedIndex: number, first = 2) => ({
    ...{ hardState: { ...hardState, currentTerm }, snapshot, appliedIndex },
    entries: entriesOf(terms, first),
  });
  const setup = { id: "a", random: 1 };
  assert.equal(restore(setup, at(3, [2, 3], 2)).commitIndex, 2);
  for (
    const [why, persisted] of [
      ["an entry of a term to come", at(2, [3], 1)],
      ["terms that fall", at(3, [3, 2], 1)],
      ["a gap", at(3, [3], 1, 3)],
      ["applied beyond its end", at(3, [3], 3)],
      ["applied before its beginning", at(3, [3], 0)],
    ] as const
  ) assert.throws(() => restore(setup, persisted), { name: "InvariantError" }, why);
});
