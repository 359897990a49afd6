/** Who has no Internet, when, and who gets more time. */
import { change } from "./collections.ts";
import type { Specs } from "./types.ts";

export type Blockable = "groups" | "clients";
type BlockedPart = Pick<
  Specs[Blockable],
  "blocked" | "blocked_schedule" | "blocked_paused_until"
>;

/** `off`: it has the Internet; `always`, or the ID of a schedule: when it has not. */
export function blockedTime({ blocked, blocked_schedule }: BlockedPart): string {
  return blocked === true ? blocked_schedule ?? "always" : "off";
}

/** Takes the Internet away by `time`, as `blockedTime` says it, or gives it back. */
export async function blockBy(
  collection: Blockable,
  id: string,
  time: string,
  said: string,
): Promise<void> {
  const part: BlockedPart = {
    blocked: time !== "off",
    ...(time !== "off" && time !== "always" && { blocked_schedule: time }),
  };
  await changePart(collection, id, part, said);
}

/** Gives it the Internet until then, whatever holds; `null`: not any more. */
export async function giveTime(
  collection: Blockable,
  id: string,
  { blocked, blocked_schedule }: BlockedPart,
  until: Date | null,
  said: string,
): Promise<void> {
  const part: BlockedPart = {
    ...(blocked !== undefined && { blocked }),
    ...(blocked_schedule !== undefined && { blocked_schedule }),
    blocked_paused_until: until?.toISOString() ?? null,
  };
  await changePart(collection, id, part, said);
}

async function changePart(collection: Blockable, id: string, part: BlockedPart, said: string) {
  await change(collection, id, (spec) => {
    const { blocked: _, blocked_schedule: __, blocked_paused_until: ___, ...rest } = spec;
    return { ...rest, ...part };
  }, { said });
}
