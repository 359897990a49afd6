/**
 * The hash of a name and of each of its parents, made in one walk from the right. The filter's
 * tables, the cache and the table of queries in flight all look names up by it.
 */

/** Most labels of a name, the root left out (RFC 1035 §2.3.4: 255 bytes, 2 a label at least). */
export const LABELS_MAX = 127;

const PRIME = 0x01000193;

/** Lower case of every byte, ASCII letters only (RFC 4343). */
export const FOLD = Uint8Array.from({ length: 256 }, (_, b) => b >= 0x41 && b <= 0x5a ? b + 32 : b);

/** Spreads a running hash over all 32 bits, so that its low bits can pick a slot. */
export function finishHash(running: number): number {
  let h = running ^ (running >>> 15);
  h = Math.imul(h, 0x2c1b3c6d);
  h ^= h >>> 12;
  h = Math.imul(h, 0x297a2d39);
  return h ^ (h >>> 15);
}

/** Goes on with a running hash over one label, whose length byte stands at `offset`. */
export function hashLabel(running: number, bytes: Uint8Array, offset: number): number {
  const end = offset + 1 + bytes[offset];
  let h = running;
  for (let i = offset + 1; i < end; i++) h = Math.imul(h ^ FOLD[bytes[i]], PRIME);
  // Marks where a label ends: "ab.c" and "a.bc" differ.
  return Math.imul(h ^ 0x2e, PRIME);
}

/** An uncompressed name with the hashes of its suffixes; made once and used for every query. */
export class HashedName {
  /** Labels, the root left out. */
  count = 0;
  /**
   * Where the length byte of each label stands in the array read from, which may hold many packets;
   * `[count]` is the root's.
   */
  readonly offsets: Int32Array = new Int32Array(LABELS_MAX + 1);
  /** `[k]` is the finished hash of the suffix that starts at label `k`; `[0]` is the whole name's. */
  readonly hashes: Int32Array = new Int32Array(LABELS_MAX + 1);

  /**
   * Reads the uncompressed name at `offset`. Returns the offset behind it, or -1 when it is
   * compressed, too long (255 bytes) or cut off. Leaves no garbage.
   */
  read(bytes: Uint8Array, offset: number, end: number, seed: number): number {
    const offsets = this.offsets;
    let at = offset;
    let count = 0;
    for (;;) {
      if (at >= end) return -1;
      offsets[count] = at;
      const length = bytes[at];
      if (length === 0) break;
      if (length > 63 || at + 1 + length - offset > 254) return -1;
      at += 1 + length;
      count++;
    }
    const hashes = this.hashes;
    let running = seed;
    hashes[count] = finishHash(running);
    for (let k = count - 1; k >= 0; k--) {
      running = hashLabel(running, bytes, offsets[k]);
      hashes[k] = finishHash(running);
    }
    this.count = count;
    return at + 1;
  }
}
