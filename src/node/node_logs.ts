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
  querylog: Pick<QuerylogSupervisor, "names" | "search" | "statistics" | "watch">,
  leakTests: LeakTests,
): LogsPort {
  const show = ({ id, ...entry }: LogEntry): QuerylogEntry => ({
    id: id.toString(CURSOR_BASE),
    ...entry,
    node,
  });
  const nextOf = ({ next }: { next: number | null }) => next?.toString(CURSOR_BASE) ?? null;
  return {
    search: async ({ limit, next, distinct, after, ...rest }) => {
      const filter = {
        ...filterOf(rest),
        ...(after !== undefined && { afterId: cursorOf(after)! }),
      };
      if (distinct === "name") {
        const page = await querylog.names(filter, limit, cursorOf(next));
        return { entries: [], names: page.names, next: nextOf(page) };
      }
      const page = await querylog.search(filter, limit, cursorOf(next));
      return { entries: page.entries.map(show), next: nextOf(page) };
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
  const { outcome, type, protocol, group, list, upstream, client, name } = rest;
  return {
    ...(outcome !== undefined && { outcomes: outcome }),
    ...(type !== undefined && { type: type.toUpperCase() }),
    ...(protocol !== undefined && { protocol }),
    ...(group !== undefined && { group }),
    ...(list !== undefined && { list }),
    ...(upstream !== undefined && { upstream }),
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
