import type { z } from "zod";
import { type ErrorCode, SvcError } from "../errors.ts";

/** `lists[2].list`, or nothing for the whole. */
function placeOf(path: readonly PropertyKey[]): string {
  return path.map((key, i) =>
    typeof key === "number" ? `[${key}]` : `${i === 0 ? "" : "."}${String(key)}`
  ).join("");
}

/** One line about the first thing that is wrong, with its place ahead. */
export function describeIssue(issue: z.core.$ZodIssue, whole: string): string {
  if (issue.code === "unrecognized_keys") {
    return `${placeOf([...issue.path, issue.keys[0]])}: no such field`;
  }
  const place = placeOf(issue.path);
  if (issue.code === "invalid_type" && issue.input === undefined && place !== "") {
    return `${place}: it is missing`;
  }
  const message = issue.message.replace(/^Invalid input: /, "").replace(/^(Too|Invalid) /, "$1 ");
  return `${place === "" ? whole : place}: ${message.charAt(0).toLowerCase()}${message.slice(1)}`;
}

/**
 * Holds `value` against a schema and fills in its defaults.
 *
 * @throws {SvcError} `code`, with the path of the bad field; `whole` names the value itself.
 */
export function decodeWith<S extends z.ZodType>(
  schema: S,
  value: unknown,
  whole: string,
  code: ErrorCode,
): z.output<S> {
  const result = schema.safeParse(value, { reportInput: true });
  if (result.success) return result.data;
  throw new SvcError(code, describeIssue(result.error.issues[0], whole));
}
