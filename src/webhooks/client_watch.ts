/**
 * How old a first query is before it is told: by then the log has all before it, and its name was
 * looked up.
 */
const SETTLED_MS = 15_000;

/** How far back somebody may have come while no process told of it. */
const LOOKED_BACK_MS = 3_600_000;

/** An address that asked, and that no configured client has. */
export interface SeenClient {
  readonly address: string;
  readonly hostname: string | null;
  /** Of the whole log; RFC 3339. */
  readonly first_seen: string;
}

export interface ClientWatchOptions {
  readonly nowMs: () => number;
  /** Until when a former process has told. */
  readonly toldUntilMs: unknown;
  readonly seen: (client: SeenClient) => void;
  /** Until when it is told by now: to be kept for a next process. */
  readonly keep: (toldUntilMs: number) => void;
}

/**
 * Tells of addresses that the log has for the first time, each once: what it remembers is a moment, as
 * the log remembers the rest.
 */
export class ClientWatch {
  readonly #options: ClientWatchOptions;
  #toldUntilMs: number;

  constructor(options: ClientWatchOptions) {
    this.#options = options;
    const nowMs = options.nowMs();
    const { toldUntilMs: kept } = options;
    // What is to come was written by a clock that was ahead; what is long ago is no news.
    const isUsable = typeof kept === "number" && kept <= nowMs;
    this.#toldUntilMs = isUsable ? Math.max(kept, nowMs - LOOKED_BACK_MS) : nowMs;
  }

  /** Takes the unknown addresses of the last hour; of none where nobody wants to know. */
  look(clients: readonly SeenClient[]): void {
    const untilMs = this.#options.nowMs() - SETTLED_MS;
    const fresh = clients.filter(({ first_seen }) => {
      const firstMs = Date.parse(first_seen);
      return firstMs > this.#toldUntilMs && firstMs <= untilMs;
    });
    this.#toldUntilMs = Math.max(this.#toldUntilMs, untilMs);
    if (fresh.length > 0) this.#options.keep(untilMs);
    for (const client of fresh) this.#options.seen(client);
  }
}
