import type { Status } from "../api/mod.ts";
import { Counter, type CounterBlock, sumCounters } from "../telemetry/mod.ts";

export interface MetricsFacts {
  readonly counters: readonly CounterBlock[];
  readonly crashes: number;
  readonly isDegraded: boolean;
  readonly rules: number;
  readonly upstreams: Status["upstreams"];
}

type Sample = readonly [labels: string, value: number];

/** Counters in the text exposition format (Prometheus, version 0.0.4). */
export function metricsText(facts: MetricsFacts): string {
  const sum = (counter: Counter) => sumCounters(facts.counters, counter);
  const one = (counter: Counter): Sample[] => [["", sum(counter)]];
  const by = (label: string, rows: Record<string, Counter>): Sample[] =>
    Object.entries(rows).map(([value, counter]) => [`{${label}="${value}"}`, sum(counter)]);
  const upstreams = (value: (upstream: Status["upstreams"][number]) => number): Sample[] =>
    facts.upstreams.map((u) => [`{upstream="${escapeLabel(u.address)}"}`, value(u)]);
  return [
    family(
      "svc_queries_total",
      "counter",
      "Queries by protocol.",
      by("protocol", {
        udp: Counter.QueriesUdp,
        tcp: Counter.QueriesTcp,
      }),
    ),
    family(
      "svc_outcomes_total",
      "counter",
      "Queries by outcome.",
      by("outcome", {
        forwarded: Counter.Forwarded,
        cached: Counter.Cached,
        local: Counter.Local,
        blocked: Counter.Blocked,
        refused: Counter.Refused,
        failed: Counter.Failed,
      }),
    ),
    family("svc_stale_answers_total", "counter", "Answers past their time.", one(Counter.Stale)),
    family(
      "svc_merged_queries_total",
      "counter",
      "Queries that joined one on its way.",
      one(Counter.Merged),
    ),
    family(
      "svc_dropped_packets_total",
      "counter",
      "Packets without an answer.",
      one(Counter.Dropped),
    ),
    family(
      "svc_malformed_queries_total",
      "counter",
      "Queries answered FORMERR.",
      one(Counter.FormErr),
    ),
    family(
      "svc_shed_queries_total",
      "counter",
      "Queries that found no room to wait.",
      one(Counter.FlightsFull),
    ),
    family(
      "svc_unsent_responses_total",
      "counter",
      "Responses the system did not take.",
      one(Counter.Unsent),
    ),
    family(
      "svc_upstream_queries_total",
      "counter",
      "Queries sent to upstreams.",
      one(Counter.UpstreamSent),
    ),
    family(
      "svc_upstream_timeouts_total",
      "counter",
      "Upstreams that did not answer in time.",
      one(Counter.UpstreamTimeouts),
    ),
    family(
      "svc_upstream_mismatched_total",
      "counter",
      "Packets that answer no question of ours.",
      one(Counter.UpstreamMismatched),
    ),
    family(
      "svc_upstream_healthy",
      "gauge",
      "1 while the upstream answers.",
      upstreams((u) => u.healthy ? 1 : 0),
    ),
    family(
      "svc_upstream_latency_seconds",
      "gauge",
      "Smoothed time to answer.",
      upstreams((u) => (u.latency_ms ?? 0) / 1_000),
    ),
    family(
      "svc_tcp_refused_total",
      "counter",
      "TCP connections over a limit.",
      one(Counter.TcpRefused),
    ),
    family("svc_filter_rules", "gauge", "Rules in force.", [["", facts.rules]]),
    family(
      "svc_filter_failures_total",
      "counter",
      "Queries the filter failed on.",
      one(Counter.FilterFailures),
    ),
    family("svc_isolate_crashes_total", "counter", "Isolates started again.", [[
      "",
      facts.crashes,
    ]]),
    family("svc_degraded", "gauge", "1 while the status names a problem.", [[
      "",
      facts.isDegraded ? 1 : 0,
    ]]),
  ].join("");
}

function family(
  name: string,
  type: "counter" | "gauge",
  help: string,
  samples: readonly Sample[],
): string {
  const lines = samples.map(([labels, value]) => `${name}${labels} ${value}\n`);
  return `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n${lines.join("")}`;
}

function escapeLabel(text: string): string {
  return text.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n");
}
