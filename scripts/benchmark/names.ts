/** The names that are asked for, and the list that blocks some of them. */
import { BenchError } from "./bench_error.ts";
import { splitLines } from "./processes.ts";

/** Real names, most asked first. */
const POPULAR = "umbrella-top-100k.names.gz";
/** A plain domain list: each line covers its exact name. */
const MILLION = "million.domains.gz";
/** One name in this many is blocked. */
export const BLOCKED_EVERY = 10;
/** Longest name asked for, with room left for the label that makes it a cold one. */
const NAME_LENGTH_MAX = 200;
const PLAIN_NAME = /^[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})+$/;
/** Names that servers answer by themselves, each in its own way (RFC 6761, RFC 6303, RFC 8375). */
const SPECIAL = /(^|\.)(arpa|example|home|internal|invalid|lan|local|localhost|onion|test)$/;

export interface QueryNames {
  /** Names that no rule covers, most asked first. */
  readonly passed: readonly string[];
  /** Names of the million, evenly spread over the list. */
  readonly blocked: readonly string[];
}

/** Unpacks the list of a million names to `target`. */
export async function unpackMillion(lists: string, target: string): Promise<void> {
  const file = await Deno.open(target, { write: true, create: true, truncate: true });
  await (await unpack(`${lists}/${MILLION}`)).pipeTo(file.writable);
}

/** Picks `count` names to ask for, a tenth of them blocked by the unpacked list `million`. */
export async function pickNames(
  lists: string,
  million: string,
  count: number,
): Promise<QueryNames> {
  const popular = new Set<string>();
  for await (const name of textLines(await unpack(`${lists}/${POPULAR}`))) {
    if (isAskable(name)) popular.add(name);
  }
  const listed: string[] = [];
  for await (const line of textLines((await Deno.open(million)).readable)) {
    if (popular.delete(line) || !isAskable(line)) continue;
    listed.push(line);
  }
  const blocked = spread(listed, Math.floor(count / BLOCKED_EVERY));
  const blockedSet = new Set(blocked);
  const passed = popular.values()
    // The other servers' rules cover the names below, too.
    .filter((name) => !hasParentIn(name, blockedSet))
    .take(count - blocked.length)
    .toArray();
  if (passed.length + blocked.length < count) {
    throw new BenchError(`${lists}: holds ${passed.length} names that pass: use fewer --names`);
  }
  return { passed, blocked };
}

export function isAskable(name: string): boolean {
  return name.length <= NAME_LENGTH_MAX && PLAIN_NAME.test(name) && !SPECIAL.test(name);
}

export function hasParentIn(name: string, names: ReadonlySet<string>): boolean {
  for (let at = name.indexOf("."); at >= 0; at = name.indexOf(".", at + 1)) {
    if (names.has(name.slice(at + 1))) return true;
  }
  return false;
}

/** `count` of `values`, at even distances. */
export function spread<T>(values: readonly T[], count: number): T[] {
  return Array.from({ length: count }, (_, i) => values[Math.floor(i * values.length / count)]);
}

/** Names that pass with a blocked one in every tenth place. */
export function mix({ passed, blocked }: QueryNames): string[] {
  const mixed: string[] = [];
  let [p, b] = [0, 0];
  while (p < passed.length || b < blocked.length) {
    const blockedTurn = mixed.length % BLOCKED_EVERY === BLOCKED_EVERY - 1;
    const useBlocked = p === passed.length || (blockedTurn && b < blocked.length);
    mixed.push(useBlocked ? blocked[b++] : passed[p++]);
  }
  return mixed;
}

/** Writes names the way dnsperf reads them. */
export async function writeQueries(path: string, names: Iterable<string>): Promise<void> {
  const lines: string[] = [];
  for (const name of names) lines.push(`${name} A\n`);
  await Deno.writeTextFile(path, lines.join(""));
}

/** `count` names that were never asked before: `label` is used once. */
export function* coldNames(
  passed: readonly string[],
  label: string,
  count: number,
): Generator<string> {
  for (let i = 0; i < count; i++) yield `${label}-${i}.${passed[i % passed.length]}`;
}

async function unpack(path: string): Promise<ReadableStream<Uint8Array<ArrayBuffer>>> {
  try {
    return (await Deno.open(path)).readable.pipeThrough(new DecompressionStream("gzip"));
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
    throw new BenchError(`${path}: there is no such list: say --lists DIRECTORY`);
  }
}

function textLines(bytes: ReadableStream<Uint8Array<ArrayBuffer>>): AsyncGenerator<string> {
  return splitLines(bytes.pipeThrough(new TextDecoderStream()));
}
