/** What the filter costs by itself: compiling, decisions, memory; and how soon a rule holds. */
import { HashedName } from "../../src/dns/mod.ts";
import { compileRules } from "../../src/isolate/mod.ts";
import { customRulesOf, type FakePolicy, policyState } from "../../src/snapshot/fakes.ts";
import { type Base, Decision, Ruling, Snapshot } from "../../src/snapshot/mod.ts";
import { OverlayCompiler } from "../../src/snapshot/mod.ts";
import { wireName } from "../../tests/filter_reference.ts";
import { Prng } from "../../tests/prng.ts";
import { Api } from "./api_client.ts";
import { askUntil, freePort } from "./ask.ts";
import { BenchError } from "./bench_error.ts";
import type { QueryNames } from "./names.ts";
import { type Memory, readMemory } from "./processes.ts";
import {
  BLOCKED,
  LIST_PATH,
  type Setup,
  START_MS_MAX,
  svcCommand,
  writeSvcConfig,
} from "./servers.ts";

const SEED = 0x5eed;
const LISTS = 16;
const GROUPS = 50;
/** Questions in a row, each another name: beyond what processor caches hold. */
const BATCH = 100_000;
/** Batches until V8 has compiled the way of a query for speed. */
const WARM_BATCHES = 3;
/** Decisions over which nothing may be left behind. */
const ALLOCATION_DECISIONS = 1_000_000;
/** Rules that are made and removed one by one. */
const CUSTOM_RULES = 10;
const CUSTOM_NAME = "filter-bench.example";
/** How often each name of the million stands in the large list, with another label before it. */
const COPIES = 5;
/** After this a process has given back what it will by itself. */
const SETTLE_MS = 5_000;

export interface FilterResults {
  readonly rules: number;
  readonly bytesPerRule: number;
  readonly compileMs: readonly number[];
  /** Nanoseconds from the bytes of a name to the decision, a figure a round. */
  readonly hitNs: readonly number[];
  readonly missNs: readonly number[];
  /** The same where rules of every form and a blocked service hold. */
  readonly everyFormHitNs: readonly number[];
  readonly everyFormMissNs: readonly number[];
  /** Hashing the bytes of the names, which the above contains. */
  readonly hashNs: readonly number[];
  readonly bytesPerDecision: number;
  /** Compiling custom rules and the overlay anew. */
  readonly overlayMs: readonly number[];
  /** From the request that makes a rule to the first query that it blocks. */
  readonly customRuleMs: readonly number[];
  readonly largeRules: number;
  /** Resident after a start from five million kept rules, and the most in between. */
  readonly large: Memory;
}

export interface FilterPlan {
  readonly names: QueryNames;
  readonly rounds: number;
  readonly progress: (text: string) => void;
}

