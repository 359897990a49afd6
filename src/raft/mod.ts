/**
 * Consensus: how members agree on one log (Ongaro and Ousterhout, "In Search of an Understandable
 * Consensus Algorithm", and Ongaro's dissertation), as a pure function.
 *
 * `step(state, event)` takes what happened to a member and returns its next state and what its
 * driver is to do about it, in this order: make durable, send, apply. PreVote, a quorum that is
 * counted, a leader's lease on votes, joint consensus for changes of voters, learners, transfer of
 * leadership, Raft snapshots, and reads by a quorum's word; and a witness, which votes and never
 * leads (`fetch.ts`). States are immutable: a driver that could not make an outcome durable keeps
 * the state before, and it is as if the event had been lost.
 *
 * The driver hands events in one at a time, or joins what a few of them ask for (`joinReady`). Ticks
 * wait in the same queue as messages, so that a stall of this member is not taken for silence of
 * the others. It promises: IDs are of one store each (`Configuration`), messages come from whom `from`
 * names and from the same cluster, what was called durable is there after a restart or is reported
 * as `damaged`. Messages may be lost, doubled, late and in any order. As bytes they are what
 * `codec.ts` says. Scope: none. @module
 */
export {
  readConfiguration,
  readEntries,
  readHardState,
  readMessage,
  readSnapshot,
  writeConfiguration,
  writeEntries,
  writeHardState,
  writeMessage,
  writeSnapshot,
} from "./codec.ts";
export {
  type Configuration,
  isJoint,
  isMember,
  isVoter,
  isWellFormed,
  type Membership,
  membersOf,
  votersOf,
} from "./configuration.ts";
export * from "./limits.ts";
export type {
  Body,
  Entry,
  HardState,
  LogEnd,
  Message,
  RaftEvent,
  RaftSnapshot,
  ReadState,
  Ready,
  Refusal,
} from "./messages.ts";
export { planAddition, planPromotion, planRemoval } from "./plans.ts";
export type { Progress } from "./progress.ts";
export type { Rules } from "./rules.ts";
export { joinReady, type Step } from "./run.ts";
export {
  bootstrapped,
  NOTHING_PERSISTED,
  type Persisted,
  type RaftState,
  restore,
  type Role,
  type Setup,
  type Timing,
} from "./state.ts";
export { step } from "./step.ts";
export { WireError, WireReader, WireWriter } from "./wire.ts";
