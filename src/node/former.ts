import type { SavedLeakTest } from "../api/mod.ts";
import { decodeHex, encodeHex } from "../bytes/mod.ts";
import { messageOf } from "../errors.ts";
import type { FormerDns } from "../isolate/mod.ts";
import { log } from "../log.ts";
import type { Memory } from "../process/mod.ts";

/** What a running node holds in memory alone and leaves to the next. */
export interface Former {
  readonly pausedUntilMs: number;
  readonly leakTests: readonly SavedLeakTest[];
  /** Of the keys of Oblivious DoH, the current one first. */
  readonly odohSeeds: readonly Uint8Array<ArrayBuffer>[];
  /** How long that has been offered. */
  readonly odohAgeMs: number;
  readonly dns: FormerDns;
}

/** The same as JSON, behind the cached answers and before its own length. */
interface Head {
  readonly format: typeof FORMAT;
  readonly pausedUntilMs: number;
  readonly leakTests: readonly SavedLeakTest[];
  readonly odohSeeds: readonly string[];
  /** Left out by programs that did not know it. */
  readonly odohAgeMs?: number;
  readonly cookieSecret: string;
  /** Bytes of each isolate's answers. */
  readonly answers: readonly number[];
}

const FORMAT = 1;
const LENGTH_BYTES = 4;
/** More than all leak tests come to. */
const HEAD_BYTES_MAX = 8 * 1024 * 1024;

/** A new node begins with this. */
export const NO_FORMER: Former = {
  pausedUntilMs: 0,
  leakTests: [],
  odohSeeds: [],
  odohAgeMs: 0,
  dns: { cookieSecret: null, answers: [] },
};

/** Writes it; `answers` come one by one, and are written before the next one is asked for. */
export async function saveFormer(
  memory: Memory,
  former: Omit<Former, "dns"> & { readonly cookieSecret: Uint8Array },
  answers: AsyncIterable<SharedArrayBuffer>,
): Promise<void> {
  const lengths: number[] = [];
  for await (const saved of answers) {
    memory.append(new Uint8Array(saved));
    lengths.push(saved.byteLength);
  }
  const head: Head = {
    format: FORMAT,
    pausedUntilMs: former.pausedUntilMs,
    leakTests: former.leakTests,
    odohSeeds: former.odohSeeds.map((seed) => encodeHex(seed)),
    odohAgeMs: former.odohAgeMs,
    cookieSecret: encodeHex(former.cookieSecret),
    answers: lengths,
  };
  const text = new TextEncoder().encode(JSON.stringify(head));
  memory.append(text);
  memory.append(new Uint8Array(Uint32Array.of(text.length).buffer));
}

/** Reads it; what can't be read is begun anew. */
export function readFormer(memory: Memory): Former {
  try {
    return readHead(memory) ?? NO_FORMER;
  } catch (error) {
    log.warn("what the former program left can't be read", { error: messageOf(error) });
    return NO_FORMER;
  }
}

function readHead(memory: Memory): Former | null {
  const { length } = memory;
  const size = new Uint32Array(1);
  if (!memory.read(new Uint8Array(size.buffer), length - LENGTH_BYTES)) return null;
  const at = length - LENGTH_BYTES - size[0];
  if (at < 0 || size[0] > HEAD_BYTES_MAX) return null;
  const text = new Uint8Array(size[0]);
  if (!memory.read(text, at)) return null;
  const head = JSON.parse(new TextDecoder().decode(text)) as Head;
  if (head.format !== FORMAT) return null;
  let from = 0;
  const answers = head.answers.map((bytes) => {
    const target = new SharedArrayBuffer(bytes);
    const isRead = memory.read(new Uint8Array(target), from);
    from += bytes;
    return isRead ? target : null;
  });
  return {
    pausedUntilMs: head.pausedUntilMs,
    leakTests: head.leakTests,
    odohSeeds: head.odohSeeds.map(bytesOf),
    odohAgeMs: head.odohAgeMs ?? 0,
    dns: { cookieSecret: bytesOf(head.cookieSecret), answers },
  };
}

function bytesOf(text: string): Uint8Array<ArrayBuffer> {
  const bytes = decodeHex(text);
  if (bytes === null) throw new TypeError("no hexadecimal digits");
  return bytes;
}
