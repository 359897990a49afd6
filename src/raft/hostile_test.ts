// Goal: whatever comes over the wire, `step` does not throw, forgets nothing that is committed and
// goes back in no term. Method: sound messages of a running cluster, changed at random, and made up
// ones; the seed is printed.
import assert from "node:assert/strict";
import { Prng, seedFromEnv } from "../../tests/prng.ts";
import { entriesOf, FakeCluster } from "./fakes.ts";
import { INDEX_MAX, TERM_JUMP_MAX, TERM_MAX } from "./limits.ts";
import type { Body, Message } from "./messages.ts";
import { step } from "./mod.ts";

const NUMBERS = [
  ...[0, 1, 2, 3, 4, 5, 7, 100, -1, 0.5, NaN, Infinity, -Infinity],
  ...[INDEX_MAX, INDEX_MAX + 1, TERM_MAX, TERM_MAX + 1, TERM_JUMP_MAX, Number.MAX_SAFE_INTEGER],
];
const IDS = ["a", "b", "c", "w", "x", "", "x".repeat(200)];

const END = { lastLogIndex: 4, lastLogTerm: 2 };
const SNAPSHOT = {
  index: 3,
  term: 2,
  configuration: { voters: ["a", "b"], outgoing: [], learners: ["w"], witnesses: ["w"] },
};
const VOTE = { term: 3, ...END, isTransfer: true };

/** One of each kind, to be changed; others come from a running cluster. */
const MADE: readonly Body[] = [
  { type: "requestVote", ...VOTE },
  { type: "preVote", ...VOTE },
  { type: "requestVoteResponse", term: 2, voteGranted: true },
  { type: "preVoteResponse", term: 3, voteGranted: true },
  {
    ...{ type: "appendEntries", term: 3, prevLogIndex: 3, prevLogTerm: 2, leaderCommit: 4 },
    ...{ entries: entriesOf([2, 3], 4), round: 0 },
  },
  {
    ...{ type: "appendEntriesResponse", term: 2, success: false, matchIndex: 0, round: 0 },
    ...{ rejectedIndex: 3, hintIndex: 2, hintTerm: 1 },
  },
  { type: "installSnapshot", term: 3, snapshot: SNAPSHOT },
  { type: "timeoutNow", term: 2 },
  { type: "offerLog", term: 2, ...END },
  { type: "fetchEntries", term: 2, index: 3, indexTerm: 2 },
  {
    ...{ type: "fetchedEntries", term: 3, ...END, prevLogIndex: 2, prevLogTerm: 1 },
    entries: entriesOf([2, 2], 3),
  },
  { type: "fetchedSnapshot", term: 3, ...END, snapshot: SNAPSHOT },
];

/** The same with some of its numbers, names and lists changed, at any depth. */
function changed(prng: Prng, value: unknown, key = ""): unknown {
  if (value instanceof Uint8Array || key === "type") return value;
  if (Array.isArray(value)) {
    const items = value.map((item) => changed(prng, item));
    if (prng.chance(0.1)) items.reverse();
    if (prng.chance(0.1)) items.push(...items);
    return prng.chance(0.1) ? items.slice(1) : items;
  }
  if (typeof value === "object" && value !== null) {
    return Object.fromEntries(
      Object.entries(value).map(([name, item]) => [name, changed(prng, item, name)]),
    );
  }
  if (!prng.chance(0.15)) return value;
  if (typeof value === "number") {
    return prng.chance(0.5) ? value + prng.int(5) - 2 : prng.pick(NUMBERS);
  }
  if (typeof value === "boolean") return !value;
  return key === "to" ? value : prng.pick(IDS);
}

