/** What is exported, each to an address of its own below the endpoint. */
export type Signal = "metrics" | "logs" | "traces";

/** Told once each: however much fails in between. */
export interface OutageEvents {
  readonly begins: (signal: Signal, reason: string) => void;
  /** `failures` counts the requests that failed since it began. */
  readonly ends: (failures: number) => void;
}

/** Counts failed exports; an outage lasts while any signal's last export failed. */
export class Outage {
  readonly #events: OutageEvents;
  readonly #failing = new Set<Signal>();
  /** Requests that failed since the start. */
  failures = 0;
  #failuresBefore = 0;

  constructor(events: OutageEvents) {
    this.#events = events;
  }

  failed(signal: Signal, reason: string): void {
    if (this.#failing.size === 0) {
      this.#failuresBefore = this.failures;
      this.#events.begins(signal, reason);
    }
    this.failures++;
    this.#failing.add(signal);
  }

  /** Returns the signals whose last export failed, for one that went well tells of them nothing. */
  succeeded(signal: Signal): readonly Signal[] {
    if (this.#failing.delete(signal) && this.#failing.size === 0) {
      this.#events.ends(this.failures - this.#failuresBefore);
    }
    return [...this.#failing];
  }
}
