/**
 * What those who answer queries need of the model beside its types: without the schemas, and so
 * without zod, of which each isolate would hold a copy. Scope: none. @module
 */

/** The group of every client that no other is for. */
export const DEFAULT_GROUP_ID = "gr_0000000000000000";

/** Days of a schedule, in the order of a week. */
export const DAYS = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"] as const;
export type Day = typeof DAYS[number];

/** Says whether a text names an IANA time zone that this program knows. */
export function isTimeZone(zone: string): boolean {
  try {
    new Intl.DateTimeFormat("en", { timeZone: zone });
    return zone !== "" && !/^[+-]/.test(zone);
  } catch {
    return false;
  }
}
