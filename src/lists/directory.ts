import * as z from "zod";
import type { Clock } from "../clock/mod.ts";
import { messageOf, SvcError } from "../errors.ts";
import { log } from "../log.ts";
import {
  decodeDetails,
  decodeFilterLists,
  decodeNames,
  decodeRegistry,
  DirectoryList,
  type Names,
} from "./directory_text.ts";
import { type DownloadLimits, fetchJson, type HttpGet } from "../http/mod.ts";
import { readWhole, writeWhole } from "./kept_lists.ts";
import type { Disk } from "./ports.ts";

/** FilterLists' API: whoever runs the node decides on another one. */
export const DIRECTORY_URL = "https://api.filterlists.com";

/** How long a directory that was fetched is shown. */
const KEPT_MS = 86_400_000;
/** How long a directory that failed is left alone. */
const FAILED_PAUSE_MS = 60_000;
/** The API gives a request 30 seconds, in which a list may follow its directory. */
const LIMITS: DownloadLimits = {
  headTimeoutMs: 8_000,
  idleTimeoutMs: 8_000,
  totalTimeoutMs: 12_000,
  bytesMax: 16 * 1024 * 1024,
};
/** A small directory is asked for each list at once; of a large one, a list when it is opened. */
const DETAILS_AT_ONCE_MAX = 64;
const DETAILS_IN_FLIGHT_MAX = 4;
const FILE_NAME = "directory.json";
const FILE_BYTES_MAX = 32 * 1024 * 1024;

const Kept = z.strictObject({
  version: z.literal(1),
  /** Where it came from: another address has another directory. */
  url: z.string(),
  fetchedAtMs: z.int(),
  items: z.array(DirectoryList),
});
type Kept = z.infer<typeof Kept>;

export interface ListDirectoryOptions {
  readonly url: string;
  readonly get: HttpGet;
  readonly clock: Clock;
  readonly disk: Disk;
  /** Where it is kept. */
  readonly directory: string;
}

/** A list of the directory with its addresses: one, or those of its parts in order. */
export interface DirectoryDetails extends DirectoryList {
  readonly urls: readonly string[];
}

/** The public directory of lists: fetched when somebody looks at it, and kept for a day. */
export class ListDirectory {
  readonly #options: ListDirectoryOptions;
  #kept: Kept | null = null;
  #isRead = false;
  #failedAtMs = -Infinity;
  #failure = "";
  /** Under way; a second reader waits for the same. */
  #fetching: Promise<void> | null = null;

  constructor(options: ListDirectoryOptions) {
    this.#options = options;
  }

