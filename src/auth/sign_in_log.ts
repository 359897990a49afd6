import type { Clock } from "../clock/mod.ts";
import { log } from "../log.ts";
import type { Actor, AuditAction, StoredUser } from "../model/mod.ts";
import type { Notebook } from "./ports.ts";

/** Failed sign-ins that have an audit entry each, where there were none for long. */
export const FAILURES_TOLD = 20;
/**
 * When one more may have an entry of its own: at most 288 a day, so that a flood neither pushes
 * other entries out of the audit log nor wears the disk.
 */
export const FAILURE_REFILL_MS = 5 * 60_000;
/** How long further ones are counted before one entry tells how many they were. */
export const FAILURE_COUNT_MS = 60 * 60_000;

/** Calls `work` in so many milliseconds; the process need not wait for it. */
export type Later = (ms: number, work: () => void) => void;

const laterUnlessOver: Later = (ms, work) => Deno.unrefTimer(setTimeout(work, ms));

/**
 * Has the audit log tell who signs in and out, and who can't. That never fails what it tells of: a
 * sign-in goes on where no entry can be written.
 */
export class SignInLog {
  readonly #notebook: Notebook;
  readonly #clock: Clock;
  readonly #later: Later;
  /** Failures that may have an entry of their own, and as of when. */
  #told = FAILURES_TOLD;
  #refilledAtMs: number;
  /** Failures without one, since the first of them. */
  #untold: { count: number; readonly since: string } | null = null;

  constructor(notebook: Notebook, clock: Clock, later: Later = laterUnlessOver) {
    this.#notebook = notebook;
    this.#clock = clock;
    this.#later = later;
    this.#refilledAtMs = clock.nowMs();
  }

  async signedIn(user: StoredUser, actor: Actor): Promise<void> {
    await this.#note("sign_in", user.id, null, actor);
  }

  async signedOut(user: StoredUser, actor: Actor): Promise<void> {
    await this.#note("sign_out", user.id, null, actor);
  }

  /** `user` is `null` where the name is nobody's: it may be a password, and is not told. */
  async failed(user: StoredUser | null, address: string | null): Promise<void> {
    this.#refill();
    if (this.#told >= 1) {
      this.#told--;
      const actor: Actor = { kind: "unauthenticated", name: null, address };
      const after = user === null ? null : { name: user.name };
      await this.#note("sign_in_failed", user?.id ?? null, after, actor);
      return;
    }
    if (this.#untold !== null) {
      this.#untold.count++;
      return;
    }
    this.#untold = { count: 1, since: new Date(this.#clock.nowMs()).toISOString() };
    this.#later(FAILURE_COUNT_MS, () => void this.#tellCount());
  }

  async #tellCount(): Promise<void> {
    const counted = this.#untold;
    this.#untold = null;
    await this.#note("sign_in_failed", null, counted, {
      kind: "system",
      name: null,
      address: null,
    });
  }

  #refill(): void {
    const nowMs = this.#clock.nowMs();
    // A clock that was set back takes nothing away.
    const passedMs = Math.max(0, nowMs - this.#refilledAtMs);
    this.#told = Math.min(FAILURES_TOLD, this.#told + passedMs / FAILURE_REFILL_MS);
    this.#refilledAtMs = nowMs;
  }

  async #note(action: AuditAction, id: string | null, after: unknown, actor: Actor): Promise<void> {
    try {
      await this.#notebook.note({ action, resource: { type: "user", id }, after }, actor);
    } catch (error) {
      log.warn("the audit log does not tell of a sign-in", { action, error });
    }
  }
}
