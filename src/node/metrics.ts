import type { Status } from "../api/mod.ts";
import type { ChannelFigures, MemberFigures } from "../cluster/mod.ts";
import type { DnsSupervisor, ExportFigures } from "../isolate/mod.ts";
import { OUTCOME_NAMES, PROTOCOL_NAMES } from "../logqueue/mod.ts";
import {
  Counter,
  type CounterBlock,
  LATENCY_BOUNDS_MS,
  type MetricFamily,
  type Sample,
  SENT_BOUNDS,
  sumCounters,
  sumLatencies,
  sumOutcome,
  sumRecursion,
} from "../telemetry/mod.ts";
import type { Occupancy } from "../transport/mod.ts";
import type { Webhooks } from "../webhooks/mod.ts";
import { channelFamilies, clusterFamilies } from "./cluster_metrics.ts";
import { connectionFamilies } from "./connections.ts";

/** What the metrics are made of at the moment they are asked for. */
export interface MetricsFacts {
  readonly version: string;
  readonly deno: string;
  readonly startedAtMs: number;
  /** By a clock that nobody sets. */
  readonly uptimeMs: number;
  /** Memory of the process that is in use. */
  readonly residentBytes: number;
  readonly counters: readonly CounterBlock[];
  readonly crashes: number;
  readonly running: DnsSupervisor["running"];
  readonly reports: DnsSupervisor["reports"];
  readonly status: Pick<
    Status,
    "problems" | "filter" | "cache" | "upstreams" | "querylog"
  >;
  /** How long the last build of the filter took. */
  readonly buildMs: number | null;
  readonly logExports: readonly ExportFigures[];
  readonly exportFailures: number;
  readonly querylogWritten: number;
  readonly uncaughtErrors: number;
  /** `null` on a node that is in no cluster. */
  readonly cluster: MemberFigures | null;
  readonly channel: ChannelFigures | null;
  /** `null` where the API is not served. */
  readonly apiOccupancy: Occupancy | null;
  readonly eventReadersDropped: number;
  /** Of the encrypted listeners; `null`: there is none. */
  readonly certificateEndsMs: number | null;
  /** `null` where the service gets no certificate by itself. */
  readonly acme: { readonly issued: number; readonly failed: number } | null;
  readonly webhooks: Webhooks["figures"];
  /** Addresses are shortened, as in the query log. */
  readonly isAnonymized: boolean;
}