  /**
   * The readable lists, at most a day old where the directory answers.
   *
   * @throws {SvcError} `unavailable`, when it can't be fetched and none is kept.
   */
  async lists(): Promise<
    { readonly fetchedAtMs: number; readonly items: readonly DirectoryList[] }
  > {
    if (!this.#isRead) this.#kept = await this.#readKept();
    this.#isRead = true;
    const nowMs = this.#options.clock.nowMs();
    if (this.#kept !== null && Math.abs(nowMs - this.#kept.fetchedAtMs) < KEPT_MS) {
      return this.#kept;
    }
    if (Math.abs(nowMs - this.#failedAtMs) >= FAILED_PAUSE_MS) {
      this.#fetching ??= this.#renew().finally(() => this.#fetching = null);
      await this.#fetching;
    }
    if (this.#kept !== null) return this.#kept;
    throw new SvcError("unavailable", `the directory of lists: ${this.#failure}`);
  }

  /**
   * One list of the directory with its addresses.
   *
   * @throws {SvcError} `not_found`; `unavailable`, as `lists`.
   */
  async details(id: string): Promise<DirectoryDetails> {
    const { items } = await this.lists();
    const index = items.findIndex((item) => item.id === id);
    if (index < 0) throw new SvcError("not_found", `the directory has no list ${id}`);
    const item = items[index];
    if (item.url !== null) return { ...item, urls: [item.url] };
    const { urls, homepage } = await this.#ask(id, new AbortController().signal);
    if (urls.length === 0) {
      throw new SvcError(
        "not_found",
        `${item.name}: the directory names no address to fetch it from`,
      );
    }
    const found = { ...item, homepage: homepage ?? item.homepage };
    return { ...found, url: urls[0], urls };
  }

  /** Fetches it, or notes why that can't be done. */
  async #renew(): Promise<void> {
    try {
      this.#kept = await this.#fetch();
      await this.#keep(this.#kept);
    } catch (error) {
      this.#failedAtMs = this.#options.clock.nowMs();
      this.#failure = messageOf(error);
      log.warn("the directory of lists can't be fetched", { problem: this.#failure });
    }
  }

  async #fetch(): Promise<Kept> {
    const { url, clock } = this.#options;
    // All of it, however many questions that takes.
    const signal = AbortSignal.timeout(LIMITS.totalTimeoutMs);
    const whole = /\.json$/.test(new URL(url).pathname);
    const json = await this.#json(whole ? url : this.#below("lists"), signal);
    let items = decodeRegistry(json);
    if (items === null) {
      const tagNames = whole ? new Map() : await this.#names("tags", signal);
      items = decodeFilterLists(json, tagNames);
      if (items === null) throw new SvcError("invalid", "it has neither shape that is known");
      if (!whole && items.length <= DETAILS_AT_ONCE_MAX) await this.#fill(items, signal);
    }
    if (items.length === 0) throw new SvcError("invalid", "it names no list that can be read");
    return { version: 1, url, fetchedAtMs: clock.nowMs(), items };
  }

  /** Puts the addresses in; a list whose address can't be had now is asked for when it is opened. */
  async #fill(items: DirectoryList[], signal: AbortSignal): Promise<void> {
    const open = items.keys().filter((i) => items[i].url === null);
    let [failures, problem] = [0, ""];
    const work = async () => {
      for (const i of open) {
        try {
          const { urls: [url = null], homepage } = await this.#ask(items[i].id, signal);
          items[i] = { ...items[i], url, homepage: homepage ?? items[i].homepage };
        } catch (error) {
          failures++;
          problem = messageOf(error);
        }
      }
    };
    await Promise.all(Array.from({ length: DETAILS_IN_FLIGHT_MAX }, work));
    if (failures > 0) log.info("lists of the directory without address", { failures, problem });
  }

  async #ask(id: string, signal: AbortSignal) {
    return decodeDetails(await this.#json(this.#below(`lists/${encodeURIComponent(id)}`), signal));
  }

  /** Names are for show: without them there are no tags. */
  async #names(table: string, signal: AbortSignal): Promise<Names> {
    try {
      return decodeNames(await this.#json(this.#below(table), signal));
    } catch (error) {
      log.info("a table of the directory can't be fetched", { table, problem: messageOf(error) });
      return new Map();
    }
  }

  #json(url: string, signal: AbortSignal): Promise<unknown> {
    return fetchJson(this.#options.get, new URL(url), LIMITS, signal);
  }

  #below(path: string): string {
    return `${this.#options.url.replace(/\/+$/, "")}/${path}`;
  }

  async #readKept(): Promise<Kept | null> {
    const { disk, directory, url } = this.#options;
    try {
      const bytes = await readWhole(disk, `${directory}/${FILE_NAME}`, FILE_BYTES_MAX);
      const kept = Kept.parse(JSON.parse(new TextDecoder().decode(bytes)));
      return kept.url === url ? kept : null;
    } catch (error) {
      if (!(error instanceof Deno.errors.NotFound)) {
        log.warn("the kept directory of lists can't be read and is fetched anew", { error });
      }
      return null;
    }
  }

  /** What can't be kept is there until the process ends. */
  async #keep(kept: Kept): Promise<void> {
    const { disk, directory } = this.#options;
    try {
      await writeWhole(disk, directory, FILE_NAME, JSON.stringify(kept));
    } catch (error) {
      log.warn("the directory of lists can't be kept", { error });
    }
  }
}
