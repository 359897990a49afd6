import type {
  AppendEntries,
  AppendEntriesResponse,
  Entry,
  InstallSnapshot,
  Message,
  RaftSnapshot,
} from "./messages.ts";
import { Log } from "./log.ts";
import type { Run } from "./run.ts";
import type { RaftState } from "./state.ts";

/** Receiver of AppendEntries in the current term (Raft paper figure 2). */
export function onAppendEntries(run: Run, message: Message & AppendEntries): void {
  const { state } = run;
  if (!follow(run, message.from)) return;
  const { prevLogIndex, prevLogTerm, entries, leaderCommit } = message;
  if (state.isContradicted || contradicts(state, message)) {
    // What is committed here stays, and is not what the leader would count an answer for.
    state.isContradicted = true;
    run.refusal = "implausible";
    return;
  }
  if (prevLogIndex < state.commitIndex) {
    // A leader's log holds all that is committed; only what was compared shows that it does.
    const compared = prevLogIndex < state.log.base.index
      ? state.commitIndex
      : Math.min(state.commitIndex, prevLogIndex + entries.length);
    return respond(run, message, compared);
  }
  if (state.log.termAt(prevLogIndex) !== prevLogTerm) {
    const hintIndex = state.log.lastCandidate(prevLogIndex, prevLogTerm);
    return void run.send(message.from, {
      ...NO_SUCCESS,
      term: state.currentTerm,
      rejectedIndex: prevLogIndex,
      hintIndex,
      hintTerm: state.log.termAt(hintIndex),
      round: message.round,
    });
  }
  if (!adopt(run, entries)) return;
  const matchIndex = prevLogIndex + entries.length;
  state.commitIndex = Math.max(state.commitIndex, Math.min(leaderCommit, matchIndex));
  respond(run, message, matchIndex);
}

/**
 * Whether a leader's log differs from what is committed here. No member's doing leads to that, but
 * a store that was put back to an older copy does: its member forgets what it had acknowledged.
 */
function contradicts({ log, commitIndex }: RaftState, message: AppendEntries): boolean {
  const isOther = (index: number, term: number) =>
    index <= commitIndex && log.termAt(index) >= 0 && log.termAt(index) !== term;
  const { prevLogIndex, prevLogTerm, entries } = message;
  return isOther(prevLogIndex, prevLogTerm) ||
    entries.some(({ index, term }) => isOther(index, term));
}

/** Takes the sender for the leader of the current term; false where that can't be. */
function follow(run: Run, from: string): boolean {
  const { state } = run;
  if (state.leader === from && state.role === "follower") {
    state.elapsedTicks = 0;
    return true;
  }
  // A term has one leader: whoever else claims to be it is not of our making.
  if (state.leader !== null) {
    run.refusal = "implausible";
    return false;
  }
  run.becomeFollower(state.currentTerm, from);
  return true;
}

const NO_SUCCESS = {
  type: "appendEntriesResponse",
  success: false,
  matchIndex: 0,
  rejectedIndex: 0,
  hintIndex: 0,
  hintTerm: 0,
  round: 0,
} as const satisfies Omit<AppendEntriesResponse, "term">;

function respond(
  run: Run,
  { from, round }: Message & { readonly round: number },
  matchIndex: number,
): void {
  const { currentTerm: term } = run.state;
  run.send(from, { ...NO_SUCCESS, success: true, term, matchIndex, round });
}

/** Tells a leader of an earlier term that its time is over. */
export function refuseLeader(run: Run, to: string): void {
  run.send(to, { ...NO_SUCCESS, term: run.state.currentTerm });
}

/**
 * Puts entries, the one before which matches, into the log. Only from the first that differs is
 * anything replaced: a late message must not undo what newer ones brought. False, and nothing is
 * done, where that would replace what is committed.
 */
export function adopt(run: Run, entries: readonly Entry[]): boolean {
  const { state } = run;
  const first = entries.findIndex(({ index, term }) => state.log.termAt(index) !== term);
  if (first < 0) return true;
  const added = entries.slice(first);
  if (added[0].index <= state.commitIndex) {
    run.refusal = "implausible";
    return false;
  }
  state.log = state.log.truncate(added[0].index).append(added);
  run.persist(added);
  return true;
}

/** Receiver of InstallSnapshot in the current term; the driver has the state at hand. */
export function onInstallSnapshot(run: Run, message: Message & InstallSnapshot): void {
  if (!follow(run, message.from)) return;
  install(run, message.snapshot);
  respond(run, { ...message, round: 0 }, run.state.commitIndex);
}

/** Takes a Raft snapshot, which holds nothing but what is committed. */
export function install(run: Run, snapshot: RaftSnapshot): void {
  const { state } = run;
  if (!state.rules.isNews(state, snapshot)) return;
  state.commitIndex = snapshot.index;
  // The log has it all, and perhaps more.
  if (state.log.termAt(snapshot.index) === snapshot.term) return;
  state.log = Log.of(snapshot);
  run.snapshot = snapshot;
  run.forgetEntries();
}