/** Every family of metrics of a node, in the order they are told. */
export function metricFamilies(facts: MetricsFacts): MetricFamily[] {
  const { status: { filter, cache, querylog, problems } } = facts;
  return [
    ...queryFamilies(facts.counters),
    ...transportFamilies(facts.counters),
    ...clusterFamilies(facts.cluster),
    ...channelFamilies(facts.channel),
    ...connectionFamilies({ reports: facts.reports, api: facts.apiOccupancy }, facts.isAnonymized),
    gauge("svc_cache_entries", "Answers in the cache.", cache.entries),
    gauge("svc_cache_bytes", "Memory of the answers in the cache.", cache.bytes),
    counter("svc_cache_hits_total", "Questions that the cache could answer.", cache.hits),
    counter("svc_cache_misses_total", "Questions that the cache could not answer.", cache.misses),
    counter(
      "svc_cache_evictions_total",
      "Answers pushed out of the cache before their time.",
      facts.reports.reduce((sum, { cacheEvicted }) => sum + cacheEvicted, 0),
    ),
    ...upstreamFamilies(facts),
    gauge(
      "svc_recursion_servers",
      "Addresses of name servers that something is known of, at the isolate that knows most.",
      Math.max(0, ...facts.reports.map(({ recursion }) => recursion.servers)),
    ),
    gauge(
      "svc_recursion_zones",
      "Delegations and names inside of zones that are kept, at the isolate that keeps most.",
      Math.max(0, ...facts.reports.map(({ recursion }) => recursion.zones)),
    ),
    gauge("svc_filter_rules", "Rules in force.", filter.rules),
    gauge("svc_filter_generation", "Number of the snapshot in force.", filter.generation),
    gauge("svc_filter_memory_bytes", "Memory of the rules in force.", filter.memory_bytes),
    gauge(
      "svc_filter_built_timestamp_seconds",
      "When the rules of the lists were built, in seconds since 1970; 0 before the first time.",
      filter.built_at === null ? 0 : Date.parse(filter.built_at) / 1_000,
    ),
    gauge(
      "svc_filter_build_duration_seconds",
      "How long the last build of the rules took; 0 before the first since the start.",
      (facts.buildMs ?? 0) / 1_000,
    ),
    counter(
      "svc_filter_failures_total",
      "Queries that the filter failed on.",
      sumCounters(facts.counters, Counter.FilterFailures),
    ),
    gauge("svc_querylog_entries", "Entries in the query log.", querylog.entries),
    counter(
      "svc_querylog_written_total",
      "Entries that the query log has written to its file.",
      facts.querylogWritten,
    ),
    counter(
      "svc_querylog_dropped_total",
      "Queries that the query log had no room for.",
      querylog.dropped,
    ),
    ...logExportFamilies(facts.logExports),
    ...certificateFamilies(facts),
    gauge("svc_degraded", "1 while the status names a problem.", problems.length > 0 ? 1 : 0),
    counter(
      "svc_telemetry_export_failures_total",
      "Requests to the telemetry endpoint that failed.",
      facts.exportFailures,
    ),
    counter(
      "svc_telemetry_traces_dropped_total",
      "Sampled traces that found no room to wait.",
      sumCounters(facts.counters, Counter.TracesDropped),
    ),
    counter(
      "svc_api_event_readers_dropped_total",
      "Readers of the API's events that were dropped as too slow.",
      facts.eventReadersDropped,
    ),
    {
      name: "svc_webhook_events_total",
      type: "counter",
      help: "Events for webhooks, by what came of them.",
      samples: (["delivered", "failed", "dropped"] as const).map((outcome) => ({
        labels: { outcome },
        value: facts.webhooks[outcome],
      })),
    },
    gauge("svc_webhook_waiting", "Events that wait to be sent.", facts.webhooks.waiting),
    gauge("svc_isolates_running", "Isolates that answer queries.", facts.running.now),
    counter(
      "svc_uncaught_errors_total",
      "Errors outside of the DNS path that nothing was prepared for.",
      facts.uncaughtErrors,
    ),
    counter("svc_isolate_crashes_total", "Isolates that were started again.", facts.crashes),
    {
      name: "svc_build_info",
      type: "gauge",
      help: "Always 1; the labels say what runs.",
      samples: [{ labels: { version: facts.version, deno: facts.deno }, value: 1 }],
    },
    gauge("svc_uptime_seconds", "Time since the start.", facts.uptimeMs / 1_000),
    gauge("process_resident_memory_bytes", "Memory of the process.", facts.residentBytes),
    gauge(
      "process_start_time_seconds",
      "When the process started, in seconds since 1970.",
      facts.startedAtMs / 1_000,
    ),
  ];
}

/** What leaves of the query log; nothing where it stays. */
function logExportFamilies(exports: readonly ExportFigures[]): MetricFamily[] {
  if (exports.length === 0) return [];
  const samples = (value: (one: ExportFigures) => number): Sample[] =>
    exports.map((one) => ({ labels: { exporter: one.exporter }, value: value(one) }));
  return [
    {
      name: "svc_querylog_export_sent_total",
      type: "counter",
      help: "Entries of the query log that were sent, by exporter.",
      samples: samples(({ sent }) => sent),
    },
    {
      name: "svc_querylog_export_dropped_total",
      type: "counter",
      help: "Entries that found no room while a receiver lagged, or that it never took.",
      samples: samples(({ dropped }) => dropped),
    },
    {
      name: "svc_querylog_export_failures_total",
      type: "counter",
      help: "Connections, handshakes and batches that failed.",
      samples: samples(({ failures }) => failures),
    },
    {
      name: "svc_querylog_export_failing",
      type: "gauge",
      help: "1 while the last try to send failed.",
      samples: samples(({ isFailing }) => isFailing ? 1 : 0),
    },
  ];
}

