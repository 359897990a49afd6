// Goal: members start, join, take changes, fail and take over as the specification has it. Method:
// the real driver, store and consensus on a clock, a network and disks of a simulation.
import assert from "node:assert/strict";
import { ClusterSim, type ClusterSimOptions } from "../../tests/sim/cluster_sim.ts";
import { ACTOR, ids, ruleSpec } from "../model/fakes.ts";
import type { Change, Settled } from "../model/mod.ts";

const pair: Omit<ClusterSimOptions, "seed"> = { nodes: ["a", "b"], witnesses: ["w"] };

async function whole(options = pair): Promise<ClusterSim> {
  const sim = await ClusterSim.open({ seed: 1, ...options });
  await sim.until(() => sim.isWell, "a whole cluster");
  return sim;
}

function rule(n: number): Change {
  return {
    type: "create",
    collection: "rules",
    id: ids.rule(n),
    spec: ruleSpec(`||${n}.example^`),
  };
}

function propose(sim: ClusterSim, node: string, change: Change): Promise<Settled> {
  return sim.settled(sim.member(node).replicator.propose(change, ACTOR));
}

function shown(sim: ClusterSim, node: string): string[] {
  return sim.report(node).members.map(({ node, membership, witness, state }) =>
    `${node} ${membership} ${state}${witness ? " witness" : ""}`
  );
}

Deno.test("two nodes and a witness become three voters of one configuration", async () => {
  const sim = await whole();
  for (const node of ["a", "b", "w"]) {
    assert.deepEqual(shown(sim, node), [
      "a voter leader",
      "b voter follower",
      "w voter follower witness",
    ]);
    const { problems, writable, leader, role, config } = sim.report(node);
    assert.deepEqual([problems, writable, leader, config.epoch], [[], true, "a", 1], node);
    assert.equal(role, node === "a" ? "primary" : "replica");
  }
  sim.close();
});

Deno.test("two nodes alone have one voter", async () => {
  const sim = await whole({ nodes: ["a", "b"] });
  assert.deepEqual(shown(sim, "b"), ["a voter leader", "b learner learner"]);
  sim.close();
});

Deno.test("a change through any member holds there when it is answered", async () => {
  const sim = await whole();
  for (const [n, node] of ["a", "b", "a", "b"].entries()) {
    assert.equal((await propose(sim, node, rule(n))).kind, "done");
    assert.ok(sim.member(node).replicator.state.collections.rules.has(ids.rule(n)), node);
  }
  const again = await propose(sim, "b", rule(1));
  assert.deepEqual([again.kind, again.kind === "refused" && again.code], ["refused", "conflict"]);
  sim.close();
});

Deno.test("a change is made once, though its leader dies before it answers", async () => {
  const sim = await whole();
  const asked = sim.member("b").replicator.propose(rule(1), ACTOR);
  await sim.run(1); // It is on its way to the leader, which dies with it.
  sim.crash(sim.node("a"));
  assert.equal((await sim.settled(asked)).kind, "done");
  assert.equal(sim.member("b").replicator.state.collections.rules.get(ids.rule(1))?.revision, 1);
  await sim.start(sim.node("a"));
  await sim.until(() => sim.isWell, "a whole cluster again");
  assert.equal(sim.member("a").replicator.state.collections.rules.get(ids.rule(1))?.revision, 1);
  sim.close();
});

Deno.test("without a leader within reach a change ends with 503 within 10 s, and says why", async () => {
  const sim = await whole();
  sim.partition(["b"]);
  await sim.until(() => sim.report("b").leader === null, "b knows of no leader");
  const { tick } = sim;
  await assert.rejects(propose(sim, "b", rule(1)), {
    code: "unavailable",
    message:
      /no leader can be reached: a and w can't be reached from here; the change is not made$/,
  });
  assert.ok(sim.tick - tick <= 200, `${sim.tick - tick} ticks`);
  const { writable, problems } = sim.report("b");
  assert.equal(writable, false);
  assert.match(problems.join(), /no leader can be reached/);
  assert.equal((await propose(sim, "a", rule(2))).kind, "done", "the others go on");
  sim.close();
});

