// Log replication (Raft paper §5.3, §5.4.2, §7) and reads (dissertation §6.4), with the scenarios of
// etcd-io/raft whose names stand beside them.
import assert from "node:assert/strict";
import { entriesOf, FakeCluster } from "./fakes.ts";
import {
  APPEND_ENTRIES_MAX,
  ENTRY_BYTES_MAX,
  INFLIGHT_BYTES_MAX,
  INFLIGHT_MESSAGES_MAX,
  UNCOMMITTED_BYTES_MAX,
  UNCOMMITTED_ENTRIES_MAX,
} from "./limits.ts";
import type { Message, Ready } from "./messages.ts";
import { joinReady, step } from "./mod.ts";

const THREE = { voters: ["a", "b", "c"] };

// The followers of figure 7, and the leader of term 8 that brings them all to its own log.
const LEADER = [1, 1, 1, 4, 4, 5, 5, 6, 6, 6];
const FOLLOWERS = {
  "lacks one entry": [1, 1, 1, 4, 4, 5, 5, 6, 6],
  "lacks many": [1, 1, 1, 4],
  "has one too many": [1, 1, 1, 4, 4, 5, 5, 6, 6, 6, 6],
  "has a term too many": [1, 1, 1, 4, 4, 5, 5, 6, 6, 6, 7, 7],
  "has others of its own": [1, 1, 1, 4, 4, 4, 4],
  "has others of two terms": [1, 1, 1, 2, 2, 2, 3, 3, 3, 3, 3],
  "has nothing": [],
};

Deno.test("a leader makes every log its own (probe_and_replicate)", { permissions: "none" }, () => {
  for (const [name, log] of Object.entries(FOLLOWERS)) {
    const logs = { a: LEADER, b: log, c: LEADER };
    const cluster = new FakeCluster({ ...THREE, logs, terms: { a: 7, b: 7, c: 7 } });
    cluster.elect("a");
    cluster.run(4);
    assert.deepEqual(cluster.leaders, ["a 8"], name);
    assert.equal(cluster.log("b"), `${LEADER.join(" ")} 8e`, name);
    assert.deepEqual(cluster.disk("b").entries, cluster.disk("a").entries, name);
    assert.equal(cluster.state("b").commitIndex, 12, name);
  }
});

Deno.test("a leader goes back by terms, not by entries", { permissions: "none" }, () => {
  const b = Array.from({ length: 400 }, (_, i) => i < 200 ? 2 : 3);
  const a = Array.from({ length: 300 }, (_, i) => i < 100 ? 1 : 4);
  const cluster = new FakeCluster({ ...THREE, logs: { a, b, c: a } });
  cluster.cuts.add("b");
  cluster.elect("a");
  cluster.cuts.clear();
  let probes = 0;
  cluster.tick("a", 2);
  cluster.deliver((message) => {
    if (message.to === "b" && message.type === "appendEntries") probes++;
    return true;
  });
  assert.equal(cluster.log("b"), cluster.log("a"));
  assert.ok(probes < 8, `${probes} messages`);
});

Deno.test(
  "an entry of an older term is committed with one of this (TestLeaderOnlyCommitsLogFromCurrentTerm)",
  {
    permissions: "none",
  },
  () => {
    const cluster = new FakeCluster({ ...THREE, logs: { a: [2, 2], b: [2, 2], c: [2, 2] } });
    cluster.campaign("a");
    cluster.deliver(({ type }) => type !== "appendEntries");
    cluster.deliver((message) => message.type !== "appendEntries" || message.entries.length === 0);
    assert.deepEqual(cluster.leaders, ["a 3"]);
    assert.equal(cluster.state("a").progress.get("b")?.matchIndex, 3, "a quorum holds it");
    assert.equal(cluster.state("a").commitIndex, 1);
    cluster.deliver();
    assert.equal(cluster.state("a").commitIndex, 4);
  },
);

Deno.test(
  "followers hear of a commit without waiting (lagging_commit)",
  { permissions: "none" },
  () => {
    const cluster = new FakeCluster(THREE);
    cluster.elect("a");
    cluster.propose("a", "x", "y");
    cluster.propose("a", "z");
    cluster.deliver();
    for (const id of THREE.voters) assert.deepEqual(cluster.commands(id), ["x", "y", "z"]);
  },
);

