import type { Place } from "../../logexport/mod.ts";
import type { ToKept } from "../kept_isolate.ts";

/** Who is sent to, and how. */
export type ExportTo =
  | {
    readonly kind: "dnstap";
    readonly place: Place;
    readonly identity: string;
    readonly isAnonymized: boolean;
  }
  | {
    readonly kind: "otlp";
    readonly endpoint: string;
    /** IP addresses of the endpoint's host. */
    readonly addresses: readonly string[];
    /** They may hold secrets. */
    readonly headers: Readonly<Record<string, string>>;
    readonly caPem: string | null;
    readonly node: string;
  };

export interface ExportStart {
  readonly to: ExportTo;
  /** Whom log lines are about. */
  readonly fields: Readonly<Record<"exporter" | "to", string>>;
  readonly version: string;
  readonly queue: SharedArrayBuffer;
  readonly figures: SharedArrayBuffer;
  /** As configured, by number. */
  readonly upstreams: readonly string[];
}

export type ToExport =
  | { readonly type: "start"; readonly options: ExportStart; readonly handsLogOn: boolean }
  | ToKept
  /** Send what waits, for so long at most, then say `stopped`. */
  | { readonly type: "stop"; readonly graceMs: number };

export type FromExport =
  | { readonly type: "ready" }
  | { readonly type: "pong" }
  /** A try failed. */
  | { readonly type: "failed" }
  | { readonly type: "stopped" };
