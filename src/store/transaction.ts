import { invariant } from "../errors.ts";
import type { Write } from "../model/mod.ts";
import {
  JOURNAL_KEY,
  JOURNAL_PART_PREFIX,
  journalPartKey,
  type Key,
  REPLICATED_PREFIXES,
} from "./keys.ts";
import { damaged, encodeValue, readKey, VALUE_BYTES_MAX } from "./values.ts";

/** Most writes of one transaction; Deno KV takes 1,000. */
const MUTATIONS_MAX = 500;
/** Most bytes of the values of one transaction; Deno KV takes 819,200 with the keys. */
const TRANSACTION_BYTES_MAX = 600 * 1024;
/** Most bytes of one written value, so that a part of the journal holds it with its key. */
const WRITE_BYTES_MAX = VALUE_BYTES_MAX - 2 * 1_024;
/** Most bytes of the writes of a part, its own brackets left out. */
const PART_BYTES_MAX = VALUE_BYTES_MAX - 16;
/** What a write needs in a part beside its value and the characters of its key. */
const PART_WRITE_OVERHEAD_BYTES = 64;
/** Parts written by one transaction. */
const PARTS_PER_TRANSACTION = 8;
/** Keys that one pass over left-over parts deletes. */
const CLEANUP_BATCH = 500;

interface Encoded {
  readonly write: Write;
  readonly bytes: Uint8Array | null;
}

/** What a commit that found the store as it expected comes to. */
export interface Guard {
  readonly key: Key;
  /** As of the last read or commit; `null`: the key is absent. */
  readonly versionstamp: string | null;
}

/** A large change was decided but not written out: opening the store again finishes it. */
export class UnfinishedError extends Error {
  override readonly name = "UnfinishedError";
}

/**
 * Makes all `writes` or none, whatever happens in between, and returns the versionstamp of the last
 * one; `null` if `guard` does not hold. What is too large for one transaction goes through a
 * journal: its parts are written first, then one key that decides, then the writes themselves; who
 * opens the store finishes what was decided.
 *
 * @throws {UnfinishedError} If it was decided, but could not be written out.
 */
export async function commitWhole(
  kv: Deno.Kv,
  writes: readonly Write[],
  guard: Guard,
): Promise<string | null> {
  const encoded = writes.map(encode);
  const batches = batchesOf(encoded);
  if (batches.length > 1) return await commitThroughJournal(kv, encoded, guard, "parts");
  const result = await stage(kv.atomic().check(guard), batches[0]).commit();
  return result.ok ? result.versionstamp : null;
}

/**
 * As `commitWhole`, and deletes all that members agree on before it writes.
 *
 * @throws {UnfinishedError} If it was decided, but could not be written out.
 */
export async function replaceWhole(
  kv: Deno.Kv,
  writes: readonly Write[],
  guard: Guard,
): Promise<string | null> {
  return await commitThroughJournal(kv, writes.map(encode), guard, "replacing");
}

/**
 * What the journal holds: `parts` of them, or so many `replacing` all that members agree on. One
 * name each: a program that knows but the first must not take the other for it.
 */
type JournalKind = "parts" | "replacing";

async function commitThroughJournal(
  kv: Deno.Kv,
  encoded: readonly Encoded[],
  guard: Guard,
  kind: JournalKind,
): Promise<string | null> {
  const value = encodeValue({ [kind]: await writeParts(kv, encoded) });
  if (!(await kv.atomic().check(guard).set(JOURNAL_KEY, value).commit()).ok) return null;
  try {
    return await writeOut(kv, encoded, kind);
  } catch (error) {
    throw new UnfinishedError("a large change is not written out", { cause: error });
  }
}

function encode(write: Write): Encoded {
  if (write.value === null) return { write, bytes: null };
  const bytes = encodeValue(write.value);
  invariant(bytes.length <= WRITE_BYTES_MAX, "a written value fits a part of the journal");
  return { write, bytes };
}

function batchesOf(encoded: readonly Encoded[]): Encoded[][] {
  const batches: Encoded[][] = [[]];
  let bytes = 0;
  for (const one of encoded) {
    const batch = batches[batches.length - 1];
    const length = one.bytes?.length ?? 0;
    const isFull = batch.length >= MUTATIONS_MAX || bytes + length > TRANSACTION_BYTES_MAX;
    if (isFull) batches.push([one]);
    else batch.push(one);
    bytes = isFull ? length : bytes + length;
  }
  return batches;
}

function stage(operation: Deno.AtomicOperation, batch: readonly Encoded[]): Deno.AtomicOperation {
  for (const { write, bytes } of batch) {
    if (bytes === null) operation.delete(write.key);
    else operation.set(write.key, bytes);
  }
  return operation;
}