Deno.test("what was lost is sent again (heartbeat_resp_recovers_from_probing)", {
  permissions: "none",
}, () => {
  const cluster = new FakeCluster(THREE);
  cluster.elect("a");
  cluster.cuts.add("a>b");
  for (const command of ["x", "y", "z"]) cluster.propose("a", command);
  cluster.deliver();
  cluster.cuts.clear();
  assert.deepEqual(cluster.commands("b"), []);
  cluster.run(2);
  assert.deepEqual(cluster.commands("b"), ["x", "y", "z"]);
  cluster.take("a", { type: "unreachable", member: "b" });
  assert.equal(cluster.state("a").progress.get("b")?.state, "probe");
  cluster.run(2);
  assert.equal(cluster.state("a").progress.get("b")?.state, "replicate");
});

Deno.test("late and doubled messages undo nothing", { permissions: "none" }, () => {
  const cluster = new FakeCluster(THREE);
  cluster.elect("a");
  const kept: Message[] = [];
  for (const command of ["x", "y", "z"]) cluster.propose("a", command);
  cluster.deliver((message) => {
    if (message.to === "b") kept.push(message);
    return true;
  });
  const before = cluster.log("b");
  for (const message of [...kept, ...kept.toReversed()]) {
    const { ready } = cluster.take("b", { type: "message", message });
    assert.deepEqual([ready.entries, ready.committed], [[], []]);
  }
  assert.equal(cluster.log("b"), before);
});

Deno.test(
  "a leader sends ahead, and not without end (replicate_pause)",
  { permissions: "none" },
  () => {
    const entriesTo = (cluster: FakeCluster, id: string) =>
      cluster.messages.filter((message) => message.to === id && message.type === "appendEntries");
    const cluster = new FakeCluster(THREE);
    cluster.elect("a");
    for (let i = 0; i < 3 * INFLIGHT_MESSAGES_MAX; i++) cluster.propose("a", `${i}`);
    assert.equal(entriesTo(cluster, "b").length, INFLIGHT_MESSAGES_MAX);
    cluster.deliver();
    assert.equal(cluster.commands("b").length, 3 * INFLIGHT_MESSAGES_MAX);
    assert.equal(cluster.state("a").uncommittedBytes, 0);

    const large = new Uint8Array(ENTRY_BYTES_MAX / 2);
    for (let i = 0; i < 8; i++) cluster.take("a", { type: "propose", commands: [large] });
    assert.equal(entriesTo(cluster, "b").length, 2, `${INFLIGHT_BYTES_MAX} bytes`);
    cluster.deliver();
    const commands = Array.from({ length: 3_000 }, () => Uint8Array.of(1));
    cluster.take("a", { type: "propose", commands });
    const sizes = entriesTo(cluster, "b").map((m) =>
      m.type === "appendEntries" && m.entries.length
    );
    assert.deepEqual(sizes, [
      APPEND_ENTRIES_MAX,
      APPEND_ENTRIES_MAX,
      3_000 - 2 * APPEND_ENTRIES_MAX,
    ]);
    cluster.deliver();
    assert.equal(cluster.state("c").commitIndex, cluster.state("a").log.lastIndex);
  },
);

Deno.test("a leader that can't commit takes no more", { permissions: "none" }, () => {
  const cluster = new FakeCluster(THREE);
  cluster.elect("a");
  cluster.cuts.add("a");
  const commands = Array.from({ length: UNCOMMITTED_ENTRIES_MAX }, () => Uint8Array.of(1));
  const propose = (sent: readonly Uint8Array[]) =>
    cluster.take("a", { type: "propose", commands: sent }).refusal;
  assert.equal(propose([new Uint8Array(ENTRY_BYTES_MAX + 1)]), "too large");
  assert.equal(propose(commands), null);
  assert.equal(propose([Uint8Array.of(1)]), "too many uncommitted entries");
  const other = new FakeCluster(THREE);
  other.elect("a");
  other.cuts.add("a");
  const large = new Uint8Array(ENTRY_BYTES_MAX);
  let taken = 0;
  while (other.take("a", { type: "propose", commands: [large] }).refusal === null) taken++;
  assert.ok(taken * ENTRY_BYTES_MAX <= UNCOMMITTED_BYTES_MAX && taken > 4, `${taken}`);
  assert.equal(cluster.propose("b", "x").refusal, "not leader");
});

