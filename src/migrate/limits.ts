/** Bounds of what is taken from another product; what is larger breaks the migration off. */

/** Longest that all of it may take; an API request has half a minute. */
export const READ_MS_MAX = 20_000;
/** From a request to the head of its answer. */
export const HEAD_MS_MAX = 10_000;
/** Between two pieces of an answer. */
export const IDLE_MS_MAX = 5_000;
/** Least of an answer in each such time. */
export const PACE = { bytesMin: 256, timeMs: 3_000 } as const;
/** Longest answer, and all of them together. */
export const ANSWER_BYTES_MAX = 8 << 20;
export const ANSWERS_BYTES_MAX = 24 << 20;

export const LISTS_MAX = 1_000;
export const RULES_MAX = 20_000;
export const RECORDS_MAX = 5_000;
export const CLIENTS_MAX = 5_000;
/** What is known of machines of the network. */
export const DEVICES_MAX = 10_000;
export const GROUPS_MAX = 1_000;
/** Sets of clients that get the same, each a group here. */
export const GROUPS_MADE_MAX = 256;
/** Entries of any other list. */
export const ENTRIES_MAX = 1_000;
export const TEXT_LENGTH_MAX = 8_192;