/** Measures the filter in this process, and a svc of its own for what needs one. */
export async function measureFilter(setup: Setup, plan: FilterPlan): Promise<FilterResults> {
  const { progress, rounds } = plan;
  const text = await Deno.readTextFile(setup.workspace.path("million.txt"));
  const names = text.split("\n").filter((line) => /^[^#]/.test(line));
  const prng = new Prng(SEED);

  const compileMs: number[] = [];
  let built = await build(names, []);
  for (let round = 0; round < rounds; round++) {
    progress(`round ${round + 1} of ${rounds}: compiling`);
    built = await build(names, []);
    compileMs.push(built.tookMs);
  }
  const { base, rules } = built;
  const { snapshot, overlayMs } = overlay(base, [], rounds);
  progress("decisions");
  const hits = packetOf(Array.from({ length: BATCH }, () => prng.pick(names)));
  const label = () => prng.next().toString(36);
  const misses = packetOf(
    Array.from({ length: BATCH }, () => `${label()}.${label()}.${label()}.${label()}.test`),
  );
  const plain = new Questions(snapshot);
  const hitNs = plain.time(hits, rounds, BATCH);
  const missNs = plain.time(misses, rounds, 0);
  const hashNs = plain.timeHashes(hits, rounds);
  const bytesPerDecision = plain.garbage(hits);

  progress("decisions with rules of every form");
  const every = await build(names, EVERY_FORM);
  const forms = overlay(every.base, CUSTOM_FORMS, rounds);
  const mixed = new Questions(forms.snapshot);
  const everyFormHitNs = mixed.time(hits, rounds, BATCH);
  const everyFormMissNs = mixed.time(misses, rounds, 0);
  return {
    rules,
    bytesPerRule: base.rules!.byteLength / rules,
    compileMs,
    hitNs,
    missNs,
    everyFormHitNs,
    everyFormMissNs,
    hashNs,
    bytesPerDecision,
    overlayMs: [...overlayMs, ...forms.overlayMs],
    customRuleMs: await timeCustomRules(setup, plan),
    ...await measureLarge(setup, names, plan),
  };
}

/** Rules of every form but those of plain lists, about names that nobody asks for. */
const EVERY_FORM: readonly string[] = [
  "||rewritten.example^$dnsrewrite=192.0.2.1",
  "@@||kept.rewritten.example^$dnsrewrite",
  "192.0.2.2 host.example",
  "|10.*",
  "@@||exception.example^",
  "||important.example^$important",
];
const CUSTOM_FORMS: readonly string[] = ["||own.example^", "||own.example^$dnsrewrite=NXDOMAIN"];
const SERVICE = "service:video";

/** Compiles the names, spread over the lists, in an isolate as svc does. */
async function build(
  names: readonly string[],
  more: readonly string[],
): Promise<{ base: Base; rules: number; tookMs: number }> {
  const encoder = new TextEncoder();
  const share = Math.ceil(names.length / LISTS);
  const texts = Array.from({ length: LISTS }, (_, i) => {
    const own = names.slice(i * share, (i + 1) * share);
    return encoder.encode([...own, ...more].join("\n"));
  });
  const sources = texts.map((bytes) => ({ bytes, isService: false }));
  sources.push({ bytes: encoder.encode("||video.example^\n"), isService: true });
  const startedMs = performance.now();
  const { rules, badfilters, stats } = await compileRules({ seed: SEED, sources });
  const tookMs = performance.now() - startedMs;
  const base: Base = {
    rules,
    sources: sources.map(({ isService }, i) => {
      const name = isService ? SERVICE : `list ${i}`;
      return { id: isService ? name : `li_${name}`, name };
    }),
    badfilters,
  };
  return { base, rules: stats.reduce((sum, { rules }) => sum + rules, 0), tookMs };
}

/** A snapshot of fifty groups that have every list, made anew a few times. */
function overlay(
  base: Base,
  rules: readonly string[],
  rounds: number,
): { snapshot: Snapshot; overlayMs: number[] } {
  const lists = base.sources.filter(({ id }) => id !== SERVICE).map(({ name }) => name);
  const group = { lists, services: rules.length > 0 ? ["video"] : [] };
  const fake: FakePolicy = {
    lists: Object.fromEntries(lists.map((name) => [name, ""])),
    rules,
    groups: {
      default: group,
      ...Object.fromEntries(Array.from({ length: GROUPS - 1 }, (_, i) => [`group ${i}`, group])),
    },
  };
  const state = policyState(fake);
  const overlays = new OverlayCompiler(SEED);
  const overlayMs: number[] = [];
  for (;;) {
    const startedMs = performance.now();
    const custom = customRulesOf(state, base, SEED);
    const data = overlays.compile(state, base, custom);
    overlayMs.push(performance.now() - startedMs);
    if (overlayMs.length < rounds) continue;
    const snapshot = new Snapshot(
      { generation: 1, rules: base.rules, overlay: data, pausedUntilMs: 0 },
      Date.now(),
    );
    return { snapshot, overlayMs };
  }
}

/** Names one behind the other, in wire format. */
function packetOf(names: readonly string[]): Uint8Array {
  const wires = names.map(wireName);
  const packet = new Uint8Array(wires.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const wire of wires) {
    packet.set(wire, at);
    at += wire.length;
  }
  return packet;
}

/** Asks one snapshot for whole packets of names, as each of its groups in turn. */
class Questions {
  readonly #snapshot: Snapshot;
  readonly #name = new HashedName();
  readonly #decision = new Decision();

  constructor(snapshot: Snapshot) {
    this.#snapshot = snapshot;
  }

  /** Nanoseconds a name, a figure a round; `blocked` is how many have to be. */
  time(packet: Uint8Array, rounds: number, blocked: number): number[] {
    return this.#rounds(rounds, () => {
      const got = this.#ask(packet);
      if (got !== blocked) throw new BenchError(`filter: ${got} names are blocked, not ${blocked}`);
    });
  }

  timeHashes(packet: Uint8Array, rounds: number): number[] {
    return this.#rounds(rounds, () => this.#hash(packet));
  }

  #rounds(rounds: number, run: () => void): number[] {
    for (let i = 0; i < WARM_BATCHES; i++) run();
    return Array.from({ length: rounds }, () => {
      const startedMs = performance.now();
      run();
      return (performance.now() - startedMs) * 1e6 / BATCH;
    });
  }

  #ask(packet: Uint8Array): number {
    const snapshot = this.#snapshot;
    const name = this.#name;
    const decision = this.#decision;
    let blocked = 0;
    let group = 0;
    for (let at = 0; at < packet.length;) {
      at = name.read(packet, at, packet.length, SEED);
      group = group + 1 === GROUPS ? 0 : group + 1;
      if (snapshot.decide(packet, name, group, decision) === Ruling.Block) blocked++;
    }
    return blocked;
  }

  #hash(packet: Uint8Array): number {
    let sum = 0;
    for (let at = 0; at < packet.length;) {
      at = this.#name.read(packet, at, packet.length, SEED);
      sum ^= this.#name.hashes[0];
    }
    return sum;
  }

  /** Bytes that the heap grows by a decision: the least of some runs, for V8 has work of its own. */
  garbage(packet: Uint8Array): number {
    let least = Infinity;
    for (let run = 0; run < WARM_BATCHES; run++) {
      const beforeBytes = Deno.memoryUsage().heapUsed;
      for (let i = 0; i < ALLOCATION_DECISIONS; i += BATCH) this.#ask(packet);
      const grownBytes = Deno.memoryUsage().heapUsed - beforeBytes;
      // A collection in between would hide what was left.
      if (grownBytes >= 0) least = Math.min(least, grownBytes / ALLOCATION_DECISIONS);
    }
    return least;
  }
}

