import type { ResolveFailure } from "../failure.ts";
import type { Flight } from "./flight.ts";
import type { Task } from "./source.ts";

/** How long a refusal is held back, so that whoever asks again on each answer comes no faster by it. */
export const HOLD_MS = 500;
/** Flights that are held; what is refused beyond them is told so at once. */
export const HELD_MAX = 256;

/** A flight that nothing is done about but to fail in a while. */
export class Held implements Task {
  constructor(
    readonly flight: Flight,
    readonly failure: ResolveFailure,
    private readonly left: () => void,
  ) {}

  tick(nowMs: number): void {
    if (nowMs - this.flight.startedAtMs >= HOLD_MS) this.flight.fail(this.failure);
  }

  /** Called once: its flight is over then. */
  end(): void {
    this.left();
  }

  echo(): null {
    return null;
  }

  onChild(): void {}
}
