import type { Cache } from "../../cache/mod.ts";
import type { Forwarder } from "../../resolver/mod.ts";
import type { Recursor } from "../../resolver/recursive/mod.ts";
import type { SharedBounds, TcpListener } from "../../transport/mod.ts";
import type { DnsReport } from "../messages.ts";
import type { EncryptedListeners } from "./encrypted.ts";
import { occupancyOf } from "./occupancy.ts";
import type { ValidationSide } from "./validation_side.ts";

/** What a dns isolate reports about. */
export interface ReportFacts {
  readonly cache: Cache;
  readonly tcp: readonly TcpListener[];
  readonly encrypted: EncryptedListeners | null;
  readonly bounds: SharedBounds;
  readonly forwarder: Forwarder;
  readonly recursor: Recursor | null;
  readonly validation: ValidationSide | null;
}

/** What a dns isolate says of itself. */
export function reportOf(facts: ReportFacts): DnsReport {
  const { cache, tcp, encrypted, bounds, forwarder, recursor, validation } = facts;
  return {
    cacheEntries: cache.entries,
    cacheBytes: cache.usedBytes,
    cacheEvicted: cache.evicted,
    connections: {
      tcp: occupancyOf(tcp),
      ...(encrypted?.occupancy ?? { dot: null, doh: null, doq: null }),
    },
    cutOff: { unfinished: bounds.unfinished.cutOff, unread: bounds.unread.cutOff },
    lacksSockets: forwarder.lacksSockets || (recursor?.lacksSockets ?? false),
    recursion: { servers: recursor?.serversKnown ?? 0, zones: recursor?.delegations.count ?? 0 },
    clockSuspect: validation?.judge.clockSuspect ?? false,
    upstreams: forwarder.upstreams.map((upstream) => ({
      healthy: upstream.healthy,
      latencyMs: upstream.latencyMs,
      failures: upstream.failures,
      reason: upstream.reason,
      sent: upstream.sent,
      failed: upstream.failuresTotal,
      calledOff: upstream.calledOffTotal,
    })),
  };
}
