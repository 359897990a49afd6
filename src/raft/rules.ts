import { type Configuration, halvesOf, isVoter } from "./configuration.ts";
import type { RaftSnapshot } from "./messages.ts";
import type { RaftState } from "./state.ts";

/**
 * The rules on which safety rests, each by its name: the tests break them one at a time and must
 * find each broken one. Nothing else replaces them.
 */
export interface Rules {
  /** The sets of which a decision needs a majority. */
  halves(configuration: Configuration): readonly (readonly string[])[];
  /** A witness never does: it serves no changes, so it has nothing to lead with. */
  mayCampaign(state: RaftState): boolean;
  /** Whether a leader may count the entry at `index`, which a quorum holds, as committed. */
  mayCommit(state: RaftState, index: number): boolean;
  /** Whether a Raft snapshot brings anything. */
  isNews(state: RaftState, snapshot: RaftSnapshot): boolean;
}

/**
 * Whether this member votes, or did until a change that may not be committed: it can be the only
 * one left that holds the change, and those who stay would refuse each other (dissertation §4.2.2).
 */
function hasVoice({ id, log, commitIndex }: RaftState): boolean {
  if (isVoter(log.configuration, id)) return !log.configuration.witnesses.includes(id);
  const { configurationIndex: index } = log;
  return index > commitIndex && isVoter(log.configurationAt(index - 1), id);
}

export const RULES: Rules = {
  halves: halvesOf,
  mayCampaign: (state) => !state.isWitness && state.damagedTerm === 0 && hasVoice(state),
  // An older term's entry may be replaced even when a quorum holds it; it is committed with one of
  // this term (Raft paper §5.4.2, figure 8).
  mayCommit: ({ log, currentTerm }, index) => log.termAt(index) === currentTerm,
  // Going back would forget what was acknowledged and undo what was applied.
  isNews: ({ commitIndex }, { index }) => index > commitIndex,
};