/** A cluster in any situation. */
function situation(prng: Prng): FakeCluster {
  const cluster = new FakeCluster({
    ...{ voters: ["a", "b", "c", "w"], witnesses: ["w"] },
    logs: { a: [1, 2], b: [1, 2, 2], c: [1], w: [2] },
  });
  for (let i = 0; i < 3; i++) {
    const id = prng.pick(["a", "b", "c"]);
    if (prng.chance(0.6)) cluster.elect(id);
    if (prng.chance(0.5)) cluster.propose(id, "x");
    if (prng.chance(0.3)) cluster.cuts.add(prng.pick(["a", "b", "c", "w"]));
    cluster.run(prng.int(20));
    if (prng.chance(0.3)) {
      cluster.take(id, { type: "compact", index: cluster.state(id).commitIndex });
    }
    if (prng.chance(0.3)) cluster.cuts.clear();
  }
  return cluster;
}

Deno.test("step() bears any message", () => {
  const prng = new Prng(seedFromEnv());
  const types = new Set<string>();
  let refused = 0;
  for (let round = 0; round < 150; round++) {
    const cluster = situation(prng);
    const seen: Message[] = [];
    cluster.cuts.clear();
    for (let i = 0; i < 40; i++) {
      for (const id of ["a", "b", "c", "w"]) cluster.tick(id);
      cluster.deliver((message) => {
        seen.push(message);
        return prng.chance(0.8);
      });
      cluster.messages = cluster.messages.slice(0, 10);
    }
    const made = MADE.map((body) => ({
      ...body,
      from: prng.pick(IDS),
      to: prng.pick(["a", "b", "c", "w"]),
    }));
    for (let i = 0; i < 100; i++) {
      const message = changed(
        prng,
        prng.pick(prng.chance(0.5) && seen.length > 0 ? seen : made),
      ) as Message;
      types.add(message.type);
      const before = cluster.state(message.to);
      const held = before.log.slice(before.log.base.index + 1, before.commitIndex);
      const result = step(before, { type: "message", message });
      if (result.refusal !== null) refused++;
      const { state } = result;
      assert.ok(state.currentTerm >= before.currentTerm, "the term fell");
      assert.ok(
        state.currentTerm <= before.currentTerm + TERM_JUMP_MAX + 1 &&
          Number.isInteger(state.currentTerm),
      );
      assert.ok(state.commitIndex >= before.commitIndex, "a commit was undone");
      assert.ok(state.commitIndex <= state.log.lastIndex, "what is committed is there");
      if (result.ready.snapshot === null) {
        const kept = state.log.slice(before.log.base.index + 1, before.commitIndex);
        assert.deepEqual(kept, held, "what is committed changed");
      }
      assert.ok(state.role !== "leader" || !state.isWitness);
      assert.ok(state.log.lastTerm <= state.currentTerm);
      // On from there, for a while: what was taken in does no harm later either.
      let later = state;
      for (let tick = 0; tick < 5; tick++) later = step(later, { type: "tick" }).state;
      assert.ok(later.currentTerm >= state.currentTerm);
    }
  }
  assert.ok(refused > 1_000, `${refused} were refused`);
  assert.equal(types.size, MADE.length);
});

Deno.test("a second leader of a term, and strangers, are ignored", { permissions: "none" }, () => {
  const cluster = new FakeCluster({ voters: ["a", "b", "c"] });
  cluster.elect("a");
  const append = {
    ...{ type: "appendEntries", term: 2, prevLogIndex: 2, prevLogTerm: 2 } as const,
    ...{ entries: [], leaderCommit: 2, round: 0 },
  };
  for (const [from, to] of [["c", "b"], ["x", "b"], ["b", "a"], ["b", "b"], ["a", "c"]]) {
    const message: Message = { ...append, from, to };
    const { refusal, ready } = cluster.take("b", { type: "message", message });
    assert.deepEqual([refusal, ready.messages], ["implausible", []], `${from} to ${to}`);
  }
  const response: Message = {
    ...{ type: "appendEntriesResponse", term: 2, success: true, matchIndex: 2 } as const,
    ...{ rejectedIndex: 0, hintIndex: 0, hintTerm: 0, round: 0, from: "x", to: "a" },
  };
  cluster.propose("a", "y");
  for (const message of [response, { ...response, matchIndex: 99, from: "b" }]) {
    cluster.take("a", { type: "message", message });
  }
  assert.equal(cluster.state("a").commitIndex, 2);
});
