import { createHash } from "node:crypto";
import type { FilterConfig } from "../config/mod.ts";
import { messageOf, SvcError } from "../errors.ts";
import { type SourceStats, unsupportedCount } from "../filter/mod.ts";
import { compileRules } from "../isolate/mod.ts";
import { configListId, type ListKeeper, type ListSource } from "../lists/mod.ts";
import { log } from "../log.ts";
import type { Settings } from "../model/mod.ts";
import type { SnapshotData } from "../snapshot/mod.ts";
import { keepRules, readKeptRules } from "./kept_rules.ts";

/** Grows when compiled rules of an earlier release can no longer be read. */
const RULES_FORMAT = 1;
/** How soon after the start, and at most how long after one refresh, lists are looked at again. */
const FIRST_REFRESH_MS = 1_000;
const REFRESH_PAUSE_MIN_MS = 10_000;
const REFRESH_PAUSE_MAX_MS = 3_600_000;
/** The source of `[filter] rules`, beside the lists. */
const CUSTOM_RULES = { id: "rules", name: "custom rules" } as const;

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
  readonly config: FilterConfig;
  readonly settings: Settings;
  readonly keeper: ListKeeper;
  /** Where compiled rules are kept. */
  readonly rulesFile: string;
  /** Has a snapshot hold for the next query. */
  readonly publish: (snapshot: SnapshotData) => Promise<void>;
}

/** Keeps the rules in force in step with the lists: loads, compiles, publishes, refreshes. */
export class Filtering {
  readonly #options: FilteringOptions;
  readonly #sources: readonly ListSource[];
  readonly #stop = new AbortController();
  #generation = 0;
  /** Of every hash of a name in this process. */
  seed: number = crypto.getRandomValues(new Int32Array(1))[0];
  /** One build at a time, in the order asked for. */
  #turn: Promise<unknown> = Promise.resolve();
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(options: FilteringOptions) {
    this.#options = options;
    this.#sources = options.config.lists.map((list) => {
      const common = { id: configListId(list.name), name: list.name };
      return list.kind === "url" ? { ...common, url: list.url } : { ...common, path: list.path };
    });
  }

  /**
   * The first snapshot, from what is kept on disk; asks no server. Without a filter to be built it
   * filters nothing, unless the configuration says to stay closed.
   *
   * @throws {SvcError} `unavailable`, under `on_failure = "closed"`.
   */
  async first(): Promise<SnapshotData> {
    try {
      const digests = await this.#digests();
      const kept = await readKeptRules(this.#options.rulesFile, keyOf(digests));
      if (kept !== null) {
        this.seed = kept.seed;
        this.#note(digests, kept.stats, "filter loaded");
        return this.#snapshot(kept.rules, digests);
      }
      return await this.#compile();
    } catch (error) {
      if (this.#options.config.onFailure === "closed") {
        throw new SvcError("unavailable", `filter: ${messageOf(error)}`, { cause: error });
      }
      log.error("the filter can't be built: names are answered unfiltered", {
        error: messageOf(error),
      });
      return this.#snapshot(null, []);
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
      const { keeper, settings } = this.#options;
      const dueMs = keeper.nextDueAtMs(this.#sources, settings.list_update_interval * 1_000);
      const pauseMs = Math.max(dueMs - Date.now(), REFRESH_PAUSE_MIN_MS);
      this.#schedule(Math.min(pauseMs, REFRESH_PAUSE_MAX_MS));
    }, delayMs);
  }

  async #refresh(force: boolean): Promise<void> {
    const { keeper, settings } = this.#options;
    try {
      let updated = false;
      const events = keeper.refresh(this.#sources, {
        intervalMs: settings.list_update_interval * 1_000,
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
    const digests = await this.#options.keeper.digests(this.#sources);
    const lists = digests.map(({ source: { id, name }, sha256 }) => ({ id, name, sha256 }));
    return [...lists, { ...CUSTOM_RULES, sha256: sha256Of(this.#customRules()) }];
  }

  #customRules(): Uint8Array<ArrayBuffer> {
    return new TextEncoder().encode(this.#options.config.rules.join("\n"));
  }

  /** The texts at hand; each is read once and then the compiler's. */
  async #load(): Promise<Text[]> {
    const texts: Text[] = [];
    const add = (source: { id: string; name: string }, bytes: Uint8Array<ArrayBuffer>) => {
      texts.push({ id: source.id, name: source.name, sha256: sha256Of(bytes), bytes });
    };
    for await (const { source, bytes } of this.#options.keeper.load(this.#sources)) {
      add(source, bytes);
    }
    add(CUSTOM_RULES, this.#customRules());
    return texts;
  }

  async #compile(): Promise<SnapshotData> {
    const texts = await this.#load();
    const key = keyOf(texts);
    const startedMs = performance.now();
    const sources = texts.map(({ bytes }) => bytes);
    const { rules, stats } = await compileRules({ seed: this.seed, sources });
    this.#note(texts, stats, "filter built", Math.round(performance.now() - startedMs));
    await keepRules(this.#options.rulesFile, key, { seed: this.seed, rules, stats });
    return this.#snapshot(rules, texts);
  }

  #snapshot(rules: SharedArrayBuffer | null, texts: readonly Digest[]): SnapshotData {
    return {
      generation: ++this.#generation,
      rules,
      sources: texts.map(({ id, name }) => ({ id, name })),
      settings: this.#options.settings,
    };
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
      if (id !== CUSTOM_RULES.id) {
        this.#options.keeper.setCounts(id, { rules: stats[i].rules, unsupported });
        log.info("list in force", { list: name, rules: stats[i].rules, unsupported });
      } else if (unsupported > 0) {
        log.warn("filter.rules: some rules can't be read and are left out", { unsupported });
      }
    }
    log.info(message, { rules, ...(tookMs !== undefined && { tookMs }) });
  }
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
