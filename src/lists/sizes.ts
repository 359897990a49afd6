import type { Clock } from "../clock/mod.ts";
import { messageOf } from "../errors.ts";
import { log } from "../log.ts";
import { askLength, type HttpGet } from "../http/mod.ts";
import { RECOMMENDED } from "./recommended.ts";

/** How long a size that a server told is shown. */
const KEPT_MS = 86_400_000;
/** How long a question is not repeated that failed, and one that was given up for lack of time. */
const FAILED_PAUSE_MS = 3_600_000;
const LATE_PAUSE_MS = 60_000;
/** For one server's answer, and for all of them: somebody waits for a page. */
const ANSWER_MS = 3_000;
const ALL_MS = 4_000;
const IN_FLIGHT_MAX = 8;

export interface ListSize {
  /** Of the recommended list. */
  readonly id: string;
  /** `null` where this node has not fetched the list. */
  readonly rules: number | null;
  readonly bytes: number;
}

/** What this node has of a list that it fetches from an address. */
export type FetchedSize = (
  url: string,
) => { readonly rules: number; readonly bytes: number } | null;

/** How large the recommended lists are: as fetched, else as their servers say without sending them. */
export class RecommendedSizes {
  readonly #get: HttpGet;
  readonly #clock: Clock;
  readonly #fetched: FetchedSize;
  /** What servers said, `null` for nothing; one a recommended list. */
  readonly #told = new Map<string, { readonly bytes: number | null; readonly untilMs: number }>();
  #asking: Promise<void> | null = null;

  constructor(get: HttpGet, clock: Clock, fetched: FetchedSize) {
    this.#get = get;
    this.#clock = clock;
    this.#fetched = fetched;
  }

  /** Sizes that are known or told in time; a list whose size is not is left out. */
  async sizes(): Promise<ListSize[]> {
    this.#asking ??= this.#ask().finally(() => this.#asking = null);
    await this.#asking;
    return RECOMMENDED.flatMap(({ id, url }): ListSize[] => {
      const fetched = this.#fetched(url);
      if (fetched !== null) return [{ id, ...fetched }];
      const bytes = this.#told.get(id)?.bytes ?? null;
      return bytes === null ? [] : [{ id, rules: null, bytes }];
    });
  }

  async #ask(): Promise<void> {
    const nowMs = this.#clock.nowMs();
    const open = RECOMMENDED.filter(({ id, url }) =>
      this.#fetched(url) === null && (this.#told.get(id)?.untilMs ?? 0) <= nowMs
    ).values();
    const late = AbortSignal.timeout(ALL_MS);
    let [failures, problem] = [0, ""];
    const work = async () => {
      for (const { id, url } of open) {
        if (late.aborted) return;
        try {
          const bytes = await askLength(this.#get, new URL(url), ANSWER_MS, late);
          this.#told.set(id, { bytes, untilMs: nowMs + KEPT_MS });
        } catch (error) {
          const pauseMs = late.aborted ? LATE_PAUSE_MS : FAILED_PAUSE_MS;
          this.#told.set(id, { bytes: null, untilMs: nowMs + pauseMs });
          failures++;
          problem = messageOf(error);
        }
      }
    };
    await Promise.all(Array.from({ length: IN_FLIGHT_MAX }, work));
    if (failures > 0) log.info("sizes of recommended lists not told", { failures, problem });
  }
}
