import { formatHostPort, formatPrefix } from "../addr/mod.ts";
import type { ListsPort, NodePort } from "../api/mod.ts";
import type { Config } from "../config/mod.ts";
import type { DnsSupervisor, QuerylogSupervisor } from "../isolate/mod.ts";
import { memoryOf } from "../snapshot/mod.ts";
import type { Replicator } from "../store/mod.ts";
import { Counter, type MetricFamily, sumCounters } from "../telemetry/mod.ts";
import type { NodeCluster } from "./cluster.ts";
import type { AcmePart } from "./acme.ts";
import type { DnsUpstreams } from "./dns_upstreams.ts";
import type { NodeLogExports } from "./log_exports.ts";
import { metricFamilies } from "./metrics.ts";
import type { ServerCertificate } from "./certificate.ts";
import type { OwnAddresses } from "./own_addresses.ts";
import type { Policy } from "./policy.ts";
import type { SeenProblem } from "./problems.ts";
import type { SandboxStatus } from "./second_stage.ts";
import { VERSION } from "../version.ts";
import type { Occupancy } from "../transport/mod.ts";
import type { Webhooks } from "../webhooks/mod.ts";

/** The parts of a running node that its status tells of. */
export interface NodeParts {
  readonly config: Config;
  readonly startedAtMs: () => number;
  readonly sandbox: SandboxStatus;
  readonly store: { readonly replicator: Pick<Replicator, "state"> };
  /** What the status warns of at the moment. */
  readonly problems: () => readonly SeenProblem[];
  readonly policy: Pick<Policy, "data">;
  readonly dns: Pick<
    DnsSupervisor,
    "counters" | "crashes" | "listeners" | "reports" | "running"
  >;
  /** As the dns isolates have them. */
  readonly upstreams: DnsUpstreams;
  readonly lists: Pick<ListsPort, "status">;
  readonly ownAddresses: Pick<OwnAddresses, "of">;
  /** The certificate of encrypted DNS; `null`: none is configured. */
  readonly certificate: Pick<ServerCertificate, "identity" | "validToMs"> | null;
  /** `null`: certificates are somebody else's to get. */
  readonly acme: Pick<AcmePart, "counts" | "proofAt" | "status"> | null;
  /** `null`: no query is logged. */
  readonly querylog: Pick<QuerylogSupervisor, "figures"> | null;
  /** When the lists' rules in force were built, and how long the last build took. */
  readonly builtAtMs: () => number | null;
  readonly buildMs: () => number | null;
  /** Everywhere that the query log is sent. */
  readonly logExports: Pick<NodeLogExports, "figures">;
  /** Requests to the telemetry endpoint that failed. */
  readonly exportFailures: () => number;
  /** Errors of this isolate that nobody caught. */
  readonly uncaughtErrors: () => number;
  /** `null` on a node that is in no cluster. */
  readonly cluster: Pick<NodeCluster, "channel" | "figures"> | null;
  /** Readers of the API's events that were too slow. */
  readonly eventReadersDropped: () => number;
  readonly webhooks: { readonly webhooks: Pick<Webhooks, "figures"> };
  /** Who is connected to the API; `null` where it is not served. */
  readonly apiOccupancy: () => Occupancy | null;
}

type Status = ReturnType<NodePort["status"]>;

/** What is wrong, for people and for programs. */
export function problemsOf(
  node: Pick<NodeParts, "problems">,
): Pick<Status, "problem_items" | "problems"> {
  const found = node.problems();
  return {
    problems: found.map(({ message }) => message),
    problem_items: found.map(({ code, message, sinceMs, resource }) => ({
      code,
      message,
      since: new Date(sinceMs).toISOString(),
      resource,
    })),
  };
}

