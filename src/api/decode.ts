import type { z } from "zod";
import type { ErrorCode } from "../errors.ts";
import { parseWith } from "../model/mod.ts";
import { ProblemsError } from "./errors.ts";

/**
 * Holds `value` against a schema and fills in its defaults.
 *
 * @throws {ProblemsError} `code`, with the path of each bad field; `whole` names the value itself.
 */
export function decodeWith<S extends z.ZodType>(
  schema: S,
  value: unknown,
  whole: string,
  code: ErrorCode,
): z.output<S> {
  const parsed = parseWith(schema, value);
  if (parsed.ok) return parsed.value;
  throw new ProblemsError(code, parsed.problems, whole);
}
