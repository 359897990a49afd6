import type { HostPort } from "../addr/mod.ts";
import type { SourceStats } from "../filter/mod.ts";
import type { TtlBounds } from "../resolver/mod.ts";
import type { SnapshotData } from "../snapshot/mod.ts";
import type { TcpLimits } from "../transport/mod.ts";

/** An upstream as it travels to a dns isolate. */
export interface DnsUpstream {
  readonly address: string;
  readonly endpoint: HostPort;
  readonly timeoutMs: number;
  /** Uncompressed names in lower case. */
  readonly domains: readonly Uint8Array[];
}

/** Sockets that the main isolate opened and keeps: they outlive whoever reads them. */
export interface DnsSockets {
  readonly udp: readonly number[];
  readonly tcp: readonly number[];
  /** Ends the parked wait of an isolate that is gone. */
  readonly wake: number;
  readonly epoll: number;
  /** Where the kernel writes what is ready; kept by the main isolate for the same reason. */
  readonly eventMemory: SharedArrayBuffer;
  /** Where the isolate notes the sockets it opens itself, so that they can be closed after it. */
  readonly exchangeMemory: SharedArrayBuffer;
}

/** What a dns isolate is started with. */
export interface DnsStart {
  readonly index: number;
  /** Of every hash of a name in this process; the rules are compiled with it. */
  readonly seed: number;
  /** `null` where the C library can't be had: the isolate listens on `listen` itself. */
  readonly sockets: DnsSockets | null;
  readonly listen: readonly HostPort[];
  readonly counters: SharedArrayBuffer;
  readonly upstreams: readonly DnsUpstream[];
  readonly cacheBytes: number;
  readonly ttl: TtlBounds;
  /** Seconds. */
  readonly serveStale: number;
  readonly prefetch: boolean;
  readonly tcp: TcpLimits;
  readonly snapshot: SnapshotData;
}

export type ToDns =
  | { readonly type: "start"; readonly start: DnsStart }
  | { readonly type: "snapshot"; readonly snapshot: SnapshotData }
  /** Answer what waits, take nothing new, then say `drained`. */
  | { readonly type: "drain"; readonly graceMs: number }
  /** Forget every cached answer, then say `flushed`. */
  | { readonly type: "flush" }
  | { readonly type: "ping" };

/** What a dns isolate says of itself now and then. */
export interface DnsReport {
  readonly cacheEntries: number;
  readonly cacheBytes: number;
  /** In the order of `DnsStart.upstreams`; `latencyMs` is -1 before the first answer. */
  readonly upstreams: readonly {
    readonly healthy: boolean;
    readonly latencyMs: number;
    readonly failures: number;
  }[];
}

export type FromDns =
  /** Queries are answered; `ports` are those listened on, as `listen` has them. */
  | { readonly type: "ready"; readonly ports: readonly number[] }
  | { readonly type: "swapped"; readonly generation: number }
  | { readonly type: "drained" }
  | { readonly type: "flushed" }
  | { readonly type: "pong"; readonly report: DnsReport }
  /** It can't go on; the supervisor replaces it. */
  | { readonly type: "crashed"; readonly error: string };

/** The text of one source, moved to the compile isolate. */
export interface CompileRequest {
  readonly seed: number;
  readonly sources: readonly Uint8Array<ArrayBuffer>[];
}

export type CompileResponse =
  | {
    readonly type: "compiled";
    readonly rules: SharedArrayBuffer;
    readonly stats: SourceStats[];
    /** See `CompileResult.badfilters`. */
    readonly badfilters: string[];
  }
  | { readonly type: "failed"; readonly error: string };