Deno.test(
  "who is behind the log's beginning gets a Raft snapshot",
  { permissions: "none" },
  async (t) => {
    const lagging = () => {
      const cluster = new FakeCluster(THREE);
      cluster.elect("a");
      cluster.cuts.add("c");
      for (const command of ["u", "v", "w", "x"]) cluster.propose("a", command);
      cluster.deliver();
      assert.equal(cluster.take("a", { type: "compact", index: 5 }).refusal, null);
      assert.deepEqual(cluster.disk("a").snapshot.index, 5);
      cluster.cuts.clear();
      return cluster;
    };
    await t.step("and goes on from there (slow_follower_after_compaction)", () => {
      const cluster = lagging();
      cluster.run(2);
      assert.equal(cluster.log("c"), "2");
      assert.deepEqual([cluster.disk("c").snapshot.index, cluster.state("c").commitIndex], [5, 6]);
      assert.equal(cluster.state("a").progress.get("c")?.state, "replicate");
    });
    await t.step(
      "which may be newer than the log's beginning (snapshot_succeed_via_app_resp)",
      () => {
        const cluster = lagging();
        cluster.tick("a", 2);
        cluster.deliver(({ type }) => type !== "installSnapshot");
        const [message] = cluster.messages.splice(0, 1);
        assert.ok(message.type === "installSnapshot");
        const snapshot = cluster.state("a").log.snapshotAt(6);
        assert.ok(snapshot !== null);
        cluster.take("c", { type: "message", message: { ...message, snapshot } });
        cluster.deliver();
        cluster.propose("a", "y");
        cluster.deliver();
        assert.deepEqual([cluster.disk("c").snapshot.index, cluster.commands("c")], [6, ["y"]]);
      },
    );
    await t.step("and another one when it is lost, or was too old (.._app_resp_behind)", () => {
      const cluster = lagging();
      cluster.tick("a", 2);
      cluster.deliver(({ type }) => type !== "installSnapshot");
      const [late] = cluster.messages.splice(0, 1);
      cluster.run(4);
      assert.equal(cluster.state("a").progress.get("c")?.state, "snapshot", "it waits");
      cluster.take("a", { type: "compact", index: 6 });
      cluster.take("c", { type: "message", message: late });
      cluster.deliver();
      cluster.take("a", { type: "unreachable", member: "c" });
      cluster.run(4);
      assert.deepEqual([cluster.disk("c").snapshot.index, cluster.state("c").commitIndex], [6, 6]);
    });
    await t.step("and none that it has gone past: commits stay", () => {
      const cluster = lagging();
      cluster.tick("a", 2);
      const copies: Message[] = [];
      cluster.deliver((message) => {
        if (message.type === "installSnapshot") copies.push(message);
        return true;
      });
      cluster.propose("a", "y");
      cluster.deliver();
      const { state, ready } = cluster.take("c", { type: "message", message: copies[0] });
      assert.deepEqual([state.commitIndex, ready.snapshot, ready.hardState], [7, null, null]);
    });
    await t.step("unless nobody hears there: it would be work for nothing", () => {
      const cluster = lagging();
      cluster.cuts.add("c");
      for (let i = 0; i < 40; i++) {
        cluster.run(1);
        assert.ok(cluster.state("a").progress.get("c")?.state !== "snapshot");
      }
    });
    await t.step("compact keeps to what is committed", () => {
      const cluster = lagging();
      for (const index of [7, 99, 4]) {
        assert.equal(cluster.take("a", { type: "compact", index }).refusal, "not allowed");
      }
    });
  },
);

Deno.test(
  "a restart goes on from what is applied (RestoreCommittedLogs)",
  { permissions: "none" },
  () => {
    const cluster = new FakeCluster(THREE);
    cluster.elect("a");
    for (const command of ["x", "y"]) cluster.propose("a", command);
    cluster.deliver();
    for (const id of THREE.voters) cluster.restart(id);
    assert.deepEqual(THREE.voters.map((id) => cluster.state(id).commitIndex), [4, 4, 4]);
    cluster.elect("b");
    cluster.propose("b", "z");
    cluster.deliver();
    for (const id of THREE.voters) assert.deepEqual(cluster.commands(id), ["z"]);
  },
);

Deno.test("a member that was put back to an older copy gets again what it had", {
  permissions: "none",
}, () => {
  for (const isHeardOf of [true, false]) {
    const cluster = new FakeCluster(THREE);
    cluster.elect("a");
    cluster.propose("a", "x");
    cluster.deliver();
    cluster.putBack("b", () => {
      for (const command of ["y", "z"]) cluster.propose("a", command);
      cluster.run(4);
    });
    if (isHeardOf) cluster.take("a", { type: "unreachable", member: "b" });
    cluster.run(8);
    assert.equal(cluster.log("b"), cluster.log("a"));
    assert.deepEqual(cluster.commands("b"), ["y", "z"]);
    assert.equal(cluster.state("a").progress.get("b")?.matchIndex, 5);
  }
});

