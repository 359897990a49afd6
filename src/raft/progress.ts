import { INFLIGHT_BYTES_MAX, INFLIGHT_MESSAGES_MAX } from "./limits.ts";

/** What a leader knows of another member's log; never changed, each step makes another. */
export interface Progress {
  /**
   * - `probe`: where the logs agree is unknown; heartbeats ask for it.
   * - `replicate`: entries are sent ahead of the answers.
   * - `snapshot`: a Raft snapshot is under way, and nothing else is sent.
   */
  readonly state: "probe" | "replicate" | "snapshot";
  /** The member's log is the leader's up to here. */
  readonly matchIndex: number;
  /** What is sent next. */
  readonly nextIndex: number;
  /** Messages with entries that are not answered yet, oldest first. */
  readonly inflight: readonly { readonly lastIndex: number; readonly bytes: number }[];
  readonly inflightBytes: number;
  /** In the state `snapshot`. */
  readonly snapshotTicks: number;
  /** Since it was heard of; counted to an election timeout. */
  readonly silentTicks: number;
  /** The newest round that was answered. */
  readonly round: number;
}

/** Of a member that nothing is known of. */
export function unknownProgress(nextIndex: number): Progress {
  return {
    state: "probe",
    matchIndex: 0,
    nextIndex,
    inflight: [],
    inflightBytes: 0,
    snapshotTicks: 0,
    silentTicks: 0,
    round: 0,
  };
}

export function probing(progress: Progress, nextIndex: number): Progress {
  return { ...progress, state: "probe", nextIndex, inflight: [], inflightBytes: 0 };
}

export function replicating(progress: Progress): Progress {
  const nextIndex = progress.matchIndex + 1;
  return { ...progress, state: "replicate", nextIndex, inflight: [], inflightBytes: 0 };
}

/** Whether one more message with entries may leave. */
export function hasRoom({ inflight, inflightBytes }: Progress): boolean {
  return inflight.length < INFLIGHT_MESSAGES_MAX && inflightBytes < INFLIGHT_BYTES_MAX;
}

export function sent(progress: Progress, lastIndex: number, bytes: number): Progress {
  return {
    ...progress,
    nextIndex: lastIndex + 1,
    inflight: [...progress.inflight, { lastIndex, bytes }],
    inflightBytes: progress.inflightBytes + bytes,
  };
}

/** The log agrees up to `matchIndex`, so that what was sent of it is answered. */
export function acknowledged(progress: Progress, matchIndex: number): Progress {
  const { inflight } = progress;
  let inflightBytes = progress.inflightBytes;
  let answered = 0;
  while (answered < inflight.length && inflight[answered].lastIndex <= matchIndex) {
    inflightBytes -= inflight[answered++].bytes;
  }
  return {
    ...progress,
    matchIndex,
    nextIndex: Math.max(progress.nextIndex, matchIndex + 1),
    inflight: answered === 0 ? inflight : inflight.slice(answered),
    inflightBytes,
  };
}
