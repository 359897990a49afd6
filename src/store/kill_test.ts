// Goal: what was answered is there after the process died, with its audit entry, and nothing is there
// by half. Method: a child makes changes of every kind as fast as it can and is killed (SIGKILL) at a
// moment that chance picks, hundreds of times; then the store is opened and held against what the
// child had said, and against its own audit log.
import assert from "node:assert/strict";
import { Prng, seedFromEnv } from "../../tests/prng.ts";
import type { AuditEntry, LiveState } from "../model/mod.ts";
import { Store } from "./mod.ts";

/** Two at a time, each with a store of its own. */
const SERIES = 2;
const KILLS_PER_SERIES = 110;
/** A series begins with an empty store so often: checks take longer as one grows. */
const KILLS_PER_STORE = 10;
const KILL_AFTER_MAX_MS = 40;
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

async function runChild(directory: string, seed: number, run: string, killAfterMs: number) {
  const permissions = [`--allow-read=${directory}`, `--allow-write=${directory}`];
  const args = ["run", "--no-check", "--no-prompt", "--unstable-kv", ...permissions, program];
  const child = new Deno.Command(Deno.execPath(), {
    args: [...args, directory, String(seed), run],
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

async function auditOf(kv: Deno.Kv): Promise<AuditEntry[]> {
  const entries: AuditEntry[] = [];
  for await (const { value } of kv.list<Uint8Array>({ prefix: ["audit"] })) {
    entries.push(JSON.parse(new TextDecoder().decode(value)));
  }
  return entries;
}

/** Holds the state against its own audit log: the last entry of each resource is what it is. */
function checkAgainstAudit(state: LiveState, entries: readonly AuditEntry[]): void {
  assert.equal(entries.length, state.appliedIndex, "each change has its entry");
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

async function killAgain(series: number, seed: number): Promise<number> {
  const prng = new Prng(seed);
  let [directory, acks] = ["", 0];
  let known = new Map<string, Known>();
  try {
    for (let kill = 0; kill < KILLS_PER_SERIES; kill++) {
      if (kill % KILLS_PER_STORE === 0) {
        if (directory !== "") await Deno.remove(directory, { recursive: true });
        directory = await Deno.makeTempDir();
        known = new Map();
      }
      const killAfterMs = prng.int(KILL_AFTER_MAX_MS);
      const lines = await runChild(directory, prng.next(), `${series}.${kill}`, killAfterMs);
      for (const line of lines) {
        const [verb, id, text] = line.split(" ");
        const token = text === "null" ? null : text;
        const before = known.get(id) ?? { acked: null, trying: undefined };
        if (verb === "try") known.set(id, { ...before, trying: token });
        else known.set(id, { acked: token, trying: undefined });
        if (verb === "ack") acks++;
      }
      const kv = await Deno.openKv(`${directory}/store.kv`);
      const clock = { nowMs: () => Date.now() };
      const store = await Store.over(kv, { clock, program: "0.7.0", node: "node-1" });
      const entries = await auditOf(kv);
      const place = `series ${series}, kill ${kill}, seed ${seed}`;
      for (const [id, { acked, trying }] of known) {
        const there = tokenAt(store.state, id);
        const isRight = there === acked || (trying !== undefined && there === trying);
        assert.ok(isRight, `${place}: ${id} is ${there}; answered ${acked}, tried ${trying}`);
        known.set(id, { acked: there, trying: undefined });
      }
      checkAgainstAudit(store.state, entries);
      checkImport(store.state);
      checkBatch(store.state);
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
