import type { Actor, Change, Outcome, State } from "../model/mod.ts";
import type { AuditPage, AuditQuery } from "./audit_log.ts";

/** Wall-clock time: it is stored and compared after a restart. */
export interface Clock {
  nowMs(): number;
}

/**
 * The way of every change: `propose` resolves once the change is durable and applied on this
 * member, or was refused. One node applies at once; in a cluster the leader does, and this member
 * after it.
 */
export interface Replicator {
  /** @throws {SvcError} `unavailable`, when the change can't be made now; it may be tried again. */
  propose(change: Change, actor: Actor): Promise<Outcome>;
  /** The state as of the last applied change. */
  readonly state: State;
  /** Called after each applied change, with what it was and the state after it. */
  subscribe(listener: (change: Change, state: State) => void): () => void;
}

/** A session of a signed-in user; kept by this node alone. */
export interface Session {
  /** SHA-256 of the cookie's value, in hexadecimal: the value itself is never stored. */
  readonly sha256: string;
  readonly userId: string;
  /** The user's `session_epoch` when it was made; it ends when that has grown. */
  readonly epoch: number;
  readonly expiresAtMs: number;
}

/** What this node alone keeps beside the replicated state. */
export interface LocalStore {
  putSession(session: Session): Promise<void>;
  session(sha256: string): Promise<Session | null>;
  deleteSession(sha256: string): Promise<void>;
  audit(query: AuditQuery): Promise<AuditPage>;
}
