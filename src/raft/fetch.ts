/**
 * How a node whose log is behind a witness's gets to lead.
 *
 * A witness votes and never leads. Where it alone holds the newest entries (they were committed by
 * it and a leader that is lost now), the nodes that are left lose every election to its refusal.
 * So a witness without a leader offers its log, a node that is behind fetches what it lacks, and
 * campaigns once it has it all.
 *
 * Why that is safe. Every log, at any time, is what the leader of the log's last term had in its
 * own log once: the log of a leader as it was elected, with entries of its term after it. Let an
 * entry e of term t be committed, now or later, and let a log W end in a term T.
 * - If T > t, W holds e: the leader of T was elected by a quorum, one of which held e when it voted
 *   for it, so that leader had e (Raft paper §5.4.3), before any entry of T, of which W has one.
 * - If T = t, both are of one leader: W holds e, unless W ends before it.
 * Let a node's log N be behind W: W's last term is later, or the same with a higher index. What the
 * node replaces, it replaces from the first entry on that differs from W's. Let e be an entry of N
 * that is replaced; e is of N's last term or an earlier one. If N's last term is W's, N is a
 * part of W and nothing differs. Otherwise t < T, and were e committed, now or later, W would hold
 * it. So nothing is lost that counts, whatever part of W has been taken over: a crash in between,
 * a lost message, or turns with another witness leave a log that is of the first sentence's form.
 * What is gained is no more than a late AppendEntries of the leader of T would have brought, except
 * that nobody counts it: a fetched entry is acknowledged only to a leader that asks for it.
 *
 * The node then is in term T at least, so it acknowledges nothing to leaders before it. It does not
 * fetch while it leads or campaigns in a term: it was, or may be, elected for the log it has. That
 * it voted in its term does no harm: its log has lost nothing that counts since.
 *
 * A Raft snapshot of a witness holds only what is committed, and brings a node that is so far
 * behind that the entries are gone the same way.
 */
import { isMember, votersOf } from "./configuration.ts";
import { preCampaign } from "./election.ts";
import { adopt, install } from "./follower.ts";
import { APPEND_BYTES_MAX, APPEND_ENTRIES_MAX } from "./limits.ts";
import type {
  FetchedEntries,
  FetchedSnapshot,
  FetchEntries,
  LogEnd,
  Message,
  OfferLog,
} from "./messages.ts";
import type { Run } from "./run.ts";

/**
 * Of a witness without a leader: its log, to `to` or to every voter who may lead. Even of one that
 * only learns: it may be what is left of those who were voters until the last entry.
 */
export function offerLog(run: Run, to?: string): void {
  const { id, isWitness, log, currentTerm: term } = run.state;
  const { configuration } = log;
  if (!isWitness) return;
  const offered = to === undefined ? votersOf(configuration) : [to];
  for (const voter of offered) {
    if (voter === id || configuration.witnesses.includes(voter)) continue;
    run.send(voter, { type: "offerLog", term, ...log.end });
  }
}

/** Whether another's log is to be had: it is newer, and there is no leader to follow. */
function isWanted(run: Run, end: LogEnd): boolean {
  const { isWitness, role, leader, log } = run.state;
  return !isWitness && leader === null && (role === "follower" || role === "preCandidate") &&
    log.isBehind(end);
}

export function onOfferLog(run: Run, message: Message & OfferLog): void {
  const { lastIndex, lastTerm } = run.state.log;
  if (isWanted(run, message)) ask(run, message.from, lastIndex, lastTerm);
}

function ask(run: Run, from: string, index: number, indexTerm: number): void {
  run.send(from, { type: "fetchEntries", term: run.state.currentTerm, index, indexTerm });
}

/** Answers one request with one message, and keeps nothing: what is lost is asked for anew. */
export function onFetchEntries(run: Run, message: Message & FetchEntries): void {
  const { log, isWitness, currentTerm: term } = run.state;
  const { from, index, indexTerm } = message;
  if (!isWitness || !isMember(log.configuration, from)) return;
  const prevLogIndex = log.lastCandidate(index, indexTerm);
  const prevLogTerm = log.termAt(prevLogIndex);
  if (prevLogIndex > index || prevLogTerm > indexTerm) {
    run.send(from, { type: "fetchedSnapshot", term, snapshot: log.base, ...log.end });
    return;
  }
  const entries = log.slice(prevLogIndex + 1, log.lastIndex, APPEND_BYTES_MAX, APPEND_ENTRIES_MAX);
  run.send(from, {
    type: "fetchedEntries",
    term,
    prevLogIndex,
    prevLogTerm,
    entries,
    ...log.end,
  });
}

export function onFetchedEntries(run: Run, message: Message & FetchedEntries): void {
  const { state } = run;
  const { from, prevLogIndex, prevLogTerm, entries } = message;
  if (!isWanted(run, message)) return;
  if (state.log.termAt(prevLogIndex) !== prevLogTerm) {
    const index = state.log.lastCandidate(prevLogIndex, prevLogTerm);
    return ask(run, from, index, state.log.termAt(index));
  }
  if (adopt(run, entries)) onAdopted(run, message);
}

/** The driver has the state at hand. */
export function onFetchedSnapshot(run: Run, message: Message & FetchedSnapshot): void {
  if (!isWanted(run, message)) return;
  install(run, message.snapshot);
  onAdopted(run, message);
}

function onAdopted(run: Run, message: Message & LogEnd): void {
  const { state } = run;
  const { lastIndex, lastTerm } = state.log;
  run.becomeFollower(Math.max(state.currentTerm, lastTerm), null);
  if (state.log.isBehind(message)) return ask(run, message.from, lastIndex, lastTerm);
  if (state.rules.mayCampaign(state)) preCampaign(run);
}
