import type { Clock } from "../clock/mod.ts";
import { log } from "../log.ts";
import type { Session } from "../model/mod.ts";
import { SESSION_PREFIX, sessionKey } from "./keys.ts";
import { encodeValue } from "./values.ts";

/** Most sessions of this node; one more ends the one that would end first. */
export const SESSIONS_MAX = 10_000;
/** How long an ended session may stay on disk while others are made. */
const SWEEP_INTERVAL_MS = 60_000;
/** Most sessions that one sweep deletes, so that it fits a transaction. */
const SWEEP_BATCH = 500;

/** The sessions of this node: in memory for each request, on disk for a restart. */
export class Sessions {
  #kv: Deno.Kv;
  readonly #clock: Clock;
  readonly #sessions: Map<string, Session>;
  #sweptAtMs: number;

  constructor(kv: Deno.Kv, clock: Clock, sessions: readonly Session[]) {
    this.#kv = kv;
    this.#clock = clock;
    this.#sessions = new Map(sessions.map((session) => [session.sha256, session]));
    this.#sweptAtMs = clock.nowMs() - SWEEP_INTERVAL_MS;
  }

  get(sha256: string): Session | null {
    const session = this.#sessions.get(sha256);
    return session === undefined || this.#isOver(session) ? null : session;
  }

  /** Those of a user, the oldest first. */
  of(userId: string): Session[] {
    return [...this.#sessions.values()].filter((one) =>
      one.userId === userId && !this.#isOver(one)
    );
  }

  /** Goes on in another file, which gets the sessions of this one. */
  async moveTo(kv: Deno.Kv): Promise<void> {
    for (const session of this.#sessions.values()) {
      await kv.set(sessionKey(session.sha256), encodeValue(session));
    }
    this.#kv = kv;
  }

  /** Begins a session; where the disk can't be written, it ends with the process. */
  async put(session: Session): Promise<void> {
    const ended = this.#toEnd();
    const operation = this.#kv.atomic();
    for (const sha256 of ended) {
      operation.delete(sessionKey(sha256));
      this.#sessions.delete(sha256);
    }
    this.#sessions.set(session.sha256, session);
    try {
      await operation.set(sessionKey(session.sha256), encodeValue(session)).commit();
    } catch (error) {
      // Whoever is to mend that signs in to see it.
      log.warn("a session is kept in memory alone", { error });
    }
  }

  async delete(sha256: string): Promise<void> {
    // First in memory: whoever signs out is out, even if the disk fails.
    this.#sessions.delete(sha256);
    await this.#kv.delete([...SESSION_PREFIX, sha256]);
  }

  #isOver({ expiresAtMs }: Session): boolean {
    return this.#clock.nowMs() >= expiresAtMs;
  }

  #toEnd(): string[] {
    const nowMs = this.#clock.nowMs();
    const ended: string[] = [];
    if (Math.abs(nowMs - this.#sweptAtMs) >= SWEEP_INTERVAL_MS) {
      this.#sweptAtMs = nowMs;
      for (const session of this.#sessions.values()) {
        if (this.#isOver(session)) ended.push(session.sha256);
        if (ended.length === SWEEP_BATCH) break;
      }
    }
    if (this.#sessions.size - ended.length < SESSIONS_MAX) return ended;
    const left = [...this.#sessions.values()].filter(({ sha256 }) => !ended.includes(sha256));
    const first = left.reduce((a, b) => a.expiresAtMs <= b.expiresAtMs ? a : b);
    return [...ended, first.sha256];
  }
}