/** What became of queries, and how long they took. */
function queryFamilies(blocks: readonly CounterBlock[]): MetricFamily[] {
  const sum = (name: string, help: string, which: Counter) =>
    counter(name, help, sumCounters(blocks, which));
  return [
    {
      name: "svc_queries_total",
      type: "counter",
      help: "Queries by outcome and protocol.",
      samples: PROTOCOL_NAMES.flatMap((protocol, transport) =>
        OUTCOME_NAMES.map((outcome, i) => ({
          labels: { outcome, protocol },
          value: sumOutcome(blocks, i, transport),
        }))
      ),
    },
    {
      name: "svc_query_duration_seconds",
      type: "histogram",
      help: "Time from a query's arrival to its response, by protocol.",
      bounds: LATENCY_BOUNDS_MS.map((ms) => ms / 1_000),
      samples: PROTOCOL_NAMES.map((protocol, transport) => {
        const { counts, sumMs } = sumLatencies(blocks, transport);
        return { labels: { protocol }, counts, sum: sumMs / 1_000 };
      }),
    },
    by("svc_rate_limited_total", "Queries over the limit of their client, by protocol.", blocks, {
      udp: Counter.RateLimitedUdp,
      tcp: Counter.RateLimitedTcp,
      dot: Counter.RateLimitedDot,
      doh: Counter.RateLimitedDoh,
      doq: Counter.RateLimitedDoq,
    }),
    by(
      "svc_access_refused_total",
      "Queries and connections that access control refused, by protocol.",
      blocks,
      {
        udp: Counter.AccessRefusedUdp,
        tcp: Counter.AccessRefusedTcp,
        dot: Counter.AccessRefusedDot,
        doh: Counter.AccessRefusedDoh,
        doq: Counter.AccessRefusedDoq,
        odoh: Counter.AccessRefusedOdoh,
      },
    ),
    sum("svc_stale_answers_total", "Answers past their time.", Counter.Stale),
    sum("svc_merged_queries_total", "Queries that joined one on its way.", Counter.Merged),
    sum("svc_prefetches_total", "Answers fetched before they expired.", Counter.Prefetched),
    sum("svc_dropped_packets_total", "Packets that got no answer.", Counter.Dropped),
    sum("svc_malformed_queries_total", "Queries answered FORMERR or BADVERS.", Counter.FormErr),
    sum("svc_shed_queries_total", "Queries that found no room to wait.", Counter.FlightsFull),
    sum(
      "svc_upstream_full_total",
      "Times an upstream was not asked because too many queries waited for it.",
      Counter.UpstreamFull,
    ),
    sum(
      "svc_upstream_no_socket_total",
      "Times an upstream was not asked because the process had no socket left.",
      Counter.NoSocket,
    ),
    sum("svc_truncated_responses_total", "Responses that did not fit.", Counter.Truncated),
    sum("svc_unsent_responses_total", "Responses the system did not take.", Counter.Unsent),
    by("svc_recursion_dnssec_total", "Validated answers, by what came of it.", blocks, {
      secure: Counter.DnssecSecure,
      insecure: Counter.DnssecInsecure,
      bogus: Counter.DnssecBogus,
      indeterminate: Counter.DnssecIndeterminate,
    }, "result"),
    sum(
      "svc_dnssec_checks_refused_total",
      "Signatures that were not checked because too many waited.",
      Counter.ChecksRefused,
    ),
    sum(
      "svc_dnssec_failing_refused_total",
      "Questions refused because too many signatures of their zone did not fit of late.",
      Counter.FailingRefused,
    ),
    sum(
      "svc_dnssec_deduced_total",
      "Questions answered by what was proven not to be there before.",
      Counter.Deduced,
    ),
    sum(
      "svc_dns64_synthesized_total",
      "Answers whose AAAA records were made of A records.",
      Counter.Dns64Synthesized,
    ),
    ...recursionFamilies(blocks),
  ];
}

/** What it took to ask name servers, and why there was no answer. */
function recursionFamilies(blocks: readonly CounterBlock[]): MetricFamily[] {
  const { sent, took } = sumRecursion(blocks);
  return [
    {
      name: "svc_recursion_queries",
      type: "histogram",
      help: "Queries sent to name servers for one answer, those for addresses and keys included.",
      bounds: SENT_BOUNDS,
      samples: [{ labels: {}, counts: sent.counts, sum: sent.sum }],
    },
    {
      name: "svc_recursion_duration_seconds",
      type: "histogram",
      help: "Time to an answer of name servers.",
      bounds: LATENCY_BOUNDS_MS.map((ms) => ms / 1_000),
      samples: [{ labels: {}, counts: took.counts, sum: took.sumMs / 1_000 }],
    },
    by("svc_recursion_failures_total", "Names without an answer, by the reason.", blocks, {
      timeout: Counter.RecursionTimeout,
      unreachable: Counter.RecursionUnreachable,
      unhelpful: Counter.RecursionUnhelpful,
      malformed: Counter.RecursionMalformed,
      circle: Counter.RecursionCircle,
      bound: Counter.RecursionOverWork,
      overload: Counter.RecursionOverload,
      no_socket: Counter.RecursionNoSocket,
    }, "reason"),
  ];
}

