// Goal: a restoration is stored whole or not at all, whenever the disk fails.
import assert from "node:assert/strict";
import { ACTOR, AT, FIRST_SEED, ids, listSpec, newUser, ruleSpec } from "../model/fakes.ts";
import type { Change, LiveState } from "../model/mod.ts";
import { Applier } from "./applier.ts";
import { FakeClock, FaultyKv } from "./fakes.ts";
import { LocalReplicator, valueOf } from "./local_replicator.ts";

const none = { permissions: "none" } as const;
/** More than one transaction takes. */
const RULES = 1_200;

async function open(kv: FaultyKv): Promise<LocalReplicator> {
  const applier = new Applier(await kv.store());
  return new LocalReplicator(applier, { clock: new FakeClock(), node: "node-1" });
}

function restoreOf({ collections: { groups }, settings }: LiveState): Change {
  const rules = Array.from({ length: RULES }, (_, n) => ({
    ...{ id: ids.rule(n), revision: 2, created_at: AT, updated_at: AT },
    spec: ruleSpec(`||n${n}.example^`),
  }));
  const { reset: _, session_epoch: __, password_hash, otp, ...user } = newUser(1, "ann");
  return {
    type: "restore",
    settings: { ...settings.spec, block_ttl: 77 },
    resources: {
      ...{ schedules: [], lists: [], records: [], clients: [], rules },
      groups: [...groups.values()],
    },
    users: [{
      ...user,
      ...{ revision: 3, created_at: AT, updated_at: AT, secrets: { password_hash, otp } },
    }],
    credentials: { tokens: [], webhooks: [] },
    hasSecrets: true,
  };
}

const shapeOf = ({ collections: { lists, rules }, users, settings }: LiveState) =>
  `${lists.size} ${rules.size} ${users.size} ${settings.spec.block_ttl}`;
const [BEFORE, AFTER] = ["1 0 0 10", `0 ${RULES} 1 77`];

Deno.test("propose() restores whole or not at all, whichever commit fails", none, async () => {
  const ends = new Set<string>();
  for (let faultAt = 1; !ends.has("made"); faultAt++) {
    using kv = await FaultyKv.open();
    const replicator = await open(kv);
    await replicator.propose(FIRST_SEED, ACTOR);
    const list = { type: "create", collection: "lists", id: ids.list(1), spec: listSpec("a") };
    valueOf(await replicator.propose(list as Change, ACTOR));
    const before = kv.commits;
    kv.faultOf = (commit) => commit - before >= faultAt ? "before" : null;
    const made = await replicator.propose(restoreOf(replicator.state), ACTOR).then(
      ({ kind }) => kind === "done",
      () => false,
    );
    kv.faultOf = () => null;
    const { state } = await kv.store(); // As after a crash.
    assert.ok([BEFORE, AFTER].includes(shapeOf(state)), `${faultAt}: ${shapeOf(state)}`);
    if (made) assert.equal(shapeOf(state), AFTER);
    ends.add(made ? "made" : shapeOf(state));
  }
  assert.deepEqual([...ends].sort(), [AFTER, BEFORE, "made"].sort());
});
