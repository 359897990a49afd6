import { type Decoded, decodeSettings, decodeShape } from "./decode.ts";
import { describeProblems } from "./problems.ts";
import type { Refused } from "./live_state.ts";
import { refuse } from "./references.ts";
import { type Collection, SPEC_BYTES_MAX, type SpecOf } from "./resources.ts";
import { copyWithin, TOO_LARGE } from "./result.ts";
import type { Settings } from "./settings.ts";

/** A spec as it will be stored, or why it can't be. */
export type Taken<S> = { readonly kind: "taken"; readonly spec: S } | Refused;

/**
 * Takes the spec of a command: a copy of it, once it has been seen that it could be read again.
 * Whoever proposed it should have decoded it; a store that can't be opened is no place to find out.
 */
export function takeSpec<C extends Collection>(collection: C, given: SpecOf<C>): Taken<SpecOf<C>> {
  return take(decodeShape(collection, given));
}

export function takeSettings(given: Settings): Taken<Settings> {
  return take(decodeSettings(given));
}

function take<S>(decoded: Decoded<S>): Taken<S> {
  if (!decoded.ok) return refuse("invalid", describeProblems(decoded.problems, "spec"));
  const spec = copyWithin(decoded.spec, SPEC_BYTES_MAX);
  return spec === null ? TOO_LARGE : { kind: "taken", spec };
}
