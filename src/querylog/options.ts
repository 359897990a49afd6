import type { SystemClocks } from "../clock/mod.ts";
import type { openDatabase } from "./database.ts";
import type { LiveBatch } from "./live_feed.ts";
import type { LogExport } from "./log_exports.ts";

export interface QueryLogOptions {
  readonly directory: string;
  readonly maxEntries: number;
  readonly retentionMs: number;
  /** By whose midnight days begin: the name of an IANA time zone; `null`: the machine's. */
  readonly timeZone: string | null;
  /** Only the first 24 bits of IPv4 and 56 of IPv6 addresses are kept. */
  readonly anonymize: boolean;
  /** As configured, by number. */
  readonly upstreams: readonly string[];
  /** When this program was released, in milliseconds since 1970: no clock is before that. */
  readonly releasedMs: number;
  readonly queues: readonly SharedArrayBuffer[];
  /** Those who send entries elsewhere. */
  readonly exports: readonly LogExport[];
  /** Memory of `figuresMemory`. */
  readonly figures: SharedArrayBuffer;
}

export interface QueryLogPorts extends SystemClocks {
  /** What keeps the log from being written; `null` once it is again. */
  readonly onProblem: (problem: string | null) => void;
  /** New entries for somebody who watches. */
  readonly onLive: (batch: LiveBatch) => void;
  /** The file was opened, and its newest entry is of this time. */
  readonly onNewest?: (newestMs: number) => void;
  /** Opens the file; as `openDatabase`, if left out. */
  readonly open?: typeof openDatabase;
}
