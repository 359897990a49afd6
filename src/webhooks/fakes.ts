/** Stands for time and network in tests of webhooks. */
import { newWebhookChange, stateAfter } from "../model/fakes.ts";
import type { Change, Credential, WebhookEvent } from "../model/mod.ts";

/** Time that passes when it is told to. */
export class FakeTime {
  ms = Date.parse("2026-01-02T03:04:05Z");
  readonly #timers = new Set<{ readonly atMs: number; readonly work: () => void }>();

  nowMs = () => this.ms;
  steadyMs = () => this.ms;
  later = (ms: number, work: () => void) => {
    const timer = { atMs: this.ms + ms, work };
    this.#timers.add(timer);
    return () => void this.#timers.delete(timer);
  };

  /** Timers that run. */
  get timers(): number {
    return this.#timers.size;
  }

  /** Lets time pass, and what is due by then happen in its order. */
  async pass(ms: number): Promise<void> {
    const endMs = this.ms + ms;
    for (;;) {
      await settled();
      const due = [...this.#timers].filter(({ atMs }) => atMs <= endMs)
        .sort((a, b) => a.atMs - b.atMs)[0];
      if (due === undefined) break;
      this.#timers.delete(due);
      this.ms = Math.max(this.ms, due.atMs);
      due.work();
    }
    this.ms = endMs;
  }
}

/** Whatever waits for nothing but its turn has had it. */
export async function settled(): Promise<void> {
  for (let i = 0; i < 500; i++) await undefined;
}

/** Webhooks as they are stored, `names` in order, each for these events. */
export function storedWebhooks(
  events: readonly WebhookEvent[],
  ...names: readonly string[]
): ReadonlyMap<string, Credential<"webhooks">> {
  const changes = names.map((name, i): Change => {
    const { spec, ...change } = newWebhookChange(i + 1, name);
    return { ...change, spec: { ...spec, events: [...events] } };
  });
  return stateAfter(...changes).credentials.webhooks;
}