/** What a node is doing at the moment, for the API. */
export function statusOf(node: NodeParts): Status {
  const { config, store: { replicator }, policy, dns, upstreams, lists } = node;
  const { collections } = replicator.state;
  const isOn = ({ spec }: { spec: { enabled: boolean } }) => spec.enabled;
  const listRules = [...collections.lists.values()].filter(isOn)
    .reduce((sum, { id }) => sum + lists.status(id).rules, 0);
  const { reports, counters, listeners } = dns;
  const builtAtMs = node.builtAtMs();
  return {
    ...problemsOf(node),
    listeners: listeners.map(({ protocol, address }) => ({
      protocol,
      address: formatHostPort(address),
    })),
    addresses: node.ownAddresses.of(listeners),
    encrypted: encryptedOf(node),
    acme: acmeOf(node),
    recursion: {
      enabled: config.recursion.enabled,
      dnssec: config.recursion.dnssec,
      servers: Math.max(0, ...reports.map(({ recursion }) => recursion.servers)),
    },
    filter: {
      rules: listRules + [...collections.rules.values()].filter(isOn).length,
      generation: policy.data.generation,
      built_at: builtAtMs === null ? null : new Date(builtAtMs).toISOString(),
      memory_bytes: memoryOf(policy.data).reduce((sum, { byteLength }) => sum + byteLength, 0),
    },
    cache: {
      entries: reports.reduce((sum, { cacheEntries }) => sum + cacheEntries, 0),
      bytes: reports.reduce((sum, { cacheBytes }) => sum + cacheBytes, 0),
      hits: sumCounters(counters, Counter.CacheHits),
      misses: sumCounters(counters, Counter.CacheMisses),
    },
    dns64: config.dns64.enabled ? { prefix: formatPrefix(config.dns64.prefix) } : null,
    forwarding: { strategy: config.forwarding.strategy },
    upstreams: upstreams.asked.map(({ address, name = null, groupsOnly = false }, i) => ({
      ...upstreamStatus(address, reports, i),
      name,
      groups_only: groupsOnly,
    })),
    sandbox: { ...node.sandbox, capabilities: [...node.sandbox.capabilities] },
    querylog: {
      entries: node.querylog?.figures.entries ?? 0,
      dropped: node.querylog?.figures.dropped ?? 0,
    },
  };
}

function encryptedOf({ config, dns, certificate }: NodeParts): Status["encrypted"] {
  const { serverName, requireClientId } = config.server.tls;
  if (dns.listeners.every(({ protocol }) => protocol === "udp" || protocol === "tcp")) return null;
  const validToMs = certificate?.validToMs ?? null;
  return {
    server_name: serverName,
    require_client_id: requireClientId,
    not_after: validToMs === null ? null : new Date(validToMs).toISOString(),
  };
}

function acmeOf({ acme }: NodeParts): Status["acme"] {
  if (acme === null) return null;
  const { certificate, directory, domains, isOrdering, failure, notAfterMs, nextAtMs } =
    acme.status;
  return {
    certificate,
    directory,
    domains: [...domains],
    ordering: isOrdering,
    error: failure,
    not_after: notAfterMs === null ? null : new Date(notAfterMs).toISOString(),
    next_try: new Date(nextAtMs).toISOString(),
  };
}

/** The same and more in numbers, for whoever scrapes them or gets them sent. */
export function familiesOf(node: NodeParts): MetricFamily[] {
  const { counters, crashes, running, reports } = node.dns;
  return metricFamilies({
    version: VERSION,
    deno: Deno.version.deno,
    startedAtMs: node.startedAtMs(),
    uptimeMs: performance.now(),
    residentBytes: Deno.memoryUsage().rss,
    counters,
    crashes,
    running,
    reports,
    status: statusOf(node),
    buildMs: node.buildMs(),
    logExports: node.logExports.figures,
    exportFailures: node.exportFailures(),
    querylogWritten: node.querylog?.figures.written ?? 0,
    uncaughtErrors: node.uncaughtErrors(),
    cluster: node.cluster?.figures ?? null,
    channel: node.cluster?.channel ?? null,
    apiOccupancy: node.apiOccupancy(),
    eventReadersDropped: node.eventReadersDropped(),
    certificateEndsMs: node.certificate?.validToMs ?? null,
    acme: node.acme?.counts ?? null,
    webhooks: node.webhooks.webhooks.figures,
    isAnonymized: node.config.querylog.anonymize,
  });
}

type Reports = NodeParts["dns"]["reports"];

/** An upstream as the isolates know it together: well for one is well; the quickest counts. */
function upstreamStatus(address: string, reports: Reports, index: number) {
  const seen = reports.map(({ upstreams }) => upstreams[index]).filter((one) => one !== undefined);
  const latencies = seen.map(({ latencyMs }) => latencyMs).filter((ms) => ms >= 0);
  return {
    address,
    healthy: seen.length === 0 || seen.some(({ healthy }) => healthy),
    latency_ms: latencies.length === 0 ? null : Math.min(...latencies),
    failures: seen.reduce((sum, { failures }) => sum + failures, 0),
  };
}
