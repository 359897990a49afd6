/** This release; `deno.json` says the same, and a test holds them together. */
export const VERSION = "0.7.0";
/**
 * A day on which this release was made, in milliseconds since 1970: no right clock is before it. A
 * test wants it to be no older than the newest version in the changelog that has a date.
 */
export const RELEASED_MS: number = Date.UTC(2026, 10, 20);
