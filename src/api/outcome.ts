import { type Outcome } from "../model/mod.ts";
import { SvcError } from "../errors.ts";

/**
 * What a change came to, or why it was refused.
 *
 * @throws {SvcError} With the code of the refusal.
 */
export function valueOf(outcome: Outcome): unknown {
  if (outcome.kind === "refused") throw new SvcError(outcome.code, outcome.message);
  return outcome.value;
}
