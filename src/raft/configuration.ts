import { ID_LENGTH_MAX, MEMBERS_MAX } from "./limits.ts";

/**
 * Who belongs to the cluster, and who votes. Lists are sorted and hold no ID twice.
 *
 * An ID is that of one store: a node that lost or emptied its store comes back with another ID (its
 * name with a number drawn when the store is made, say). It may have voted and acknowledged under
 * the one it had, and would now do otherwise.
 */
export interface Configuration {
  readonly voters: readonly string[];
  /**
   * The voters before a change, until it is complete: what is decided in between, the change
   * itself included, needs a majority of these and one of `voters` (Raft paper §6, joint consensus).
   */
  readonly outgoing: readonly string[];
  /** Receive entries and are never counted. One of `outgoing` may learn from the change's end on. */
  readonly learners: readonly string[];
  /** Those of the members that never lead; they vote or learn like others. */
  readonly witnesses: readonly string[];
}

/** Of a member that was told nothing yet: nobody votes, so nothing is ever decided. */
export const NO_MEMBERS: Configuration = {
  voters: [],
  outgoing: [],
  learners: [],
  witnesses: [],
};

export function isJoint(configuration: Configuration): boolean {
  return configuration.outgoing.length > 0;
}

/** Those whose vote counts, in either half of a change. */
export function votersOf({ voters, outgoing }: Configuration): readonly string[] {
  return outgoing.length === 0 ? voters : union(voters, outgoing);
}

/** Everyone who receives entries. */
export function membersOf(configuration: Configuration): readonly string[] {
  return union(votersOf(configuration), configuration.learners);
}

export function isVoter({ voters, outgoing }: Configuration, id: string): boolean {
  return voters.includes(id) || outgoing.includes(id);
}

export function isMember(configuration: Configuration, id: string): boolean {
  return isVoter(configuration, id) || configuration.learners.includes(id);
}

/**
 * The sets of which each must have a majority: two while a change is under way.
 *
 * Why a change may add or remove several voters at once. Let a change lead from the voters O to the
 * voters N. Its first entry (O and N) is in force on a member from when it is in its log, and so is
 * its second (N alone), which a leader appends only once the first is committed.
 * - Before the first entry is committed, no member decides by N alone. A member decides by O, or by
 *   both; both need a majority of O, and two majorities of O share a member.
 * - Once it is committed, a majority of O holds it. A member that still decides by O alone lacks
 *   it, so its log is behind each of these and it is elected by no majority of O. Whoever leads
 *   from then on decides by both or by N alone, and either needs a majority of N.
 * - The next change starts only from a committed second entry, as seen by a leader that has
 *   committed an entry of its own term.
 * So any two decisions of one term share a voter, on the way from {a} to {a, b, c} too, where a
 * majority of the three need not hold a: the first entry, and all until the second, needs a's own
 * vote. Changes of learners alone move no majority and take a single entry.
 */
export function halvesOf({ voters, outgoing }: Configuration): readonly (readonly string[])[] {
  return outgoing.length === 0 ? [voters] : [voters, outgoing];
}

/** Whether a majority of each half is among those for whom `has` holds. */
export function hasQuorum(
  halves: readonly (readonly string[])[],
  has: (id: string) => boolean,
): boolean {
  for (const half of halves) {
    let count = 0;
    for (const id of half) if (has(id)) count++;
    if (count * 2 <= half.length) return false; // Of an empty set nobody is a majority.
  }
  return true;
}

/** The highest index that a majority of each half has reached. */
export function quorumIndex(
  halves: readonly (readonly string[])[],
  indexOf: (id: string) => number,
): number {
  let lowest = Infinity;
  for (const half of halves) {
    if (half.length === 0) return 0;
    const indexes = half.map(indexOf).sort((a, b) => b - a);
    lowest = Math.min(lowest, indexes[half.length >> 1]);
  }
  return lowest;
}

/** How a vote stands. */
export function voteResult(
  halves: readonly (readonly string[])[],
  votes: ReadonlyMap<string, boolean>,
): "won" | "lost" | "open" {
  if (hasQuorum(halves, (id) => votes.get(id) === true)) return "won";
  return hasQuorum(halves, (id) => votes.get(id) !== false) ? "open" : "lost";
}

/** Who a cluster is to consist of, once a change is complete. */
export type Membership = Omit<Configuration, "outgoing">;

/** Sorted and without repetitions; witnesses are only those who are members. */
export function normalise({ voters, learners, witnesses }: Membership): Configuration {
  const configuration = {
    voters: union(voters, []),
    outgoing: [],
    learners: union(learners, []),
    witnesses: [],
  };
  const kept = witnesses.filter((id) => isMember(configuration, id));
  return { ...configuration, witnesses: union(kept, []) };
}

/** The first entry of a change from `before` to `after`: both decide, where the voters differ. */
export function firstStep(before: Configuration, after: Configuration): Configuration {
  if (isEqualSet(before.voters, after.voters)) return after;
  const joint = { ...after, outgoing: before.voters };
  const witnesses = union(after.witnesses, before.witnesses).filter((id) => isMember(joint, id));
  return { ...joint, witnesses };
}

/** The second entry: the new voters decide alone. */
export function lastStep(joint: Configuration): Configuration {
  return normalise(joint);
}

/** What keeps a cluster from being so, or null. */
export function problemOf(target: Configuration): string | null {
  const { voters, learners, witnesses } = target;
  if (voters.length + learners.length > MEMBERS_MAX) return `more than ${MEMBERS_MAX} members`;
  if (voters.every((id) => witnesses.includes(id))) return "no voter could lead";
  // Two voters are lost with either of them: worse than one, which the other learns from.
  if (voters.length === 2) return "two voters";
  if (voters.some((id) => learners.includes(id))) return "a voter is also a learner";
  return isWellFormed(target) ? null : "a malformed ID";
}

/** Whether this could have been made here: what comes from another member is held against it. */
export function isWellFormed(configuration: Configuration): boolean {
  const { voters, outgoing, learners, witnesses } = configuration;
  for (const list of [voters, outgoing, learners, witnesses]) {
    if (list.length > MEMBERS_MAX) return false;
    for (const [i, id] of list.entries()) {
      if (id === "" || id.length > ID_LENGTH_MAX || (i > 0 && id <= list[i - 1])) return false;
    }
  }
  return witnesses.every((id) => isMember(configuration, id));
}

function isEqualSet(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((id, i) => id === b[i]);
}

/** Sorted by code units, alike on every member. */
function union(a: readonly string[], b: readonly string[]): readonly string[] {
  return [...new Set([...a, ...b])].sort();
}