Deno.test("a leader that was put back to an older copy undoes nothing of others", {
  permissions: "none",
}, () => {
  const cluster = new FakeCluster({ voters: ["a"], learners: ["b"] });
  cluster.elect("a");
  cluster.propose("a", "x");
  cluster.run(2);
  cluster.putBack("a", () => {
    for (const command of ["y", "z"]) cluster.propose("a", command);
    cluster.run(4);
  });
  const before = cluster.log("b");
  cluster.elect("a");
  for (const command of ["p", "q", "r", "s"]) {
    cluster.propose("a", command);
    cluster.run(4);
  }
  assert.deepEqual(cluster.leaders, ["a 3"]);
  assert.equal(cluster.log("b"), before, "what was committed stays");
  assert.equal(cluster.state("b").isContradicted, true);
  assert.equal(cluster.state("a").progress.get("b")?.matchIndex, 3, "nor is b counted for more");
});

Deno.test("a read waits for a quorum's word", { permissions: "none" }, async (t) => {
  await t.step("and sees what was committed before it", () => {
    const cluster = new FakeCluster(THREE);
    cluster.elect("a");
    cluster.propose("a", "x");
    cluster.deliver();
    assert.equal(cluster.take("a", { type: "read", id: 7 }).refusal, null);
    assert.deepEqual(cluster.reads, []);
    cluster.deliver();
    assert.deepEqual(cluster.reads, [{ member: "a", id: 7, index: 3 }]);
  });
  await t.step("that a leader who is none any more does not get", () => {
    const cluster = new FakeCluster(THREE);
    cluster.elect("a");
    cluster.cuts.add("a");
    cluster.elect("b");
    cluster.take("a", { type: "read", id: 1 });
    cluster.run(40);
    assert.deepEqual(cluster.reads, []);
  });
  await t.step("and no old answer counts for", () => {
    const cluster = new FakeCluster(THREE);
    cluster.elect("a");
    cluster.tick("a", 2);
    cluster.deliver(({ type }) => type === "appendEntries");
    cluster.take("a", { type: "read", id: 1 });
    cluster.deliver(({ type }) => type === "appendEntriesResponse");
    assert.deepEqual(cluster.reads, [], "answers to the round before");
    cluster.deliver();
    assert.deepEqual(cluster.reads.map(({ id }) => id), [1]);
  });
  await t.step("and for an entry of the leader's own term", () => {
    const cluster = new FakeCluster(THREE);
    cluster.campaign("a");
    cluster.deliver(({ type }) => type !== "appendEntries");
    const { refusal } = cluster.take("a", { type: "read", id: 1 });
    assert.equal(refusal, "no entry of this term is committed yet");
  });
  await t.step("alone it is at once", () => {
    const cluster = new FakeCluster({ voters: ["a"] });
    cluster.elect("a");
    cluster.take("a", { type: "read", id: 1 });
    assert.deepEqual(cluster.reads, [{ member: "a", id: 1, index: 2 }]);
  });
});

Deno.test("joinReady() leaves a disk as one by one (async_storage_writes_append_aba_race)", {
  permissions: "none",
}, () => {
  const cluster = new FakeCluster({ ...THREE, logs: { b: [1, 1] } });
  const append = (term: number, prevLogIndex: number, prevLogTerm: number, terms: number[]) => ({
    ...{
      type: "appendEntries",
      term,
      prevLogIndex,
      prevLogTerm,
      leaderCommit: 1,
      round: 0,
    } as const,
    ...{ entries: entriesOf(terms, prevLogIndex + 1), from: term % 2 ? "a" : "c", to: "b" },
  });
  const messages = [
    append(3, 3, 1, [3, 3]),
    append(4, 3, 1, [4]),
    append(5, 2, 1, [5, 5, 5]),
    append(5, 5, 5, [5]),
  ];
  let ready: Ready | null = null;
  let { state } = { state: cluster.state("b") };
  for (const message of messages) {
    const result = step(state, { type: "message", message });
    state = result.state;
    ready = ready === null ? result.ready : joinReady(ready, result.ready);
    cluster.take("b", { type: "message", message });
  }
  assert.deepEqual(ready?.entries, entriesOf([5, 5, 5, 5], 3));
  assert.deepEqual(ready?.hardState, cluster.disk("b").hardState);
  const { entries } = cluster.disk("b");
  assert.deepEqual(entries, [...entriesOf([1]), ...ready.entries]);
  assert.equal(ready.messages.length, 4);
});