/** Writes in parts, each of which is a value that can be stored: a list of writes. */
export function* partsOf(writes: Iterable<Write>): Generator<Uint8Array> {
  yield* packed(map(writes, encode));
}

function* map<A, B>(items: Iterable<A>, of: (item: A) => B): Generator<B> {
  for (const item of items) yield of(item);
}

function* packed(encoded: Iterable<Encoded>): Generator<Uint8Array> {
  let [part, bytes]: [Write[], number] = [[], 0];
  for (const { write, bytes: value } of encoded) {
    const length = (value?.length ?? 0) + write.key.join().length + PART_WRITE_OVERHEAD_BYTES;
    if (bytes + length > PART_BYTES_MAX) {
      yield encodeValue(part);
      [part, bytes] = [[], 0];
    }
    part.push(write);
    bytes += length;
  }
  yield encodeValue(part);
}

/** The writes of a part; `null` if it is none. */
export function readPart(json: unknown): readonly Write[] | null {
  return Array.isArray(json) && json.every(isWrite) ? json : null;
}

/** Writes the parts of the journal and returns how many they are. Nothing counts on them yet. */
async function writeParts(kv: Deno.Kv, encoded: readonly Encoded[]): Promise<number> {
  let [operation, count] = [kv.atomic(), 0];
  for (const part of packed(encoded)) {
    operation.set(journalPartKey(count++), part);
    if (count % PARTS_PER_TRANSACTION > 0) continue;
    await operation.commit();
    operation = kv.atomic();
  }
  if (count % PARTS_PER_TRANSACTION > 0) await operation.commit();
  return count;
}

/** Writes a decided change; doing it again does no harm. The last batch ends the journal. */
async function writeOut(
  kv: Deno.Kv,
  encoded: readonly Encoded[],
  kind: JournalKind,
): Promise<string> {
  const batches = batchesOf(encoded);
  if (kind === "replacing") {
    for (const prefix of REPLICATED_PREFIXES) await deleteBelow(kv, prefix);
  }
  let versionstamp = "";
  for (const [i, batch] of batches.entries()) {
    const operation = stage(kv.atomic(), batch);
    if (i === batches.length - 1) operation.delete(JOURNAL_KEY);
    const result = await operation.commit();
    // Without a check there is nothing that could fail but what throws.
    if (result.ok) versionstamp = result.versionstamp;
  }
  await deleteBelow(kv, JOURNAL_PART_PREFIX);
  return versionstamp;
}

async function deleteBelow(kv: Deno.Kv, prefix: Key): Promise<void> {
  for (;;) {
    const operation = kv.atomic();
    let count = 0;
    for await (const { key } of kv.list({ prefix }, { limit: CLEANUP_BATCH })) {
      operation.delete(key);
      count++;
    }
    if (count === 0) return;
    await operation.commit();
  }
}

function isWrite(json: unknown): json is Write {
  return typeof json === "object" && json !== null && "key" in json && "value" in json &&
    Array.isArray(json.key) && json.key.every((part) => typeof part === "string");
}

/** Finishes a large change that was decided, and drops what is left of one that was not. */
export async function recover(kv: Deno.Kv): Promise<void> {
  const decided = await readKey(kv, JOURNAL_KEY);
  if (decided === null) return await deleteBelow(kv, JOURNAL_PART_PREFIX);
  const { parts: changed, replacing } = (decided.value ?? {}) as Partial<
    Record<JournalKind, unknown>
  >;
  const parts = replacing ?? changed;
  if (typeof parts !== "number") throw damaged("journal", "has no parts");
  const encoded: Encoded[] = [];
  for (let i = 0; i < parts; i++) {
    const key = journalPartKey(i);
    const part = readPart((await readKey(kv, key))?.value);
    if (part === null) throw damaged(key.join("/"), "is no part of the journal");
    encoded.push(...part.map(encode));
  }
  await writeOut(kv, encoded, replacing === undefined ? "parts" : "replacing");
}

/** Copies every entry of one store into another, which is empty. */
export async function copyWhole(from: Deno.Kv, to: Deno.Kv): Promise<void> {
  let operation = to.atomic();
  let [count, bytes] = [0, 0];
  for await (const { key, value } of from.list<Uint8Array>({ prefix: [] })) {
    operation.set(key, value);
    count++;
    bytes += value.length;
    if (count < MUTATIONS_MAX && bytes + VALUE_BYTES_MAX < TRANSACTION_BYTES_MAX) continue;
    await operation.commit();
    operation = to.atomic();
    [count, bytes] = [0, 0];
  }
  await operation.commit();
}
