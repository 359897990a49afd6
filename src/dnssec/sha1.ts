/**
 * SHA-1 (FIPS 180-4) of short inputs, for the hashes of NSEC3: hundreds for an answer, and a call
 * into the runtime costs five times the hash itself.
 */
import { getU32, setU32 } from "../bytes/mod.ts";

export const SHA1_BYTES = 20;
const BLOCK_BYTES = 64;
/** A length in bits ends the last block; inputs here are far below 2^32 bits. */
const LENGTH_BYTES = 8;

/** Scratch: the words of a block, and the blocks of one input with its padding. */
const words = new Int32Array(80);
const blocks = new Uint8Array(9 * BLOCK_BYTES);
/** Longest input: a name and a salt of NSEC3. */
export const SHA1_INPUT_MAX = blocks.length - LENGTH_BYTES - 1;

const state = new Int32Array(5);

/** Hashes the first `length` bytes of `input` to `target`, which may be the same array. */
export function sha1(input: Uint8Array, length: number, target: Uint8Array): void {
  const end = Math.ceil((length + 1 + LENGTH_BYTES) / BLOCK_BYTES) * BLOCK_BYTES;
  for (let i = 0; i < length; i++) blocks[i] = input[i];
  blocks.fill(0, length, end);
  blocks[length] = 0x80;
  setU32(blocks, end - 4, length * 8);
  state[0] = 0x67452301;
  state[1] = 0xefcdab89;
  state[2] = 0x98badcfe;
  state[3] = 0x10325476;
  state[4] = 0xc3d2e1f0;
  for (let at = 0; at < end; at += BLOCK_BYTES) addBlock(at);
  for (let i = 0; i < 5; i++) setU32(target, 4 * i, state[i]);
}

function addBlock(at: number): void {
  for (let i = 0; i < 16; i++) words[i] = getU32(blocks, at + 4 * i);
  for (let i = 16; i < 80; i++) {
    const word = words[i - 3] ^ words[i - 8] ^ words[i - 14] ^ words[i - 16];
    words[i] = (word << 1) | (word >>> 31);
  }
  let [a, b, c, d, e] = [state[0], state[1], state[2], state[3], state[4]];
  for (let i = 0; i < 80; i++) {
    const mixed = i < 20
      ? ((b & c) | (~b & d)) + 0x5a827999
      : i < 40
      ? (b ^ c ^ d) + 0x6ed9eba1
      : i < 60
      ? ((b & c) | (b & d) | (c & d)) + 0x8f1bbcdc
      : (b ^ c ^ d) + 0xca62c1d6;
    const next = (((a << 5) | (a >>> 27)) + mixed + e + words[i]) | 0;
    e = d;
    d = c;
    c = (b << 30) | (b >>> 2);
    b = a;
    a = next;
  }
  state[0] += a;
  state[1] += b;
  state[2] += c;
  state[3] += d;
  state[4] += e;
}
