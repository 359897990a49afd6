/** How long a member has to be away, or back, before that is told. */
const STEADY_MS = 15_000;
/** How long it is left to a leader; without one each member tells by itself. */
const LEADERLESS_MS = 30_000;

/** What is looked at of a cluster's report. */
export interface WatchedReport {
  readonly state: string;
  readonly leader: string | null;
  readonly members: readonly {
    readonly node: string;
    readonly this_node: boolean;
    readonly reachable: boolean;
  }[];
}

interface Tracked {
  isLost: boolean;
  /** Since when it is otherwise than `isLost` says; `null`: it is so. */
  otherSinceMs: number | null;
}

export interface MemberWatchOptions {
  /** A clock that never jumps. */
  readonly steadyMs: () => number;
  readonly lost: (node: string) => void;
  readonly back: (node: string) => void;
}

/**
 * Tells which members are lost and back. Each member sees all that, and the leader tells it, so that
 * it is told once.
 */
export class MemberWatch {
  readonly #options: MemberWatchOptions;
  readonly #tracked = new Map<string, Tracked>();

  constructor(options: MemberWatchOptions) {
    this.#options = options;
  }

  look({ state, leader, members }: WatchedReport): void {
    const nowMs = this.#options.steadyMs();
    const others = members.filter(({ this_node }) => !this_node);
    const names = new Set(others.map(({ node }) => node));
    for (const node of this.#tracked.keys()) if (!names.has(node)) this.#tracked.delete(node);
    for (const { node, reachable } of others) {
      const tracked = this.#trackedOf(node);
      if (tracked.isLost === !reachable) {
        tracked.otherSinceMs = null;
        continue;
      }
      tracked.otherSinceMs ??= nowMs;
      const lastedMs = nowMs - tracked.otherSinceMs;
      // Who leads is not known at first where it was the leader that went.
      if (lastedMs < (leader === null ? LEADERLESS_MS : STEADY_MS)) continue;
      [tracked.isLost, tracked.otherSinceMs] = [!reachable, null];
      if (state !== "leader" && leader !== null) continue;
      if (reachable) this.#options.back(node);
      else this.#options.lost(node);
    }
  }

  #trackedOf(node: string): Tracked {
    let tracked = this.#tracked.get(node);
    if (tracked === undefined) {
      this.#tracked.set(node, tracked = { isLost: false, otherSinceMs: null });
    }
    return tracked;
  }
}
