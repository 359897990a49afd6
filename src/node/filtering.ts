import type { Buffer } from "node:buffer";
import { createHash } from "node:crypto";
import type { FilterConfig } from "../config/mod.ts";
import { messageOf, SvcError } from "../errors.ts";
import { type SourceStats, unsupportedCount } from "../filter/mod.ts";
import { type CompiledRules, compileRules } from "../isolate/mod.ts";
import type {
  ListKeeper,
  ListSource,
  Refresh,
  RefreshEvent,
  ServiceCatalogue,
} from "../lists/mod.ts";
import { log } from "../log.ts";
import { type Base, SERVICE_PREFIX } from "../snapshot/mod.ts";
import { keepRules, readKeptRules } from "./kept_rules.ts";
import type { Problem } from "./problems.ts";

/** Grows when compiled rules of an earlier release can no longer be read. */
const RULES_FORMAT = 7;
/** How soon after the start or another look, and how long after it at most, lists are looked at. */
const LOOK_PAUSE_MS_MIN = 1_000;
const LOOK_PAUSE_MS_MAX = 3_600_000;
/** How long a changed list waits for others, so that they are built together… */
const BUILD_DELAY_MS = 3_000;
/** …or so often as long as a build takes: lists that change all the time take no more of a core. */
const BUILD_DELAY_RATIO = 3;
/** Most lists that the status names one by one. */
const LIST_PROBLEMS_MAX = 10;

/** A source of rules, and what its text is. */
interface Digest {
  readonly id: string;
  readonly name: string;
  readonly sha256: string;
  /** What it names is let through. */
  readonly allows?: boolean;
}

/** A source of rules as it goes to the compiler. */
interface Text extends Digest {
  readonly bytes: Uint8Array<ArrayBuffer>;
}

/** Rules, and what they were made of. */
interface Built {
  readonly texts: readonly Digest[];
  readonly key: Buffer;
  readonly compiled: CompiledRules;
  readonly tookMs: number;
}

export interface FilteringOptions {
  readonly onFailure: FilterConfig["onFailure"];
  readonly keeper: ListKeeper;
  /** Where compiled rules are kept. */
  readonly rulesFile: string;
  readonly lists: Lists;
  /** What groups filter by at the moment. */
  readonly uses: () => Uses;
  readonly services: Pick<ServiceCatalogue, "load" | "problem" | "services" | "source">;
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

/** What there is to filter by, in groups that are filtered. */
export interface Uses {
  /** IDs of lists that are on. */
  readonly lists: readonly string[];
  /** Some of them block services. */
  readonly services: boolean;
  /** There are custom rules. */
  readonly rules: boolean;
}

/** Keeps the rules of lists and services in step with both: loads, compiles, publishes, refreshes. */
export class Filtering {
  readonly #options: FilteringOptions;
  #lists: Lists;
  readonly #stop = new AbortController();
  /** When the rules in force were built; `null` before the first. */
  builtAtMs: number | null = null;
  /** How long the last build took; `null` before the first of this process. */
  buildMs: number | null = null;
  /** Why there are no rules, or older ones than there should be. */
  #problem: string | null = null;
  /** Of every hash of a name in this process. */
  seed: number = crypto.getRandomValues(new Int32Array(1))[0];
  /** The texts that the rules in force were made of; empty before the first. */
  #key = "";
  /** Texts may have changed since the last build began… */
  #isDirty = false;
  /** …and one is known to have. */
  #isUpdated = false;
  /** The build under way, and the one that waits for it. */
  readonly #builds = new Latest(() => this.#build());
  #buildTimer: ReturnType<typeof setTimeout> | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #looksSoon = false;

  constructor(options: FilteringOptions) {
    this.#options = options;
    this.#lists = options.lists;
  }

