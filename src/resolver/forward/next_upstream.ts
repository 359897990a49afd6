import type { AttemptTable } from "./attempts.ts";
import { tooMany } from "./failures.ts";
import type { Flight } from "./flight.ts";
import type { Shortages } from "./shortages.ts";
import type { Upstream } from "./upstream.ts";

/** Times one question is sent, whatever the number of upstreams. */
export const ATTEMPTS_MAX = 6;

/**
 * The upstream that was asked least often, so that a query is answered while any of them works;
 * among those the first healthy one whose address is known. `null`: none is left that has room.
 */
export function nextUpstream(
  flight: Flight,
  attempts: AttemptTable,
  shortages: Shortages,
): Upstream | null {
  const { upstreams } = flight.set;
  let best: Upstream | null = null;
  let bestCount = Math.floor(ATTEMPTS_MAX / upstreams.length) + 1;
  let bestRank = 0;
  for (const upstream of upstreams) {
    if (flight.declined.includes(upstream) || flight.doubted(upstream) !== null) continue;
    // A probe is one query, and tells when the others can go on.
    if (attempts.isFull(upstream) && !flight.probe) {
      shortages.noteFull(upstream);
      flight.failure ??= tooMany(upstream.spec.address);
      continue;
    }
    const count = flight.timesAsked(upstream);
    const rank = (upstream.healthy ? 0 : 1) + (upstream.isUnresolved ? 2 : 0);
    if (count < bestCount || (count === bestCount && best !== null && rank < bestRank)) {
      [best, bestCount, bestRank] = [upstream, count, rank];
    }
  }
  return best;
}
