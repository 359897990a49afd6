import assert from "node:assert/strict";
import { type Actor, apply, type Change, emptyState, type LiveState } from "../model/mod.ts";
import { ExpiredRules } from "./expired_rules.ts";

const none = { permissions: "none" } as const;
const CLI: Actor = { kind: "cli", name: null, address: null };
const END = "2026-01-02T03:04:05.678Z";
const LATER = "2026-01-02T03:04:06.678Z";

/** A store of two rules with an end and one without. */
function filled() {
  const made = { state: emptyState(), audit: [] as string[] };
  const propose = (change: Change, actor: Actor) => {
    const applied = apply(made.state, { change, actor, at: END, node: "n" });
    made.state = applied.state as LiveState;
    if (applied.kind === "made") {
      made.audit.push(`${applied.audit.actor.kind} ${applied.audit.action}`);
    }
    return Promise.resolve(applied.settled);
  };
  for (const [i, expires_at] of [END, LATER, null].entries()) {
    const spec = { rule: `||${i}.test^`, enabled: true, comment: "", managed_by: "api" };
    const limits = { expires_at, groups: [], clients: [] };
    const id = `ru_000000000000000${i}`;
    void propose({ type: "create", collection: "rules", id, spec: { ...spec, ...limits } }, CLI);
  }
  made.audit.length = 0;
  const replicator = {
    propose,
    get state() {
      return made.state;
    },
  };
  const left = () => [...made.state.collections.rules.values()].map(({ spec }) => spec.rule);
  return { replicator, made, left };
}

Deno.test("ExpiredRules deletes what has come to its end, as the system", none, async () => {
  const { replicator, made, left } = filled();
  let nowMs: number | null = Date.parse(END) - 1;
  let isLeader = false;
  const expired = new ExpiredRules({ replicator, nowMs: () => nowMs, isLeader: () => isLeader });
  isLeader = true;
  await expired.look();
  assert.equal(left().length, 3);
  nowMs = null;
  await expired.look();
  assert.equal(left().length, 3, "nobody knows the time");
  nowMs = Date.parse(END);
  isLeader = false;
  await expired.look();
  assert.equal(left().length, 3, "another member does it");
  isLeader = true;
  const write = Deno.stderr.writeSync;
  Deno.stderr.writeSync = (bytes) => bytes.length;
  try {
    await expired.look();
    assert.deepEqual(left(), ["||1.test^", "||2.test^"]);
    assert.deepEqual(made.audit, ["system batch"]);
    nowMs = Date.parse("2036-01-01T00:00:00Z");
    await expired.look();
  } finally {
    Deno.stderr.writeSync = write;
  }
  assert.deepEqual(left(), ["||2.test^"]);
  assert.equal([...made.state.limitedRules.keys()].length, 0);
});
