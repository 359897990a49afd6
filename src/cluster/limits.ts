import { TICK_MS } from "../raft/mod.ts";

/** Bounds of a member, in ticks where they are times. */
const SECOND_TICKS = 1_000 / TICK_MS;

/** Members check each other this often. */
export const CHECK_TICKS = 5 * SECOND_TICKS;
/** A member that was not heard for so long can't be reached, whatever its connection says. */
export const SILENCE_TICKS_MAX = 2 * CHECK_TICKS;
/** Who asks for votes is answered by whoever is there; in an election so long a silence tells. */
export const ELECTION_SILENCE_TICKS_MAX = 3 * SECOND_TICKS;
/** A leader looks whom it may add and who may vote this often. */
export const TEND_TICKS = SECOND_TICKS;
/** A member that may start a cluster waits so long for word of one that there is. */
export const BOOTSTRAP_TICKS_MAX = 3 * SECOND_TICKS;

/** A change that nobody took in this time is answered with 503. */
export const PROPOSAL_TICKS_MAX = 6 * SECOND_TICKS;
/** A leader that has said nothing of a change is asked once more. */
export const RETRY_TICKS = SECOND_TICKS;
/** Most changes of this member that wait; one more is refused. */
export const PROPOSALS_WAITING_MAX = 1_024;
/** Most removals that a leader carries out for members at a time. */
export const REQUESTS_MAX = 16;
/** A promotion waits so long for the new cluster to have its leader. */
export const PROMOTE_TICKS_MAX = 5 * SECOND_TICKS;
/** Before it is said that no leader answers, so long one is listened for. */
export const HEARING_TICKS = SECOND_TICKS;
/** At an orderly stop: for what is under way, then for somebody else to lead. */
export const STOP_TICKS_MAX = SECOND_TICKS;

/** For the last word to leave. */
export const FAREWELL_TICKS = 2;

/** Most events that wait for consensus; messages beyond are lost, as they may be. */
export const EVENTS_MAX = 4_096;
/** Most events that are made durable together. */
export const BATCH_LENGTH_MAX = 64;
/** Most ticks that wait: a longer stall is a silence of so many. */
export const TICKS_WAITING_MAX = 2 * SECOND_TICKS;
/** What can't be applied is tried again after so long. */
export const APPLY_RETRY_TICKS = 2 * SECOND_TICKS;
/** Entries and their bytes that are applied at a time. */
export const APPLY_ENTRIES_MAX = 256;
export const APPLY_BYTES_MAX = 1 << 20;

/** The log is compacted when so many entries, or bytes, were applied since… */
export const COMPACT_ENTRIES = 2_048;
export const COMPACT_BYTES = 4 << 20;
/** …and keeps so many for members that are a little behind. */
export const KEPT_ENTRIES = 1_024;
export const KEPT_BYTES = 1 << 20;

/** Parts of a Raft snapshot that are on their way unanswered. */
export const PARTS_IN_FLIGHT = 8;
/** Parts that were not answered are sent again… */
export const PART_RETRY_TICKS = SECOND_TICKS;
/** …and given up for now after so long. */
export const TRANSFER_TICKS_MAX = 10 * SECOND_TICKS;
/** A member that refused a state is sent another after so long… */
export const REFUSED_TICKS = 5 * SECOND_TICKS;
/** …and says for so long that it could take none. */
export const FAILURE_SHOWN_TICKS = 2 * REFUSED_TICKS;
/** Most parts of one state. */
export const PARTS_MAX = 1 << 20;

/** Most bytes of a change as JSON text. */
export const COMMAND_BYTES_MAX = 8 << 20;
export const VERSION_BYTES_MAX = 64;
export const CLUSTER_ID_BYTES_MAX = 64;
export const NODE_BYTES_MAX = 64;
export const MESSAGE_BYTES_MAX = 4_096;
