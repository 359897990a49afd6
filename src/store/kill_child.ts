/**
 * The child of `kill_test.ts`: makes changes of every kind in several lanes until it is killed, or
 * (`wholes`) replaces the whole configuration again and again. It says each thing before it does it
 * (`try`) and once it was answered (`ack`), with what the lane's resource is to be from then on.
 */
import { Prng } from "../../tests/prng.ts";
import {
  clientSpec,
  commandOf,
  FIRST_SEED,
  groupSpec,
  hex,
  ids,
  listSpec,
  newUser,
  recordSpec,
  ruleSpec,
  UNLIMITED,
} from "../model/fakes.ts";
import type { Actor, Change } from "../model/mod.ts";
import { Applier, openNodeStore } from "./mod.ts";
import { openTemporaryStore } from "./store_file.ts";

const LANES = 8;
/** Share of a lane's changes that are imports, or batches, each too large for one transaction. */
const LARGE_RATIO = 0.15;
const LARGE_RULES = 300;
/** Share of a lane's steps that are a note of this node's, or a change that is refused. */
const ASIDE_RATIO = 0.1;
/** Most rules of a whole configuration. */
const WHOLE_RULES_MAX = 1_500;
/** The lanes that make them. */
const [IMPORTS, BATCHES] = [0, 4];

const [directory, seedText, run, mode] = Deno.args;
const prng = new Prng(Number(seedText));
const actor: Actor = { kind: "cli", name: "child", address: null };
const source = { lists: [], rules: [] };
const options = { node: "node-1", clock: { nowMs: () => Date.now() }, program: "0.7.0" };
const { replicator, applier, store } = await openNodeStore(source, {
  ...options,
  directory,
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
    spec: {
      rule: `||${n}.example^`,
      enabled: true,
      comment: token,
      managed_by: "config",
      ...UNLIMITED,
    },
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
    spec: { rule: `||${n}.test^`, enabled: true, comment: token, managed_by: "api", ...UNLIMITED },
  }));
  return {
    change: { type: "rules_batch", add, remove: own.map(({ id }) => id) },
    id: "batch",
    token,
  };
}

/** Tells the audit log something, or proposes what is refused. */
async function stepAside(token: string): Promise<void> {
  if (prng.chance(0.5)) {
    say(`try note ${token}`);
    const resource = { type: "node", id: null } as const;
    await store.note({ action: "pause", resource, after: { token } }, actor);
    return say(`ack note ${token}`);
  }
  const id = ids.list(999_999);
  say(`try refusal ${token}`);
  const change: Change = { type: "delete", collection: "lists", id, ifMatch: null };
  const { kind } = await replicator.propose(change, actor, token);
  if (kind !== "refused") throw new Error(kind);
  say(`ack refusal ${token}`);
}

/** Another configuration, all of which says one token. */
async function wholeOf(token: string, epoch: number): Promise<Iterable<Uint8Array>> {
  const other = await openTemporaryStore(options);
  const rules = Array.from({ length: 1 + prng.int(WHOLE_RULES_MAX) }, (_, n) => ({
    id: ids.rule(n),
    spec: { ...ruleSpec(`||${n}.test^`), comment: token },
  }));
  const changes: Change[] = [
    FIRST_SEED,
    { type: "rules_batch", add: rules.slice(0, 1_000), remove: [] },
    { type: "rules_batch", add: rules.slice(1_000), remove: [] },
    { type: "user_create", user: newUser(1, token) },
  ];
  const entries = changes.map((change, i) => {
    return { index: i + 1, command: commandOf(change), id: i === 0 ? null : `${token}.${i}` };
  });
  await new Applier(other).apply(entries, (_, { kind }) => {
    if (kind !== "done") throw new Error(kind);
  });
  const parts = [...other.export(epoch)];
  other.close();
  return parts;
}

/** Replaces the whole, and makes a change of it. */
async function replaceWholes(): Promise<never> {
  for (let step = 0;; step++) {
    const token = `${run}-whole-${step}`;
    const parts = await wholeOf(token, store.epoch + 1);
    say(`try whole ${token}`);
    await applier.replaceAll(parts, [{ key: ["raft", "start"], value: token }]);
    say(`ack whole ${token}`);
    const id = ids.list(1);
    say(`try ${id} ${token}`);
    const change: Change = { type: "create", collection: "lists", id, spec: listSpec(token) };
    const { kind } = await replicator.propose(change, actor, `${token}.list`);
    if (kind !== "done") throw new Error(kind);
    say(`ack ${id} ${token}`);
    await stepAside(`${token}-aside`);
  }
}

if (mode === "wholes") await replaceWholes();
await Promise.all(Array.from({ length: LANES }, async (_, lane) => {
  for (let step = 0;; step++) {
    if (prng.chance(ASIDE_RATIO)) await stepAside(`${run}-aside-${lane}-${step}`);
    const isLarge = (lane === IMPORTS || lane === BATCHES) && prng.chance(LARGE_RATIO);
    const large = lane === IMPORTS ? importOf : batchOf;
    const { change, id, token } = isLarge ? large(step) : next(lane, step);
    say(`try ${id} ${token}`);
    const settled = await replicator.propose(change, actor, `${run}-${lane}-${step}`);
    if (settled.kind === "refused") throw new Error(`${settled.code}: ${settled.message}`);
    say(`ack ${id} ${token}`);
  }
}));
