/**
 * The alphabet of patterns: what stands in names, as small numbers. Letters have no case, and every
 * byte that is in no host name is alike.
 */

/** Codes of bytes, and the marks of a name's beginning and end. */
export const Code = {
  Other: 0,
  Dot: 1,
  Hyphen: 2,
  Underscore: 3,
  /** Ten digits, then 26 letters. */
  Digit: 4,
  Letter: 14,
  End: 40,
  Start: 41,
} as const;

/** Codes of bytes and of the end: what follows the start of a name. */
export const CODES = 41;

/** The code of each byte. */
export const CODE_OF: Uint8Array = Uint8Array.from({ length: 256 }, (_, byte) => {
  const c = String.fromCharCode(byte).toLowerCase();
  if (c === ".") return Code.Dot;
  if (c === "-") return Code.Hyphen;
  if (c === "_") return Code.Underscore;
  if (/^[0-9]$/.test(c)) return Code.Digit + Number(c);
  return /^[a-z]$/.test(c) ? Code.Letter + c.charCodeAt(0) - 0x61 : Code.Other;
});

/** A set of codes, a bit each. */
export type CodeSet = bigint;

export const NOTHING: CodeSet = 0n;
/** Every byte: neither mark. */
export const ANY: CodeSet = (1n << BigInt(Code.End)) - 1n;

/** The set of one code. */
export function setOf(code: number): CodeSet {
  return 1n << BigInt(code);
}

/** The set of the characters of a text that stand in names. */
export function setOfText(text: string): CodeSet {
  let set = NOTHING;
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    const code = unit > 0x7f ? Code.Other : CODE_OF[unit];
    if (code !== Code.Other) set |= setOf(code);
  }
  return set;
}

/** The codes of a set, ascending. */
export function codesOf(set: CodeSet): number[] {
  const codes: number[] = [];
  for (let code = 0; set >> BigInt(code) !== 0n; code++) {
    if ((set >> BigInt(code)) & 1n) codes.push(code);
  }
  return codes;
}
