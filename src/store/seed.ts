import { createHash } from "node:crypto";
import { log } from "../log.ts";
import {
  type Actor,
  type Change,
  decodeSpec,
  DEFAULT_SETTINGS,
  describeProblems,
  ID_PREFIX,
  isSeeded,
  MANAGED_BY_CONFIG,
  type SpecOf,
} from "../model/mod.ts";
import { valueOf } from "./local_replicator.ts";
import type { Replicator } from "./ports.ts";
import type { Store } from "./store.ts";

/** What a store is seeded from: the part of `[filter]` that the store owns from then on. */
export interface SeedSource {
  readonly lists: readonly SeedList[];
  readonly rules: readonly string[];
  /** What a store that never was begins with where `lists` names none; the store's own from then on. */
  readonly defaults?: readonly DefaultList[];
}

/** A recommended list that a new node begins with. */
export interface DefaultList {
  /** `li_…`, the same on each node. */
  readonly id: string;
  readonly name: string;
  readonly url: string;
  readonly comment: string;
}

export type SeedList =
  & {
    /** `li_cfg_…`, the same on each start. */
    readonly id: string;
    readonly name: string;
  }
  & (
    | { readonly kind: "url"; readonly url: string }
    | { readonly kind: "path"; readonly path: string }
  );

type Seed = Extract<Change, { type: "seed" }>;

/** Hexadecimal digits of a rule's SHA-256 that make its ID. */
const RULE_ID_DIGITS = 16;

const SYSTEM: Actor = { kind: "system", name: null, address: null };

function sha256(text: string): string {
  return createHash("sha256").update(text, "utf8").digest("hex");
}

/** The ID of a rule of the configuration file, from its text alone: an import knows it again. */
function configRuleId(rule: string): string {
  return ID_PREFIX.rules + sha256(rule).slice(0, RULE_ID_DIGITS);
}

/** Which `[filter]` this is, to tell an edited one. */
export function digestOf({ lists, rules }: SeedSource): string {
  return sha256(JSON.stringify([lists.map(placeOf), rules]));
}

function placeOf(list: SeedList): readonly string[] {
  return [list.id, list.name, list.kind, list.kind === "url" ? list.url : list.path];
}

/**
 * The change that seeds a store, and what of the source can't be read and is left out. A rule or
 * list that is there twice is taken once.
 */
export function seedChange(
  source: SeedSource,
  first: boolean,
): { readonly change: Seed; readonly problems: readonly string[] } {
  const problems: string[] = [];
  const lists = new Map<string, SpecOf<"lists">>();
  const rules = new Map<string, SpecOf<"rules">>();
  for (const [i, list] of source.lists.entries()) {
    const place = list.kind === "url" ? { url: list.url } : { path: list.path };
    const decoded = decodeSpec("lists", {
      name: list.name,
      ...place,
      managed_by: MANAGED_BY_CONFIG,
    });
    if (decoded.ok) lists.set(list.id, decoded.spec);
    else problems.push(`filter.lists[${i}]: ${describeProblems(decoded.problems, "list")}`);
  }
  const isBare = first && source.lists.length === 0;
  for (const { id, name, url, comment } of isBare ? source.defaults ?? [] : []) {
    const decoded = decodeSpec("lists", { name, url, comment });
    if (decoded.ok) lists.set(id, decoded.spec);
    else problems.push(`default list ${name}: ${describeProblems(decoded.problems, "list")}`);
  }
  for (const [i, rule] of source.rules.entries()) {
    const decoded = decodeSpec("rules", { rule, managed_by: MANAGED_BY_CONFIG });
    if (decoded.ok) rules.set(configRuleId(decoded.spec.rule), decoded.spec);
    else problems.push(`filter.rules[${i}]: ${describeProblems(decoded.problems, "rule")}`);
  }
  const change: Seed = {
    type: "seed",
    lists: Array.from(lists, ([id, spec]) => ({ id, spec })),
    rules: Array.from(rules, ([id, spec]) => ({ id, spec })),
    settings: DEFAULT_SETTINGS,
    first,
  };
  return { change, problems };
}

const FILTER_DIGEST = "filter_digest";

/** A store with the way of its changes. */
interface Seedable {
  readonly store: Pick<Store, "localValue" | "putLocalValue">;
  readonly replicator: Replicator;
}

/** What `seedStore` found: a store that it seeded, one it left alone, or a file edited since. */
export type Seeding = "seeded" | "unchanged" | "ignored";

/**
 * Seeds a store that never was, and says in the log when `[filter]` was edited since: a store that
 * has been seeded owns its lists and rules.
 *
 * @throws {SvcError} If the store can't be written or the source can't be taken.
 */
export async function seedStore(
  { store, replicator }: Seedable,
  source: SeedSource,
): Promise<Seeding> {
  const digest = digestOf(source);
  if (isSeeded(replicator.state)) {
    const known = await store.localValue(FILTER_DIGEST);
    if (known === digest) return "unchanged";
    // A member that took its cluster's configuration was never seeded from a file.
    if (known === null) {
      await store.putLocalValue(FILTER_DIGEST, digest);
      return "unchanged";
    }
    log.warn(
      "[filter] was edited, which changes nothing: run svc import to take its lists and rules",
    );
    return "ignored";
  }
  // First the digest: if the seed fails, the next start seeds and writes it again.
  await store.putLocalValue(FILTER_DIGEST, digest);
  const outcome = await proposeSeed(replicator, source, SYSTEM, true);
  log.info("store seeded from [filter]", { outcome });
  return "seeded";
}

/**
 * `svc import`: the lists and rules of the file replace those that came from it before. Returns
 * what was added, replaced and removed.
 *
 * @throws {SvcError} If the store can't be written or the source can't be taken.
 */
export async function importSeed(
  { store, replicator }: Seedable,
  source: SeedSource,
  actor: Actor,
): Promise<unknown> {
  const outcome = await proposeSeed(replicator, source, actor, !isSeeded(replicator.state));
  await store.putLocalValue(FILTER_DIGEST, digestOf(source));
  return outcome;
}

async function proposeSeed(
  replicator: Replicator,
  source: SeedSource,
  actor: Actor,
  first: boolean,
): Promise<unknown> {
  const { change, problems } = seedChange(source, first);
  for (const problem of problems) log.warn("left out of the seed", { problem });
  return valueOf(await replicator.propose(change, actor));
}
