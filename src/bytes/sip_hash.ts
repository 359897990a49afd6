/** SipHash-2-4 (Aumasson, Bernstein 2012): a keyed hash of short inputs. Leaves no garbage. */

/** Bytes of a key and of a hash. */
export const SIP_KEY_BYTES = 16;
export const SIP_HASH_BYTES = 8;

/** v0 to v3, each its low half and its high half. */
const state = new Int32Array(8);
/** What v0 to v3 start with, before the key: "somepseudorandomlygeneratedbytes". */
const START = Int32Array.of(
  ...[0x70736575, 0x736f6d65, 0x6e646f6d, 0x646f7261],
  ...[0x6e657261, 0x6c796765, 0x79746573, 0x74656462],
);
const FINAL_ROUNDS = 4;
const WORD_BYTES = 8;

/** Adds word `b` of the state to word `a`. */
function add(a: number, b: number): void {
  const low = (state[a] >>> 0) + (state[b] >>> 0);
  state[a] = low;
  state[a + 1] = state[a + 1] + state[b + 1] + (low > 0xffffffff ? 1 : 0);
}

/** Rotates word `a` to the left by `bits`, 1 to 31, and mixes word `b` into it. */
function rotateXor(a: number, bits: number, b: number): void {
  const low = state[a];
  const high = state[a + 1];
  state[a] = ((low << bits) | (high >>> (32 - bits))) ^ state[b];
  state[a + 1] = ((high << bits) | (low >>> (32 - bits))) ^ state[b + 1];
}

/** Rotates word `a` by 32 bits. */
function swap(a: number): void {
  const low = state[a];
  state[a] = state[a + 1];
  state[a + 1] = low;
}

function round(): void {
  add(0, 2);
  rotateXor(2, 13, 0);
  swap(0);
  add(4, 6);
  rotateXor(6, 16, 4);
  add(0, 6);
  rotateXor(6, 21, 0);
  add(4, 2);
  rotateXor(2, 17, 4);
  swap(4);
}

function mix(low: number, high: number): void {
  state[6] ^= low;
  state[7] ^= high;
  round();
  round();
  state[0] ^= low;
  state[1] ^= high;
}

function littleEndian(bytes: Uint8Array, at: number): number {
  return bytes[at] | (bytes[at + 1] << 8) | (bytes[at + 2] << 16) | (bytes[at + 3] << 24);
}

/** Writes the hash of the first `length` bytes of `data`, below 256, to `at` of `target`. */
export function sipHash(
  key: Uint8Array,
  data: Uint8Array,
  length: number,
  target: Uint8Array,
  at: number,
): void {
  for (let i = 0; i < state.length; i++) {
    // v0 and v2 take the first half of the key, v1 and v3 the second.
    state[i] = START[i] ^ littleEndian(key, 4 * (i & 3));
  }
  let from = 0;
  for (; from + WORD_BYTES <= length; from += WORD_BYTES) {
    mix(littleEndian(data, from), littleEndian(data, from + 4));
  }
  let low = 0;
  let high = length << 24;
  for (let i = from; i < length; i++) {
    const place = i - from;
    if (place < 4) low |= data[i] << (8 * place);
    else high |= data[i] << (8 * (place - 4));
  }
  mix(low, high);
  state[4] ^= 0xff;
  for (let i = 0; i < FINAL_ROUNDS; i++) round();
  const hashLow = state[0] ^ state[2] ^ state[4] ^ state[6];
  const hashHigh = state[1] ^ state[3] ^ state[5] ^ state[7];
  for (let i = 0; i < 4; i++) {
    target[at + i] = hashLow >>> (8 * i);
    target[at + 4 + i] = hashHigh >>> (8 * i);
  }
}