/** Makes rules by the API of a svc with a million rules, and asks until each holds. */
async function timeCustomRules(setup: Setup, plan: FilterPlan): Promise<number[]> {
  const folder = "filter-svc";
  const [port, apiPort] = [freePort(), freePort()];
  const config = await writeSvcConfig(folder, port, setup, apiPort);
  const [program, ...args] = await svcCommand(setup.program, config);
  plan.progress("custom rules");
  const child = setup.workspace.start(folder, program, args);
  const api = await Api.whenUp(apiPort, START_MS_MAX);
  const times: number[] = [];
  try {
    await askUntil(port, plan.names.blocked[0], BLOCKED, START_MS_MAX);
    for (let i = 0; i < CUSTOM_RULES; i++) {
      const name = `n${i}.${CUSTOM_NAME}`;
      const startedMs = performance.now();
      await api.must("POST", "/rules", { rule: `||${name}^` });
      await askUntil(port, name, BLOCKED, START_MS_MAX);
      times.push(performance.now() - startedMs);
    }
  } finally {
    api.close();
    await setup.workspace.stop(child);
  }
  return times;
}

/** What is resident with five million names, after a start from kept lists. */
async function measureLarge(
  setup: Setup,
  names: readonly string[],
  { progress }: FilterPlan,
): Promise<Pick<FilterResults, "large" | "largeRules">> {
  const { workspace } = setup;
  const folder = "large-svc";
  const port = freePort();
  const config = await writeSvcConfig(folder, port, setup);
  const file = await Deno.open(workspace.path(`${folder}/${LIST_PATH}`), {
    write: true,
    truncate: true,
  });
  const writer = file.writable.getWriter();
  const encoder = new TextEncoder();
  for (let copy = 0; copy < COPIES; copy++) {
    await writer.write(encoder.encode(names.map((name) => `n${copy}.${name}\n`).join("")));
  }
  await writer.close();
  const [program, ...args] = await svcCommand(setup.program, config);
  const blocked = `n${COPIES - 1}.${names[names.length - 1]}`;
  progress("compiling five million names");
  const first = workspace.start(folder, program, args);
  await askUntil(port, blocked, BLOCKED, START_MS_MAX);
  await sleep(SETTLE_MS); // Rules are kept after they are in force.
  await workspace.stop(first);
  progress("starting with five million names");
  const child = workspace.start(folder, program, args);
  await askUntil(port, blocked, BLOCKED, START_MS_MAX);
  await sleep(SETTLE_MS);
  const large = readMemory(child.pid);
  if (large === null) throw child.failure("ended by itself");
  await workspace.stop(child);
  return { large, largeRules: COPIES * names.length };
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
