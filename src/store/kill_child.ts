/**
 * The child of `kill_test.ts`: makes changes of every kind in several lanes until it is killed. It
 * says each one before it proposes it (`try`) and once it was answered (`ack`), with what the lane's
 * resource is to be from then on.
 */
import { Prng } from "../../tests/prng.ts";
import { clientSpec, groupSpec, hex, ids, listSpec, newUser, recordSpec } from "../model/fakes.ts";
import type { Actor, Change } from "../model/mod.ts";
import { openNodeStore } from "./mod.ts";

const LANES = 8;
/** Share of a lane's changes that are imports, or batches, each too large for one transaction. */
const LARGE_RATIO = 0.15;
const LARGE_RULES = 300;
/** The lanes that make them. */
const [IMPORTS, BATCHES] = [0, 4];

const [directory, seedText, run] = Deno.args;
const prng = new Prng(Number(seedText));
const actor: Actor = { kind: "cli", name: "child", address: null };
const source = { lists: [], rules: [] };
const { replicator } = await openNodeStore(source, {
  directory,
  node: "node-1",
  clock: { nowMs: () => Date.now() },
  program: "0.7.0",
  onFailure: "closed",
});

const encoder = new TextEncoder();
function say(line: string): void {
  Deno.stdout.writeSync(encoder.encode(line + "\n"));
}

/** What a lane does next with its resource: make it, change it, or delete it. */
function next(lane: number, step: number): { change: Change; id: string; token: string | null } {
  const token = `${run}-${lane}-${step}`;
  const { collections, users } = replicator.state;
  const kind = lane % 4;
  if (kind === 3) {
    const id = ids.user(lane);
    const there = users.has(id);
    if (there && prng.chance(0.3)) {
      return { change: { type: "user_delete", id, ifMatch: null }, id, token: null };
    }
    const change: Change = there
      ? {
        type: "user_change",
        id,
        ifMatch: null,
        fields: { name: token },
        endSessions: false,
        action: "update",
      }
      : { type: "user_create", user: newUser(lane, token, { role: "viewer" }) };
    return { change, id, token };
  }
  if (kind === 0) {
    const id = ids.client(lane);
    const spec = clientSpec(token, [`192.0.2.${lane}`, `10.${lane}.0.0/16`], [
      `id-${lane}-${step}`,
    ]);
    return resource("clients", id, spec, collections.clients.has(id), token);
  }
  if (kind === 1) {
    const id = ids.record(lane);
    const spec = { ...recordSpec(`r${lane}.example`, "A", "192.0.2.1"), comment: token };
    return resource("records", id, spec, collections.records.has(id), token);
  }
  // A large value: its audit entry is several pages of the file.
  const id = ids.group(lane);
  const services = Array.from({ length: 200 }, (_, n) => ({ service: `service-${hex(n)}` }));
  const spec = { ...groupSpec(token, [], services) };
  return resource("groups", id, spec, collections.groups.has(id), token);
}

function resource<C extends "clients" | "records" | "groups">(
  collection: C,
  id: string,
  spec: Extract<Change, { type: "create"; collection: C }>["spec"],
  there: boolean,
  token: string,
): { change: Change; id: string; token: string | null } {
  if (there && prng.chance(0.3)) {
    return { change: { type: "delete", collection, id, ifMatch: null }, id, token: null };
  }
  const change = there
    ? { type: "replace", collection, id, spec, ifMatch: null }
    : { type: "create", collection, id, spec };
  return { change: change as Change, id, token };
}

/** Replaces every rule and list of the file: after the first, more than a transaction takes. */
function importOf(step: number): { change: Change; id: string; token: string } {
  const token = `${run}-import-${step}`;
  const rules = Array.from({ length: LARGE_RULES }, (_, n) => ({
    id: ids.rule(prng.next()),
    spec: { rule: `||${n}.example^`, enabled: true, comment: token, managed_by: "config" },
  }));
  const id = "li_cfg_0000000000000001";
  const lists = [{ id, spec: { ...listSpec(token), managed_by: "config" } }];
  const { spec } = replicator.state.settings;
  return { change: { type: "seed", lists, rules, settings: spec, first: false }, id, token };
}

/** Replaces every rule of the batch before. */
function batchOf(step: number): { change: Change; id: string; token: string } {
  const token = `${run}-batch-${step}`;
  const own = [...replicator.state.collections.rules.values()].filter(({ spec }) =>
    spec.managed_by === "api"
  );
  const add = Array.from({ length: LARGE_RULES }, (_, n) => ({
    id: ids.rule(prng.next()),
    spec: { rule: `||${n}.test^`, enabled: true, comment: token, managed_by: "api" },
  }));
  return {
    change: { type: "rules_batch", add, remove: own.map(({ id }) => id) },
    id: "batch",
    token,
  };
}

await Promise.all(Array.from({ length: LANES }, async (_, lane) => {
  for (let step = 0;; step++) {
    const isLarge = (lane === IMPORTS || lane === BATCHES) && prng.chance(LARGE_RATIO);
    const large = lane === IMPORTS ? importOf : batchOf;
    const { change, id, token } = isLarge ? large(step) : next(lane, step);
    say(`try ${id} ${token}`);
    const outcome = await replicator.propose(change, actor);
    if (outcome.kind === "refused") throw new Error(`${outcome.code}: ${outcome.message}`);
    say(`ack ${id} ${token}`);
  }
}));
