/** What a record of the queue is made of, for its writer and its reader. */

/** What became of a query, by number, as the API and logs name it. */
export const OUTCOME_NAMES = [
  "forwarded",
  "recursed",
  "cached",
  "local",
  "blocked",
  "rewritten",
  "safe_search",
  "refused",
  "failed",
] as const;

/** The ways a query comes in, by number. */
export const PROTOCOL_NAMES = ["udp", "tcp", "dot", "doh", "doq", "odoh"] as const;

/** What validation said, by number; 0 where nothing was validated. */
export const DNSSEC_NAMES = [null, "secure", "insecure", "bogus"] as const;

/** A response longer than this is kept to here: its first records are what is looked at. */
export const LOG_MESSAGE_BYTES_MAX = 512;

/** Between the two parts of a text: group and client, list and rule. No ID holds one. */
export const TEXT_SEPARATOR = "\t";

/**
 * Where the words of a record's head are; a record starts at a word. Behind the head stand, each
 * filled up to whole words: the response, `group TAB client's name`, `list TAB rule`, the client ID,
 * why validation did not find the answer secure.
 */
export const RecordAt = {
  /** Bytes of the record with its head; see `SKIP`. */
  Length: 0,
  /** Milliseconds since 1970: the lower 32 bits, then the upper ones. */
  TimeLow: 1,
  TimeHigh: 2,
  /** Microseconds from the query's arrival to its response. */
  Duration: 3,
  /** Bytes from the lowest: outcome, protocol, flags, bytes of the address. */
  What: 4,
  /** The number of the upstream that answered, from 1; 0 for none. */
  Upstream: 5,
  /** Bytes of the response in the lower half, of group and name in the upper. */
  Lengths: 6,
  /** Bytes of list and rule in the lower half, of the client ID in the upper. */
  MoreLengths: 7,
  /** Four words. */
  Address: 8,
  /** Bytes of why the answer is not secure. */
  Reason: 12,
  End: 13,
} as const;

/** Limits of the parts, in bytes; what is longer is cut. */
export const RecordLength = { Text: 1_024, ClientId: 64 } as const;

/**
 * The flags of a record: bit 0, above it two bits of what validation said, and what the query is to
 * leave no trace in.
 */
export const RecordFlag = { Cached: 1, DnssecShift: 1, NotLogged: 8, NotCounted: 16 } as const;

/** Of what found no room, the kind of queries that statistics do not count; others are outcomes. */
export const DROPPED_NOT_COUNTED = 15;
