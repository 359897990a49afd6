import { isJoint, isMember, type Membership } from "./configuration.ts";
import { CAUGHT_UP_ENTRIES_MAX } from "./limits.ts";
import { heirAmong } from "./leader.ts";
import { isHeard } from "./replicate.ts";
import type { RaftState } from "./state.ts";

/** The members with one more, who learns; null where it is one already. */
export function planAddition(
  { log: { configuration } }: RaftState,
  id: string,
  isWitness: boolean,
): Membership | null {
  if (isMember(configuration, id)) return null;
  const { voters, learners, witnesses } = configuration;
  return {
    voters,
    learners: [...learners, id],
    witnesses: isWitness ? [...witnesses, id] : witnesses,
  };
}

/**
 * Of a leader: the members with every learner that has caught up as a voter, if three voters or
 * more result; null otherwise.
 */
export function planPromotion(state: RaftState): Membership | null {
  const { log, role } = state;
  const { voters, learners, witnesses } = log.configuration;
  if (role !== "leader" || isJoint(log.configuration)) return null;
  const ready = learners.filter((id) => hasCaughtUp(state, id));
  if (ready.length === 0 || voters.length + ready.length < 3) return null;
  return {
    voters: [...voters, ...ready],
    learners: learners.filter((id) => !ready.includes(id)),
    witnesses,
  };
}

function hasCaughtUp(state: RaftState, id: string): boolean {
  const { progress, log } = state;
  const held = progress.get(id);
  return held !== undefined && isHeard(state, id) && held.state === "replicate" &&
    held.matchIndex + CAUGHT_UP_ENTRIES_MAX >= log.lastIndex;
}

/**
 * Of a leader: the members without one. Where two voters would be left, one of them learns: the
 * leader votes alone or, if it is the one to go, the node with the longest log. Where no voter
 * would be left that may lead, the learner with the longest log votes. Null where `id` is no
 * member, or nobody who has caught up is left to lead.
 */
export function planRemoval(state: RaftState, id: string): Membership | null {
  const { configuration } = state.log;
  if (!isMember(configuration, id)) return null;
  const { witnesses } = configuration;
  const others = (list: readonly string[]) => list.filter((other) => other !== id);
  const [voters, learners] = [others(configuration.voters), others(configuration.learners)];
  const canLead = voters.some((voter) => !witnesses.includes(voter));
  if (canLead && voters.length !== 2) return { voters, learners, witnesses };
  const heirs = (canLead ? voters : learners).filter((heir) => hasCaughtUp(state, heir));
  const alone = voters.includes(state.id) ? state.id : heirAmong(state, heirs);
  if (alone === null) return null;
  const rest = [...voters, ...learners].filter((other) => other !== alone);
  return { voters: [alone], learners: rest, witnesses };
}
