import { createHash } from "node:crypto";
import { getU32, setU32 } from "../bytes/mod.ts";
import { messageOf } from "../errors.ts";
import type { SourcedRule, SourceStats } from "../filter/mod.ts";
import { log } from "../log.ts";

const MAGIC = 0x73766372; // "svcr"
const SHA256_BYTES = 32;
/** Magic, seed, length of the counts; then the key and the seal. */
const HEAD_BYTES = 12 + 2 * SHA256_BYTES;
/** What of the head the seal is of; then come the counts and the hash of the rules. */
const SEALED_HEAD_BYTES = 12 + SHA256_BYTES;
/** Read and written in pieces, so that no second copy of the rules is made. */
const PIECE_BYTES = 256 * 1024;
/** A file that claims more is damaged. */
const COUNTS_BYTES_MAX = 16 * 1024 * 1024;

export interface KeptRules {
  readonly seed: number;
  readonly rules: SharedArrayBuffer;
  readonly stats: SourceStats[];
  readonly badfilters: SourcedRule[];
}

/**
 * Reads the rules that were compiled from the same texts, so that a start does not compile. Returns
 * `null` where there are none, or where the file is not whole.
 */
export async function readKeptRules(
  path: string,
  key: Uint8Array,
): Promise<KeptRules | null> {
  try {
    return await readFile(path, key);
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) {
      log.warn("compiled rules can't be read; compiling anew", { path, error: messageOf(error) });
    }
    return null;
  }
}

async function readFile(path: string, key: Uint8Array): Promise<KeptRules | null> {
  const file = await Deno.open(path);
  try {
    const { size } = await file.stat();
    const head = new Uint8Array(HEAD_BYTES);
    if (!readInto(file, head) || getU32(head, 0) !== MAGIC) return null;
    for (let i = 0; i < SHA256_BYTES; i++) if (head[12 + i] !== key[i]) return null;
    const countsBytes = getU32(head, 8);
    if (countsBytes > COUNTS_BYTES_MAX || HEAD_BYTES + countsBytes > size) return null;
    const counts = new Uint8Array(countsBytes);
    const rules = new SharedArrayBuffer(size - HEAD_BYTES - countsBytes);
    const hash = createHash("sha256");
    if (!readInto(file, counts) || !readInto(file, new Uint8Array(rules), hash)) return null;
    const seal = sealOf(head, counts, hash.digest());
    for (let i = 0; i < SHA256_BYTES; i++) {
      if (head[SEALED_HEAD_BYTES + i] !== seal[i]) {
        log.warn("compiled rules are damaged; compiling anew", { path });
        return null;
      }
    }
    const text = new TextDecoder().decode(counts);
    const { stats, badfilters } = JSON.parse(text) as Pick<KeptRules, "stats" | "badfilters">;
    return { seed: getU32(head, 4) | 0, rules, stats, badfilters };
  } finally {
    file.close();
  }
}

/**
 * Keeps compiled rules for the next start; a failure costs that start its time and no more.
 * `rulesSha256` is the hash of the rules.
 */
export async function keepRules(
  path: string,
  key: Uint8Array,
  kept: KeptRules & { readonly rulesSha256: Uint8Array },
): Promise<void> {
  const temporary = `${path}.new`;
  try {
    const counts = new TextEncoder().encode(
      JSON.stringify({ stats: kept.stats, badfilters: kept.badfilters }),
    );
    const rules = new Uint8Array(kept.rules);
    const head = new Uint8Array(HEAD_BYTES);
    setU32(head, 0, MAGIC);
    setU32(head, 4, kept.seed);
    setU32(head, 8, counts.length);
    head.set(key, 12);
    head.set(sealOf(head, counts, kept.rulesSha256), SEALED_HEAD_BYTES);
    const file = await Deno.open(temporary, {
      write: true,
      create: true,
      truncate: true,
      mode: 0o600,
    });
    try {
      // The head comes last: until then the file is no good to anyone.
      await file.seek(HEAD_BYTES, Deno.SeekMode.Start);
      await writeAll(file, counts);
      // Shared memory can't be written from; one piece is used over and over.
      const piece = new Uint8Array(PIECE_BYTES);
      for (let at = 0; at < rules.length; at += PIECE_BYTES) {
        const part = rules.subarray(at, at + PIECE_BYTES);
        piece.set(part);
        await writeAll(file, piece.subarray(0, part.length));
      }
      await file.seek(0, Deno.SeekMode.Start);
      await writeAll(file, head);
      await file.syncData();
    } finally {
      file.close();
    }
    await Deno.rename(temporary, path);
  } catch (error) {
    log.warn("compiled rules can't be kept for the next start", { path, error: messageOf(error) });
  }
}

/** The hash by which a damaged or unfinished file is told from a whole one. */
function sealOf(head: Uint8Array, counts: Uint8Array, rulesSha256: Uint8Array): Uint8Array {
  const hash = createHash("sha256").update(head.subarray(0, SEALED_HEAD_BYTES));
  return hash.update(counts).update(rulesSha256).digest();
}

function readInto(
  file: Deno.FsFile,
  target: Uint8Array,
  hash?: ReturnType<typeof createHash>,
): boolean {
  // Shared memory can't be read into: by way of a piece.
  const piece = new Uint8Array(Math.min(PIECE_BYTES, target.length));
  for (let at = 0; at < target.length;) {
    const n = file.readSync(piece.subarray(0, Math.min(piece.length, target.length - at)));
    if (n === null || n === 0) return false;
    target.set(piece.subarray(0, n), at);
    hash?.update(piece.subarray(0, n));
    at += n;
  }
  return true;
}

async function writeAll(file: Deno.FsFile, bytes: Uint8Array): Promise<void> {
  for (let at = 0; at < bytes.length;) at += await file.write(bytes.subarray(at));
}