  /**
   * What is wrong with lists, services and the rules made of them, for the status. A list that
   * waits for its first text is no problem for the first minute, unless its server has failed.
   */
  get problems(): Problem[] {
    const { keeper, services } = this.#options;
    const found = [...keeper.problems(this.#sources())];
    const shown = found.slice(0, LIST_PROBLEMS_MAX).map(([id, problem]): Problem => ({
      code: "list",
      message: `lists: ${problem}`,
      resource: { type: "list", id },
    }));
    const rest = found.length - shown.length;
    const ofFilter = (message: string): Problem => ({ code: "filter", message, resource: null });
    const ofServices = { type: "services", id: null };
    return [
      ...(this.#problem === null ? [] : [ofFilter(`filter: ${this.#problem}`)]),
      ...(this.#isEmpty()
        ? [ofFilter("filter: no group has a rule yet: nothing is filtered")]
        : []),
      ...(services.problem === null
        ? []
        : [{ code: "services", message: services.problem, resource: ofServices }]),
      ...shown,
      ...(rest > 0 ? [{ code: "list", message: `lists: ${rest} more`, resource: null }] : []),
    ];
  }

  /**
   * Says whether groups have lists to filter by, and nothing that they have has a rule. Who chose no
   * list wants nothing filtered.
   */
  #isEmpty(): boolean {
    const { keeper, services, uses } = this.#options;
    const used = uses();
    if (used.rules || (used.services && services.services.length > 0)) return false;
    if (used.lists.length === 0 || used.lists.some((id) => keeper.status(id).rules > 0)) {
      return false;
    }
    const ids = new Set(used.lists);
    const { sources } = this.#lists;
    return !sources.some((source) => ids.has(source.id) && keeper.isAwaited(source));
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
      const key = keyOf(digests);
      const kept = await readKeptRules(this.#options.rulesFile, key);
      if (kept !== null) {
        this.seed = kept.seed;
        this.#note(digests, key, kept.stats, "filter loaded");
        return baseOf(kept, digests);
      }
      const built = await this.#compile();
      await this.#settle(built);
      return baseOf(built.compiled, built.texts);
    } catch (error) {
      if (this.#options.onFailure === "closed") {
        throw new SvcError("unavailable", `filter: ${messageOf(error)}`, { cause: error });
      }
      this.#problem = messageOf(error);
      log.error("the filter can't be built: names are answered unfiltered", {
        error: messageOf(error),
      });
      return { rules: null, sources: [], badfilters: [] };
    }
  }

  /** Begins to renew lists when they are due. */
  start(): void {
    this.#lookSoon();
  }

  stop(): void {
    this.#stop.abort();
    clearTimeout(this.#timer);
    clearTimeout(this.#buildTimer);
    this.#options.keeper.stop();
  }

  /**
   * Takes other lists: what is new is fetched, what is gone is no longer, and the rules are built
   * again. Waits for nothing.
   */
  setLists(lists: Lists): void {
    const before = new Set(this.#lists.sources.map(placeOf));
    const isSame = textsOf(this.#lists.sources) === textsOf(lists.sources);
    this.#lists = lists;
    if (isSame) return;
    this.#options.keeper.keepOnly(this.#sources(), lists.off);
    this.#isDirty = true; // One that is gone, or whose text is at hand, needs no server.
    void this.#builds.run();
    const others = lists.sources.filter((source) => !before.has(placeOf(source)));
    if (others.length > 0) this.#refresh(others, { urgent: true });
    this.#lookSoon();
  }

  /**
   * Reads local lists and services again, asks every server, and builds what changed; done when
   * that holds.
   */
  reload(): Refresh {
    const refresh = this.#refresh(this.#sources(), { force: true });
    // The file of services has no server that would say whether it changed.
    this.#buildSoon();
    return refresh;
  }

  /** Lists, and the catalogue of services where it is downloaded: first, as the smallest by far. */
  #sources(): readonly ListSource[] {
    const { source } = this.#options.services;
    return source === null ? this.#lists.sources : [source, ...this.#lists.sources];
  }

  /** Looks what is due: not for each list by itself, of which there may be many. */
  #lookSoon(): void {
    if (this.#looksSoon) return;
    this.#looksSoon = true;
    this.#schedule(LOOK_PAUSE_MS_MIN);
  }

  #schedule(delayMs: number): void {
    clearTimeout(this.#timer);
    if (this.#stop.signal.aborted) return;
    this.#timer = setTimeout(() => {
      this.#looksSoon = false;
      this.#refresh(this.#sources(), {});
      const { keeper, updateInterval } = this.#options;
      // What is on its way now has us look again at its end.
      const dueMs = keeper.nextDueAtMs(this.#sources(), updateInterval() * 1_000);
      const pauseMs = Math.max(dueMs - Date.now(), LOOK_PAUSE_MS_MIN);
      this.#schedule(Math.min(pauseMs, LOOK_PAUSE_MS_MAX));
    }, delayMs);
  }

  #refresh(
    sources: readonly ListSource[],
    how: { readonly force?: boolean; readonly urgent?: boolean },
  ): Refresh {
    if (this.#stop.signal.aborted) return { started: [], loading: [], done: Promise.resolve() };
    const { keeper, updateInterval } = this.#options;
    const refresh = keeper.refresh(sources, {
      intervalMs: updateInterval() * 1_000,
      onFinished: (event) => this.#noteRefreshed(event),
      ...how,
    });
    return { ...refresh, done: this.#buildAfter(refresh.done) };
  }

  async #buildAfter(refreshed: Promise<void>): Promise<void> {
    try {
      await refreshed;
    } catch (error) {
      this.#fail(error);
    }
    if (this.#isDirty) await this.#builds.run();
  }

  #noteRefreshed({ outcome, source }: RefreshEvent): void {
    // Of a failure the keeper tells what is new.
    if (outcome === "updated" || outcome === "unchanged") {
      log.info("list refreshed", { list: source.name, outcome });
    }
    if (outcome === "updated") {
      // A catalogue of services has more in it than rules.
      if (source.id !== this.#options.services.source?.id) this.#isUpdated = true;
      this.#buildSoon();
    }
    this.#lookSoon();
  }

  /** Builds before the refresh ends, should the next lists take long. */
  #buildSoon(): void {
    this.#isDirty = true;
    const delayMs = Math.max(BUILD_DELAY_MS, BUILD_DELAY_RATIO * (this.buildMs ?? 0));
    this.#buildTimer ??= setTimeout(() => void this.#builds.run(), delayMs);
  }

  /** Builds and publishes, unless the rules in force are of the very texts at hand. */
  async #build(): Promise<void> {
    clearTimeout(this.#buildTimer);
    this.#buildTimer = undefined;
    if (this.#stop.signal.aborted) return;
    const mayBeSame = this.#key !== "" && !this.#isUpdated;
    this.#isDirty = this.#isUpdated = false;
    try {
      if (mayBeSame && keyOf(await this.#digests()).toString("hex") === this.#key) {
        this.#problem = null;
        return;
      }
      const built = await this.#compile();
      await this.#options.publish(baseOf(built.compiled, built.texts));
      await this.#settle(built); // What a status counts is in force.
    } catch (error) {
      this.#fail(error);
    }
  }

  #fail(error: unknown): void {
    this.#problem = messageOf(error);
    log.error("the filter can't be renewed: the rules in force stay", { error: messageOf(error) });
  }

  /** What the texts at hand are, without holding those of lists. */
  async #digests(): Promise<Digest[]> {
    const digests = await this.#options.keeper.digests(this.#lists.sources);
    const services = await this.#serviceTexts();
    return [
      ...digests.map(({ source, sha256 }) => ({ ...partOf(source), sha256 })),
      ...services.map(({ id, name, sha256 }) => ({ id, name, sha256 })),
    ];
  }

  /** The texts at hand; each is read once and then the compiler's. */
  async #load(): Promise<Text[]> {
    const { keeper } = this.#options;
    const alsoKeep = () => [...this.#sources().map(({ id }) => id), ...this.#lists.off];
    const texts: Text[] = [];
    for await (
      const { source, ...text } of keeper.load(this.#lists.sources, alsoKeep)
    ) {
      texts.push({ ...partOf(source), ...text });
    }
    return [...texts, ...await this.#serviceTexts()];
  }

  /** Every service is a source, blocked or not: what groups block changes without a build. */
  async #serviceTexts(): Promise<Text[]> {
    const services = await this.#options.services.load();
    return services.map(({ id, name, rules }) => {
      const bytes = new TextEncoder().encode(rules.join("\n"));
      return { id: SERVICE_PREFIX + id, name, sha256: sha256Of(bytes), bytes };
    });
  }

  async #compile(): Promise<Built> {
    const texts = await this.#load();
    const key = keyOf(texts);
    const startedMs = performance.now();
    const sources = texts.map(({ id, bytes, allows }) => ({
      bytes,
      isService: id.startsWith(SERVICE_PREFIX),
      ...(allows === true && { allows }),
    }));
    const compiled = await compileRules({ seed: this.seed, sources });
    this.buildMs = Math.round(performance.now() - startedMs);
    return { texts, key, compiled, tookMs: this.buildMs };
  }

  /** Notes rules that are in force, and keeps them for the next start. */
  async #settle({ texts, key, compiled, tookMs }: Built): Promise<void> {
    this.#note(texts, key, compiled.stats, "filter built", tookMs);
    await keepRules(this.#options.rulesFile, key, { seed: this.seed, ...compiled });
  }

  /** Tells the keeper and the log what came of the texts. */
  #note(
    texts: readonly Digest[],
    key: Buffer,
    stats: readonly SourceStats[],
    message: string,
    tookMs?: number,
  ): void {
    let [rules, services, serviceRules] = [0, 0, 0];
    for (const [i, { id, name }] of texts.entries()) {
      if (id.startsWith(SERVICE_PREFIX)) {
        services++;
        serviceRules += stats[i].rules;
        continue;
      }
      const unsupported = unsupportedCount(stats[i].skipped);
      rules += stats[i].rules;
      this.#options.keeper.setCounts(id, { rules: stats[i].rules, unsupported });
      log.info("list in force", { list: name, rules: stats[i].rules, unsupported });
    }
    const ids = new Set(texts.map(({ id }) => id));
    for (const { id } of this.#lists.sources) {
      if (!ids.has(id)) this.#options.keeper.setCounts(id, null);
    }
    if (services > 0) log.info("services can be blocked", { services, rules: serviceRules });
    this.#key = key.toString("hex");
    this.builtAtMs = Date.now();
    this.#problem = null;
    log.info(message, { rules, ...(tookMs !== undefined && { tookMs }) });
  }
}

/** Does one work at a time; who asks while it runs shares the next run with all that ask then. */
class Latest {
  readonly #work: () => Promise<void>;
  #running: Promise<void> = Promise.resolve();
  #next: Promise<void> | null = null;

  /** `work` never fails. */
  constructor(work: () => Promise<void>) {
    this.#work = work;
  }

  /** Resolves once a run that began after this call has ended. */
  run(): Promise<void> {
    this.#next ??= this.#running.then(() => {
      this.#next = null;
      this.#running = this.#work();
      return this.#running;
    });
    return this.#next;
  }
}

function baseOf(
  { rules, badfilters }: Pick<CompiledRules, "rules" | "badfilters">,
  texts: readonly Digest[],
): Base {
  return { rules, sources: texts.map(({ id, name }) => ({ id, name })), badfilters };
}

/** A list and where it is from, whatever it is called. */
function placeOf({ id, url, path }: ListSource): string {
  return JSON.stringify([id, url ?? null, path ?? null]);
}

/** What rules are made of, before any text is read. */
function textsOf(sources: readonly ListSource[]): string {
  return sources.map((source) => `${placeOf(source)} ${source.allows === true}`).join("\n");
}

/** What a digest says of a list. */
function partOf({ id, name, allows }: ListSource): Omit<Digest, "sha256"> {
  return { id, name, ...(allows === true && { allows }) };
}

/** What compiled rules depend on: the texts, what they are taken for, and their order. */
function keyOf(texts: readonly Digest[]): Buffer {
  const hash = createHash("sha256").update(`rules ${RULES_FORMAT}`);
  for (const { id, sha256, allows } of texts) {
    hash.update(`\n${id} ${sha256}${allows === true ? " allows" : ""}`);
  }
  return hash.digest();
}

function sha256Of(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}
