/** Whether the limit on open files carries what a configuration may have open. Scope: none. @module */
import type { Config } from "../config/mod.ts";
import type { FileLimit } from "../native/mod.ts";
import { OPEN_MAX } from "../resolver/mod.ts";
import { workersOf } from "./isolate_counts.ts";

/** Connections of one isolate at a time, by transport. QUIC has one socket for all of them. */
export const CONNECTIONS_MAX = { tcp: 1_024, dot: 2_048, doh: 2_048 } as const;
/** Listeners, databases, lists, libraries and connections of the API. */
const OTHER_FILES = 256;
/** Share of the limit for queries to upstreams; connections of clients have the rest. */
const UPSTREAM_PART = 0.5;

/** Queries that one isolate may have on their way to upstreams. */
export function openMaxOf(limit: FileLimit | null, workers: number): number {
  if (limit === null) return OPEN_MAX;
  return Math.max(1, Math.min(OPEN_MAX, Math.floor(limit.soft * UPSTREAM_PART / workers)));
}

/** Files that may be open at one time, where everything is as busy as it may be. */
export function filesWanted(config: Config): number {
  const { listen, tls } = config.server;
  const connections = (listen.length > 0 ? CONNECTIONS_MAX.tcp : 0) +
    (tls.dot.length > 0 ? CONNECTIONS_MAX.dot : 0) +
    (tls.doh.length > 0 ? CONNECTIONS_MAX.doh : 0);
  return OTHER_FILES + workersOf(config) * (connections + OPEN_MAX);
}

/** What to tell of a limit that is too low for a configuration; `null`: it is not. */
export function fileLimitWarning(config: Config, limit: FileLimit | null): string | null {
  const wanted = filesWanted(config);
  if (limit === null || limit.hard >= wanted) return null;
  return `the limit on open files is ${limit.hard}, and this configuration may need ${wanted}: ` +
    "raise it (LimitNOFILE of the unit, ulimit -n), or connections and queries to upstreams are " +
    "turned away earlier";
}
