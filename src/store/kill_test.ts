// Goal: what was answered is there after the process died, with its audit entry, and nothing is there
// by half. Method: a child makes changes of every kind as fast as it can, or replaces the whole
// configuration again and again, and is killed (SIGKILL) at a moment that chance picks, hundreds of
// times; then the store is opened and held against what the child had said, and against its own audit
// log.
import assert from "node:assert/strict";
import { Prng, seedFromEnv } from "../../tests/prng.ts";
import type { AuditEntry, LiveState } from "../model/mod.ts";
import { Store } from "./mod.ts";
import type { Remembered } from "./proposals.ts";

/** Two at a time, each with a store of its own. */
const SERIES = 2;
const KILLS_PER_SERIES = 110;
/** Of the series that replaces the whole. */
const WHOLES_KILLS = 80;
/** A series begins with an empty store so often: checks take longer as one grows. */
const KILLS_PER_STORE = 10;
const KILL_AFTER_MS_MAX = 40;
/** A whole configuration takes longer. */
const WHOLES_KILL_AFTER_MS_MAX = 150;
/** As the child has it. */
const LARGE_RULES = 300;

const program = new URL("./kill_child.ts", import.meta.url).href;

/** What is known of a resource: its token, `null` once deleted, and what was on its way. */
interface Known {
  acked: string | null;
  trying: string | null | undefined;
}

/** What the store has at an ID: the token that was stored last. */
function tokenAt(state: LiveState, id: string): string | null {
  const { clients, records, groups, lists } = state.collections;
  if (id === "batch") return batched(state).at(0)?.spec.comment ?? null;
  return clients.get(id)?.spec.name ?? groups.get(id)?.spec.name ?? lists.get(id)?.spec.name ??
    records.get(id)?.spec.comment ?? state.users.get(id)?.name ?? null;
}

type Mode = "changes" | "wholes";

