/** What became of a query: one of these in the end, whatever its way was. */
export const Outcome = {
  /** An upstream's answer. */
  Forwarded: 0,
  /** An answer of name servers that we asked ourselves. */
  Recursed: 1,
  /** An answer that was kept, a stale one included. */
  Cached: 2,
  /** Records and names of our own. */
  Local: 3,
  /** Blocked: the name itself, or what its answer holds. */
  Blocked: 4,
  /** Answered by a rewrite or by the addresses of hosts lines. */
  Rewritten: 5,
  /** Led to the safe host of a search engine. */
  SafeSearch: 6,
  /** Not served, by whoever asks or what is asked for. */
  Refused: 7,
  /** There is no answer to be had. */
  Failed: 8,
} as const;
export type Outcome = typeof Outcome[keyof typeof Outcome];
