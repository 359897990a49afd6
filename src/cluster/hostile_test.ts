// Goal: no bytes make a member's codecs throw anything but what its receiver counts, and every frame
// is read as it was written. Method: frames of every kind, changed by chance, from one seed.
import assert from "node:assert/strict";
import { Prng, seedFromEnv } from "../../tests/prng.ts";
import { ACTOR, AT, ids, ruleSpec } from "../model/fakes.ts";
import { type Body, type Entry, WireError } from "../raft/mod.ts";
import { decodeCommand, encodeCommand, type Proposal } from "./command_codec.ts";
import { decodeFrame, encodeFrame, type Frame } from "./frames.ts";

const ROUNDS = 30_000;
const none = { permissions: "none" } as const;

const CONFIGURATION = {
  ...{ voters: ["a.1", "b.1"], outgoing: ["a.1"], learners: ["w.1"], witnesses: ["w.1"] },
};
const ENTRIES: readonly Entry[] = [
  { index: 4, term: 2, type: "empty" },
  { index: 5, term: 2, type: "command", data: Uint8Array.of(1, 2, 3) },
  { index: 6, term: 3, type: "configuration", configuration: CONFIGURATION },
];
const END = { lastLogIndex: 7, lastLogTerm: 3 };
const SNAPSHOT = { index: 3, term: 2, configuration: CONFIGURATION };
const BODIES: readonly Body[] = [
  { type: "requestVote", term: 3, ...END, isTransfer: true },
  { type: "preVote", term: 3, ...END, isTransfer: false },
  { type: "requestVoteResponse", term: 3, voteGranted: true },
  { type: "preVoteResponse", term: 3, voteGranted: false },
  {
    ...{ type: "appendEntries", term: 3, prevLogIndex: 3, prevLogTerm: 2, leaderCommit: 2 },
    ...{ entries: ENTRIES, round: 2 ** 33 },
  },
  {
    ...{ type: "appendEntriesResponse", term: 3, success: false, matchIndex: 0 },
    ...{ rejectedIndex: 3, hintIndex: 2, hintTerm: 1, round: 9 },
  },
  { type: "timeoutNow", term: 3 },
  { type: "offerLog", term: 3, ...END },
  { type: "fetchEntries", term: 3, index: 3, indexTerm: 2 },
  { type: "fetchedEntries", term: 3, prevLogIndex: 3, prevLogTerm: 2, entries: ENTRIES, ...END },
  { type: "installSnapshot", term: 3, snapshot: SNAPSHOT },
  { type: "fetchedSnapshot", term: 3, snapshot: SNAPSHOT, ...END },
];
const cluster = "0123456789abcdef";
const FRAMES: readonly Frame[] = [
  ...BODIES.map((body): Frame => {
    return { type: "raft", cluster, message: { ...body, from: "a.1", to: "b.1" } };
  }),
  {
    type: "status",
    status: {
      ...{ cluster, id: "a.1", state: "leader", term: 3, leader: "a.1" },
      ...{ configuration: CONFIGURATION, configurationIndex: 6 },
    },
  },
  { type: "propose", cluster, number: 7, data: Uint8Array.of(9, 8, 7) },
  { type: "remove", cluster, number: 8, node: "b" },
  { type: "answer", number: 7, outcome: { kind: "taken" } },
  { type: "answer", number: 7, outcome: { kind: "notLeader" } },
  { type: "answer", number: 7, outcome: { kind: "retry", message: "later" } },
  { type: "answer", number: 7, outcome: { kind: "refused", code: "conflict", message: "no" } },
  {
    ...{ type: "part", transfer: 1, place: 0, isLast: false, bytes: Uint8Array.of(1) },
    head: { cluster, message: { ...BODIES[10], from: "a.1", to: "b.1" } },
  },
  { type: "part", transfer: 1, place: 1, isLast: true, head: null, bytes: new Uint8Array(0) },
  { type: "partAnswer", transfer: 1, next: 2, isRefused: false },
];

function proposal(rules: number): Proposal {
  const add = Array.from({ length: rules }, (_, n) => ({
    id: ids.rule(n),
    spec: ruleSpec(`||${n}.example^`),
  }));
  return {
    id: "p-1",
    command: { change: { type: "rules_batch", add, remove: [] }, actor: ACTOR, at: AT, node: "a" },
  };
}

Deno.test("decodeFrame() reads every frame as it was written", none, () => {
  for (const frame of FRAMES) assert.deepEqual(decodeFrame(encodeFrame(frame)), frame);
});

Deno.test("decodeCommand() reads a change of any size as it was written", none, () => {
  for (const rules of [0, 1, 10_000]) {
    const data = encodeCommand(proposal(rules));
    assert.deepEqual(decodeCommand(data), proposal(rules));
  }
  const add = Array.from({ length: 10_000 }, () => {
    const rule = Array.from(new Prng(1).bytes(900), (byte) => byte.toString(36)).join("");
    return { id: ids.rule(1), spec: ruleSpec(rule) };
  });
  const { command } = proposal(0);
  const change = { type: "rules_batch", add, remove: [] } as const;
  assert.throws(() => encodeCommand({ id: "p", command: { ...command, change } }), {
    code: "invalid",
    message:
      /^a change of 1\d(\.\d)? MiB as JSON, \d(\.\d)? MiB compressed, is more .* takes at once, 8 MiB and 1 MiB: /,
  });
});

Deno.test("decodeFrame() and decodeCommand() refuse what they can't read, and nothing worse", () => {
  const prng = new Prng(seedFromEnv());
  const seeds = [
    ...FRAMES.map(encodeFrame),
    ...[0, 1, 2_000].map((n) => encodeCommand(proposal(n))),
  ];
  let [taken, refused] = [0, 0];
  for (let round = 0; round < ROUNDS; round++) {
    const bytes = prng.chance(0.1) ? prng.bytes(prng.int(200)) : changed(prng, prng.pick(seeds));
    for (const decode of [decodeFrame, decodeCommand]) {
      try {
        decode(bytes);
        taken++;
      } catch (error) {
        refused++;
        if (!(error instanceof WireError)) throw new Error(`${[...bytes]}`, { cause: error });
      }
    }
  }
  assert.ok(taken > ROUNDS / 100 && refused > ROUNDS / 10, `${taken} taken, ${refused} refused`);
});

function changed(prng: Prng, seed: Uint8Array): Uint8Array {
  const bytes = seed.slice();
  for (let n = 1 + prng.int(4); n > 0; n--) {
    const at = prng.int(bytes.length);
    if (prng.chance(0.5)) bytes[at] ^= 1 << prng.int(8);
    else bytes[at] = prng.pick([0, 1, 2, 0x7f, 0x80, 0xff]);
  }
  if (prng.chance(0.2)) return bytes.subarray(0, prng.int(bytes.length));
  return prng.chance(0.1) ? Uint8Array.of(...bytes, ...prng.bytes(3)) : bytes;
}
