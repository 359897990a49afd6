import {
  firstStep,
  hasQuorum,
  isJoint,
  isMember,
  isVoter,
  isWellFormed,
  lastStep,
  membersOf,
  normalise,
  problemOf,
  quorumIndex,
} from "./configuration.ts";
import type { Membership } from "./configuration.ts";
import {
  ENTRY_BYTES_MAX,
  READS_MAX,
  SNAPSHOT_TICKS_MAX,
  UNCOMMITTED_BYTES_MAX,
  UNCOMMITTED_ENTRIES_MAX,
} from "./limits.ts";
import { sizeOf } from "./log.ts";
import type { AppendEntriesResponse, Entry, Message, Refusal } from "./messages.ts";
import { acknowledged, probing, type Progress, replicating, unknownProgress } from "./progress.ts";
import { heartbeat, isHeard, replicate } from "./replicate.ts";
import type { Run } from "./run.ts";
import type { RaftState, Timing } from "./state.ts";

/** An entry before it has its place. */
type Unplaced =
  | { readonly type: "command"; readonly data: Uint8Array }
  | {
    readonly type: "configuration";
    readonly configuration: Extract<Entry, { type: "configuration" }>["configuration"];
  }
  | { readonly type: "empty" };

export function becomeLeader(run: Run): void {
  const { state } = run;
  run.become("leader", state.id);
  const { log, commitIndex } = state;
  for (const entry of log.slice(commitIndex + 1, log.lastIndex)) {
    state.uncommittedBytes += sizeOf(entry);
  }
  trackMembers(run, log.lastIndex + 1);
  append(run, [{ type: "empty" }]);
  if (state.role === "leader") { for (const id of state.progress.keys()) heartbeat(run, id); }
}

export function tickLeader(run: Run): void {
  const { state } = run;
  const { timing } = state;
  for (const [id, progress] of state.progress) run.setProgress(id, aged(progress, timing));
  // Cut off: others may have elected a leader, and nothing can be committed here any more.
  if (!isHeardByQuorum(state)) return run.becomeFollower(state.currentTerm, null);
  if (state.transfer !== null) {
    const ticks = state.transfer.ticks + 1;
    // It took no notice: go on leading rather than refuse proposals.
    state.transfer = ticks >= timing.electionTicks ? null : { ...state.transfer, ticks };
  }
  state.heartbeatElapsedTicks++;
  if (state.heartbeatElapsedTicks < timing.heartbeatTicks) return;
  state.heartbeatElapsedTicks = 0;
  for (const id of state.progress.keys()) heartbeat(run, id);
}

/** Progress a tick later. */
function aged(progress: Progress, { electionTicks }: Timing): Progress {
  const silentTicks = Math.min(progress.silentTicks + 1, electionTicks);
  if (progress.state !== "snapshot") return { ...progress, silentTicks };
  const snapshotTicks = progress.snapshotTicks + 1;
  return snapshotTicks < SNAPSHOT_TICKS_MAX
    ? { ...progress, silentTicks, snapshotTicks }
    : { ...probing(progress, progress.matchIndex + 1), silentTicks };
}

function isHeardByQuorum(state: RaftState): boolean {
  const halves = state.rules.halves(state.log.configuration);
  return hasQuorum(halves, (voter) => voter === state.id || isHeard(state, voter));
}

/** Keeps progress of every member; of those who have left, until the change is committed. */
function trackMembers(run: Run, nextIndex: number): void {
  const { state } = run;
  for (const id of membersOf(state.log.configuration)) {
    if (id !== state.id && !state.progress.has(id)) run.setProgress(id, unknownProgress(nextIndex));
  }
}

/** Entries of this term at the end of the log; sent where flow control lets. */
function append(run: Run, unplaced: readonly Unplaced[]): void {
  const { state } = run;
  const { currentTerm: term, log: { lastIndex } } = state;
  const entries = unplaced.map((entry, i): Entry => ({
    index: lastIndex + 1 + i,
    term,
    ...entry,
  }));
  state.log = state.log.append(entries);
  run.persist(entries);
  for (const entry of entries) state.uncommittedBytes += sizeOf(entry);
  for (const id of state.progress.keys()) replicate(run, id);
  advanceCommit(run);
}

export function propose(run: Run, commands: readonly Uint8Array[]): Refusal | null {
  const { state } = run;
  const refusal = refusalOfEntries(state, commands.length);
  if (refusal !== null) return refusal;
  let bytes = 0;
  for (const { length } of commands) {
    if (length > ENTRY_BYTES_MAX) return "too large";
    bytes += length;
  }
  // The first may pass the bound, or a large one could never be made.
  if (state.uncommittedBytes > 0 && state.uncommittedBytes + bytes > UNCOMMITTED_BYTES_MAX) {
    return "too many uncommitted entries";
  }
  append(run, commands.map((data) => ({ type: "command", data })));
  return null;
}

