import type { Config } from "../config/mod.ts";

/**
 * What the configuration asks for and this release does not do yet: one text a key. Said at every
 * start, so that nobody counts on it.
 */
export function notBuilt(config: Config): string[] {
  const { server, recursion, filter, telemetry, cluster, vrrp, update, querylog } = config;
  const asked: [string, boolean][] = [
    ["server.user", server.user !== null],
    ["server.tls", server.tls.dot.length + server.tls.doh.length + server.tls.doq.length > 0],
    ["recursion", recursion.enabled],
    ["filter.services_file", filter.servicesFile !== null],
    ["telemetry.endpoint", telemetry.endpoint !== null],
    ["cluster", cluster !== null],
    ["vrrp", vrrp !== null],
    ["update.url", update.url !== null],
    ["querylog", querylog.enabled],
    ["security.sandbox", config.security.sandbox],
    ["security.rebinding_protection", config.security.rebindingProtection],
    ["server.rate_limit", server.rateLimit.queriesPerSecond > 0],
    ["filter.default_lists", filter.defaultLists && filter.lists.length === 0],
  ];
  for (const [i, upstream] of config.upstreams.entries()) {
    asked.push([`upstream[${i}] (${upstream.address})`, upstream.kind !== "udp"]);
  }
  return asked.filter(([, wanted]) => wanted).map(([key]) => key);
}
