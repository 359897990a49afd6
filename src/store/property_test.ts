// Goal: the store is what an obvious model says it is. Method: random commands, many of them refused
// and some proposed again, go to both; state and answer are compared at each step, the store is opened
// again now and then, and in the end the log of commands is replayed: in batches, and from the whole
// state as it was on the way.
import assert from "node:assert/strict";
import { Prng, seedFromEnv } from "../../tests/prng.ts";
import {
  ACTOR,
  clientSpec,
  FIRST_SEED,
  groupSpec,
  ids,
  listSpec,
  newUser,
  recordSpec,
  ruleSpec,
  scheduleSpec,
} from "../model/fakes.ts";
import {
  type Change,
  COLLECTIONS,
  DEFAULT_GROUP_ID,
  DEFAULT_SETTINGS,
  type LiveState,
  type Settled,
} from "../model/mod.ts";
import { FakeClock, FaultyKv } from "./fakes.ts";
import { Applier, type Entry } from "./applier.ts";
import { LocalReplicator } from "./local_replicator.ts";

const STEPS = 4_000;
const REOPEN_EVERY = 500;
/** When a member takes the whole state. */
const JOIN_AT = 2_500;
const N = 5;

interface Row {
  id: string;
  revision: number;
  // deno-lint-ignore no-explicit-any -- The model is loose so that it stays obvious.
  spec: any;
}

function isAdmin({ role, disabled }: Row["spec"]): boolean {
  return role === "admin" && !disabled;
}

function isAlike(a: string, b: string): boolean {
  return a.toLowerCase() === b.toLowerCase();
}

/** Everything by hand: arrays, and a look at all of them for each question. */
class Model {
  rows: Record<string, Row[]> = {
    schedules: [],
    lists: [],
    rules: [],
    records: [],
    groups: [{ id: DEFAULT_GROUP_ID, revision: 1, spec: groupSpec("Default") }],
    clients: [],
    users: [],
  };
  settings = 1;
  applied = 1;

