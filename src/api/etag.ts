import { SvcError } from "../errors.ts";

/** Digits of the largest revision that is exact as a number. */
const DIGITS_MAX = 15;

/** The `ETag` of a revision (RFC 9110 §8.8.3). */
export function formatEtag(revision: number): string {
  return `"${revision}"`;
}

/**
 * Reads `If-Match` (RFC 9110 §13.1.1): a bare revision, or entity tags, of which those are returned
 * that may match: a weak one never does, nor does one that is no revision. `null`: there is no
 * condition, or `*`, which whatever is there fulfils.
 *
 * @throws {SvcError} `bad_request`.
 */
export function parseIfMatch(header: string | null): readonly number[] | null {
  const text = header?.trim();
  if (text === undefined || text === "*") return null;
  if (isRevision(text)) return [Number(text)];
  const revisions: number[] = [];
  const tag = /[ \t,]*(W\/)?"([\x21\x23-\x7e\x80-\xff]*)"[ \t]*(?=,|$)/y;
  let [end, weak, opaque] = [0, "" as string | undefined, ""];
  for (let match = tag.exec(text); match !== null; match = tag.exec(text)) {
    [, weak, opaque] = match;
    if (weak === undefined && isRevision(opaque)) revisions.push(Number(opaque));
    end = tag.lastIndex;
  }
  if (end === 0 || !/^[ \t,]*$/.test(text.slice(end))) {
    throw new SvcError("bad_request", 'If-Match: it is no revision, such as 3 or "3", nor *');
  }
  return revisions;
}

/**
 * The revision that a change asks for: of several that which is there. `null`: any will do, or there
 * is nothing that a revision could be compared with, which is refused as missing.
 *
 * @throws {SvcError} `revision_mismatch`, where none of the tags can ever match.
 */
export function revisionAsked(
  asked: readonly number[] | null,
  current: () => number | undefined,
): number | null {
  if (asked === null) return null;
  if (asked.length === 1) return asked[0];
  const revision = current();
  if (revision === undefined) return null;
  if (asked.length === 0) {
    throw new SvcError(
      "revision_mismatch",
      `If-Match: the revision is ${revision}: send "${revision}"`,
    );
  }
  return asked.includes(revision) ? revision : asked[0];
}

function isRevision(text: string): boolean {
  return text.length <= DIGITS_MAX && /^\d+$/.test(text);
}
