import type { Occupancy } from "../../transport/mod.ts";

/**
 * The connections of several listeners of one protocol: the fullest of them, as that is where one
 * client keeps out others. `null` where there is none.
 */
export function occupancyOf(
  listeners: readonly { readonly occupancy: Occupancy }[],
): Occupancy | null {
  return fullestOf(listeners.map(({ occupancy }) => occupancy));
}

/** The fullest of some; `null` where there are none. */
export function fullestOf(all: readonly (Occupancy | null)[]): Occupancy | null {
  const share = ({ taken, max }: Occupancy) => taken / max;
  return all.reduce(
    (fullest, one) =>
      one === null || (fullest !== null && share(fullest) >= share(one)) ? fullest : one,
    null,
  );
}