async function runChild(
  directory: string,
  seed: number,
  run: string,
  mode: Mode,
  killAfterMs: number,
) {
  const permissions = [`--allow-read=${directory}`, `--allow-write=${directory}`];
  const args = ["run", "--no-check", "--no-prompt", "--unstable-kv", ...permissions, program];
  const child = new Deno.Command(Deno.execPath(), {
    args: [...args, directory, String(seed), run, mode],
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  const complaint = new Response(child.stderr).text();
  let said = "";
  let timer: ReturnType<typeof setTimeout> | undefined;
  for await (const text of child.stdout.pipeThrough(new TextDecoderStream())) {
    said += text;
    // From its first word on, it is at work.
    timer ??= setTimeout(() => child.kill("SIGKILL"), killAfterMs);
  }
  clearTimeout(timer);
  const { signal } = await child.status;
  assert.equal(signal, "SIGKILL", await complaint);
  await complaint;
  return said.split("\n").slice(0, -1); // The last line may have been cut by the kill.
}

async function storedBelow<V>(kv: Deno.Kv, prefix: string): Promise<V[]> {
  const found: V[] = [];
  for await (const { value } of kv.list<Uint8Array>({ prefix: [prefix] })) {
    found.push(JSON.parse(new TextDecoder().decode(value)));
  }
  return found;
}

/** Every proposal that was applied is remembered, the refused ones too: the first seed has no ID. */
function checkProposals(state: LiveState, proposals: readonly Remembered[]): void {
  const indexes = proposals.map(({ index }) => index);
  assert.deepEqual(indexes, Array.from({ length: state.appliedIndex - 1 }, (_, n) => n + 2));
}

/** Holds the state against its own audit log: the last entry of each resource is what it is. */
function checkAgainstAudit(
  state: LiveState,
  entries: readonly AuditEntry[],
  refusals: number,
): void {
  assert.equal(entries.length + refusals, state.appliedIndex, "each change has its entry");
  const last = new Map<string, AuditEntry>();
  const revisions = new Map<string, number>();
  for (const entry of entries) {
    const id = entry.resource.id;
    if (id === null) continue;
    last.set(id, entry);
    revisions.set(id, entry.after === null ? 0 : (revisions.get(id) ?? 0) + 1);
  }
  for (const [id, { after }] of last) {
    const { clients, records, groups } = state.collections;
    const envelope = clients.get(id) ?? records.get(id) ?? groups.get(id);
    const user = state.users.get(id);
    const now = user === undefined
      ? envelope?.spec ?? null
      : { name: user.name, role: user.role, disabled: user.disabled };
    assert.deepEqual(now, after, id);
    assert.equal((user ?? envelope)?.revision ?? 0, revisions.get(id), id);
  }
}

/** The rules of the last batch. */
function batched(state: LiveState) {
  return [...state.collections.rules.values()].filter(({ spec }) => spec.managed_by === "api");
}

/** A batch is there whole or not at all. */
function checkBatch(state: LiveState): void {
  const rules = batched(state);
  const tokens = new Set(rules.map(({ spec }) => spec.comment));
  assert.ok(tokens.size <= 1, `batched rules of ${[...tokens].join(", ")}`);
  assert.ok([0, LARGE_RULES].includes(rules.length), `${rules.length} rules of a batch`);
}

/** An import is there whole or not at all: its rules and its list are of one token. */
function checkImport(state: LiveState): void {
  const { rules, lists } = state.collections;
  const tokens = new Set<string>();
  for (const { spec } of rules.values()) {
    if (spec.managed_by !== "api") tokens.add(spec.comment);
  }
  for (const { spec } of lists.values()) tokens.add(spec.name);
  assert.ok(tokens.size <= 1, `rules of ${[...tokens].join(", ")}`);
}

/** The token of the configuration that took the place of the one before. */
async function wholeAt(kv: Deno.Kv): Promise<string | null> {
  const { value } = await kv.get<Uint8Array>(["raft", "start"]);
  return value === null ? null : JSON.parse(new TextDecoder().decode(value));
}

/** A whole configuration is there with all of it, and of what was there before nothing. */
async function checkWhole(
  kv: Deno.Kv,
  store: Store,
  proposals: readonly Remembered[],
): Promise<void> {
  const { rules, lists } = store.state.collections;
  const token = await wholeAt(kv);
  if (token === null) return assert.equal(store.epoch, 0);
  const tokens = new Set([
    token,
    ...Array.from(rules.values(), ({ spec }) => spec.comment),
    ...Array.from(lists.values(), ({ spec }) => spec.name),
    ...Array.from(store.state.users.values(), ({ name }) => name),
  ]);
  assert.deepEqual([...tokens], [token]);
  assert.equal(store.state.users.size, 1);
  assert.ok(proposals.every(({ id }) => id.startsWith(token)));
  // The first seed, two batches, a user; then a list and what was refused.
  assert.equal(proposals.length, store.state.appliedIndex - 1);
}

async function killAgain(
  series: number,
  seed: number,
  mode: Mode = "changes",
): Promise<number> {
  const isWholes = mode === "wholes";
  const prng = new Prng(seed);
  let [directory, acks] = ["", 0];
  let known = new Map<string, Known>();
  let noted: string[] = [];
  const kills = isWholes ? WHOLES_KILLS : KILLS_PER_SERIES;
  try {
    for (let kill = 0; kill < kills; kill++) {
      if (kill % KILLS_PER_STORE === 0) {
        if (directory !== "") await Deno.remove(directory, { recursive: true });
        directory = await Deno.makeTempDir();
        known = new Map();
        noted = [];
      }
      const killAfterMs = prng.int(isWholes ? WHOLES_KILL_AFTER_MS_MAX : KILL_AFTER_MS_MAX);
      const run = `${series}.${kill}`;
      const lines = await runChild(directory, prng.next(), run, mode, killAfterMs);
      for (const line of lines) {
        const [verb, id, text] = line.split(" ");
        if (verb === "ack" && id === "note") noted.push(text);
        if (id === "note" || id === "refusal") continue;
        const token = text === "null" ? null : text;
        const before = known.get(id) ?? { acked: null, trying: undefined };
        if (verb === "try") known.set(id, { ...before, trying: token });
        else known.set(id, { acked: token, trying: undefined });
        if (verb === "ack") acks++;
      }
      const kv = await Deno.openKv(`${directory}/store.kv`);
      const clock = { nowMs: () => Date.now() };
      const store = await Store.over(kv, { clock, program: "0.7.0", node: "node-1" });
      const audit = await storedBelow<AuditEntry>(kv, "audit");
      const notes = audit.filter(({ action }) => action === "pause");
      const entries = audit.filter(({ action }) => action !== "pause");
      const proposals = await storedBelow<Remembered>(kv, "proposal");
      const place = `series ${series}, kill ${kill}, seed ${seed}`;
      for (const [id, { acked, trying }] of known) {
        const there = id === "whole" ? await wholeAt(kv) : tokenAt(store.state, id);
        // A list goes with the whole that it was made in.
        const isPast = isWholes && id !== "whole" && acked !== await wholeAt(kv);
        if (isPast && there === null) continue;
        const isRight = there === acked || (trying !== undefined && there === trying);
        assert.ok(isRight, `${place}: ${id} is ${there}; answered ${acked}, tried ${trying}`);
        known.set(id, { acked: there, trying: undefined });
      }
      const told = new Set(notes.map(({ after }) => (after as { token: string }).token));
      assert.deepEqual(noted.filter((token) => !told.has(token)), [], place);
      if (isWholes) {
        await checkWhole(kv, store, proposals);
      } else {
        const refusals = proposals.filter(({ refused }) => refused !== null).length;
        checkAgainstAudit(store.state, entries, refusals);
        checkProposals(store.state, proposals);
        checkImport(store.state);
        checkBatch(store.state);
      }
      store.close();
    }
  } finally {
    if (directory !== "") await Deno.remove(directory, { recursive: true });
  }
  return acks;
}

Deno.test("no change that was answered is lost when the process is killed", {
  permissions: { read: true, write: true, env: ["SVC_SEED"], run: [Deno.execPath()] },
}, async () => {
  const seed = seedFromEnv();
  const series = Array.from({ length: SERIES }, (_, n) => killAgain(n, seed + n));
  const acks = (await Promise.all(series)).reduce((sum, n) => sum + n, 0);
  console.log(`${SERIES * KILLS_PER_SERIES} kills, ${acks} changes answered`);
  assert.ok(acks > SERIES * KILLS_PER_SERIES, "the children were at work");
});

Deno.test("a configuration is replaced whole or not at all when the process is killed", {
  permissions: { read: true, write: true, env: ["SVC_SEED"], run: [Deno.execPath()] },
}, async () => {
  const acks = await killAgain(SERIES, seedFromEnv(), "wholes");
  console.log(`${WHOLES_KILLS} kills, ${acks} answers`);
  assert.ok(acks > WHOLES_KILLS / 2, "the child was at work");
});
