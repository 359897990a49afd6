import type { Clock } from "../clock/mod.ts";
import type { Actor, Change, Note, Session, Settled, State } from "../model/mod.ts";
import type { Lockout } from "./lockout.ts";
import type { SignInLog } from "./sign_in_log.ts";

/** Where users are kept and changed; the store's `Replicator` is one. */
export interface UserStore {
  propose(change: Change, actor: Actor): Promise<Settled>;
  readonly state: Pick<State, "users" | "credentials">;
}

/** Where this node's own audit log is; the store's `LocalStore` is one. */
export interface Notebook {
  note(note: Note, actor: Actor): Promise<void>;
}

/** Where this node keeps its sessions; the store's `LocalStore` is one. */
export interface SessionStore {
  putSession(session: Session): Promise<void>;
  session(sha256: string): Promise<Session | null>;
  deleteSession(sha256: string): Promise<void>;
  /** Those of a user that are kept, the oldest first. */
  sessionsOf(userId: string): Promise<readonly Session[]>;
}

/** What the operations on users work with. */
export interface Auth {
  readonly users: UserStore;
  readonly sessions: SessionStore;
  readonly lockout: Lockout;
  readonly signInLog: SignInLog;
  readonly clock: Clock;
  /** What one-time codes go by: the system's own clock, believed or not; `clock`, if left out. */
  readonly otpClock?: Clock;
}
