import { invariant, SvcError } from "../errors.ts";
import { type Key, keyText } from "./keys.ts";

/** Most bytes of a value; Deno KV takes 65,536 with a little of its own around them. */
export const VALUE_BYTES_MAX = 60 * 1024;

const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { fatal: true });

/**
 * A value as it is stored: JSON in UTF-8, so that its size is known before it is written.
 *
 * @throws {InvariantError} If it is too large: what is larger is refused before.
 */
export function encodeValue(value: unknown): Uint8Array {
  const bytes = encoder.encode(JSON.stringify(value));
  invariant(bytes.length <= VALUE_BYTES_MAX, "a stored value is within its limit");
  return bytes;
}

/** @throws {SvcError} `unavailable`, naming the key, if the value is none of ours. */
export function decodeValue(key: readonly unknown[], value: unknown): unknown {
  if (!(value instanceof Uint8Array)) throw damaged(keyText(key), "is no JSON text");
  try {
    return JSON.parse(decoder.decode(value));
  } catch (error) {
    throw damaged(keyText(key), "is no JSON text", error);
  }
}

/** What is wrong with the store, for whoever mends it: nothing is deleted to make it right. */
export function damaged(key: string, message: string, cause?: unknown): SvcError {
  return unavailable(`the value of ${key} is damaged: ${message}`, cause);
}

/** Why the store can't do something, for who may try it again. */
export function unavailable(message: string, cause?: unknown): SvcError {
  return new SvcError("unavailable", `store: ${message}`, cause === undefined ? {} : { cause });
}

/** The entry of a key, decoded; `null` if there is none. */
export async function readKey(
  kv: Deno.Kv,
  key: Key,
): Promise<{ readonly value: unknown; readonly versionstamp: string } | null> {
  const entry = await kv.get(key);
  if (entry.versionstamp === null) return null;
  return { value: decodeValue(key, entry.value), versionstamp: entry.versionstamp };
}