function refusalOfEntries(state: RaftState, count: number): Refusal | null {
  if (state.role !== "leader") return "not leader";
  if (state.transfer !== null) return "transfer under way";
  const uncommitted = state.log.lastIndex - state.commitIndex;
  return uncommitted + count > UNCOMMITTED_ENTRIES_MAX ? "too many uncommitted entries" : null;
}

/** Starts a change of who belongs to the cluster; the second entry of it follows by itself. */
export function changeMembership(run: Run, membership: Membership): Refusal | null {
  const { state } = run;
  const refusal = refusalOfEntries(state, 1);
  if (refusal !== null) return refusal;
  if (!hasCommittedOwn(state)) return "no entry of this term is committed yet";
  const { log, commitIndex } = state;
  const current = log.configuration;
  if (isJoint(current) || log.configurationIndex > commitIndex) {
    return "a membership change is under way";
  }
  const target = normalise(membership);
  if (!isWellFormed(target) || problemOf(target) !== null) return "not allowed";
  // A voter has learned before, and a store does not become a witness, nor stop being one.
  const isKept = (id: string) =>
    current.witnesses.includes(id) === target.witnesses.includes(id) || !isMember(current, id);
  if (!target.voters.every((id) => isMember(current, id))) return "not allowed";
  if (!membersOf(target).every(isKept)) return "not allowed";
  appendConfiguration(run, firstStep(current, target));
  return null;
}

function appendConfiguration(run: Run, configuration: RaftState["log"]["configuration"]): void {
  append(run, [{ type: "configuration", configuration }]);
  if (run.state.role !== "leader") return; // It was committed at once, and left this one out.
  trackMembers(run, run.state.log.lastIndex);
}

function hasCommittedOwn({ log, commitIndex, currentTerm }: RaftState): boolean {
  return log.termAt(commitIndex) === currentTerm;
}

/** Counts as committed what a quorum holds, and tells everybody. */
function advanceCommit(run: Run): void {
  const { state } = run;
  const { log, rules } = state;
  const index = quorumIndex(
    rules.halves(log.configuration),
    // This member's own entries are durable before any answer to them can come.
    (id) => id === state.id ? log.lastIndex : state.progress.get(id)?.matchIndex ?? 0,
  );
  if (index <= state.commitIndex || !rules.mayCommit(state, index)) return;
  for (const entry of log.slice(state.commitIndex + 1, index)) {
    state.uncommittedBytes -= sizeOf(entry);
  }
  state.commitIndex = index;
  for (const [id, { state: kind }] of state.progress) {
    // Members answer their callers once they have applied: tell them without waiting for a tick.
    if (!replicate(run, id) && kind === "replicate") heartbeat(run, id);
  }
  if (log.configurationIndex <= index) onConfigurationCommitted(run);
}

function onConfigurationCommitted(run: Run): void {
  const { state } = run;
  const { configuration } = state.log;
  if (isJoint(configuration)) return appendConfiguration(run, lastStep(configuration));
  if (!isVoter(configuration, state.id)) return resign(run);
  for (const id of state.progress.keys()) {
    if (!isMember(configuration, id)) run.deleteProgress(id);
  }
}

/** Leads no longer, and names who could at once. */
export function resign(run: Run): void {
  const { state } = run;
  const heir = heirAmong(state, state.log.configuration.voters);
  if (heir !== null) run.send(heir, { type: "timeoutNow", term: state.currentTerm });
  run.becomeFollower(state.currentTerm, null);
}

/** Of the members `ids`, who could lead best: the longest log; of some alike, who was heard. */
export function heirAmong(state: RaftState, ids: readonly string[]): string | null {
  let best: string | null = null;
  let bestRank = -1;
  for (const id of ids) {
    const held = state.progress.get(id);
    if (held === undefined || state.log.configuration.witnesses.includes(id)) continue;
    const rank = 2 * held.matchIndex + Number(isHeard(state, id));
    if (rank > bestRank) [best, bestRank] = [id, rank];
  }
  return best;
}

export function transferLeadership(run: Run, to: string): Refusal | null {
  const { state } = run;
  if (state.role !== "leader") return "not leader";
  if (state.transfer !== null) return "transfer under way";
  const { voters, witnesses } = state.log.configuration;
  if (to === state.id || !voters.includes(to) || witnesses.includes(to)) return "not allowed";
  state.transfer = { to, ticks: 0 };
  continueTransfer(run);
  return null;
}

