import type { Clock } from "../clock/mod.ts";
import { OUTCOME_NAMES } from "../logqueue/mod.ts";
import type { LogsPort } from "./ports.ts";
import type { LeakTests } from "./leak_tests.ts";
import type { ClientSeries } from "./schemas/clients_seen.ts";
import { type Statistics, STEPS } from "./schemas/statistics.ts";

const HOUR_MS = 3_600_000;

export const NO_LATENCY = { p50_ms: null, p95_ms: null, p99_ms: null } as const;

/** Of a node that counts nothing by client. */
export const NO_SERIES: ClientSeries = { since: null, active: [], items: [] };

/** Zero for each outcome. */
export function noCounts(): Statistics["outcomes"] {
  return Object.fromEntries(OUTCOME_NAMES.map((name) => [name, 0])) as Statistics["outcomes"];
}

/** The logs of a node that keeps none: every query is answered, with nothing in it. */
export function emptyLogs(
  node: string,
  clock: Clock,
  leakTests: LeakTests,
): LogsPort {
  return {
    search: () => Promise.resolve({ entries: [], next: null }),
    watch: (_, watcher) => {
      watcher.end();
      return () => undefined;
    },
    statistics: ({ hours, scope, step }) => {
      const { ms } = STEPS[step];
      const steps = Math.ceil(hours * HOUR_MS / ms);
      const first = Math.floor(clock.nowMs() / ms) - steps + 1;
      const series = Array.from({ length: steps }, (_, i) => ({
        time: new Date((first + i) * ms).toISOString(),
        ...noCounts(),
        latency: NO_LATENCY,
      }));
      const top = { names: [], blocked: [], clients: [], blocked_clients: [], lists: [] };
      const none = { total: 0, outcomes: noCounts(), latency: NO_LATENCY };
      return Promise.resolve({
        hours,
        scope,
        step,
        ...none,
        previous: none,
        series,
        top,
        upstreams: [],
        nodes: [node],
        unreachable: [],
      });
    },
    clientsSeen: () => Promise.resolve({ items: [] }),
    clientSeries: () => Promise.resolve(NO_SERIES),
    startLeakTest: () => leakTests.start(),
    leakTest: (id) => leakTests.find(id),
    leakTests: () => leakTests.all(),
  };
}
