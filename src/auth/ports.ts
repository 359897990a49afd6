import type { Actor, Change, Note, Outcome, StoredUser } from "../model/mod.ts";
import type { Lockout } from "./lockout.ts";
import type { SignInLog } from "./sign_in_log.ts";

/** Wall-clock time: sessions and codes outlive the process. */
export interface Clock {
  nowMs(): number;
}

/** Where users are kept and changed; the store's `Replicator` is one. */
export interface UserStore {
  propose(change: Change, actor: Actor): Promise<Outcome>;
  readonly state: { readonly users: ReadonlyMap<string, StoredUser> };
}

/** Where this node's own audit log is; the store's `LocalStore` is one. */
export interface Notebook {
  note(note: Note, actor: Actor): Promise<void>;
}

/** A session of a signed-in user, as it is kept: the cookie's value itself is not. */
export interface Session {
  /** SHA-256 of the cookie's value, in hexadecimal. */
  readonly sha256: string;
  readonly userId: string;
  /** The user's `session_epoch` when it was made. */
  readonly epoch: number;
  readonly expiresAtMs: number;
}

/** Where this node keeps its sessions; the store's `LocalStore` is one. */
export interface SessionStore {
  putSession(session: Session): Promise<void>;
  session(sha256: string): Promise<Session | null>;
  deleteSession(sha256: string): Promise<void>;
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