function transportFamilies(blocks: readonly CounterBlock[]): MetricFamily[] {
  return [
    by("svc_connections_total", "Connections taken, by protocol.", blocks, {
      tcp: Counter.TcpConnections,
      dot: Counter.DotConnections,
      doh: Counter.DohConnections,
      doq: Counter.DoqConnections,
    }),
    by("svc_connections_refused_total", "Connections closed over a limit, by protocol.", blocks, {
      tcp: Counter.TcpRefused,
      dot: Counter.DotRefused,
      doh: Counter.DohRefused,
      doq: Counter.DoqRefused,
    }),
    counter(
      "svc_tls_handshake_failures_total",
      "Handshakes of encrypted connections that failed.",
      sumCounters(blocks, Counter.TlsHandshakeFailures),
    ),
    counter(
      "svc_https_rejected_total",
      "Requests to the encrypted listeners that are no query.",
      sumCounters(blocks, Counter.HttpsRejected),
    ),
  ];
}

function upstreamFamilies({ counters, reports, status: { upstreams } }: MetricsFacts) {
  type Told = MetricsFacts["reports"][number]["upstreams"][number];
  const samples = (value: (i: number) => number): Sample[] =>
    upstreams.map(({ address }, i) => ({ labels: { upstream: address }, value: value(i) }));
  const sum = (value: (told: Told) => number) =>
    samples((i) =>
      reports.reduce((total, { upstreams }) => {
        const told = upstreams[i];
        return told === undefined ? total : total + value(told);
      }, 0)
    );
  const families: MetricFamily[] = [
    {
      name: "svc_upstream_healthy",
      type: "gauge",
      help: "1 while the upstream answers.",
      samples: samples((i) => upstreams[i].healthy ? 1 : 0),
    },
    {
      name: "svc_upstream_latency_seconds",
      type: "gauge",
      help: "Smoothed time to an upstream's answer; 0 before the first.",
      samples: samples((i) => (upstreams[i].latency_ms ?? 0) / 1_000),
    },
    {
      name: "svc_upstream_queries_total",
      type: "counter",
      help: "Queries sent to an upstream.",
      samples: sum(({ sent }) => sent),
    },
    {
      name: "svc_upstream_failures_total",
      type: "counter",
      help: "Queries that an upstream did not answer, or not in time.",
      samples: sum(({ failed }) => failed),
    },
    {
      name: "svc_upstream_called_off_total",
      type: "counter",
      help: "Queries sent to an upstream whose answer was not waited for any more.",
      samples: sum(({ calledOff }) => calledOff),
    },
    counter(
      "svc_upstream_tcp_queries_total",
      "Queries asked again over TCP.",
      sumCounters(counters, Counter.UpstreamTcp),
    ),
    counter(
      "svc_upstream_mismatched_total",
      "Packets that answer no question of ours.",
      sumCounters(counters, Counter.UpstreamMismatched),
    ),
  ];
  return families;
}

function certificateFamilies({ certificateEndsMs, acme }: MetricsFacts): MetricFamily[] {
  return [
    ...(certificateEndsMs === null ? [] : [gauge(
      "svc_certificate_expiry_timestamp_seconds",
      "When the certificate of the encrypted listeners ends, in seconds since 1970.",
      certificateEndsMs / 1_000,
    )]),
    ...(acme === null ? [] : [
      counter("svc_acme_issued_total", "Certificates that the authority has issued.", acme.issued),
      counter("svc_acme_failures_total", "Attempts at a certificate that failed.", acme.failed),
    ]),
  ];
}

function gauge(name: string, help: string, value: number): MetricFamily {
  return { name, type: "gauge", help, samples: [{ labels: {}, value }] };
}

function counter(name: string, help: string, value: number): MetricFamily {
  return { name, type: "counter", help, samples: [{ labels: {}, value }] };
}

function by(
  name: string,
  help: string,
  blocks: readonly CounterBlock[],
  counters: Readonly<Record<string, Counter>>,
  label = "protocol",
): MetricFamily {
  const samples = Object.entries(counters).map(([value, which]) => ({
    labels: { [label]: value },
    value: sumCounters(blocks, which),
  }));
  return { name, type: "counter", help, samples };
}
