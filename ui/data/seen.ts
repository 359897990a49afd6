/** Who has asked lately, by address. */
import { get } from "./api.ts";
import type { Seen } from "./types.ts";

const HOURS = 24;

export async function readSeen(signal: AbortSignal): Promise<readonly Seen[]> {
  return (await get<{ items: readonly Seen[] }>("clients/seen", { hours: HOURS }, signal)).items;
}
