import { Slots } from "./slots.ts";

/** Most downloads at once. */
export const DOWNLOADS_MAX = 4;

/** A text that is to be renewed. */
export interface Wanted {
  readonly id: string;
  /** Where the text comes from: another place is another text. */
  readonly place: string;
  /** Over the network: these take turns, and one from a file is read beside them. */
  readonly isDownload: boolean;
  /** Whoever asks is to get a text that was asked for no earlier than this call. */
  readonly isForced: boolean;
  /** Somebody waits for this text alone. */
  readonly isUrgent: boolean;
}

interface Renewal {
  readonly id: string;
  readonly place: string;
  readonly stop: AbortController;
  /** The work has begun: what it brings may be older than what is asked for now. */
  hasBegun: boolean;
  done: Promise<void>;
}

/** What a question came to: a renewal of the caller's own, or one that was under way. */
export interface Asked {
  readonly isNew: boolean;
  /** Another renewal of the same text was under way. */
  readonly wasBusy: boolean;
  /** Resolves at its end, however it ends but for a failure of `work`. */
  readonly done: Promise<void>;
}

/**
 * The renewals under way: one at a time of each text, and at most one more that waits for it,
 * however many ask. What is no longer wanted ends at once.
 */
export class Renewals {
  readonly #slots = new Slots(DOWNLOADS_MAX);
  readonly #all = new Set<Renewal>();
  /** The last of each text: behind it comes whatever is asked for next. */
  readonly #last = new Map<string, Renewal>();

  /** Has `work` done, or joins the one that does it; `work` ends soon once its signal is aborted. */
  ask(wanted: Wanted, work: (signal: AbortSignal) => Promise<void>): Asked {
    const { id, place, isForced } = wanted;
    const last = this.#last.get(id);
    const isBusy = last !== undefined && last.place === place && !last.stop.signal.aborted;
    if (isBusy && !(isForced && last.hasBegun)) {
      return { isNew: false, wasBusy: true, done: last.done };
    }
    const renewal: Renewal = {
      id,
      place,
      stop: new AbortController(),
      hasBegun: false,
      done: Promise.resolve(),
    };
    this.#all.add(renewal);
    this.#last.set(id, renewal);
    renewal.done = this.#run(renewal, wanted, last?.done, work);
    return { isNew: true, wasBusy: isBusy, done: renewal.done };
  }

  /** Says whether the text is being renewed or waits for it. */
  has(id: string): boolean {
    return this.#last.has(id);
  }

  /** Ends the renewals of every text but these; `places` are by ID. */
  keepOnly(places: ReadonlyMap<string, string>): void {
    for (const { id, place, stop } of this.#all) if (places.get(id) !== place) stop.abort();
  }

  async #run(
    renewal: Renewal,
    { isDownload, isUrgent }: Wanted,
    before: Promise<void> | undefined,
    work: (signal: AbortSignal) => Promise<void>,
  ): Promise<void> {
    const { id, stop: { signal } } = renewal;
    try {
      await before?.catch(() => undefined); // Whoever asked for that one hears of its failure.
      if (signal.aborted) return;
      const begin = async () => {
        renewal.hasBegun = true;
        await work(signal);
      };
      if (isDownload) await this.#slots.run(begin, { isUrgent, signal });
      else await begin();
    } catch (error) {
      if (!signal.aborted) throw error;
    } finally {
      this.#all.delete(renewal);
      if (this.#last.get(id) === renewal) this.#last.delete(id);
    }
  }
}
