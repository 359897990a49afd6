import type { Clock } from "../clock/mod.ts";
import { OUTCOME_NAMES } from "../logqueue/mod.ts";
import type { LogsPort } from "./ports.ts";
import type { LeakTests } from "./leak_tests.ts";
import type { Statistics } from "./schemas/logs.ts";

const HOUR_MS = 3_600_000;

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
    statistics: ({ hours, scope }) => {
      const thisHour = Math.floor(clock.nowMs() / HOUR_MS);
      const series = Array.from({ length: hours }, (_, i) => ({
        time: new Date((thisHour - hours + 1 + i) * HOUR_MS).toISOString(),
        ...noCounts(),
      }));
      const top = { names: [], blocked: [], clients: [] };
      return Promise.resolve({
        hours,
        scope,
        total: 0,
        outcomes: noCounts(),
        series,
        top,
        nodes: [node],
        unreachable: [],
      });
    },
    startLeakTest: () => leakTests.start(),
    leakTest: (id) => leakTests.find(id),
    leakTests: () => leakTests.all(),
  };
}
