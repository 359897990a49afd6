/** Bounds of consensus. What the driver bounds besides (frames, queues, snapshots) is its own. */

/** Time between two ticks that the defaults below are made for. */
export const TICK_MS = 50;
/** A leader speaks to each member this often. */
export const HEARTBEAT_TICKS = 2;
/**
 * For so long after it heard the leader, a member elects no other; and a leader that heard no
 * quorum for so long steps down. 0.8 s: eight lost heartbeats, or a pause of the whole machine.
 */
export const ELECTION_TICKS = 16;
/**
 * A member campaigns `ELECTION_TICKS` and at least these after it heard the leader, so that those
 * it asks, who may have heard one heartbeat more, are free to answer.
 */
export const ELECTION_MARGIN_TICKS = 2;
/** Chance adds up to so many ticks, less one: two members rarely campaign at once. */
export const ELECTION_SPREAD_TICKS = 14;

/** Most members of a configuration, learners and those on their way out included. */
export const MEMBERS_MAX = 33;
/** Most bytes of an ID. */
export const ID_LENGTH_MAX = 128;
/** Terms above are nobody's: at one election a millisecond they take 8,900 years. */
export const TERM_MAX = 2 ** 48;
/**
 * A term so far ahead of a member's own is no matter of elections, at one a millisecond for seven
 * weeks: it was made up, and going along would leave the cluster no terms to elect in.
 */
export const TERM_JUMP_MAX = 2 ** 32;
/** Highest index of an entry. */
export const INDEX_MAX = 2 ** 48;

/** Most bytes of one proposal. */
export const ENTRY_BYTES_MAX = 1 << 20;
/** What an entry is counted for beside its data. */
export const ENTRY_OVERHEAD_BYTES = 32;
/** Most bytes of entries in one AppendEntries; a larger entry travels alone. */
export const APPEND_BYTES_MAX = 256 << 10;
/** Most entries in one AppendEntries. */
export const APPEND_ENTRIES_MAX = 1_024;
/** Most AppendEntries with entries that one member has not yet answered. */
export const INFLIGHT_MESSAGES_MAX = 32;
/** Most bytes of entries that one member has not yet answered; one message may pass it. */
export const INFLIGHT_BYTES_MAX = 1 << 20;
/** Most bytes that a leader has appended and not committed; more proposals are refused. */
export const UNCOMMITTED_BYTES_MAX = 8 << 20;
/** Most entries that a leader has appended and not committed. */
export const UNCOMMITTED_ENTRIES_MAX = 4_096;
/** Most reads that wait for a quorum. */
export const READS_MAX = 1_024;
/** A member that has not taken a Raft snapshot in this time is asked anew what it holds. */
export const SNAPSHOT_TICKS_MAX = 1_200;
/** A learner so few entries behind the leader has caught up. */
export const CAUGHT_UP_ENTRIES_MAX = 64;