Deno.test("an isolated leader stops calling itself one, and takes no change", async () => {
  const sim = await whole();
  sim.partition(["a"]);
  const lost = sim.member("a").replicator.propose(rule(1), ACTOR);
  await sim.until(() => sim.report("a").state !== "leader", "a steps down", 200);
  await assert.rejects(sim.settled(lost), {
    code: "unavailable",
    message: /the change may or may not be made yet$/,
  });
  await sim.until(() => sim.report("b").state === "leader", "b leads");
  assert.equal((await propose(sim, "b", rule(2))).kind, "done");
  sim.mend();
  await sim.until(() => sim.isWell, "a whole cluster again");
  sim.close();
});

Deno.test("an orderly stop hands over, and the others say that it has stopped", async () => {
  const sim = await whole();
  await sim.stop(sim.node("a"));
  await sim.until(() => sim.report("b").state === "leader", "b leads", 20);
  const a = sim.report("b").members.find(({ node }) => node === "a");
  assert.deepEqual([a?.state, a?.reachable, a?.membership], ["stopped", false, "voter"]);
  assert.match(sim.report("b").problems.join(), /member a can't be reached/);
  sim.close();
});

Deno.test("members of different versions: changes are refused through each, and it is said", async () => {
  const sim = await whole();
  const b = sim.node("b");
  await sim.stop(b);
  b.version = "0.8.0";
  await sim.start(b);
  await sim.run(10);
  for (const node of ["a", "b"]) {
    await assert.rejects(propose(sim, node, rule(1)), {
      code: "unavailable",
      message: /differ in version: a runs 0.7.0, b runs 0.8.0/,
    });
    assert.match(sim.report(node).problems.join(), /runs version 0\.[78]\.0/);
  }
  for (const name of ["w", "a"]) {
    const node = sim.node(name);
    await sim.stop(node);
    node.version = "0.8.0";
    await sim.start(node);
    await sim.run(60);
  }
  await sim.until(() => sim.isWell, "a whole cluster of one version");
  assert.equal((await propose(sim, "a", rule(1))).kind, "done");
  sim.close();
});

Deno.test("a node that waits says so, and who answers it", async () => {
  const sim = await ClusterSim.open({ seed: 1, nodes: ["a", "b", "c"], bootstrap: null });
  await sim.run(10);
  assert.match(sim.report("a").problems.join(), /waits for a leader to add it.*; b and c answer$/);
  sim.crash(sim.node("b"));
  await sim.run(10);
  assert.match(sim.report("a").problems.join("\n"), /; c answers$/m);
  sim.crash(sim.node("c"));
  await sim.run(10);
  assert.match(sim.report("a").problems.join("\n"), /; no member answers$/m);
  assert.equal(sim.report("a").writable, false);
  sim.close();
});

Deno.test("a node of another version is not added", async () => {
  const sim = await ClusterSim.open({ seed: 1, nodes: ["a", "b"], versions: { b: "0.8.0" } });
  await sim.run(200);
  assert.deepEqual(shown(sim, "a"), ["a voter leader", "b configured learner"]);
  sim.close();
});

Deno.test("a member whose disk is full takes no part, and goes on when there is room", async () => {
  const sim = await whole();
  sim.fillDisk(sim.node("a"), 200);
  const asked = sim.member("a").replicator.propose(rule(1), ACTOR);
  await sim.until(() => sim.report("b").state === "leader", "b leads");
  assert.match(sim.report("a").problems.join(), /no space left/);
  assert.equal((await propose(sim, "b", rule(2))).kind, "done");
  await sim.settled(asked).catch((error) => assert.equal(error.code, "unavailable"));
  await sim.until(() => sim.isWell, "a goes on");
  sim.close();
});

Deno.test("a removed member takes no changes, and joins again with an empty store", async () => {
  const sim = await whole();
  await sim.settled(sim.member("b").removeMember("b", ACTOR));
  await sim.run(10);
  assert.deepEqual(shown(sim, "a").slice(0, 2), ["a voter leader", "b configured unknown"]);
  assert.deepEqual(sim.report("a").members[2].membership, "learner", "no two voters");
  assert.equal(sim.report("b").writable, false);
  assert.match(sim.report("b").problems.join(), /was removed from its cluster/);
  const { term } = sim.report("a");
  await sim.run(300);
  assert.equal(sim.report("a").term, term, "it disturbs no election");
  await assert.rejects(propose(sim, "b", rule(1)), { code: "unavailable", message: /removed/ });
  await sim.empty(sim.node("b"));
  await sim.start(sim.node("b"));
  await sim.until(() => sim.isWell, "b is in again");
  await assert.rejects(sim.settled(sim.member("a").removeMember("x", ACTOR)), {
    code: "not_found",
  });
  sim.close();
});

Deno.test("a leader that removes itself leaves the others with one", async () => {
  const sim = await whole({ nodes: ["a", "b", "c"] });
  await sim.settled(sim.member("a").removeMember("a", ACTOR));
  await sim.until(() => sim.leaders.some(({ name }) => name !== "a"), "another leads");
  await sim.run(20);
  assert.equal(sim.report("a").state, "unknown");
  sim.close();
});

Deno.test("two nodes alone: what is left of them takes over, and the other joins it", async () => {
  const sim = await whole({ nodes: ["a", "b"] });
  await propose(sim, "b", rule(1));
  await assert.rejects(sim.settled(sim.member("b").promote(false, ACTOR)), { code: "conflict" });
  sim.crash(sim.node("a"));
  await sim.until(() => sim.report("b").leader === null, "a is missed");
  const before = sim.report("b");
  await sim.settled(sim.member("b").promote(false, ACTOR));
  const after = sim.report("b");
  assert.deepEqual([after.state, after.writable, after.config.epoch], ["leader", true, 2]);
  assert.notEqual(after.cluster, before.cluster);
  assert.ok(after.term > before.term);
  assert.equal((await propose(sim, "b", rule(2))).kind, "done");

  await sim.start(sim.node("a"));
  await sim.until(() => sim.report("a").state === "leader", "a leads what it knows");
  await sim.run(10);
  for (const [node, other] of ["ab", "ba"]) {
    assert.match(sim.report(node).problems.join(), new RegExp(`${other} is in another cluster`));
  }
  sim.close();
});

Deno.test("a member of the former cluster is demoted and takes the new one's configuration", async () => {
  const sim = await whole({ nodes: ["a", "b"] });
  sim.crash(sim.node("a"));
  await sim.until(() => sim.report("b").leader === null, "a is missed");
  await sim.settled(sim.member("b").promote(false, ACTOR));
  await propose(sim, "b", rule(7));
  await sim.start(sim.node("a"));
  await sim.until(() => sim.report("a").state === "leader", "a leads what it knows");
  await sim.run(10);
  await sim.settled(sim.member("a").demote(false, ACTOR));
  await sim.until(() => sim.isWell, "a is in the new cluster");
  assert.ok(sim.member("a").replicator.state.collections.rules.has(ids.rule(7)));
  assert.deepEqual(shown(sim, "b"), ["a learner learner", "b voter leader"]);
  await assert.rejects(sim.settled(sim.member("a").demote(false, ACTOR)), { code: "conflict" });
  sim.close();
});

Deno.test("a joining member keeps its own configuration in a file", async () => {
  const sim = await whole();
  const kept = sim.node("b").disk.names.filter((name) => name.startsWith("replaced-"));
  assert.equal(kept.length, 1);
  assert.match(kept[0], /^replaced-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\dZ\.jsonl$/);
  const lines = new TextDecoder().decode(sim.node("b").disk.file(kept[0])?.bytes).trim().split(
    "\n",
  );
  assert.equal(JSON.parse(lines[0]).index, 1);
  assert.deepEqual(sim.node("w").disk.names.filter((name) => name.startsWith("replaced-")), []);
  sim.close();
});

Deno.test("a member whose log is damaged votes no more as who it was, and is added anew", async () => {
  const sim = await whole();
  const b = sim.node("b");
  const { id } = sim.member("b").state;
  sim.crash(b);
  const file = b.disk.file("raft.log");
  assert.ok(file !== undefined);
  const last = file.bytes.findLastIndex((byte) => byte !== 0);
  file.bytes[last - 8] ^= 1;
  sim.partition(["b"]);
  await sim.start(b);
  await sim.run(60);
  assert.notEqual(sim.member("b").state.id, id);
  assert.match(sim.report("b").problems.join(), /raft\.log: it is not what was written/);
  sim.mend();
  await sim.until(() => sim.isWell, "b is in again");
  sim.close();
});

Deno.test("a member that was away longer than the log reaches is sent the whole configuration", async () => {
  const sim = await whole();
  sim.crash(sim.node("b"));
  for (let n = 0; n < 40; n++) {
    await sim.settled(Promise.all(Array.from({ length: 64 }, (_, i) => {
      return sim.member("a").replicator.propose(rule(64 * n + i), ACTOR);
    })));
  }
  assert.ok(sim.member("a").state.log.base.index > 1_000, "the log was compacted");
  await sim.start(sim.node("b"));
  await sim.until(() => sim.isWell, "b has caught up");
  assert.equal(sim.member("b").replicator.state.collections.rules.size, 64 * 40);
  await sim.run(5); // The last part is answered.
  assert.equal(sim.member("a").figures.snapshotsSent, 3);
  sim.close();
});

Deno.test("where the witness alone has what is newest, the node that is left fetches it and leads", async () => {
  const sim = await whole();
  sim.crash(sim.node("b"));
  assert.equal((await propose(sim, "a", rule(1))).kind, "done");
  sim.crash(sim.node("a"));
  await sim.start(sim.node("b"));
  await sim.until(() => sim.report("b").state === "leader", "b leads");
  await sim.until(
    () => sim.member("b").replicator.state.collections.rules.has(ids.rule(1)),
    "b has what was answered",
  );
  sim.close();
});

Deno.test("the term that a member tells of does not fall when it joins a cluster of earlier terms", async () => {
  const sim = await whole({ nodes: ["a", "b"] });
  sim.crash(sim.node("a"));
  await sim.until(() => sim.report("b").leader === null, "a is missed");
  await sim.settled(sim.member("b").promote(false, ACTOR));
  sim.crash(sim.node("b"));
  for (let start = 0; start < 5; start++) {
    await sim.start(sim.node("a"));
    await sim.until(() => sim.report("a").state === "leader", "a leads what it knows");
    if (start < 4) sim.crash(sim.node("a"));
  }
  await sim.start(sim.node("b"));
  await sim.until(() => sim.report("b").state === "leader", "b leads the new one");
  const { term } = sim.report("a");
  assert.ok(term > sim.report("b").term);
  await sim.run(10);
  await sim.settled(sim.member("a").demote(false, ACTOR));
  await sim.until(() => sim.isWell, "a is in the new cluster");
  assert.ok(sim.report("a").term >= term, `${sim.report("a").term} after ${term}`);
  sim.close();
});

Deno.test("a member that was just started is not promoted past a leader that it has not heard", async () => {
  const sim = await whole({ nodes: ["a", "b", "c"] });
  await sim.stop(sim.node("b"));
  await sim.start(sim.node("b"));
  assert.equal(sim.report("b").leader, null);
  await assert.rejects(sim.settled(sim.member("b").promote(false, ACTOR)), { code: "conflict" });
  sim.close();
});

Deno.test("a member with an older copy of its disk has what it lacks soon", async () => {
  for (const name of ["w", "b"]) {
    const sim = await whole();
    const copy = await sim.copy(sim.node(name));
    for (let n = 0; n < 3; n++) await propose(sim, "b", rule(n));
    await sim.putBack(sim.node(name), copy);
    await sim.until(() => sim.isWell, `${name} has caught up`);
    sim.close();
  }
});

Deno.test("a member that has more than its leader, whose disk is an older copy, says so", async () => {
  const sim = await whole({ nodes: ["a", "b"] });
  const copy = await sim.copy(sim.node("a"));
  for (let n = 0; n < 3; n++) await propose(sim, "b", rule(n));
  await sim.putBack(sim.node("a"), copy);
  await sim.until(() => sim.report("a").state === "leader", "a leads what it knows");
  assert.equal((await propose(sim, "a", rule(9))).kind, "done");
  const said = () => sim.report("a").problems.join();
  await sim.until(() => /^cluster: member b answers, and has not taken/.test(said()), "a says so");
  assert.match(sim.report("b").problems.join(), /holds changes that its leader a does not have/);
  assert.equal(sim.report("b").writable, false);
  assert.ok(
    sim.member("b").replicator.state.collections.rules.has(ids.rule(2)),
    "nothing is undone",
  );
  await assert.rejects(propose(sim, "b", rule(7)), {
    code: "unavailable",
    message: /older copy.*; the change is not made$/,
  });
  await sim.settled(sim.member("b").demote(true, ACTOR));
  await sim.until(() => sim.isWell, "b is in again");
  assert.ok(sim.member("b").replicator.state.collections.rules.has(ids.rule(9)));
  sim.close();
});

Deno.test("a leader says which member answers and takes no changes", async () => {
  const sim = await whole();
  sim.fillDisk(sim.node("w"), 600);
  assert.equal((await propose(sim, "a", rule(1))).kind, "done");
  const said = () => sim.report("a").problems.join();
  await sim.until(() => /^cluster: member w answers, and has not taken/.test(said()), "a says so");
  await sim.until(() => sim.isWell, "w goes on when there is room", 800);
  sim.close();
});
