/** Who has asked lately, by address; of a node that does not tell, by its statistics. */
import { getIfThere } from "./api.ts";
import { readStats } from "./stats.ts";
import type { Seen } from "./types.ts";

const HOURS = 24;

export async function readSeen(): Promise<readonly Seen[]> {
  const answer = await getIfThere<{ items: readonly Seen[] }>("clients/seen", { hours: HOURS });
  if (answer !== null) return answer.items;
  const { top } = await readStats({ hours: HOURS });
  return top.clients.map(({ name, count, client, address }) => ({
    address: address ?? name,
    client: client ?? null,
    hostname: null,
    first_seen: null,
    last_seen: null,
    queries: count,
  }));
}
