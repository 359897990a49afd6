/** Who has asked lately, by address, and how much by the hour. */
import type { ClientSeries } from "../../src/api/mod.ts";
import { get } from "./api.ts";
import type { Seen } from "./types.ts";

const HOURS = 24;

export async function readSeen(signal: AbortSignal): Promise<readonly Seen[]> {
  return (await get<{ items: readonly Seen[] }>("clients/seen", { hours: HOURS }, signal)).items;
}

/** What each of some clients asked, hour by hour; and, of any, how many asked at all. */
export function readSeries(
  clients: readonly string[],
  signal: AbortSignal,
): Promise<ClientSeries> {
  return get("clients/series", { clients: clients.join(","), hours: HOURS }, signal);
}
