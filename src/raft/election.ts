import { voteResult, votersOf } from "./configuration.ts";
import { offerLog } from "./fetch.ts";
import { becomeLeader } from "./leader.ts";
import type { Message, VoteRequest, VoteResponse } from "./messages.ts";
import type { Run } from "./run.ts";
import type { RaftState } from "./state.ts";

/** A tick of a member that does not lead. */
export function tickFollower(run: Run): void {
  const { state } = run;
  state.elapsedTicks++;
  if (state.elapsedTicks >= state.timeoutTicks) timeOut(run);
  else if (state.role !== "follower" && state.elapsedTicks % state.timing.heartbeatTicks === 0) {
    askForVotes(run, false); // Whoever was still bound to the former leader did not answer.
  }
}

/** The leader is silent, or the election came to nothing. */
function timeOut(run: Run): void {
  const { state } = run;
  if (state.rules.mayCampaign(state)) return preCampaign(run);
  run.becomeFollower(state.currentTerm, null);
  offerLog(run);
}

/**
 * Asks whether an election could be won before it ends the term of a leader that others still
 * hear (dissertation §9.6).
 */
export function preCampaign(run: Run): void {
  run.become("preCandidate", null);
  castVote(run, run.state.id, true);
  if (run.state.role === "preCandidate") askForVotes(run, false);
}

/** `isTransfer`: the leader asked for it, and the others need not wait until it is silent. */
export function campaign(run: Run, isTransfer: boolean): void {
  const { state } = run;
  run.become("candidate", null);
  state.currentTerm++;
  state.votedFor = state.id;
  castVote(run, state.id, true);
  if (state.role === "candidate") askForVotes(run, isTransfer);
}

/** Asks the voters who have not answered yet. */
function askForVotes(run: Run, isTransfer: boolean): void {
  const { role, currentTerm, votes, log, id } = run.state;
  const isPreVote = role === "preCandidate";
  const type = isPreVote ? "preVote" : "requestVote";
  const term = isPreVote ? currentTerm + 1 : currentTerm;
  for (const voter of votersOf(log.configuration)) {
    if (voter === id || votes.has(voter)) continue;
    run.send(voter, { type, term, ...log.end, isTransfer });
  }
}

/** Whether the vote is bound: a leader was heard, or one leads here and counts its quorum. */
export function isInLease({ leader, elapsedTicks, timing }: RaftState): boolean {
  return leader !== null && elapsedTicks < timing.electionTicks;
}

/** Receiver of RequestVote (Raft paper figure 2) in the current term, and of PreVote. */
export function onVoteRequest(run: Run, message: Message & VoteRequest): void {
  const { state } = run;
  const isPreVote = message.type === "preVote";
  const isFree = isPreVote
    ? message.term > state.currentTerm
    : state.votedFor === null || state.votedFor === message.from;
  // Who was never told who votes has no say, and who lost entries can't tell who holds them.
  const hasVote = state.log.configuration.voters.length > 0 && state.damagedTerm === 0;
  const isUpToDate = state.log.isUpToDate(message);
  const voteGranted = isFree && hasVote && isUpToDate;
  if (voteGranted && !isPreVote) {
    state.votedFor = message.from;
    run.resetTimer();
  }
  const type = isPreVote ? "preVoteResponse" : "requestVoteResponse";
  const term = voteGranted ? message.term : state.currentTerm;
  run.send(message.from, { type, term, voteGranted });
  if (isPreVote && !isUpToDate) offerLog(run, message.from);
}

export function onVoteResponse(run: Run, message: Message & VoteResponse): void {
  const { role, currentTerm } = run.state;
  const isPreVote = message.type === "preVoteResponse";
  if (role !== (isPreVote ? "preCandidate" : "candidate")) return;
  // A granted PreVote is about the next term, and may be of a campaign in an earlier one.
  if (isPreVote && message.voteGranted && message.term !== currentTerm + 1) return;
  castVote(run, message.from, message.voteGranted);
}

function castVote(run: Run, voter: string, isGranted: boolean): void {
  const { state } = run;
  if (state.votes.has(voter)) return;
  state.votes = new Map(state.votes).set(voter, isGranted);
  const result = voteResult(state.rules.halves(state.log.configuration), state.votes);
  if (result === "open") return;
  if (result === "lost") run.becomeFollower(state.currentTerm, null);
  else if (state.role === "preCandidate") campaign(run, false);
  else becomeLeader(run);
}

/** The leader hands over (dissertation §3.10). */
export function onTimeoutNow(run: Run): void {
  const { state } = run;
  if (state.role === "follower" && state.rules.mayCampaign(state)) campaign(run, true);
}
