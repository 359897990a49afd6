import type { ErrorCode } from "../../errors.ts";
import type {
  CountsQuery,
  HourSeries,
  LiveBatch,
  LogFilter,
  LogPage,
  LogStatistics,
  NamePage,
  QueryLogOptions,
  SeenAddress,
  SeriesQuery,
} from "../../querylog/mod.ts";
import type { ToKept } from "../kept_isolate.ts";

/** What is asked of the query log, by number. */
export type LogQuestion =
  | {
    /** `names`: each name once. */
    readonly type: "search" | "names";
    readonly filter: LogFilter;
    readonly limit: number;
    /** Where the former page ended; `null` for the newest entries. */
    readonly before: number | null;
  }
  | { readonly type: "statistics"; readonly hours: number }
  /** By short steps, or for some clients. */
  | { readonly type: "counts"; readonly query: CountsQuery }
  | { readonly type: "seen"; readonly hours: number }
  | { readonly type: "series"; readonly query: SeriesQuery };

export type LogAnswer = LogPage | NamePage | LogStatistics | readonly SeenAddress[] | HourSeries;

export type ToLog =
  | {
    readonly type: "start";
    readonly options: QueryLogOptions;
    /** Log lines are handed on with `logged`. */
    readonly handsLogOn: boolean;
  }
  | { readonly type: "ask"; readonly id: number; readonly question: LogQuestion }
  /** Tell of entries that pass as they come, until `unwatch`. */
  | { readonly type: "watch"; readonly watcher: number; readonly filter: LogFilter }
  | { readonly type: "unwatch"; readonly watcher: number }
  | ToKept
  /** Write what waits, then say `stopped`. */
  | { readonly type: "stop" };

export type FromLog =
  | { readonly type: "ready" }
  | { readonly type: "pong" }
  | { readonly type: "answer"; readonly id: number; readonly answer: LogAnswer }
  | {
    readonly type: "refused";
    readonly id: number;
    readonly code: ErrorCode;
    readonly message: string;
  }
  | { readonly type: "live"; readonly batch: LiveBatch }
  /** What keeps the log from being written; `null` once it is again. */
  | { readonly type: "problem"; readonly problem: string | null }
  /** The newest entry of the file that was opened, in milliseconds since 1970. */
  | { readonly type: "newest"; readonly newestMs: number }
  | { readonly type: "stopped" };
