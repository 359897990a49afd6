import type { Config } from "../config/mod.ts";
import type {
  CheckSupervisor,
  DnsOptions,
  DnsRecursion,
  DnsTrust,
  FormerDns,
} from "../isolate/mod.ts";
import type { ServerCertificate } from "./certificate.ts";
import { type DnsUpstreams, wireNames } from "./dns_upstreams.ts";
import type { OdohKeys } from "./odoh_keys.ts";
import { CONNECTIONS_MAX } from "./open_files.ts";
import { slowSample } from "./telemetry.ts";

const TCP_LIMITS = {
  connectionsMax: CONNECTIONS_MAX.tcp,
  connectionsPerClientMax: 128,
  queriesMax: 128,
  idleMs: 10_000,
  unreadBytesMax: 1024 * 1024,
};
/** Clients of encrypted transports keep their connections: phones ask all day. */
const DOT_LIMITS = {
  connectionsMax: CONNECTIONS_MAX.dot,
  connectionsPerClientMax: 128,
  queriesMax: 128,
  idleMs: 30_000,
  unreadBytesMax: 1024 * 1024,
  handshakeMs: 5_000,
  handshakesMax: 256,
};
/** Few, and soon given up: see `DoqLimits.queriesMax` for what each stream may hold. */
const DOQ_LIMITS = {
  connectionsMax: 256,
  connectionsPerClientMax: 16,
  queriesMax: 16,
  idleMs: 30_000,
  requestMs: 5_000,
  handshakeMs: 5_000,
  handshakesMax: 128,
};
const DOH_LIMITS = {
  connectionsMax: CONNECTIONS_MAX.doh,
  connectionsPerClientMax: 128,
  requestsMax: 128,
  idleMs: 60_000,
  requestMs: 10_000,
  unreadBytesMax: 1024 * 1024,
  handshakeMs: 5_000,
  handshakesMax: 256,
};

/** What the dns isolates are made with, beside their configuration. */
export interface DnsParts {
  readonly upstreams: DnsUpstreams;
  readonly certificate: ServerCertificate | null;
  readonly odoh: OdohKeys | null;
  readonly seed: number;
  readonly isolates: number;
  readonly openMax: number;
  /** A queue of the query log for each; none: nothing is logged. */
  readonly logQueues: readonly SharedArrayBuffer[];
  /** What a former process left; `null`: there was none. */
  readonly former: FormerDns | null;
  /** `null`: nothing is validated. */
  readonly trust: DnsTrust | null;
  readonly recursion: DnsRecursion | null;
  readonly checks: CheckSupervisor | null;
}

/** What every dns isolate is started with. */
export function dnsOptions(
  config: Config,
  parts: DnsParts,
): DnsOptions {
  const { cache, security, server: { tls, rateLimit } } = config;
  const { upstreams, certificate, odoh, seed, isolates, openMax, logQueues, former } = parts;
  return {
    seed,
    listen: config.server.listen,
    upstreams: upstreams.asked,
    lostDomains: upstreams.lostDomains,
    strategy: { kind: config.forwarding.strategy, atOnce: config.forwarding.parallelMax },
    openMax,
    logQueues,
    ...(former !== null && { former }),
    trust: parts.trust,
    recursion: parts.recursion,
    checks: parts.checks,
    cacheBytes: Math.floor(cache.sizeBytes / isolates),
    ttl: { min: cache.minTtl, max: cache.maxTtl, negativeMax: cache.negativeMaxTtl },
    serveStale: Math.floor(cache.serveStaleMs / 1_000),
    prefetch: cache.prefetch,
    dns64: config.dns64.enabled ? config.dns64 : null,
    rebindingExempt: security.rebindingProtection ? wireNames(security.rebindingExempt) : null,
    failClosed: config.filter.onFailure === "closed",
    isShutIn: security.sandbox,
    traces: slowSample(config.telemetry),
    neverLimited: rateLimit.exempt,
    rateLimit: rateLimit.queriesPerSecond === 0 ? null : rateLimit,
    requireClientId: tls.requireClientId,
    tcp: TCP_LIMITS,
    tls: certificate === null ? null : {
      identity: certificate.identity,
      serverName: tls.serverName,
      dot: tls.dot,
      doh: tls.doh,
      doq: tls.doq,
      waitsForDoq: former !== null,
      dotLimits: DOT_LIMITS,
      doqLimits: DOQ_LIMITS,
      dohLimits: DOH_LIMITS,
      odohSeeds: odoh?.seeds ?? [],
    },
  };
}
