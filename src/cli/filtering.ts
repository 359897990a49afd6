import { createHash } from "node:crypto";
import type { FilterConfig } from "../config/mod.ts";
import { messageOf, SvcError } from "../errors.ts";
import { type SourceStats, unsupportedCount } from "../filter/mod.ts";
import { type CompiledRules, compileRules } from "../isolate/mod.ts";
import type { ListKeeper, ListSource } from "../lists/mod.ts";
import { log } from "../log.ts";
import type { Base } from "../snapshot/mod.ts";
import { keepRules, readKeptRules } from "./kept_rules.ts";

/** Grows when compiled rules of an earlier release can no longer be read. */
const RULES_FORMAT = 2;
/** How soon after the start, and at most how long after one refresh, lists are looked at again. */
const FIRST_REFRESH_MS = 1_000;
const REFRESH_PAUSE_MIN_MS = 10_000;
const REFRESH_PAUSE_MAX_MS = 3_600_000;

/** A source of rules, and what its text is. */
interface Digest {
  readonly id: string;
  readonly name: string;
  readonly sha256: string;
}

/** A source of rules as it goes to the compiler. */
interface Text extends Digest {
  readonly bytes: Uint8Array<ArrayBuffer>;
}

export interface FilteringOptions {
  readonly onFailure: FilterConfig["onFailure"];
  readonly keeper: ListKeeper;
  /** Where compiled rules are kept. */
  readonly rulesFile: string;
  readonly lists: Lists;
  /** The settings' update interval at the moment, in seconds. */
  readonly updateInterval: () => number;
  /** Has other rules hold for the next query. */
  readonly publish: (base: Base) => Promise<void>;
}

/** The lists that there are. */
export interface Lists {
  /** Those that are on. */
  readonly sources: readonly ListSource[];
  /** IDs of those that are off: their texts stay. */
  readonly off: readonly string[];
}

/** Keeps the lists' rules in step with the lists: loads, compiles, publishes, refreshes. */
export class Filtering {
  readonly #options: FilteringOptions;
  #lists: Lists;
  readonly #stop = new AbortController();
  /** When the rules in force were built; `null` before the first. */
  builtAtMs: number | null = null;
  /** Why there are no rules, or older ones than there should be. */
  problem: string | null = null;
  /** Of every hash of a name in this process. */
  seed: number = crypto.getRandomValues(new Int32Array(1))[0];
  /** One build at a time, in the order asked for. */
  #turn: Promise<unknown> = Promise.resolve();
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(options: FilteringOptions) {
    this.#options = options;
    this.#lists = options.lists;
  }

  /**
   * The first rules, from what is kept on disk; asks no server. Where they can't be built there are
   * none, unless the configuration says to stay closed.
   *
   * @throws {SvcError} `unavailable`, under `on_failure = "closed"`.
   */
  async first(): Promise<Base> {
    try {
      const digests = await this.#digests();
      const kept = await readKeptRules(this.#options.rulesFile, keyOf(digests));
      if (kept !== null) {
        this.seed = kept.seed;
        this.#note(digests, kept.stats, "filter loaded");
        return baseOf(kept, digests);
      }
      return await this.#compile();
    } catch (error) {
      if (this.#options.onFailure === "closed") {
        throw new SvcError("unavailable", `filter: ${messageOf(error)}`, { cause: error });
      }
      this.problem = messageOf(error);
      log.error("the filter can't be built: names are answered unfiltered", {
        error: messageOf(error),
      });
      return { rules: null, sources: [], badfilters: [] };
    }
  }

  /** Begins to renew lists when they are due. */
  start(): void {
    this.#schedule(FIRST_REFRESH_MS);
  }

  stop(): void {
    this.#stop.abort();
    clearTimeout(this.#timer);
  }

  /** Takes other lists: what is new is fetched, and the rules are built again. Waits for nothing. */
  setLists(lists: Lists): void {
    const before = this.#lists;
    this.#lists = lists;
    if (placesOf(before.sources) === placesOf(lists.sources)) return;
    void this.#inTurn(() => this.#refresh(false, true));
  }

  /** Reads local lists again, asks every server, and builds what changed. */
  reload(): Promise<void> {
    return this.#inTurn(() => this.#refresh(true));
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#turn.then(work);
    this.#turn = result.catch(() => {}); // Its caller hears of it; the next one is not held up.
    return result;
  }

  #schedule(delayMs: number): void {
    if (this.#stop.signal.aborted) return;
    this.#timer = setTimeout(async () => {
      await this.#inTurn(() => this.#refresh(false));
      const { keeper, updateInterval } = this.#options;
      const dueMs = keeper.nextDueAtMs(this.#lists.sources, updateInterval() * 1_000);
      const pauseMs = Math.max(dueMs - Date.now(), REFRESH_PAUSE_MIN_MS);
      this.#schedule(Math.min(pauseMs, REFRESH_PAUSE_MAX_MS));
    }, delayMs);
  }

  async #refresh(force: boolean, isOther = false): Promise<void> {
    const { keeper, updateInterval } = this.#options;
    try {
      let updated = isOther;
      const events = keeper.refresh(this.#lists.sources, {
        intervalMs: updateInterval() * 1_000,
        force,
        signal: this.#stop.signal,
      });
      for await (const event of events) {
        if (event.kind !== "finished") continue;
        updated ||= event.outcome === "updated";
        log.info("list refreshed", {
          list: event.source.name,
          outcome: event.outcome,
          ...(event.status.message !== null && { reason: event.status.message }),
        });
      }
      if (updated && !this.#stop.signal.aborted) await this.#rebuild();
    } catch (error) {
      this.problem = messageOf(error);
      log.error("the filter can't be renewed: the rules in force stay", {
        error: messageOf(error),
      });
    }
  }

