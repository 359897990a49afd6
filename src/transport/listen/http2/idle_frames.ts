/**
 * Frames that ask nothing (PING, SETTINGS, RST_STREAM, empty DATA, …) a second. Each answer allows
 * a few more, up to a bound.
 */
const IDLE_FRAMES_MAX = 512;
const IDLE_FRAMES_PER_ANSWER = 4;
const IDLE_FRAMES_SAVED_MAX = 4_096;

/** How many frames that ask nothing a client may still send. */
export class IdleFrames {
  #left = IDLE_FRAMES_MAX;

  /** One came; returns false when it was one too many. */
  take(): boolean {
    return --this.#left >= 0;
  }

  /** A request was answered. */
  earn(): void {
    this.#left = Math.min(this.#left + IDLE_FRAMES_PER_ANSWER, IDLE_FRAMES_SAVED_MAX);
  }

  /** A second has passed. */
  renew(): void {
    this.#left = Math.max(this.#left, IDLE_FRAMES_MAX);
  }
}
