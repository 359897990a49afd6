import type { Clock } from "../clock/mod.ts";
import {
  type Actor,
  apply,
  type Change,
  emptyState,
  type LiveState,
  type NewAuditEntry,
  type Note,
  noteEntry,
  type Session,
  type Settled,
} from "../model/mod.ts";
import { Lockout } from "./lockout.ts";
import { SignInLog } from "./sign_in_log.ts";
import type { Auth, Notebook, SessionStore, UserStore } from "./ports.ts";

/** What a test of passwords may: the add-on is looked for on disk, and asks four variables where. */
export const addOn: Pick<Deno.TestDefinition, "permissions"> = {
  permissions: {
    ffi: true,
    read: true,
    env: [
      "NAPI_RS_NATIVE_LIBRARY_PATH",
      "NAPI_RS_FORCE_WASI",
      "NAPI_RS_WASI_FLAVOR",
      "NAPI_RS_ENFORCE_VERSION_CHECK",
    ],
  },
};

/** A clock that stands still until it is told. */
export class FakeClock implements Clock {
  constructor(public ms = Date.parse("2026-01-02T03:04:05Z")) {}
  nowMs(): number {
    return this.ms;
  }
}

/** Users in memory, changed as the store changes them. */
export class FakeUsers implements UserStore, Notebook {
  state: LiveState = emptyState();
  readonly audit: NewAuditEntry[] = [];
  readonly results: Settled[] = [];
  /** Runs before each change: another change may come first. */
  before: () => Promise<void> = () => Promise.resolve();

  constructor(readonly clock: Clock) {}

  async propose(change: Change, actor: Actor): Promise<Settled> {
    await this.before();
    const at = new Date(this.clock.nowMs()).toISOString();
    const applied = apply(this.state, { change, actor, at, node: "node1" });
    this.results.push(applied.settled);
    if (applied.kind === "made") {
      this.state = applied.state;
      this.audit.push(applied.audit);
    }
    return applied.settled;
  }

  async note(note: Note, actor: Actor): Promise<void> {
    const at = new Date(this.clock.nowMs()).toISOString();
    this.audit.push(noteEntry(note, { actor, at, node: "node1" }));
    await undefined;
  }
}

/** Sessions in memory. */
export class FakeSessions implements SessionStore {
  readonly kept = new Map<string, Session>();
  putSession(session: Session): Promise<void> {
    this.kept.set(session.sha256, session);
    return Promise.resolve();
  }
  sessionsOf(userId: string): Promise<readonly Session[]> {
    return Promise.resolve([...this.kept.values()].filter((one) => one.userId === userId));
  }
  session(sha256: string): Promise<Session | null> {
    return Promise.resolve(this.kept.get(sha256) ?? null);
  }
  deleteSession(sha256: string): Promise<void> {
    this.kept.delete(sha256);
    return Promise.resolve();
  }
}

/** Everything that operations on users work with, in memory. */
export function fakeAuth() {
  const clock = new FakeClock();
  const users = new FakeUsers(clock);
  const sessions = new FakeSessions();
  /** What is to be done later. */
  const later: (() => void)[] = [];
  const signInLog = new SignInLog(users, clock, (_, work) => void later.push(work));
  return { clock, users, sessions, lockout: new Lockout(clock), signInLog, later } satisfies
    & Auth
    & { later: unknown };
}
