import type { LogsPort, QuerylogEntry, QuerylogFilter, Statistics } from "../api/mod.ts";
import { LeakTests, NO_SERIES, STEPS } from "../api/mod.ts";
import type { HostNames } from "./host_names.ts";
import { ClientFinder } from "./client_finder.ts";
import { parseIp } from "../addr/mod.ts";
import { SvcError } from "../errors.ts";
import type { ClientSpec, State } from "../model/mod.ts";
import type { QuerylogSupervisor } from "../isolate/mod.ts";
import type { LogEntry, LogFilter } from "../querylog/mod.ts";

/** A page's end as text: letters and digits, for a query string. */
const CURSOR_BASE = 36;
const CURSOR = /^[0-9a-z]{1,11}$/;

/**
 * The query log and statistics of this node, as the API has them. `names` is `null` where the log is
 * anonymised: an address in it is nobody's.
 */
export function nodeLogs(
  node: string,
  querylog: Pick<
    QuerylogSupervisor,
    "counts" | "names" | "seen" | "search" | "series" | "statistics" | "watch"
  >,
  leakTests: LeakTests,
  state: () => State,
  names: Pick<HostNames, "nameOf" | "macOf"> | null,
): LogsPort {
  const finder = new ClientFinder(state, names === null);
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
    statistics: async ({ hours, scope, step, client, group }) => {
      const isOfAll = step === "1h" && client === undefined && group === undefined;
      const query = {
        hours,
        stepMs: STEPS[step].ms,
        ...(client !== undefined && { clients: keysOf(state(), client) }),
        ...(group !== undefined && { group }),
      };
      const { top, ...counted } = isOfAll
        ? await querylog.statistics(hours)
        : await querylog.counts(query);
      return {
        hours,
        scope,
        step,
        ...counted,
        top: {
          ...top,
          clients: clientRows(top.clients, finder),
          blocked_clients: clientRows(top.blocked_clients, finder),
        },
        nodes: [node],
        unreachable: [],
      };
    },
    clientsSeen: async ({ hours, known }) => {
      const seen = await querylog.seen(hours);
      const found = seen.map((one) => ({ ...one, client: finder.find(one.address)?.id ?? null }));
      const wanted = found.filter(({ client }) =>
        known === undefined || known === (client !== null)
      );
      return {
        items: wanted.map((one) => {
          const { hostname, source } = names?.nameOf(one.address) ?? NO_NAME;
          const mac = names?.macOf(one.address) ?? null;
          return { ...one, hostname, hostname_source: source, mac };
        }),
      };
    },
    clientSeries: async ({ clients: ids = [], hours }) => {
      // What an anonymised log has of a client is its neighbours' as well.
      if (names === null) return NO_SERIES;
      const { clients } = state().collections;
      const found = ids.flatMap((id) => clients.get(id) ?? []);
      const query = { clients: found.map(ownKeys), hours };
      const { since, active, counts } = await querylog.series(query);
      return {
        since,
        active,
        items: found.map(({ id }, i) => ({ client: id, queries: counts[i] })),
      };
    },
    startLeakTest: () => leakTests.start(),
    leakTest: (id) => leakTests.find(id),
    leakTests: () => leakTests.all(),
  };
}

/** What the log has a client by: its addresses and client IDs; else the text as it is. */
function keysOf({ collections: { clients } }: State, text: string): readonly string[] {
  const named = [...clients.values()].filter(({ id, spec }) => id === text || spec.name === text);
  return named.length === 0 ? [text] : named.flatMap(ownKeys);
}

function ownKeys({ spec }: { readonly spec: ClientSpec }): string[] {
  return [...spec.addresses, ...spec.ids, spec.name];
}

type TopClient = Statistics["top"]["clients"][number];

/** Counts by address or client ID as those of clients, whatever these were called at the time. */
function clientRows(
  rows: readonly { readonly name: string; readonly count: number }[],
  finder: ClientFinder,
): TopClient[] {
  const found = new Map<string, TopClient>();
  for (const { name: key, count } of rows) {
    const client = finder.find(key);
    const id = client?.id ?? key;
    const address = parseIp(key) === null ? null : key;
    const known = found.get(id);
    found.set(id, {
      name: client?.spec.name ?? key,
      count: (known?.count ?? 0) + count,
      client: client?.id ?? null,
      address: known?.address ?? address, // Rows come with the most frequent first.
    });
  }
  return [...found.values()].sort((a, b) => b.count - a.count);
}

const NO_NAME = { hostname: null, source: null } as const;

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
