/** Says whether a text names an IANA time zone that this program knows. */
export function isTimeZone(zone: string): boolean {
  try {
    new Intl.DateTimeFormat("en", { timeZone: zone });
    return zone !== "" && !/^[+-]/.test(zone);
  } catch {
    return false;
  }
}
