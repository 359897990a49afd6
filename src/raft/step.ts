import { isInLease, onTimeoutNow, onVoteRequest, onVoteResponse } from "./election.ts";
import { tickFollower } from "./election.ts";
import { onFetchedEntries, onFetchedSnapshot, onFetchEntries, onOfferLog } from "./fetch.ts";
import { onAppendEntries, onInstallSnapshot, refuseLeader } from "./follower.ts";
import {
  changeMembership,
  onAppendEntriesResponse,
  onUnreachable,
  propose,
  read,
  resign,
  tickLeader,
  transferLeadership,
} from "./leader.ts";
import type { Message, RaftEvent, Refusal } from "./messages.ts";
import { isPlausible } from "./plausible.ts";
import { Run, type Step } from "./run.ts";
import type { RaftState } from "./state.ts";

/** The whole of consensus: no clock, no socket, no disk, no chance but what `state` brings. */
export function step(state: RaftState, event: RaftEvent): Step {
  const run = new Run(state);
  run.refusal = take(run, event) ?? run.refusal;
  return run.finish();
}

function take(run: Run, event: RaftEvent): Refusal | null {
  const { state } = run;
  switch (event.type) {
    case "tick":
      if (state.role === "leader") tickLeader(run);
      else tickFollower(run);
      return null;
    case "message":
      return stepMessage(run, event.message);
    case "propose":
      return propose(run, event.commands);
    case "changeMembership":
      return changeMembership(run, event.target);
    case "transferLeadership":
      return transferLeadership(run, event.to);
    case "read":
      return read(run, event.id);
    case "compact":
      return compact(run, event.index);
    case "unreachable":
      onUnreachable(run, event.member);
      return null;
    case "resign":
      if (state.role !== "leader") return "not leader";
      resign(run);
      return null;
    case "damaged":
      onDamaged(run);
      return null;
  }
}

function stepMessage(run: Run, message: Message): Refusal | null {
  const { state } = run;
  if (
    message.to !== state.id || message.from === state.id || !isPlausible(message, state.currentTerm)
  ) {
    return "implausible";
  }
  switch (message.type) {
    // These have no authority from their term: what counts is the terms of the entries.
    case "offerLog":
      onOfferLog(run, message);
      return null;
    case "fetchEntries":
      onFetchEntries(run, message);
      return null;
    case "fetchedEntries":
      onFetchedEntries(run, message);
      return null;
    case "fetchedSnapshot":
      onFetchedSnapshot(run, message);
      return null;
    case "preVote":
      if (!isInLease(state)) onVoteRequest(run, message);
      return null;
    case "requestVote":
      // Whoever was removed, or was cut off, ends no term of a leader that others hear.
      if (message.term > state.currentTerm && isInLease(state) && !message.isTransfer) return null;
      break;
    case "preVoteResponse":
      if (message.voteGranted) {
        onVoteResponse(run, message); // Its term is not one that anybody is in.
        return null;
      }
  }
  if (message.term > state.currentTerm) run.becomeFollower(message.term, null);
  const isCurrent = message.term === state.currentTerm;
  switch (message.type) {
    case "requestVote":
      if (isCurrent) onVoteRequest(run, message);
      else refuseVote(run, message.from);
      return null;
    case "appendEntries":
      if (isCurrent) onAppendEntries(run, message);
      else refuseLeader(run, message.from);
      return null;
    case "installSnapshot":
      if (isCurrent) onInstallSnapshot(run, message);
      else refuseLeader(run, message.from);
      return null;
    case "requestVoteResponse":
    case "preVoteResponse":
      if (isCurrent) onVoteResponse(run, message);
      return null;
    case "appendEntriesResponse":
      if (isCurrent) onAppendEntriesResponse(run, message);
      return null;
    case "timeoutNow":
      if (isCurrent) onTimeoutNow(run);
      return null;
  }
}

function refuseVote(run: Run, to: string): void {
  const { currentTerm: term } = run.state;
  run.send(to, { type: "requestVoteResponse", term, voteGranted: false });
}

function compact(run: Run, index: number): Refusal | null {
  const { state } = run;
  const snapshot = index > state.commitIndex ? null : state.log.snapshotAt(index);
  if (snapshot === null) return "not allowed";
  if (index === state.log.base.index) return null;
  state.log = state.log.compact(snapshot);
  run.compacted = snapshot;
  return null;
}

/**
 * This member may have promised, in any term so far, what it no longer holds. It goes to a term of
 * its own, so that the leader counts nothing any more that it heard from it before.
 */
function onDamaged(run: Run): void {
  const { state } = run;
  state.damagedTerm = state.currentTerm;
  run.becomeFollower(state.currentTerm + 1, null);
}
