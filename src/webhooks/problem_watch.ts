/** How long a problem has to last, or to be gone, before that is told: what flickers is no news. */
const STEADY_MS = 10_000;
/** How long a process that has just begun takes to see what its former one told. */
const BEGIN_MS = 60_000;
/** Problems that are kept track of; of more at once the first are. */
const PROBLEMS_MAX = 64;
/** Longest message that is kept, in UTF-16 units. */
const MESSAGE_LENGTH_MAX = 512;

export interface WatchedProblem {
  /** The same for the same problem, however its message changes. */
  readonly key: string;
  readonly code: string;
  readonly message: string;
  readonly resource: string | null;
}

/** A problem that was told. */
export type ToldProblem = WatchedProblem & { readonly sinceMs: number };

interface Tracked {
  readonly problem: WatchedProblem;
  /** When it was first seen; by a clock that never jumps as well. */
  readonly sinceMs: number;
  readonly seenMs: number;
  isTold: boolean;
  /** When it may be told that it is gone; `null`: it is there. */
  goneAtMs: number | null;
}

export interface ProblemWatchOptions {
  readonly nowMs: () => number;
  /** A clock that never jumps. */
  readonly steadyMs: () => number;
  /** Those that a former process told. */
  readonly told: unknown;
  readonly began: (problem: ToldProblem) => void;
  readonly ended: (problem: ToldProblem) => void;
  /** What was told by now changed: to be kept for a next process. */
  readonly keep: (told: readonly ToldProblem[]) => void;
}

/** Tells of each problem when it began and when it ended, once. */
export class ProblemWatch {
  readonly #options: ProblemWatchOptions;
  readonly #tracked = new Map<string, Tracked>();

  constructor(options: ProblemWatchOptions) {
    this.#options = options;
    const seenMs = options.steadyMs();
    for (const { sinceMs, ...problem } of readTold(options.told)) {
      const goneAtMs = seenMs + BEGIN_MS;
      this.#tracked.set(problem.key, { problem, sinceMs, seenMs, isTold: true, goneAtMs });
    }
  }

  /** Takes what is wrong at the moment. */
  look(problems: readonly WatchedProblem[]): void {
    const { nowMs: wallMs, steadyMs, began, ended, keep } = this.#options;
    const nowMs = steadyMs();
    const there = new Set<string>();
    let isOther = false;
    for (const { key, code, message, resource } of problems) {
      there.add(key);
      const tracked = this.#tracked.get(key);
      if (tracked === undefined) {
        if (this.#tracked.size >= PROBLEMS_MAX) continue;
        const problem = { key, code, message: message.slice(0, MESSAGE_LENGTH_MAX), resource };
        const since = { sinceMs: wallMs(), seenMs: nowMs };
        this.#tracked.set(key, { problem, ...since, isTold: false, goneAtMs: null });
        continue;
      }
      tracked.goneAtMs = null;
      if (tracked.isTold || nowMs - tracked.seenMs < STEADY_MS) continue;
      tracked.isTold = isOther = true;
      began({ ...tracked.problem, sinceMs: tracked.sinceMs });
    }
    for (const [key, tracked] of this.#tracked) {
      if (there.has(key)) continue;
      tracked.goneAtMs ??= nowMs + STEADY_MS;
      if (tracked.isTold && nowMs < tracked.goneAtMs) continue;
      this.#tracked.delete(key);
      if (!tracked.isTold) continue;
      isOther = true;
      ended({ ...tracked.problem, sinceMs: tracked.sinceMs });
    }
    if (isOther) keep(this.#told());
  }

  #told(): ToldProblem[] {
    return [...this.#tracked.values()].filter(({ isTold }) => isTold)
      .map(({ problem, sinceMs }) => ({ ...problem, sinceMs }));
  }
}

/** What is no such list is none: then it is told again. */
function readTold(json: unknown): ToldProblem[] {
  if (!Array.isArray(json)) return [];
  return json.slice(0, PROBLEMS_MAX).filter((one: Partial<ToldProblem> | null) =>
    typeof one?.key === "string" && typeof one.code === "string" &&
    typeof one.message === "string" && Number.isSafeInteger(one.sinceMs)
  );
}
