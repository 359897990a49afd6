import type { HostPort, IpPrefix } from "../addr/mod.ts";
import type { TrustAnchor } from "../dnssec/mod.ts";
import type { CompileSource, SourcedRule, SourceStats } from "../filter/mod.ts";
import type { PROTOCOL_NAMES } from "../logqueue/mod.ts";
import type {
  AskHow,
  Found,
  OwnAnswer,
  RateLimitOptions,
  StrategyOptions,
  TtlBounds,
  UpstreamSpec,
} from "../resolver/mod.ts";
import type { RecursionOptions } from "../resolver/recursive/mod.ts";
import type { WayToThread } from "./check/messages.ts";
import type { ToKept } from "./kept_isolate.ts";
import type { Logged } from "./log_lines.ts";
import type { SlowQuery, SlowSample } from "./dns/slow_queries.ts";
import type { SnapshotData } from "../snapshot/mod.ts";
import type {
  DohLimits,
  DoqLimits,
  DotLimits,
  EncryptedUpstream,
  Occupancy,
  TcpLimits,
  TlsIdentity,
} from "../transport/mod.ts";

/** An upstream as it travels to a dns isolate. */
export type DnsUpstream =
  | UpstreamSpec & { readonly transport: "udp"; readonly endpoint: HostPort }
  /** `host` is the name to look up where there are no `ips`. */
  | UpstreamSpec & EncryptedUpstream & { readonly host: string };

/** Sockets that the main isolate opened and keeps: they outlive whoever reads them. */
export interface DnsSockets {
  readonly udp: readonly number[];
  readonly tcp: readonly number[];
  readonly dot: readonly number[];
  readonly doh: readonly number[];
  /** Ends the parked wait of an isolate that is gone. */
  readonly wake: number;
  readonly epoll: number;
  /** Where the kernel writes what is ready; kept by the main isolate for the same reason. */
  readonly eventMemory: SharedArrayBuffer;
  /** Where messages to the isolate are counted; see `Inbox`. */
  readonly inboxMemory: SharedArrayBuffer;
  /** Where the isolate notes the sockets it opens itself, so that they can be closed after it. */
  readonly exchangeMemory: SharedArrayBuffer;
}

/** The encrypted listeners. */
export interface DnsTls {
  /** `null` as long as there is none that can be used: handshakes fail until one comes. */
  readonly identity: TlsIdentity | null;
  /** The domain that client IDs stand before, in lower case. */
  readonly serverName: string | null;
  readonly dot: readonly HostPort[];
  readonly doh: readonly HostPort[];
  /** QUIC shares no port: these are the first isolate's, which opens them itself. */
  readonly doq: readonly HostPort[];
  /** Another process has the ports of QUIC until it ends. */
  readonly waitsForDoq: boolean;
  readonly dotLimits: DotLimits;
  readonly doqLimits: DoqLimits;
  readonly dohLimits: DohLimits;
  /** Of the keys of Oblivious DoH, the current one first; none: the service is no target. */
  readonly odohSeeds: readonly Uint8Array[];
}

/** What answers are held against. */
export interface DnsTrust {
  readonly anchors: readonly TrustAnchor[];
  /** Names, uncompressed, at and below which nothing is validated. */
  readonly negative: readonly Uint8Array[];
  /**
   * Seconds since 1970 that the time is past, where the system's clock says less and is not believed;
   * `null`: it is.
   */
  readonly pastS: number | null;
}

/** How name servers are asked; in structured clones, hints and all. */
export type DnsRecursion = RecursionOptions;

/** What a dns isolate is started with. */
export interface DnsStart {
  readonly index: number;
  /** Of every hash of a name in this process; the rules are compiled with it. */
  readonly seed: number;
  /** Of DNS cookies; of every isolate of this process. */
  readonly cookieSecret: Uint8Array;
  /** `null` where the C library can't be had: the isolate listens on `listen` itself. */
  readonly sockets: DnsSockets | null;
  readonly listen: readonly HostPort[];
  readonly counters: SharedArrayBuffer;
  /** Where answered queries are noted; `null`: nowhere. */
  readonly logQueue: SharedArrayBuffer | null;
  readonly upstreams: readonly DnsUpstream[];
  /** Domains whose upstreams can't be used: their names are asked of nobody. */
  readonly lostDomains: readonly Uint8Array[];
  readonly strategy: StrategyOptions;
  /** Queries on their way to upstreams at one time; each may take a descriptor. */
  readonly openMax: number;
  readonly cacheBytes: number;
  /** Cached answers that another isolate has saved; `null`: it begins with none. */
  readonly savedAnswers: SharedArrayBuffer | null;
  readonly ttl: TtlBounds;
  /** Seconds. */
  readonly serveStale: number;
  readonly prefetch: boolean;
  /** `null`: nothing is validated. */
  readonly trust: DnsTrust | null;
  /** `null`: upstreams are asked for every name. */
  readonly recursion: DnsRecursion | null;
  /** The prefix behind which AAAA is made of A, and networks that do not count; `null`: it is not. */
  readonly dns64: { readonly prefix: IpPrefix; readonly exclude: readonly IpPrefix[] } | null;
  /** Names, uncompressed, at and below which private addresses stay; `null`: they stay everywhere. */
  readonly rebindingExempt: readonly Uint8Array[] | null;
  /** A name that can't be checked gets SERVFAIL. */
  readonly failClosed: boolean;
  /** Which queries that waited are told with `pong`; `null`: none. */
  readonly traces: SlowSample | null;
  /** Once it has its sockets it gives up the right to call any more of the C library. */
  readonly isShutIn: boolean;
  /** Log lines are handed on with `logged`. */
  readonly handsLogOn: boolean;
  /** `null`: no client is limited. */
  readonly rateLimit: RateLimitOptions | null;
  /** Networks whose clients have no limit, neither of queries nor of those that wait. */
  readonly neverLimited: readonly IpPrefix[];
  /** The buckets of all clients, which the isolates share. */
  readonly buckets: SharedArrayBuffer;
  /** Encrypted queries without a known client ID are refused. */
  readonly requireClientId: boolean;
  readonly tcp: TcpLimits;
  /** `null`: no encrypted listener. */
  readonly tls: DnsTls | null;
  readonly snapshot: SnapshotData;
}

