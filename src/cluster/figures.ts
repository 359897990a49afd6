import type { RaftState } from "../raft/mod.ts";
import { type MemberState, nodeOf } from "./frames.ts";

/** What a member counts, for the metrics. */
export interface MemberFigures {
  readonly term: number;
  readonly state: MemberState;
  readonly commitIndex: number;
  readonly appliedIndex: number;
  /** On the leader: entries that each member lacks. */
  readonly lags: readonly { readonly node: string; readonly entries: number }[];
  /** How changes through this member ended. */
  readonly proposals: {
    readonly done: number;
    readonly refused: number;
    readonly unavailable: number;
  };
  /** That this member stood in. */
  readonly elections: number;
  readonly leaderChanges: number;
  /** Frames that were none of ours, of another cluster, or found no room. */
  readonly droppedFrames: number;
  /** Whole configurations that members took over from this one. */
  readonly snapshotsSent: number;
}

export function lagsOf({ role, progress, log }: RaftState): MemberFigures["lags"] {
  if (role !== "leader") return [];
  return Array.from(progress, ([id, { matchIndex }]) => ({
    node: nodeOf(id),
    entries: log.lastIndex - matchIndex,
  }));
}
