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
  mayCampaign(state: RaftState): boolean;
  /** Whether a leader may count the entry at `index`, which a quorum holds, as committed. */
  mayCommit(state: RaftState, index: number): boolean;
  /** Whether a Raft snapshot brings anything. */
  isNews(state: RaftState, snapshot: RaftSnapshot): boolean;
}

export const RULES: Rules = {
  halves: halvesOf,
  // A witness has nothing to lead with: it serves no changes. A learner's log says so itself; who
  // was made a voter since learns it from the log that brings it up to date.
  mayCampaign: ({ id, isWitness, damagedTerm, log: { configuration } }) =>
    !isWitness && damagedTerm === 0 && isVoter(configuration, id) &&
    !configuration.witnesses.includes(id),
  // An older term's entry may be replaced even when a quorum holds it; it is committed with one of
  // this term (Raft paper §5.4.2, figure 8).
  mayCommit: ({ log, currentTerm }, index) => log.termAt(index) === currentTerm,
  // Going back would forget what was acknowledged and undo what was applied.
  isNews: ({ commitIndex }, { index }) => index > commitIndex,
};
