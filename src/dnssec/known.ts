/** What is known of names without asking anybody. */
import { countLabels, isAtOrBelow } from "../dns/mod.ts";
import type { TrustAnchors } from "./anchors.ts";
import type { CutCache } from "./chain.ts";
import { ancestor } from "./names.ts";
import { type Finding, SECURE, Security } from "./outcome.ts";

/**
 * Why nothing at or below `zone` is signed as far as `name`, which is in it, is concerned: an unsigned
 * zone at or above it is remembered. `null`: that is not known.
 */
export function knownInsecure(
  name: Uint8Array,
  zone: Uint8Array,
  anchors: TrustAnchors,
  cuts: Pick<CutCache, "get">,
  nowS: number,
): Finding | null {
  const point = anchors.closest(name);
  // What an anchor below the zone vouches for has to be looked at.
  if (point?.kind !== "anchor" || !isAtOrBelow(zone, 0, point.zone, 0)) return null;
  const bottom = countLabels(zone, 0);
  for (let labels = countLabels(point.zone, 0) + 1; labels <= bottom; labels++) {
    const cut = cuts.get(ancestor(zone, labels));
    if (cut?.kind !== "zone" || cut.expiresAtS <= nowS || cut.zone.finding === SECURE) continue;
    return cut.zone.finding.security === Security.Insecure ? cut.zone.finding : null;
  }
  return null;
}
