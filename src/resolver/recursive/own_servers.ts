import type { HashedName } from "../../dns/mod.ts";
import type { ResponseReader } from "../ask/mod.ts";
import type { Cut } from "./cut.ts";
import type { Means } from "./means.ts";

/**
 * Keeps which name servers a zone has by its own word, beside those that the zone above names: for
 * when these fail. The answer is of a server of the cut, which is of the name.
 */
export function noteOwnServers(
  { reader, delegations, nowSeconds }: Means,
  response: ResponseReader,
  cut: Cut,
  name: HashedName,
  bytes: Uint8Array,
): void {
  if (response.answers === 0 || response.authorities === 0 || cut.isRoot || cut.isOwnKnown) return;
  const { servers, ttl } = reader.ownServers(response);
  cut.isOwnKnown = servers.length > 0;
  const more = servers.filter((server) => cut.entryOf(server.name, 0) === null);
  // With the delegation they are gone, however long the zone itself would keep them.
  const endsAtS = Math.min(nowSeconds() + ttl, cut.expiresAtS);
  if (more.length > 0) delegations.keepOwn(name, bytes, cut.label, more, endsAtS);
}
