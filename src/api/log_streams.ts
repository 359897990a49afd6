/** The query log as a stream: all of it as a file, or what is new as it comes. */
import type { Streamed } from "./endpoint.ts";
import type { LogsPort } from "./ports.ts";
import { PAGE_ITEMS_MAX } from "./schemas/common.ts";
import {
  type QuerylogEntry,
  type QuerylogExport,
  type QuerylogFilter,
  type QuerylogPage,
} from "./schemas/logs.ts";

export const CSV = "text/csv; charset=utf-8";
export const NDJSON = "application/x-ndjson";
export const EVENT_STREAM = "text/event-stream";

/** The columns of the CSV form, which are the fields of an entry. */
const COLUMNS = [
  ...["time", "client", "client_name", "client_id", "group", "protocol", "name", "type"],
  ...["outcome", "rcode", "rule", "list", "answers", "upstream", "cached", "dnssec"],
  ...["duration_us", "node", "dnssec_reason"],
] as readonly (keyof QuerylogEntry)[];

/** A proxy, and the server's own limit, close what is silent for longer. */
const HEARTBEAT_MS = 15_000;
/** A watcher has to come again after this, and show again who it is. */
const WATCH_MS_MAX = 3_600_000;
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
  const cells = COLUMNS.map((column) => {
    const value = entry[column];
    return csvCell(Array.isArray(value) ? value.join(" ; ") : String(value ?? ""));
  });
  return `${cells.join(",")}\r\n`;
}

function csvCell(text: string): string {
  // Names are anybody's: what starts like this a spreadsheet would calculate.
  const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/**
 * New entries as server-sent events: each is the `data` of an event, in JSON; an event `skipped` has
 * the number of entries that were too many.
 *
 * @throws {SvcError} `unavailable`, where too many watch already.
 */
export function watchLog(logs: Pick<LogsPort, "watch">, filter: QuerylogFilter): Streamed {
  const waiting: QuerylogEntry[] = [];
  let skipped = 0;
  let isOver = false;
  let wake: (() => void) | null = null;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const end = () => {
    isOver = true;
    wake?.();
  };
  const unwatch = logs.watch(filter, {
    tell(entries, more) {
      skipped += more;
      for (const entry of entries) waiting.push(entry);
      const excess = waiting.length - WAITING_MAX;
      if (excess > 0) skipped += waiting.splice(0, excess).length;
      wake?.();
    },
    end,
  });
  const life = setTimeout(end, WATCH_MS_MAX);
  let isClosed = false;
  const close = () => {
    if (isClosed) return;
    isClosed = true;
    end();
    clearTimeout(timer);
    clearTimeout(life);
    unwatch();
  };
  /** Resolves when there is something to send: news, the end, or a sign of life. */
  const something = () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    wake = resolve;
    clearTimeout(timer);
    timer = setTimeout(resolve, HEARTBEAT_MS);
    return promise;
  };
  let isGreeted = false;
  const body = new ReadableStream<Uint8Array<ArrayBuffer>>({
    async pull(controller) {
      // At once: whoever watches knows that it does.
      if (isGreeted && waiting.length === 0 && skipped === 0 && !isOver) await something();
      isGreeted = true;
      if (isClosed) return; // The reader has left meanwhile.
      const events = waiting.splice(0).map((entry) => `data: ${JSON.stringify(entry)}\n\n`);
      if (skipped > 0) events.unshift(`event: skipped\ndata: ${skipped}\n\n`);
      skipped = 0;
      if (isOver && events.length === 0) {
        close();
        return controller.close();
      }
      controller.enqueue(encoder.encode(events.length > 0 ? events.join("") : ":\n\n"));
    },
    cancel: close,
  }, { highWaterMark: 0 });
  return { type: EVENT_STREAM, body };
}
