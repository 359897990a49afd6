import { get } from "./api.ts";
import type { Entry, EntryPage, Stats } from "./types.ts";

/** How far back the overview looks, in hours. */
export const SPANS = [1, 24, 168, 720] as const;
export type Span = typeof SPANS[number];

export interface StatsQuery {
  readonly hours: number;
  readonly scope?: string;
  readonly client?: string;
  readonly group?: string;
}

/** Counts in steps that a chart of this span shows. */
export function readStats(asked: StatsQuery, signal?: AbortSignal): Promise<Stats> {
  const step = asked.hours <= 3 ? "1m" : asked.hours <= 48 ? "10m" : "1h";
  return get<Stats>("stats", { ...asked, step }, signal);
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
  const since = new Date(Date.now() - JUST_NOW_MS).toISOString();
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
