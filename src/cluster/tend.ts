import {
  isJoint,
  isMember,
  type Membership,
  membersOf,
  planAddition,
  planPromotion,
  planRemoval,
  type RaftState,
} from "../raft/mod.ts";
import type { Peer } from "./facts.ts";
import { nodeOf } from "./frames.ts";

/**
 * What a leader changes about the membership next, one thing at a time; `null`: nothing. A node that
 * came back with another store takes the place of the member that it was.
 */
export function nextMembership(
  state: RaftState,
  version: string,
  peers: readonly Peer[],
): Membership | null {
  const { role, log, commitIndex } = state;
  const isChanging = isJoint(log.configuration) || log.configurationIndex > commitIndex;
  if (role !== "leader" || isChanging) return null;
  for (const { name, channel: { greeting }, isReachable, status } of peers) {
    const isWaiting = isReachable && greeting?.clusterId === "" && status?.cluster === "" &&
      greeting.version === version && status.id === greeting.memberId;
    if (!isWaiting || greeting === null || isMember(log.configuration, greeting.memberId)) continue;
    const former = membersOf(log.configuration).find((id) => nodeOf(id) === name);
    const target = former === undefined
      ? planAddition(state, greeting.memberId, greeting.isWitness)
      : planRemoval(state, former);
    if (target !== null) return target;
  }
  return planPromotion(state);
}
