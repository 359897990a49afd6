/** Time for the tests of supervision: it passes when it is told to. */
import assert from "node:assert/strict";
import type { KeepTime } from "./kept_isolate.ts";

export class FakeTime implements KeepTime {
  #nowMs = 1_000;
  readonly #timers = new Map<number, { readonly atMs: number; readonly work: () => void }>();
  #lastId = 0;

  readonly nowMs = (): number => this.#nowMs;

  readonly after = (ms: number, work: () => void): () => void => {
    const id = ++this.#lastId;
    this.#timers.set(id, { atMs: this.#nowMs + ms, work });
    return () => void this.#timers.delete(id);
  };

  /** Timers that wait. */
  get waiting(): number {
    return this.#timers.size;
  }

  /** Lets time pass until the next timer, and calls that one; the milliseconds that passed. */
  next(): number {
    const [first] = [...this.#timers].sort(([, a], [, b]) => a.atMs - b.atMs);
    assert.ok(first !== undefined, "a timer waits");
    const [id, { atMs, work }] = first;
    const passedMs = Math.max(0, atMs - this.#nowMs);
    this.#nowMs += passedMs;
    this.#timers.delete(id);
    work();
    return passedMs;
  }

  /** Time passes, and nobody is there to notice. */
  sleep(ms: number): void {
    this.#nowMs += ms;
  }
}
