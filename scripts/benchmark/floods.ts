/** What a flood may be, in the order of the report. */
export const FLOOD_KINDS = [
  "tcp",
  "dot",
  "doh1",
  "doh2",
  "resets",
  "pings",
  "handshakes",
  "doq",
] as const;
export type FloodKind = typeof FLOOD_KINDS[number];

/** Where the flood comes from, and where the client whose answers are timed. */
export const FLOODER = "127.0.0.2";
export const PACED = "127.0.0.3";
