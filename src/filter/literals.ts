import { Code, CODE_OF, codesOf } from "./name_codes.ts";
import type { RegexNode } from "./regex.ts";

/**
 * Pieces of text, as characters of the codes in them, one of which is in every name that a pattern
 * covers. The start of a name stands as a dot: to who looks for a piece, a label begins at both.
 */
export type Literals = readonly string[];

/** Most pieces of one pattern, the longest piece, and the most codes of a class that make pieces. */
const PIECES_MAX = 24;
const PIECE_MAX = 24;
const CLASS_MAX = 8;
/** Copies of what is repeated that are looked at. */
const COPIES_MAX = 8;

/** What is known of a part of an expression. */
interface Known {
  /** All that it covers; `null`: too much. */
  readonly exact: Literals | null;
  /** Of these one is in all that it covers; `null`: nothing is known. */
  readonly some: Literals | null;
}

const UNKNOWN: Known = { exact: null, some: null };
const EMPTY: Literals = [""];

/** The literals of an expression, or `null` where there is no saying. */
export function literalsOf(node: RegexNode): Literals | null {
  const { exact, some } = known(node);
  return better(exact, some);
}

function known(node: RegexNode): Known {
  switch (node.kind) {
    case "set": {
      const codes = codesOf(node.set);
      if (codes.length > CLASS_MAX) return UNKNOWN;
      const marked = codes.map((code) => code === Code.Start ? Code.Dot : code);
      return { exact: marked.map((code) => String.fromCharCode(code)), some: null };
    }
    case "all":
      return sequence(node.nodes.map(known));
    case "any":
      return choice(node.nodes.map(known));
    case "repeat": {
      const one = known(node.node);
      if (node.min === 0) {
        return node.max === 1 ? choice([one, { exact: EMPTY, some: null }]) : UNKNOWN;
      }
      const copies = Array<Known>(Math.min(node.min, COPIES_MAX)).fill(one);
      const isAll = node.max === copies.length;
      return sequence(isAll ? copies : [...copies, UNKNOWN]);
    }
  }
}

function sequence(parts: readonly Known[]): Known {
  let exact: Literals | null = EMPTY;
  let run: Literals = EMPTY;
  let some: Literals | null = null;
  for (const part of parts) {
    const longer: Literals | null = part.exact === null ? null : product(run, part.exact);
    if (longer !== null) {
      run = longer;
      continue;
    }
    exact = null;
    some = better(better(some, run), part.some);
    run = part.exact ?? EMPTY;
  }
  return exact === null ? { exact, some: better(some, run) } : { exact: run, some };
}

function choice(parts: readonly Known[]): Known {
  const exact = unionOf(parts.map((part) => part.exact));
  if (exact !== null) return { exact, some: null };
  return { exact, some: unionOf(parts.map((part) => better(part.exact, part.some))) };
}

/** `null` where there are too many, or one is too long. */
function product(before: Literals, behind: Literals): Literals | null {
  if (before.length * behind.length > PIECES_MAX) return null;
  const both = before.flatMap((a) => behind.map((b) => a + b));
  return both.some((piece) => piece.length > PIECE_MAX) ? null : both;
}

function unionOf(all: readonly (Literals | null)[]): Literals | null {
  if (all.some((pieces) => pieces === null)) return null;
  const union = [...new Set(all.flatMap((pieces) => pieces ?? []))];
  return union.length > PIECES_MAX ? null : union;
}

/** Which are found in fewer names: longer ones, and of these the fewer. */
function better(a: Literals | null, b: Literals | null): Literals | null {
  if (a === null || b === null) return a ?? b;
  const difference = shortest(a) - shortest(b);
  if (difference !== 0) return difference > 0 ? a : b;
  return b.length < a.length ? b : a;
}

function shortest(pieces: Literals): number {
  return Math.min(GRAM_MAX, ...pieces.map((piece) => piece.length));
}

/** Codes of a gram, which patterns are found by: longer pieces tell no more. */
export const GRAM_MAX = 4;
export const GRAM_MIN = 3;
/** Bits of a code. */
export const CODE_BITS = 6;
/** The bits of the codes of a gram, and what a short one has beside. */
export const GRAM_MASK = (1 << (GRAM_MAX * CODE_BITS)) - 1;
export const SHORT_MASK = (1 << (GRAM_MIN * CODE_BITS)) - 1;
export const SHORT_MARK = 1 << (GRAM_MAX * CODE_BITS);

/** Grams of a piece: those of four codes, of a piece of three the one of these. */
export function gramsOf(piece: string): number[] {
  const length = Math.min(GRAM_MAX, piece.length);
  if (length < GRAM_MIN) return [];
  const grams: number[] = [];
  for (let at = 0; at + length <= piece.length; at++) {
    let gram = 0;
    for (let i = 0; i < length; i++) gram = (gram << CODE_BITS) | piece.charCodeAt(at + i);
    grams.push(length === GRAM_MAX ? gram : gram | SHORT_MARK);
  }
  return grams;
}

/** How often a code stands in names that are asked for, in parts of a thousand; letters from a on. */
const LETTER_SHARES = [74, 13, 40, 34, 84, 16, 24, 19, 61, 6, 14, 36, 34];
const LATER_SHARES = [55, 66, 29, 3, 50, 61, 60, 22, 14, 16, 8, 12, 5];
const DIGIT_SHARE = 6;
const MARK_SHARES: Readonly<Record<number, number>> = {
  [Code.Dot]: 95,
  [Code.Hyphen]: 22,
  [Code.Underscore]: 2,
  [Code.End]: 40,
};
const LOG_SHARES = Array.from({ length: Code.End + 1 }, (_, code) => {
  const share = MARK_SHARES[code] ??
    (code < Code.Letter ? DIGIT_SHARE : [...LETTER_SHARES, ...LATER_SHARES][code - Code.Letter]);
  return Math.log2(share ?? 1);
});
/** Words that stand in more names than their letters let expect; behind `>` a name is at its end. */
const COMMON_WORDS =
  ".www. .com> .net> .org> .api. .app. .cdn. .dev. .web. in-addr.arpa> adns adserv " +
  "affili akadns akamai amazonaws.com> amazon analytics android apple. apps. azure banner center " +
  "click. cloud content data. device doubleclick edge. east event. events. facebook front global " +
  "google google. icloud image img. live. logging manage media metrics microsoft mobile netdna office " +
  "player prod. product proxy publi push report server service static stats stream tiktok track. " +
  "tracking traffic update user video. west work yahoo yandex";
const COMMON_SHARE = 6;
const COMMON: ReadonlySet<number> = new Set(
  COMMON_WORDS.split(" ").flatMap((word) =>
    gramsOf(Array.from(word, (c) => String.fromCharCode(c === ">" ? Code.End : codeOf(c))).join(""))
  ),
);

/** How often a gram stands in names, as far as its codes say: a logarithm. */
export function commonness(gram: number): number {
  const length = (gram & SHORT_MARK) === 0 ? GRAM_MAX : GRAM_MIN;
  let sum = 0;
  for (let i = 0; i < length; i++) {
    sum += LOG_SHARES[(gram >>> (i * CODE_BITS)) & ((1 << CODE_BITS) - 1)];
  }
  return sum + (COMMON.has(gram) ? COMMON_SHARE : 0);
}

function codeOf(c: string): number {
  return CODE_OF[c.charCodeAt(0)];
}