export type ToDns =
  | { readonly type: "start"; readonly start: DnsStart }
  | { readonly type: "snapshot"; readonly snapshot: SnapshotData }
  /**
   * Answer what waits, take nothing new, then say `drained`. With a successor, connections are
   * left to it, and end as they come to rest.
   */
  | { readonly type: "drain"; readonly graceMs: number; readonly successor: boolean }
  /** Say `saved`, with the cached answers. */
  | { readonly type: "save" }
  /** Forget every cached answer, then say `flushed`. */
  | { readonly type: "flush" }
  /** Find the addresses of a name for the service itself, then say `lookedUp`. */
  | {
    readonly type: "lookup";
    readonly id: number;
    readonly hostname: string;
    readonly qtype: number;
  }
  /** Ask the query of this packet for the service itself, then say `asked`. */
  | {
    readonly type: "ask";
    readonly id: number;
    readonly packet: Uint8Array;
    readonly how: AskHow;
  }
  /** Show this certificate from now on; connections that stand stay. */
  | { readonly type: "certificate"; readonly identity: TlsIdentity }
  /** Validate by these from now on. */
  | { readonly type: "trust"; readonly trust: DnsTrust }
  /** A way to a thread that checks signatures, in place of that to the one before it. */
  | { readonly type: "checker"; readonly way: WayToThread }
  /** Go on with these keys of Oblivious DoH, the current one first. */
  | { readonly type: "odoh"; readonly seeds: readonly Uint8Array[] }
  | ToKept;

/** Ports listened on, in the order of the addresses. */
export interface DnsPorts {
  readonly listen: readonly number[];
  readonly dot: readonly number[];
  readonly doh: readonly number[];
  readonly doq: readonly number[];
}

/** Protocols that have connections. */
export const STREAM_PROTOCOLS = ["tcp", "dot", "doh", "doq"] as const;
export type StreamProtocol = typeof STREAM_PROTOCOLS[number];

/** What a dns isolate says of itself now and then. */
export interface DnsReport {
  readonly cacheEntries: number;
  readonly cacheBytes: number;
  /** Entries that were pushed out before their time. */
  readonly cacheEvicted: number;
  /** Of each protocol that is listened on; `null` of the others. */
  readonly connections: Readonly<Record<StreamProtocol, Occupancy | null>>;
  /** Connections that were ended for what all of them held together, since the isolate began. */
  readonly cutOff: { readonly unfinished: number; readonly unread: number };
  /** Queries were not sent of late because the process has no socket left. */
  readonly lacksSockets: boolean;
  /** Addresses of name servers, and zones and names, that something is known of. */
  readonly recursion: { readonly servers: number; readonly zones: number };
  /** Keys of a trust anchor fail by the time alone: the clock may be wrong. */
  readonly clockSuspect: boolean;
  /** In the order of `DnsStart.upstreams`; `latencyMs` is -1 before the first answer. */
  readonly upstreams: readonly {
    readonly healthy: boolean;
    readonly latencyMs: number;
    /** Failures since its last answer. */
    readonly failures: number;
    /** What is wrong with one that is not healthy, behind its address. */
    readonly reason: string;
    /** Queries sent to it, and those that failed, since the isolate began. */
    readonly sent: number;
    readonly failed: number;
    /** Those whose answer was not waited for. */
    readonly calledOff: number;
  }[];
}

/** A query for a name that a leak test may have. */
export interface LeakLookup {
  /** In lower case. */
  readonly name: string;
  readonly address: string;
  readonly protocol: typeof PROTOCOL_NAMES[number];
  /** The client's name; `null` of one that is not known. */
  readonly client: string | null;
}

export type FromDns =
  /** Queries are answered. */
  | { readonly type: "ready"; readonly ports: DnsPorts }
  | { readonly type: "swapped"; readonly generation: number }
  | { readonly type: "drained" }
  | { readonly type: "leak"; readonly lookup: LeakLookup }
  | { readonly type: "flushed" }
  /** Its garbage is collected: the C library has what that was made of. */
  | { readonly type: "gaveBack" }
  | { readonly type: "saved"; readonly answers: SharedArrayBuffer }
  | { readonly type: "lookedUp"; readonly id: number; readonly found: Found }
  | { readonly type: "asked"; readonly id: number; readonly answer: OwnAnswer }
  | {
    readonly type: "pong";
    readonly report: DnsReport;
    /** A sample of the queries that waited since the last one. */
    readonly slow: readonly SlowQuery[];
  };

/** The texts of all sources, moved to the compile isolate. */
export interface CompileRequest {
  /** Log lines are handed on with `logged`. */
  readonly handsLogOn: boolean;
  readonly seed: number;
  readonly sources: readonly (CompileSource & { readonly bytes: Uint8Array<ArrayBuffer> })[];
}

export type CompileResponse =
  | Logged
  | {
    readonly type: "compiled";
    readonly rules: SharedArrayBuffer;
    /** SHA-256 of the rules, for the copy that is kept on disk. */
    readonly rulesSha256: Uint8Array<ArrayBuffer>;
    readonly stats: SourceStats[];
    /** See `CompileResult.badfilters`. */
    readonly badfilters: SourcedRule[];
  }
  | { readonly type: "failed"; readonly error: string };