  async #rebuild(): Promise<void> {
    await this.#options.publish(await this.#compile());
  }

  /** What the texts at hand are, without reading them into memory. */
  async #digests(): Promise<Digest[]> {
    const digests = await this.#options.keeper.digests(this.#lists.sources);
    return digests.map(({ source: { id, name }, sha256 }) => ({ id, name, sha256 }));
  }

  /** The texts at hand; each is read once and then the compiler's. */
  async #load(): Promise<Text[]> {
    const { sources, off } = this.#lists;
    const texts: Text[] = [];
    for await (const { source, bytes } of this.#options.keeper.load(sources, off)) {
      texts.push({ id: source.id, name: source.name, sha256: sha256Of(bytes), bytes });
    }
    return texts;
  }

  async #compile(): Promise<Base> {
    const texts = await this.#load();
    const key = keyOf(texts);
    const startedMs = performance.now();
    const sources = texts.map(({ bytes }) => bytes);
    const compiled = await compileRules({ seed: this.seed, sources });
    this.#note(texts, compiled.stats, "filter built", Math.round(performance.now() - startedMs));
    await keepRules(this.#options.rulesFile, key, { seed: this.seed, ...compiled });
    return baseOf(compiled, texts);
  }

  /** Tells the keeper and the log what came of the texts. */
  #note(
    texts: readonly Digest[],
    stats: readonly SourceStats[],
    message: string,
    tookMs?: number,
  ): void {
    let rules = 0;
    for (const [i, { id, name }] of texts.entries()) {
      const unsupported = unsupportedCount(stats[i].skipped);
      rules += stats[i].rules;
      this.#options.keeper.setCounts(id, { rules: stats[i].rules, unsupported });
      log.info("list in force", { list: name, rules: stats[i].rules, unsupported });
    }
    this.builtAtMs = Date.now();
    this.problem = null;
    log.info(message, { rules, ...(tookMs !== undefined && { tookMs }) });
  }
}

function baseOf(
  { rules, badfilters }: Pick<CompiledRules, "rules" | "badfilters">,
  texts: readonly Digest[],
): Base {
  return { rules, sources: texts.map(({ id, name }) => ({ id, name })), badfilters };
}

/** Which lists there are and where from, whatever they are called. */
function placesOf(sources: readonly ListSource[]): string {
  return JSON.stringify(sources.map(({ id, url, path }) => [id, url ?? null, path ?? null]));
}

/** What compiled rules depend on: the texts and their order. */
function keyOf(texts: readonly Digest[]): Uint8Array {
  const hash = createHash("sha256").update(`rules ${RULES_FORMAT}`);
  for (const { id, sha256 } of texts) hash.update(`\n${id} ${sha256}`);
  return hash.digest();
}

function sha256Of(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}
