import type { Configuration, Membership } from "./configuration.ts";

/** One place of the log. */
export type Entry =
  /** What the driver proposed, opaque here. */
  | {
    readonly index: number;
    readonly term: number;
    readonly type: "command";
    readonly data: Uint8Array;
  }
  /** In force from when it is in the log. */
  | {
    readonly index: number;
    readonly term: number;
    readonly type: "configuration";
    readonly configuration: Configuration;
  }
  /** The first of a leader's term: with it, what earlier terms left is committed. */
  | { readonly index: number; readonly term: number; readonly type: "empty" };

/** What a member must not forget. Durable before a message that follows from it leaves. */
export interface HardState {
  readonly currentTerm: number;
  readonly votedFor: string | null;
  /**
   * 0, or the term through which this member may have promised what its storage then lost. Until
   * an entry of a later term is committed in its log, it neither votes nor campaigns.
   */
  readonly damagedTerm: number;
}

/** What stands for the log up to `index`: the state applied so far, which the driver keeps. */
export interface RaftSnapshot {
  readonly index: number;
  readonly term: number;
  /** As of `index`. */
  readonly configuration: Configuration;
}

/** The last place of a log. */
export interface LogEnd {
  readonly lastLogIndex: number;
  readonly lastLogTerm: number;
}

export interface VoteRequest extends LogEnd {
  readonly type: "requestVote" | "preVote";
  /** Of a PreVote: the term that its sender would campaign in. */
  readonly term: number;
  /** The leader asked for this election, so that nobody waits for it (dissertation §3.10). */
  readonly isTransfer: boolean;
}

export interface VoteResponse {
  readonly type: "requestVoteResponse" | "preVoteResponse";
  /** Of a granted PreVote: the term that was asked for. */
  readonly term: number;
  readonly voteGranted: boolean;
}

/** Without entries it is a heartbeat, and a probe of what the member holds. */
export interface AppendEntries {
  readonly type: "appendEntries";
  readonly term: number;
  readonly prevLogIndex: number;
  readonly prevLogTerm: number;
  readonly entries: readonly Entry[];
  readonly leaderCommit: number;
  /** Comes back in the response: reads wait for a quorum of answers to a round. */
  readonly round: number;
}

export interface AppendEntriesResponse {
  readonly type: "appendEntriesResponse";
  readonly term: number;
  readonly success: boolean;
  /** With success: the log is the leader's up to here. */
  readonly matchIndex: number;
  /** Without: the `prevLogIndex` that did not match, and the last place that may. */
  readonly rejectedIndex: number;
  readonly hintIndex: number;
  readonly hintTerm: number;
  readonly round: number;
}

/**
 * The driver adds the state, in one piece or in many, and may put a newer Raft snapshot in this
 * one's place (`log.snapshotAt`). The receiver's driver hands the message on once it has it all, and
 * the answer is an AppendEntriesResponse.
 */
export interface InstallSnapshot {
  readonly type: "installSnapshot";
  readonly term: number;
  readonly snapshot: RaftSnapshot;
}

/** Campaign at once (dissertation §3.10). */
export interface TimeoutNow {
  readonly type: "timeoutNow";
  readonly term: number;
}

/** A witness without a leader says what it holds; see `fetch.ts` for this and the next three. */
export interface OfferLog extends LogEnd {
  readonly type: "offerLog";
  readonly term: number;
}

/** Asks for what follows a place of the sender's log. */
export interface FetchEntries {
  readonly type: "fetchEntries";
  readonly term: number;
  readonly index: number;
  readonly indexTerm: number;
}

export interface FetchedEntries extends LogEnd {
  readonly type: "fetchedEntries";
  readonly term: number;
  readonly prevLogIndex: number;
  readonly prevLogTerm: number;
  readonly entries: readonly Entry[];
}

/** The driver adds the state as it does to InstallSnapshot. */
export interface FetchedSnapshot extends LogEnd {
  readonly type: "fetchedSnapshot";
  readonly term: number;
  readonly snapshot: RaftSnapshot;
}

export type Body =
  | VoteRequest
  | VoteResponse
  | AppendEntries
  | AppendEntriesResponse
  | InstallSnapshot
  | TimeoutNow
  | OfferLog
  | FetchEntries
  | FetchedEntries
  | FetchedSnapshot;

/** `from` is who the channel says the sender is. */
export type Message = Body & { readonly from: string; readonly to: string };

/** What happens to a member. */
export type RaftEvent =
  /** Some time passed: `TICK_MS` with the default timing. */
  | { readonly type: "tick" }
  | { readonly type: "message"; readonly message: Message }
  /** Commands for the log, in this order and together. The driver of a follower forwards them. */
  | { readonly type: "propose"; readonly commands: readonly Uint8Array[] }
  | { readonly type: "changeMembership"; readonly target: Membership }
  | { readonly type: "transferLeadership"; readonly to: string }
  /** A read that is to see all that was committed before it; the answer is in `readStates`. */
  | { readonly type: "read"; readonly id: number }
  /** The applied state holds everything up to `index`, durably: the log may begin after it. */
  | { readonly type: "compact"; readonly index: number }
  /** A member can't be reached, or a Raft snapshot did not get through to it. */
  | { readonly type: "unreachable"; readonly member: string }
  /** This member is about to stop, or its disk is full: let another lead. */
  | { readonly type: "resign" }
  /** Storage lost something that this member had acknowledged. */
  | { readonly type: "damaged" };

/** Why an event had no effect; a driver counts these or answers with them. */
export type Refusal =
  | "implausible"
  | "not leader"
  | "transfer under way"
  | "too many uncommitted entries"
  | "too large"
  | "too many reads"
  | "no entry of this term is committed yet"
  | "a membership change is under way"
  | "not allowed";

export interface ReadState {
  readonly id: number;
  /** The read may be answered once this is applied. */
  readonly index: number;
}

/**
 * What the driver does after an event, in this order: make durable `snapshot`, `hardState`, `entries`
 * and `compacted`, each on top of the one before and all of them together, send `messages`, apply `committed`. Where that is impossible it
 * keeps the former state, and it is as if the event had been lost.
 */
export interface Ready {
  /** Replaces log and applied state by what came with the message. */
  readonly snapshot: RaftSnapshot | null;
  /** Null: as before. */
  readonly hardState: HardState | null;
  /** Replace whatever is stored at their indexes and after. */
  readonly entries: readonly Entry[];
  /** Stands for the log up to its index from now on. */
  readonly compacted: RaftSnapshot | null;
  readonly messages: readonly Message[];
  readonly committed: readonly Entry[];
  readonly readStates: readonly ReadState[];
}
