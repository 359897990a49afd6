import type { LogLine } from "../log.ts";

/** Log lines of an isolate that are handed on between two reports; more stand in its own log only. */
export const LINES_MAX = 64;

/** What an isolate says to the main one, which hands it on. */
export interface Logged {
  readonly type: "logged";
  readonly line: LogLine;
}

/** Hands log lines on, a bounded number until `reset`. */
export class LogLines {
  readonly #tell: (line: LogLine) => void;
  #told = 0;

  constructor(tell: (line: LogLine) => void) {
    this.#tell = tell;
  }

  readonly take = (line: LogLine): void => {
    if (this.#told >= LINES_MAX) return;
    this.#told++;
    this.#tell(line);
  };

  reset(): void {
    this.#told = 0;
  }
}
