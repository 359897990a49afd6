import { get } from "./api.ts";
import { nodeClock } from "./clock.ts";
import { statsParams, type StatsQuery } from "./paths.ts";
import type { Entry, EntryPage, Stats } from "./types.ts";

export function readStats(asked: StatsQuery, signal?: AbortSignal): Promise<Stats> {
  return get<Stats>("stats", statsParams(asked), signal);
}

/** Somebody whose queries were blocked just now. */
export interface BlockedClient {
  readonly name: string;
  readonly address: string | null;
  readonly count: number;
  readonly last: Entry;
}

const JUST_NOW_MS = 15 * 60_000;
const ENTRIES_MAX = 500;

/** Who was blocked in the last minutes, the most first. */
export async function readBlockedJustNow(signal: AbortSignal): Promise<BlockedClient[]> {
  const since = new Date(nodeClock.nowMs - JUST_NOW_MS).toISOString();
  const params = { outcome: "blocked", since, limit: ENTRIES_MAX };
  const { entries } = await get<EntryPage>("querylog", params, signal);
  const clients = new Map<string, BlockedClient>();
  for (const entry of entries) {
    const name = entry.client_name ?? entry.client_id ?? entry.client ?? "";
    const known = clients.get(name);
    clients.set(name, {
      name,
      address: entry.client,
      count: (known?.count ?? 0) + 1,
      last: known?.last ?? entry,
    });
  }
  return [...clients.values()].sort((a, b) => b.count - a.count);
}
