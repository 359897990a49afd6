/**
 * What must hold of a cluster at every moment (Raft paper figure 3; TLA+ of Ongaro and of etcd), as
 * checks of one member's state against those of the others and against what was decided before.
 */
import { equalBytes } from "../../src/bytes/mod.ts";
import { type Configuration, type Entry, type RaftState, votersOf } from "../../src/raft/mod.ts";

/** An entry as text: alike where the entries are. */
export function entryText(entry: Entry): string {
  switch (entry.type) {
    case "command":
      return `${entry.term}:${entry.data}`;
    case "configuration":
      return `${entry.term}:${configurationText(entry.configuration)}`;
    case "empty":
      return `${entry.term}:`;
  }
}

export function configurationText(configuration: Configuration): string {
  const { voters, outgoing, learners, witnesses } = configuration;
  return `(${voters}|${outgoing}|${learners}|${witnesses})`;
}

/** As `entryText` has it, without a text of every byte. */
function isSameEntry(a: Entry, b: Entry): boolean {
  if (a.type !== "command" || b.type !== "command") return entryText(a) === entryText(b);
  return a.term === b.term && equalBytes(a.data, b.data);
}

/** Log Matching: where two logs have an entry of one index and term, all before are the same. */
export function brokenLogMatching(a: RaftState, b: RaftState): string | null {
  const first = Math.max(a.log.base.index, b.log.base.index);
  let isSame = false;
  for (let index = Math.min(a.log.lastIndex, b.log.lastIndex); index >= first; index--) {
    if (a.log.termAt(index) === b.log.termAt(index)) isSame = true;
    else if (isSame) return `log matching: ${a.id} and ${b.id} differ at ${index}`;
    if (!isSame || index === first) continue;
    const [ofA] = a.log.slice(index, index);
    const [ofB] = b.log.slice(index, index);
    if (!isSameEntry(ofA, ofB)) {
      return `log matching: ${a.id} and ${b.id} hold different entries at ${index}`;
    }
  }
  return null;
}

/** Committed is durable: a quorum of voters, learners left out, holds what a leader commits. */
export function brokenDurability(
  leader: RaftState,
  holds: (id: string, index: number, term: number) => boolean,
): string | null {
  const { commitIndex, log } = leader;
  const term = log.termAt(commitIndex);
  const { voters, outgoing } = log.configuration;
  for (const half of outgoing.length === 0 ? [voters] : [voters, outgoing]) {
    const holders = half.filter((id) => holds(id, commitIndex, term));
    if (holders.length * 2 <= half.length) {
      return `committed is durable: ${leader.id} committed ${commitIndex}, held by ${holders}`;
    }
  }
  return null;
}

/** What a leader may be, and what it may say of the cluster. */
export function brokenLeadership(leader: RaftState): string | null {
  const { id, isWitness, log: { configuration } } = leader;
  if (isWitness) return `a witness never leads: ${id}`;
  if (leader.damagedTerm > 0) return `a damaged member never leads: ${id}`;
  const { voters, outgoing } = configuration;
  // A removal may pass through two on its way; see `planRemoval` of an only voter.
  const isRemoval = outgoing.length > 0 && outgoing.some((voter) => !voters.includes(voter));
  if (votersOf(configuration).length === 2 && !isRemoval) return `two voters: ${voters}`;
  return null;
}
