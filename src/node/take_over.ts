import { messageOf, SvcError } from "../errors.ts";
import { openHandOver } from "../native/system.ts";
import { GONE, type Legacy, Line, Memory } from "../process/mod.ts";
import { type Former, readFormer } from "./former.ts";
import type { FromNext, ToNext, UpgradeNotes } from "./upgrade.ts";

/** Longest wait for the former program to leave what it has; it gives up before. */
const GO_MS_MAX = 120_000;
/** The same for its end; then what it may still write to is taken all the same. */
const END_MS_MAX = 30_000;

/** The next program's side of an upgrade. */
export class TakeOver {
  readonly #line: Line;
  readonly #memory: Memory;

  private constructor(line: Line, memory: Memory) {
    this.#line = line;
    this.#memory = memory;
  }

  /** `null`: nobody runs yet. */
  static of(legacy: Legacy | null): TakeOver | null {
    const library = openHandOver();
    if (legacy === null || library === null || upgradeNotes(legacy) === null) return null;
    const [line, memory] = legacy.descriptors.slice(-2);
    return new TakeOver(new Line(library, line), new Memory(library, memory));
  }

  /**
   * Says that everything is at hand but what the former program has, and waits for that.
   *
   * @throws {SvcError} `unavailable`, when it keeps that after all.
   */
  async begin(): Promise<Former> {
    this.#tell({ type: "prepared", pid: Deno.pid });
    const heard = await this.#line.hear(GO_MS_MAX) as ToNext;
    if (heard?.type !== "go") {
      throw new SvcError("unavailable", "the former program has given the upgrade up");
    }
    const former = readFormer(this.#memory);
    this.#memory.close();
    return former;
  }

  /** Says that queries are answered. Resolves once the former program has ended. */
  async answers(): Promise<void> {
    this.#tell({ type: "ready" });
    const endsAtMs = performance.now() + END_MS_MAX;
    for (;;) {
      const leftMs = endsAtMs - performance.now();
      if (leftMs <= 0 || await this.#line.hear(leftMs) === GONE) break;
    }
    this.#line.close();
  }

  /** Says why this program can't go on. */
  fail(error: unknown): void {
    this.#tell({ type: "failed", reason: messageOf(error) });
  }

  #tell(message: FromNext): void {
    this.#line.tell(message);
  }
}

/** What a former program left beside its sockets; `null`: this is a start like any. */
export function upgradeNotes(legacy: Legacy): UpgradeNotes | null {
  const notes = legacy.notes as Partial<UpgradeNotes> | null;
  return notes?.step === undefined ? null : notes as UpgradeNotes;
}
