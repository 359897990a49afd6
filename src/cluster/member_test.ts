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
