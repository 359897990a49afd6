/** The query log as a stream: all of it as a file, or what is new as it comes. */
import type { Streamed } from "./endpoint.ts";
import { eventStream } from "./event_stream.ts";
import type { LogsPort } from "./ports.ts";
import { PAGE_ITEMS_MAX } from "./schemas/common.ts";
import {
  type QuerylogEntry,
  type QuerylogExport,
  type QuerylogFilter,
  type QuerylogPage,
} from "./schemas/logs.ts";

export const CSV = "text/csv; charset=utf-8";
export const JSON_FILE = "application/json";
export const NDJSON = "application/x-ndjson";

/** The columns of the CSV form, which are the fields of an entry. */
const COLUMNS = [
  ...["time", "client", "client_name", "client_id", "group", "protocol", "name", "type"],
  ...["outcome", "rcode", "rule", "list", "answers", "upstream", "cached", "dnssec"],
  ...["duration_us", "node", "dnssec_reason", "id"],
] as readonly (keyof QuerylogEntry)[];

/** Entries that wait for a slow watcher; the oldest go first. */
const WAITING_MAX = 1_000;

const encoder = new TextEncoder();

/**
 * Every entry that passes, newest first, in pages: what is kept in memory is one of them.
 *
 * @throws {SvcError} `unavailable`, when the first page can't be had.
 */
export async function exportLog(
  logs: Pick<LogsPort, "search">,
  { format, ...filter }: QuerylogExport,
): Promise<Streamed> {
  const search = (next?: string) =>
    logs.search({ ...filter, limit: PAGE_ITEMS_MAX, ...(next !== undefined && { next }) });
  const isCsv = format === "csv";
  const write = isCsv ? csvRow : (entry: QuerylogEntry) => `${JSON.stringify(entry)}\n`;
  let head = isCsv ? `${COLUMNS.join(",")}\r\n` : "";
  let page: QuerylogPage | null = await search();
  const body = new ReadableStream<Uint8Array<ArrayBuffer>>({
    async pull(controller) {
      if (page === null) return controller.close();
      const { entries, next } = page;
      const text = head + entries.map(write).join("");
      head = "";
      page = next === null ? null : await search(next);
      if (text !== "") controller.enqueue(encoder.encode(text));
      else if (page === null) controller.close();
    },
    cancel() {
      page = null;
    },
  }, { highWaterMark: 0 });
  return { type: isCsv ? CSV : NDJSON, body, filename: `querylog.${format}` };
}

/** A row as RFC 4180 has it. */
function csvRow(entry: QuerylogEntry): string {
  return csvLine(COLUMNS.map((column) => {
    const value = entry[column];
    return Array.isArray(value) ? value.join(" ; ") : String(value ?? "");
  }));
}

/** A line of these cells. */
export function csvLine(cells: readonly string[]): string {
  return `${cells.map(csvCell).join(",")}\r\n`;
}

function csvCell(text: string): string {
  // Names are anybody's: what starts like this a spreadsheet would calculate.
  const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/**
 * New entries as server-sent events: each is the `data` of an event, in JSON; an event `skipped` has
 * the number of entries that were too many. `lastEventId` is the ID of the last entry that the reader
 * has: those behind it come first, the newest 1,000 of them.
 *
 * @throws {SvcError} `unavailable`, where too many watch already; `bad_request`, for an ID of none.
 */
export async function watchLog(
  logs: Pick<LogsPort, "search" | "watch">,
  filter: QuerylogFilter,
  lastEventId: string | null = null,
): Promise<Streamed> {
  const waiting: QuerylogEntry[] = [];
  let skipped = 0;
  /** Until when entries are told by the log itself: the number of the last of them. */
  let caughtUpId = "";
  const keep = (entries: readonly QuerylogEntry[]) => {
    for (const entry of entries) if (isAfter(entry.id, caughtUpId)) waiting.push(entry);
    const excess = waiting.length - WAITING_MAX;
    if (excess > 0) skipped += waiting.splice(0, excess).length;
  };
  const { streamed, wake, end } = eventStream({
    take() {
      const events = waiting.splice(0).map((entry) =>
        `id: ${entry.id}\ndata: ${JSON.stringify(entry)}\n\n`
      );
      if (skipped > 0) events.unshift(`event: skipped\ndata: ${skipped}\n\n`);
      skipped = 0;
      return events.join("");
    },
    onClose: () => unwatch(),
  });
  const unwatch = logs.watch(filter, {
    tell(entries, more) {
      skipped += more;
      keep(entries);
      wake();
    },
    end,
  });
  if (lastEventId === null) return streamed;
  try {
    const missed = await logs.search({ ...filter, limit: WAITING_MAX, after: lastEventId });
    const come = waiting.splice(0);
    waiting.push(...missed.entries.toReversed());
    caughtUpId = missed.entries.at(0)?.id ?? lastEventId;
    keep(come); // What came meanwhile may be among those.
    if (missed.next !== null) skipped++; // At least.
  } catch (error) {
    unwatch();
    throw error;
  }
  return streamed;
}

/** Says whether an entry's ID is greater than another: more digits, or greater ones. */
function isAfter(id: string, other: string): boolean {
  return id.length === other.length ? id > other : id.length > other.length;
}