/** The heir must hold the whole log, or it would lose the election. */
function continueTransfer(run: Run): void {
  const { transfer, progress, log, currentTerm } = run.state;
  if (transfer === null || progress.get(transfer.to)?.matchIndex !== log.lastIndex) return;
  run.send(transfer.to, { type: "timeoutNow", term: currentTerm });
}

export function read(run: Run, id: number): Refusal | null {
  const { state } = run;
  if (state.role !== "leader") return "not leader";
  // Until then it does not know how far earlier terms had committed (dissertation §6.4).
  if (!hasCommittedOwn(state)) return "no entry of this term is committed yet";
  if (state.reads.length >= READS_MAX) return "too many reads";
  state.round++;
  state.reads = [...state.reads, { id, index: state.commitIndex, round: state.round }];
  for (const member of state.progress.keys()) heartbeat(run, member);
  confirmReads(run);
  return null;
}

/** Answers the reads whose round a quorum has answered: it still took this one for its leader. */
function confirmReads(run: Run): void {
  const { state } = run;
  const halves = state.rules.halves(state.log.configuration);
  const isConfirmed = (round: number) =>
    hasQuorum(halves, (id) => id === state.id || (state.progress.get(id)?.round ?? 0) >= round);
  while (state.reads.length > 0 && isConfirmed(state.reads[0].round)) {
    const [{ id, index }, ...waiting] = state.reads;
    run.readStates.push({ id, index });
    state.reads = waiting;
  }
}

export function onAppendEntriesResponse(
  run: Run,
  message: Message & AppendEntriesResponse,
): void {
  const { state } = run;
  const { from } = message;
  const known = state.progress.get(from);
  if (state.role !== "leader" || known === undefined) return;
  if (message.round > state.round || message.matchIndex > state.log.lastIndex) {
    run.refusal = "implausible";
    return;
  }
  const progress = {
    ...known,
    silentTicks: 0,
    round: Math.max(known.round, message.round),
  };
  run.setProgress(from, progress);
  if (message.success) onMatch(run, from, message.matchIndex);
  else onMismatch(run, message);
  if (state.role === "leader" && state.reads.length > 0) confirmReads(run);
}

function onMatch(run: Run, from: string, index: number): void {
  const { state } = run;
  const known = state.progress.get(from);
  if (known === undefined) return;
  const matchIndex = Math.max(known.matchIndex, index);
  const progress = acknowledged(known, matchIndex);
  // After a Raft snapshot the log must go on from where the member is, or another one is needed.
  const canFollow = known.state === "probe" ||
    (known.state === "snapshot" && state.log.termAt(matchIndex) >= 0);
  run.setProgress(from, canFollow ? replicating(progress) : progress);
  const { commitIndex } = state;
  advanceCommit(run);
  if (state.role !== "leader") return;
  if (state.commitIndex === commitIndex) replicate(run, from);
  if (state.transfer?.to === from) continueTransfer(run);
}

/** The member's log differs: goes back to the last place that may be the same. */
function onMismatch(run: Run, message: Message & AppendEntriesResponse): void {
  const { state } = run;
  const { from, rejectedIndex, hintIndex, hintTerm } = message;
  const known = state.progress.get(from);
  if (known === undefined || known.state === "snapshot") return;
  // It is not what was asked last, and is known to match since, or one probe waits: an old answer.
  const isLast = rejectedIndex === known.nextIndex - 1;
  if (!isLast && (known.state === "probe" || rejectedIndex <= known.matchIndex)) return;
  // What it had acknowledged it lacks: its store was put back to an older copy.
  const matchIndex = rejectedIndex <= known.matchIndex ? 0 : known.matchIndex;
  const { log } = state;
  const last = Math.min(rejectedIndex - 1, hintIndex);
  // Before the log's beginning there is nothing to compare: a Raft snapshot it is.
  const candidate = last < log.base.index ? last : log.lastCandidate(last, hintTerm);
  run.setProgress(from, {
    ...probing(known, Math.max(candidate, matchIndex) + 1),
    matchIndex,
  });
  heartbeat(run, from);
}

/** A connection broke: what was sent may be lost. */
export function onUnreachable(run: Run, member: string): void {
  const progress = run.state.progress.get(member);
  if (progress === undefined || progress.state === "probe") return;
  run.setProgress(member, probing(progress, progress.matchIndex + 1));
}
