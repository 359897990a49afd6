import { huffman } from "./huffman.ts";
import { staticIndex, staticIndexOf } from "./static_table.ts";

/** Says that we use no dynamic table, in front of our first header block (RFC 7541 §4.2). */
export const TABLE_SIZE_ZERO = 0x20;

/** A field of a header block, not put into any table (RFC 7541 §6.1, §6.2.2). */
export function fieldOf(name: string, value: string): number[] {
  const whole = staticIndexOf(name, value);
  if (whole > 0) return [0x80 | whole];
  const index = staticIndex(name);
  const start = index === 0 ? [0x00, ...string(name)] : literalPrefix(index);
  return [...start, ...string(value)];
}

/** A literal field without indexing whose name is in the static table. */
export function literalPrefix(index: number): number[] {
  return integer(0, 4, index);
}

/** A string literal, by Huffman codes. */
export function string(text: string): number[] {
  const bytes = huffman(text);
  return [...integer(0x80, 7, bytes.length), ...bytes];
}

/** An integer in the low `bits` bits of a byte and, where they are too few, behind it (§5.1). */
function integer(byte: number, bits: number, value: number): number[] {
  const most = (1 << bits) - 1;
  if (value < most) return [byte | value];
  const bytes = [byte | most];
  let rest = value - most;
  for (; rest > 0x7f; rest >>>= 7) bytes.push(0x80 | (rest & 0x7f));
  bytes.push(rest);
  return bytes;
}
