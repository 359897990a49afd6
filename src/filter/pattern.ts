import { Code, CODE_OF } from "./name_codes.ts";
import type { Literals } from "./literals.ts";

/**
 * A pattern as it is compared, kept and matched: lower case, `||` or `|` in front where it begins at
 * a label or at the name's start, `^` behind where it ends with the name, and `*` for any text
 * between. Where neither stands it is open: further text may stand there.
 */
export type PatternText = string;

/** Longest pattern: one label of the table. */
export const PATTERN_LENGTH_MAX = 255;
/** A shorter one, its marks counted, is about too many names. */
export const PATTERN_LENGTH_MIN = 3;

/** Which of the marks stand around a pattern. */
export interface Pattern {
  readonly begin: "" | "|" | "||";
  readonly body: string;
  readonly isClosed: boolean;
}

const BODY = /^[a-z0-9._*-]*$/;

/** The text of a pattern, or `null` for what covers no name. */
export function patternText({ begin, body, isClosed }: Pattern): PatternText | null {
  const bare = body.toLowerCase().replaceAll(/\*+/g, "*");
  if (!BODY.test(bare) || bare.includes("..")) return null;
  const isOpen = bare.startsWith("*");
  const mark = isOpen ? "" : begin;
  const inner = isOpen ? bare.slice(1) : bare;
  if (mark !== "" && inner.startsWith(".")) return null; // No label is empty.
  const isEndOpen = inner.endsWith("*") || !isClosed;
  if (!isEndOpen && inner.endsWith(".")) return null;
  const text = mark + (inner.endsWith("*") ? inner.slice(0, -1) : inner) + (isEndOpen ? "" : "^");
  return text.length > PATTERN_LENGTH_MAX ? null : text || "*";
}

/** The pieces of a pattern, each of which is in every name that it covers; see `Literals`. */
export function patternLiterals(text: PatternText): Literals {
  const begin = /^\|*/.exec(text)![0].length;
  const isClosed = text.endsWith("^");
  const inner = text.slice(begin, isClosed ? -1 : undefined);
  const pieces = inner.split("*").map((piece) =>
    Array.from(piece, (c) => String.fromCharCode(CODE_OF[c.charCodeAt(0)])).join("")
  );
  if (begin > 0) pieces[0] = String.fromCharCode(Code.Dot) + pieces[0];
  if (isClosed) pieces[pieces.length - 1] += String.fromCharCode(Code.End);
  return pieces;
}
