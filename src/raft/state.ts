import { invariant } from "../errors.ts";
import { NO_MEMBERS, normalise } from "./configuration.ts";
import {
  ELECTION_MARGIN_TICKS,
  ELECTION_SPREAD_TICKS,
  ELECTION_TICKS,
  HEARTBEAT_TICKS,
} from "./limits.ts";
import { Log } from "./log.ts";
import type { Entry, HardState, RaftSnapshot } from "./messages.ts";
import type { Progress } from "./progress.ts";
import { RULES, type Rules } from "./rules.ts";

export interface Timing {
  readonly heartbeatTicks: number;
  readonly electionTicks: number;
  readonly electionMarginTicks: number;
  readonly electionSpreadTicks: number;
}

const TIMING: Timing = {
  heartbeatTicks: HEARTBEAT_TICKS,
  electionTicks: ELECTION_TICKS,
  electionMarginTicks: ELECTION_MARGIN_TICKS,
  electionSpreadTicks: ELECTION_SPREAD_TICKS,
};

export type Role = "follower" | "preCandidate" | "candidate" | "leader";

/** A read that waits for a quorum to have answered `round`. */
interface WaitingRead {
  readonly id: number;
  readonly index: number;
  readonly round: number;
}

/** What a member knows; never changed, each step makes another. */
export interface RaftState {
  readonly id: string;
  /** Votes and stores, and never leads. */
  readonly isWitness: boolean;
  readonly timing: Timing;
  readonly rules: Rules;
  /** Chance, 32 bits of it; it only spreads elections. */
  readonly random: number;

  readonly currentTerm: number;
  readonly votedFor: string | null;
  readonly damagedTerm: number;
  readonly log: Log;
  readonly commitIndex: number;

  readonly role: Role;
  /** Of `currentTerm`, as far as it was heard. */
  readonly leader: string | null;
  /** That leader's log differs from what is committed here: one of the two stores is an older copy. */
  readonly isContradicted: boolean;
  /** Since the leader was heard or an election begun; a leader's stand still. */
  readonly elapsedTicks: number;
  /** Where `elapsedTicks` makes this member campaign. */
  readonly timeoutTicks: number;
  /** Of a candidate: who answered what. */
  readonly votes: ReadonlyMap<string, boolean>;

  /** Of a leader, as all that follows: what the other members hold. */
  readonly progress: ReadonlyMap<string, Progress>;
  readonly heartbeatElapsedTicks: number;
  readonly transfer: { readonly to: string; readonly ticks: number } | null;
  readonly reads: readonly WaitingRead[];
  readonly round: number;
  readonly uncommittedBytes: number;
}

/** What storage brings back after a restart. */
export interface Persisted {
  readonly hardState: HardState;
  /** Where the log begins. */
  readonly snapshot: RaftSnapshot;
  readonly entries: readonly Entry[];
  /** What the driver's applied state holds. */
  readonly appliedIndex: number;
}

/** Of a store that belongs to no cluster yet: it waits to be added by a leader. */
export const NOTHING_PERSISTED: Persisted = {
  hardState: { currentTerm: 0, votedFor: null, damagedTerm: 0 },
  snapshot: { index: 0, term: 0, configuration: NO_MEMBERS },
  entries: [],
  appliedIndex: 0,
};

/**
 * Of a store that starts a cluster, as its only voter. Its log begins after a Raft snapshot, which
 * is the state it brings along, so that whoever joins is sent that state first.
 */
export function bootstrapped(id: string): Persisted {
  const configuration = normalise({ voters: [id], learners: [], witnesses: [] });
  return {
    hardState: { currentTerm: 1, votedFor: null, damagedTerm: 0 },
    snapshot: { index: 1, term: 1, configuration },
    entries: [],
    appliedIndex: 1,
  };
}

export interface Setup {
  readonly id: string;
  readonly isWitness?: boolean;
  /** Any 32 bits, other ones at each start. */
  readonly random: number;
  readonly timing?: Partial<Timing>;
  readonly rules?: Partial<Rules>;
}

/**
 * A member as it starts, a follower of nobody.
 *
 * @throws {InvariantError} If what storage kept contradicts itself.
 */
export function restore(setup: Setup, persisted: Persisted): RaftState {
  const { hardState, snapshot, entries, appliedIndex } = persisted;
  const log = Log.of(snapshot, entries);
  invariant(hardState.currentTerm >= log.lastTerm, "no entry is of a term after the current one");
  invariant(
    appliedIndex >= snapshot.index && appliedIndex <= log.lastIndex,
    "what is applied lies in the log",
  );
  const state: RaftState = {
    id: setup.id,
    isWitness: setup.isWitness ?? false,
    timing: { ...TIMING, ...setup.timing },
    rules: { ...RULES, ...setup.rules },
    random: setup.random | 0,
    currentTerm: hardState.currentTerm,
    votedFor: hardState.votedFor,
    damagedTerm: hardState.damagedTerm,
    log,
    commitIndex: appliedIndex,
    role: "follower",
    leader: null,
    isContradicted: false,
    elapsedTicks: 0,
    timeoutTicks: 0,
    votes: new Map(),
    progress: new Map(),
    heartbeatElapsedTicks: 0,
    transfer: null,
    reads: [],
    round: 0,
    uncommittedBytes: 0,
  };
  return { ...state, ...drawTimeout(state) };
}

/** An election timeout of this member's own: who campaigns already waits for no leader's lease. */
export function drawTimeout(
  { random, timing, role }: Pick<RaftState, "random" | "timing" | "role">,
): Pick<RaftState, "random" | "timeoutTicks"> {
  const { electionTicks, electionMarginTicks, electionSpreadTicks } = timing;
  const least = role === "follower"
    ? electionTicks + electionMarginTicks
    : Math.ceil(electionTicks / 2);
  if (electionSpreadTicks <= 1) return { random, timeoutTicks: least };
  // mulberry32: it spreads elections and keeps no secret.
  const next = (random + 0x6d2b79f5) | 0;
  let mixed = Math.imul(next ^ (next >>> 15), next | 1);
  mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
  const drawn = (mixed ^ (mixed >>> 14)) >>> 0;
  return { random: next, timeoutTicks: least + drawn % electionSpreadTicks };
}
