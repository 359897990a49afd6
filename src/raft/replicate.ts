import { APPEND_BYTES_MAX, APPEND_ENTRIES_MAX } from "./limits.ts";
import { sizeOf } from "./log.ts";
import type { Entry } from "./messages.ts";
import { hasRoom, sent } from "./progress.ts";
import type { Run } from "./run.ts";
import type { RaftState } from "./state.ts";

/** Whether a member spoke within an election timeout. */
export function isHeard({ progress, timing }: RaftState, id: string): boolean {
  const held = progress.get(id);
  return held !== undefined && held.silentTicks < timing.electionTicks;
}

/** Sends a member the entries that it lacks, as far as flow control lets; says whether it did. */
export function replicate(run: Run, to: string): boolean {
  const { log } = run.state;
  let hasSent = false;
  for (;;) {
    const progress = run.state.progress.get(to);
    if (progress === undefined || progress.state !== "replicate") return hasSent;
    if (progress.nextIndex > log.lastIndex || !hasRoom(progress)) return hasSent;
    const prevLogTerm = log.termAt(progress.nextIndex - 1);
    if (prevLogTerm < 0) {
      sendSnapshot(run, to);
      return true;
    }
    const entries = log.slice(
      progress.nextIndex,
      log.lastIndex,
      APPEND_BYTES_MAX,
      APPEND_ENTRIES_MAX,
    );
    sendAppend(run, to, progress.nextIndex - 1, prevLogTerm, entries);
    const bytes = entries.reduce((sum, entry) => sum + sizeOf(entry), 0);
    run.setProgress(to, sent(progress, progress.nextIndex - 1 + entries.length, bytes));
    hasSent = true;
  }
}

/**
 * AppendEntries without entries, at the place where the next ones are due: it holds the lease,
 * brings the commit index, and is refused where something before it was lost.
 */
export function heartbeat(run: Run, to: string): void {
  const { progress, log } = run.state;
  const held = progress.get(to);
  if (held === undefined) return;
  const prevLogIndex = held.nextIndex - 1;
  const prevLogTerm = log.termAt(prevLogIndex);
  if (held.state !== "snapshot" && prevLogTerm >= 0) {
    return sendAppend(run, to, prevLogIndex, prevLogTerm, []);
  }
  // Before every log: nothing to refuse. The answer says how far the member has committed.
  sendAppend(run, to, 0, 0, []);
  // A Raft snapshot is work, so only for who is there to take it.
  if (held.state !== "snapshot" && isHeard(run.state, to)) sendSnapshot(run, to);
}

function sendAppend(
  run: Run,
  to: string,
  prevLogIndex: number,
  prevLogTerm: number,
  entries: readonly Entry[],
): void {
  const { currentTerm: term, commitIndex: leaderCommit, round } = run.state;
  const type = "appendEntries";
  run.send(to, { type, term, prevLogIndex, prevLogTerm, entries, leaderCommit, round });
}

function sendSnapshot(run: Run, to: string): void {
  const { progress, log, currentTerm: term } = run.state;
  const held = progress.get(to);
  if (held === undefined) return;
  run.send(to, { type: "installSnapshot", term, snapshot: log.base });
  run.setProgress(to, {
    ...held,
    state: "snapshot",
    snapshotTicks: 0,
    inflight: [],
    inflightBytes: 0,
  });
}
