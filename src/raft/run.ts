import type {
  Body,
  Entry,
  HardState,
  Message,
  RaftSnapshot,
  ReadState,
  Ready,
  Refusal,
} from "./messages.ts";
import type { Progress } from "./progress.ts";
import { drawTimeout, type RaftState } from "./state.ts";

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

/** What came of an event. */
export interface Step {
  readonly state: RaftState;
  readonly ready: Ready;
  /** Why nothing came of it, if so. */
  readonly refusal: Refusal | null;
}

const NO_VOTES: RaftState["votes"] = new Map();
const NO_PROGRESS: RaftState["progress"] = new Map();
const NOTHING: readonly never[] = [];

/** One step under way: a copy of the state, to be changed, and what the driver is to do. */
export class Run {
  readonly state: Mutable<RaftState>;
  readonly readStates: ReadState[] = [];
  snapshot: RaftSnapshot | null = null;
  compacted: RaftSnapshot | null = null;
  refusal: Refusal | null = null;
  readonly #before: RaftState;
  readonly #messages: Message[] = [];
  #entries: readonly Entry[] = NOTHING;
  #progress: Map<string, Progress> | null = null;

  constructor(before: RaftState) {
    this.#before = before;
    this.state = { ...before };
  }

  send(to: string, body: Body): void {
    this.#messages.push({ ...body, from: this.state.id, to });
  }

  /** Entries that are in the log since this step. */
  persist(entries: readonly Entry[]): void {
    this.#entries = this.#entries.length === 0 ? entries : replace(this.#entries, entries);
  }

  /** Entries that the Raft snapshot makes void. */
  forgetEntries(): void {
    this.#entries = NOTHING;
  }

  setProgress(id: string, progress: Progress): void {
    this.#ownProgress().set(id, progress);
  }

  deleteProgress(id: string): void {
    this.#ownProgress().delete(id);
  }

  /** The state's map is shared with the state before, so it is copied once. */
  #ownProgress(): Map<string, Progress> {
    if (this.state.progress !== this.#progress) {
      this.state.progress = this.#progress = new Map(this.state.progress);
    }
    return this.#progress as Map<string, Progress>;
  }

  resetTimer(): void {
    const { random, timeoutTicks } = drawTimeout(this.state);
    this.state.random = random;
    this.state.timeoutTicks = timeoutTicks;
    this.state.elapsedTicks = 0;
  }

  /** Follows `leader`, or nobody yet, in `term`, which is the current one or a later one. */
  becomeFollower(term: number, leader: string | null): void {
    const { state } = this;
    if (term > state.currentTerm) {
      state.currentTerm = term;
      state.votedFor = null;
    }
    this.become("follower", leader);
  }

  /** Forgets what the former role knew. */
  become(role: RaftState["role"], leader: string | null): void {
    const { state } = this;
    state.role = role;
    state.leader = leader;
    state.isContradicted = false;
    state.votes = NO_VOTES;
    state.progress = NO_PROGRESS;
    state.heartbeatElapsedTicks = 0;
    state.transfer = null;
    state.reads = NOTHING;
    state.round = 0;
    state.uncommittedBytes = 0;
    this.resetTimer();
  }

  finish(): Step {
    const { state } = this;
    this.#endDamage();
    const appliedIndex = Math.max(this.#before.commitIndex, this.snapshot?.index ?? 0);
    const ready: Ready = {
      snapshot: this.snapshot,
      hardState: this.#changedHardState(),
      entries: this.#entries,
      compacted: this.compacted,
      messages: this.#messages,
      committed: state.commitIndex > appliedIndex
        ? state.log.slice(appliedIndex + 1, state.commitIndex)
        : NOTHING,
      readStates: this.readStates,
    };
    return { state, ready, refusal: this.refusal };
  }

  /**
   * A damaged member is whole again once an entry of a later term than it lost anything in is
   * committed in its log. The leader of that term was elected by a quorum without this member,
   * which cast no vote, so one of that quorum truly held each entry that was or will yet be
   * committed with an acknowledgement that this member lost: its leader's log had them all.
   */
  #endDamage(): void {
    const { state } = this;
    if (state.damagedTerm === 0 || state.commitIndex === this.#before.commitIndex) return;
    if (state.log.termAt(state.commitIndex) > state.damagedTerm) state.damagedTerm = 0;
  }

  #changedHardState(): HardState | null {
    const before = this.#before;
    const { currentTerm, votedFor, damagedTerm } = this.state;
    const isSame = currentTerm === before.currentTerm && votedFor === before.votedFor &&
      damagedTerm === before.damagedTerm;
    return isSame ? null : { currentTerm, votedFor, damagedTerm };
  }
}

/** `entries` with `newer` in the place of all from its first index on. */
function replace(entries: readonly Entry[], newer: readonly Entry[]): readonly Entry[] {
  if (newer.length === 0) return entries;
  return [...entries.filter(({ index }) => index < newer[0].index), ...newer];
}

/**
 * What two steps in a row ask of the driver, as one: it may run the events that wait, make the
 * outcome durable once, and only then send and apply.
 */
export function joinReady(first: Ready, second: Ready): Ready {
  return {
    snapshot: second.snapshot ?? first.snapshot,
    hardState: second.hardState ?? first.hardState,
    entries: second.snapshot === null ? replace(first.entries, second.entries) : second.entries,
    compacted: second.snapshot === null ? second.compacted ?? first.compacted : second.compacted,
    messages: [...first.messages, ...second.messages],
    committed: second.snapshot === null
      ? [...first.committed, ...second.committed]
      : second.committed,
    readStates: [...first.readStates, ...second.readStates],
  };
}