  #row(collection: string, id: string): Row | undefined {
    return this.rows[collection].find((row) => row.id === id);
  }

  #isBad(collection: string, id: string, spec: Row["spec"]): boolean {
    const others = this.rows[collection]?.filter((row) => row.id !== id) ?? [];
    if (collection === "groups") {
      if (others.some((other) => isAlike(other.spec.name, spec.name))) return true;
      const uses = [...spec.lists, ...spec.blocked_services];
      return uses.some((use) =>
        (use.list !== undefined && !this.#row("lists", use.list)) ||
        (use.schedule !== undefined && !this.#row("schedules", use.schedule))
      );
    }
    if (collection === "clients") {
      const keys = [...spec.addresses, ...spec.ids];
      return !this.#row("groups", spec.group) ||
        others.some(({ spec }) => [...spec.addresses, ...spec.ids].some((k) => keys.includes(k)));
    }
    if (collection !== "records" || !spec.enabled) return false;
    return others.some((other) =>
      other.spec.enabled && other.spec.name === spec.name &&
      (other.spec.type === "CNAME" || spec.type === "CNAME")
    );
  }

  #isUsed(id: string): boolean {
    return JSON.stringify(
      [this.rows.groups, this.rows.clients].map((rows) => rows.map(({ spec }) => spec)),
    ).includes(id);
  }

  #isLastAdmin(row: Row): boolean {
    return isAdmin(row.spec) &&
      !this.rows.users.some((other) => other !== row && isAdmin(other.spec));
  }

  /** Returns the code of the refusal, or `null`. */
  make(change: Change): string | null {
    this.applied++;
    return this.#make(change);
  }

  #make(change: Change): string | null {
    switch (change.type) {
      case "create": {
        const { collection, id, spec } = change;
        if (this.#row(collection, id) || this.#isBad(collection, id, spec)) return "conflict";
        this.rows[collection].push({ id, revision: 1, spec });
        return null;
      }
      case "replace": {
        const row = this.#row(change.collection, change.id);
        if (!row) return "not_found";
        if (change.ifMatch !== null && change.ifMatch !== row.revision) return "revision_mismatch";
        if (this.#isBad(change.collection, change.id, change.spec)) return "conflict";
        row.revision++;
        row.spec = change.spec;
        return null;
      }
      case "delete": {
        const row = this.#row(change.collection, change.id);
        if (!row) return "not_found";
        if (change.ifMatch !== null && change.ifMatch !== row.revision) return "revision_mismatch";
        if (change.id === DEFAULT_GROUP_ID || this.#isUsed(change.id)) return "conflict";
        this.rows[change.collection] = this.rows[change.collection].filter((r) => r !== row);
        return null;
      }
      case "settings":
        if (change.ifMatch !== null && change.ifMatch !== this.settings) return "revision_mismatch";
        this.settings++;
        return null;
      case "user_create": {
        const taken = this.rows.users.some(({ id, spec }) =>
          id === change.user.id || spec.name.toLowerCase() === change.user.name.toLowerCase()
        );
        if (taken) return "conflict";
        if (this.rows.users.length === 0 && !isAdmin(change.user)) return "invalid";
        this.rows.users.push({ id: change.user.id, revision: 1, spec: change.user });
        return null;
      }
      case "user_change": {
        const row = this.#row("users", change.id);
        if (!row) return "not_found";
        const spec = { ...row.spec, ...change.fields };
        if (this.rows.users.some((o) => o !== row && o.spec.name === spec.name)) return "conflict";
        if (this.#isLastAdmin(row) && !isAdmin(spec)) return "conflict";
        row.revision++;
        row.spec = spec;
        return null;
      }
      case "user_delete": {
        const row = this.#row("users", change.id);
        if (!row) return "not_found";
        if (this.#isLastAdmin(row)) return "conflict";
        this.rows.users = this.rows.users.filter((other) => other !== row);
        return null;
      }
      default:
        return null;
    }
  }
}

const maybe = <T>(prng: Prng, value: T): T | null => prng.chance(0.3) ? value : null;

function randomSpec(prng: Prng, collection: typeof COLLECTIONS[number]): Row["spec"] {
  const name = `n${prng.int(1_000)}`;
  const when = prng.chance(0.5) ? { schedule: ids.schedule(prng.int(N)) } : {};
  switch (collection) {
    case "schedules":
      return scheduleSpec(name);
    case "lists":
      return listSpec(name);
    case "rules":
      return ruleSpec(`||${name}.example^`);
    case "records": {
      const type = prng.chance(0.4) ? "CNAME" : "A";
      const value = type === "A" ? "192.0.2.1" : "other.example";
      return recordSpec(`r${prng.int(3)}.example`, type, value, prng.chance(0.8));
    }
    case "groups":
      return groupSpec(
        prng.pick(["kids", "Kids", "guests", "Default", name]),
        prng.chance(0.7) ? [{ list: ids.list(prng.int(N)), ...when }] : [],
        [
          { service: "tube", ...when },
        ],
      );
    case "clients": {
      const addresses = [`192.0.2.${prng.int(8)}`];
      const group = prng.chance(0.5) ? DEFAULT_GROUP_ID : ids.group(prng.int(N));
      return clientSpec(name, addresses, [`id-${prng.int(8)}`], group);
    }
  }
}

function randomChange(prng: Prng): Change {
  if (prng.chance(0.2)) {
    const n = prng.int(N);
    const role = prng.chance(0.5) ? "admin" : "viewer";
    const name = `u${prng.int(N)}`;
    const fields = { name, role, disabled: prng.chance(0.3) } as const;
    return prng.pick<Change>([
      { type: "user_create", user: newUser(n, name, { role }) },
      {
        type: "user_change",
        id: ids.user(n),
        ifMatch: null,
        fields,
        endSessions: true,
        action: "update",
      },
      { type: "user_delete", id: ids.user(n), ifMatch: null },
      { type: "settings", spec: DEFAULT_SETTINGS, ifMatch: maybe(prng, prng.int(9)) },
    ]);
  }
  const collection = prng.pick(COLLECTIONS);
  const one = collection.slice(0, -1) as Exclude<keyof typeof ids, "user">;
  const isDefault = collection === "groups" && prng.chance(0.1);
  const id = isDefault ? DEFAULT_GROUP_ID : ids[one](prng.int(N));
  const spec = randomSpec(prng, collection);
  return prng.pick([
    { type: "create", collection, id, spec },
    { type: "replace", collection, id, spec, ifMatch: maybe(prng, 1 + prng.int(3)) },
    { type: "delete", collection, id, ifMatch: maybe(prng, 1 + prng.int(3)) },
  ]) as Change;
}

/** What the model knows of a state. */
function shown(state: LiveState) {
  const rows: Record<string, Row[]> = {};
  for (const collection of COLLECTIONS) {
    const map: ReadonlyMap<string, Row> = state.collections[collection];
    rows[collection] = Array.from(
      map.values(),
      ({ id, revision, spec }) => ({ id, revision, spec }),
    );
  }
  rows.users = Array.from(state.users.values(), ({ id, revision, ...user }) => {
    const { created_at: _, updated_at: __, session_epoch: ___, ...spec } = user;
    return { id, revision, spec };
  });
  return { rows, settings: state.settings.revision, applied: state.appliedIndex };
}

function expected({ rows, settings, applied }: Model) {
  const users = rows.users.map(({ id, revision, spec: { id: _, session_epoch: __, ...spec } }) => {
    return { id, revision, spec };
  });
  return { rows: { ...rows, users }, settings, applied };
}

Deno.test(
  "the store is what an obvious model says",
  { permissions: { env: ["SVC_SEED"] } },
  async () => {
    const prng = new Prng(seedFromEnv());
    using kv = await FaultyKv.open();
    const clock = new FakeClock();
    const open = async () => {
      const store = await kv.store({ clock });
      const replicator = new LocalReplicator(new Applier(store), { clock, node: "node-1" });
      return { store, replicator };
    };
    let { store, replicator } = await open();
    const model = new Model();
    const entries: Entry[] = [];
    const results: Settled[] = [];
    const proposed: { readonly id: string; readonly change: Change; readonly settled: Settled }[] =
      [];
    const propose = async (change: Change, id?: string) => {
      clock.timeMs += 1 + prng.int(1_000);
      const at = new Date(clock.timeMs).toISOString();
      const command = { change, actor: ACTOR, at, node: "node-1" };
      entries.push({ index: entries.length + 1, command, id: id ?? null });
      const settled = await replicator.propose(change, ACTOR, id);
      results.push(settled);
      return settled;
    };
    await propose(FIRST_SEED);
    const counts: Record<string, number> = { again: 0 };
    let joined: { readonly parts: Iterable<Uint8Array>; readonly index: number } | null = null;
    for (let step = 0; step < STEPS; step++) {
      if (step === JOIN_AT) joined = { parts: store.export(), index: entries.length };
      if (proposed.length > 0 && prng.chance(0.05)) {
        const { id, change, settled } = prng.pick(proposed);
        const again = await propose(change, id);
        if (settled.kind === "refused") assert.deepEqual(again, settled);
        else if (again.kind === "refused") assert.equal(again.code, "not_found");
        model.applied++; // And nothing else.
        counts.again++;
      }
      const change = randomChange(prng);
      const id = prng.chance(0.3) ? `p${step}` : undefined;
      const settled = await propose(change, id);
      if (id !== undefined) proposed.push({ id, change, settled });
      const code = settled.kind === "refused" ? settled.code : null;
      const place = `step ${step}, seed ${prng.seed}: ${JSON.stringify(change)}`;
      assert.equal(code, model.make(change), place);
      counts[code ?? "done"] = (counts[code ?? "done"] ?? 0) + 1;
      if (step % 10 === 0) assert.deepEqual(shown(replicator.state), expected(model), place);
      if (step % REOPEN_EVERY === 0) ({ store, replicator } = await open());
    }
    assert.deepEqual(shown(replicator.state), expected(model));
    for (const code of ["done", "conflict", "not_found", "revision_mismatch", "again"]) {
      assert.ok(counts[code] > STEPS / 100, `${code}: ${counts[code]}`);
    }

    // The same log makes the same state and answers on every member, from its start or from the
    // whole state on; and what was stored is that state.
    const follow = async (applier: Applier, from: number) => {
      for (let at = from; at < entries.length;) {
        const batch = entries.slice(at, at + 1 + prng.int(200));
        await applier.apply(batch, ({ index }, decision) => {
          assert.deepEqual(decision, results[index - 1]);
        });
        at += batch.length;
      }
      return applier.state;
    };
    using one = await FaultyKv.open();
    using two = await FaultyKv.open();
    const learner = new Applier(await two.store());
    assert.ok(joined !== null);
    await learner.replaceAll(joined.parts);
    const states = [
      await follow(new Applier(await one.store()), 0),
      await follow(learner, joined.index),
    ];
    for (const each of [kv, one, two]) states.push((await each.store()).state);
    for (const other of states) {
      assert.deepEqual(shown(other), expected(model));
      for (const collection of COLLECTIONS) {
        const map = replicator.state.collections[collection];
        assert.deepEqual([...other.collections[collection]], [...map]);
      }
      assert.deepEqual([...other.users], [...replicator.state.users]);
      assert.deepEqual(other.settings, replicator.state.settings);
      assert.deepEqual([...other.clientKeys].sort(), [...replicator.state.clientKeys].sort());
    }
  },
);
