import { SvcError } from "../errors.ts";

/** Digits of the largest revision that is exact as a number. */
const DIGITS_MAX = 15;

/** The `ETag` of a revision (RFC 9110 §8.8.3). */
export function formatEtag(revision: number): string {
  return `"${revision}"`;
}

/**
 * Reads `If-Match`: a revision, quoted or bare, or `*` for any, which is `null` like a missing one.
 *
 * @throws {SvcError} `bad_request`.
 */
export function parseIfMatch(header: string | null): number | null {
  if (header === null) return null;
  const text = header.trim();
  if (text === "*") return null;
  const digits = /^"(\d+)"$/.exec(text)?.[1] ?? /^\d+$/.exec(text)?.[0];
  if (digits === undefined || digits.length > DIGITS_MAX) {
    throw new SvcError("bad_request", "If-Match: it is no revision, such as 3, nor *");
  }
  return Number(digits);
}
