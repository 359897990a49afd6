import type { Actor, Change, LiveState, Note, Session, Settled } from "../model/mod.ts";
import type { AuditPage, AuditQuery } from "./audit_log.ts";
import type { LocalName } from "./keys.ts";

/** What subscribers are told. */
export interface Shown {
  /** `null`: the whole state was replaced by another. */
  readonly change: Change | null;
  /** After it. */
  readonly state: LiveState;
}

/**
 * The way of every change: `propose` resolves once the change is durable and applied on this
 * member, or was refused. One node applies at once; in a cluster the leader does, and this member
 * after it.
 */
export interface Replicator {
  /**
   * `id` is the proposal's own, drawn at random: a change that was applied is not applied again, so
   * that it may be proposed once more by who has heard nothing of it.
   *
   * @throws {SvcError} `unavailable`, when the change can't be made now; it may be tried again.
   */
  propose(change: Change, actor: Actor, id?: string): Promise<Settled>;
  /** The state as of the last applied entry, the number of which is its `appliedIndex`. */
  readonly state: LiveState;
  /** Called after each change that was made, and after the whole state was replaced. */
  subscribe(listener: (shown: Shown) => void): () => void;
}

/** What this node alone keeps beside the replicated state; it asks no other member. */
export interface LocalStore {
  /**
   * Has the audit log tell what this node does by itself; resolves once that is durable.
   *
   * @throws {SvcError} `unavailable`, if it can't be stored.
   */
  note(note: Note, actor: Actor): Promise<void>;
  putSession(session: Session): Promise<void>;
  session(sha256: string): Promise<Session | null>;
  deleteSession(sha256: string): Promise<void>;
  /** Those of a user that are not over, the oldest first. */
  sessionsOf(userId: string): Promise<readonly Session[]>;
  audit(query: AuditQuery): Promise<AuditPage>;
  /** What this node alone keeps under a name; `null`: nothing. */
  localValue(name: LocalName): Promise<unknown>;
  /** @throws {SvcError} `unavailable`, if it can't be stored. */
  putLocalValue(name: LocalName, value: unknown): Promise<void>;
}
