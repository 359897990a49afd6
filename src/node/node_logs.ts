import type { LogsPort, QuerylogEntry, QuerylogFilter } from "../api/mod.ts";
import { LeakTests } from "../api/mod.ts";
import { SvcError } from "../errors.ts";
import type { QuerylogSupervisor } from "../isolate/mod.ts";
import type { LogEntry, LogFilter } from "../querylog/mod.ts";

/** A page's end as text: letters and digits, for a query string. */
const CURSOR_BASE = 36;
const CURSOR = /^[0-9a-z]{1,11}$/;

/** The query log and statistics of this node, as the API has them. */
export function nodeLogs(
  node: string,
  querylog: Pick<QuerylogSupervisor, "search" | "statistics" | "watch">,
  leakTests: LeakTests,
): LogsPort {
  const show = (entry: LogEntry): QuerylogEntry => ({ ...entry, node });
  return {
    search: async ({ limit, next, ...filter }) => {
      const page = await querylog.search(filterOf(filter), limit, cursorOf(next));
      return {
        entries: page.entries.map(show),
        next: page.next === null ? null : page.next.toString(CURSOR_BASE),
      };
    },
    watch: (filter, watcher) =>
      querylog.watch(filterOf(filter), {
        tell: (entries, skipped) => watcher.tell(entries.map(show), skipped),
        end: () => watcher.end(),
      }),
    statistics: async ({ hours, scope }) => ({
      hours,
      scope,
      ...await querylog.statistics(hours),
      nodes: [node],
      unreachable: [],
    }),
    startLeakTest: () => leakTests.start(),
    leakTest: (id) => leakTests.find(id),
    leakTests: () => leakTests.all(),
  };
}

function filterOf({ since, until, ...rest }: QuerylogFilter): LogFilter {
  const { outcome, client, name } = rest;
  return {
    ...(outcome !== undefined && { outcome }),
    ...(client !== undefined && { client }),
    ...(name !== undefined && { name }),
    ...(since !== undefined && { sinceMs: Date.parse(since) }),
    ...(until !== undefined && { untilMs: Date.parse(until) }),
  };
}

/** @throws {SvcError} `bad_request`, for what no answer gave out. */
function cursorOf(next: string | undefined): number | null {
  if (next === undefined) return null;
  const cursor = CURSOR.test(next) ? parseInt(next, CURSOR_BASE) : NaN;
  if (!Number.isSafeInteger(cursor)) throw new SvcError("bad_request", "next: it is no cursor");
  return cursor;
}
