import type { QuerylogEntry } from "../api/mod.ts";
import type { ApiClient } from "../client/mod.ts";
import { type ErrorCode, messageOf, rethrowInvariant, SvcError } from "../errors.ts";
import { AGAIN_MS, pause } from "./node_data.ts";

/** Entries that are kept; older ones are in the log of the node. */
export const ENTRIES_MAX = 2_000;
/** Entries that are read at first, and after a break without a last one. */
const PAGE_ENTRIES = "200";
/** How often the log is read where no stream is to be had. */
const POLL_MS = 3_000;

/** Of what was asked for. */
const WRONG: readonly string[] = ["bad_request", "invalid"] satisfies ErrorCode[];

/** Fields that a filter may name; a word without one is searched for in names. */
const FIELDS = [
  ...["outcome", "client", "type", "protocol", "group", "list", "upstream", "name"],
  ...["since", "until"],
] as const;
export type LogFilter = Readonly<Record<string, string>>;

/** Reads `outcome:blocked client:tv ads`. @throws {SvcError} `invalid`, for an unknown field. */
export function parseFilter(text: string): LogFilter {
  const filter: Record<string, string> = {};
  for (const word of text.trim().split(/\s+/).filter((one) => one !== "")) {
    const [, field = "name", value = word] = /^(\w+):(.+)$/.exec(word) ?? [];
    if (!(FIELDS as readonly string[]).includes(field)) {
      throw new SvcError("invalid", `${field}: is no field: use one of ${FIELDS.join(", ")}`);
    }
    filter[field] = value;
  }
  return filter;
}

/** How the log comes. */
export type Way = "connecting" | "live" | "polling";

/** The running log, newest first; whoever reads in it holds it. */
export class LogFeed {
  entries: readonly QuerylogEntry[] = [];
  /** What came while it was held, newest first. */
  waiting: readonly QuerylogEntry[] = [];
  /** Entries that came too fast to be told. */
  skipped = 0;
  way: Way = "connecting";
  reason = "";
  #isHeld = false;
  #lastId: string | null = null;
  #filter: LogFilter = {};
  #stopped = new AbortController();
  readonly #client: ApiClient;
  readonly #onChange: () => void;

  constructor(client: ApiClient, onChange: () => void) {
    this.#client = client;
    this.#onChange = onChange;
  }

  get filter(): LogFilter {
    return this.#filter;
  }

  /** Begins anew with another filter. */
  start(filter: LogFilter): void {
    this.stop();
    const { signal } = this.#stopped = new AbortController();
    this.#filter = filter;
    [this.entries, this.waiting, this.skipped, this.#lastId] = [[], [], 0, null];
    this.#isHeld = false;
    void this.#follow(signal);
  }

  stop(): void {
    this.#stopped.abort();
  }

  /** Holds the log still, or lets in what has waited. */
  hold(isHeld: boolean): void {
    this.#isHeld = isHeld;
    if (isHeld || this.waiting.length === 0) return;
    this.entries = [...this.waiting, ...this.entries].slice(0, ENTRIES_MAX);
    this.waiting = [];
  }

  async #follow(signal: AbortSignal): Promise<void> {
    let againMs = AGAIN_MS.min;
    this.way = "connecting";
    while (!signal.aborted) {
      try {
        if (this.#lastId === null) await this.#read(signal);
        await this.#client.watch("querylog/stream", {
          query: this.#filter,
          lastEventId: this.#lastId,
          signal,
          onOpen: () => {
            this.#say("live");
            againMs = AGAIN_MS.min;
          },
          onEvent: ({ event, data }) => {
            if (event === "skipped") this.skipped += Number(data);
            else this.#take([JSON.parse(data)]);
          },
        });
      } catch (error) {
        rethrowInvariant(error);
        if (signal.aborted) return;
        // The filter is at fault, and stays so; whatever else it is may pass.
        const isWrong = error instanceof SvcError && WRONG.includes(error.code);
        if (isWrong) return this.#say("connecting", error.message);
        if (await this.#poll(signal)) continue;
        this.#say("connecting", messageOf(error));
      }
      await pause(againMs, signal);
      againMs = Math.min(2 * againMs, AGAIN_MS.max);
    }
  }

  /** Too many watch, or nobody answers: reads now and then; says whether that did it. */
  async #poll(signal: AbortSignal): Promise<boolean> {
    try {
      await this.#read(signal);
    } catch {
      return false; // The stream's own failure says why.
    }
    this.#say("polling");
    await pause(POLL_MS, signal);
    return true;
  }

  async #read(signal: AbortSignal): Promise<void> {
    const query = { ...this.#filter, limit: PAGE_ENTRIES };
    const { entries } = await this.#client.call("GET querylog", { query });
    if (signal.aborted) return;
    const known = new Set([...this.waiting, ...this.entries].map(({ id }) => id));
    this.#take(entries.filter(({ id }) => !known.has(id)));
  }

  /** Newest first. */
  #take(entries: readonly QuerylogEntry[]): void {
    if (entries.length === 0) return;
    this.#lastId = entries[0].id;
    if (this.#isHeld) this.waiting = [...entries, ...this.waiting].slice(0, ENTRIES_MAX);
    else this.entries = [...entries, ...this.entries].slice(0, ENTRIES_MAX);
    this.#onChange();
  }

  #say(way: Way, reason = ""): void {
    this.way = way;
    this.reason = reason;
    this.#onChange();
  }
}
