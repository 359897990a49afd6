import type { HashedName } from "../../dns/mod.ts";
import { MINIMISE_ONE_LABEL_MAX, MINIMISE_STEPS_MAX } from "./limits.ts";

const UNDERSCORE = 0x5f;

/**
 * The label at which the name to be sent begins (RFC 9156 §2.3), 0 for the whole name: one label more
 * than what is known, then several at a time, so that a name takes so many steps at most. `label` is
 * where what is known begins, `steps` how many were made. Names that begin with an underscore are no
 * zones.
 */
export function nextProbe(
  name: HashedName,
  bytes: Uint8Array,
  label: number,
  steps: number,
  isInner: (label: number) => boolean,
): number {
  if (steps >= MINIMISE_STEPS_MAX) return 0;
  const spread = Math.ceil(label / (MINIMISE_STEPS_MAX - steps));
  let probe = Math.max(0, label - (steps < MINIMISE_ONE_LABEL_MAX ? 1 : spread));
  while (probe > 0 && (bytes[name.offsets[probe] + 1] === UNDERSCORE || isInner(probe))) probe--;
  return probe;
}
