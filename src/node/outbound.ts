/**
 * Requests to servers elsewhere where no node runs: hosts are looked up by the upstreams of a
 * configuration, as a node does it, and never by the system's resolver. Scope: what a node wires.
 * @module
 */
import type { Config } from "../config/mod.ts";
import { type HttpGet, nodeHttpGet } from "../http/mod.ts";
import { compileRules, DnsSupervisor } from "../isolate/mod.ts";
import { openSeats } from "../isolate/seats.ts";
import { log } from "../log.ts";
import { emptyState } from "../model/mod.ts";
import { openNative } from "../native/mod.ts";
import { dnsOptions } from "./dns_options.ts";
import { dnsUpstreams } from "./dns_upstreams.ts";
import { hostLookup } from "./host_lookup.ts";
import { Policy } from "./policy.ts";
import { dnsRecursion } from "./root_hints.ts";

/** Look-ups of one command. */
const OPEN_MAX = 64;
const STOP_MS = 1_000;
const NOWHERE = { listen: [], dot: [], doh: [] };

/** Calls `work` with what sends requests. */
export async function withOutbound<T>(
  config: Config,
  work: (get: HttpGet) => Promise<T>,
): Promise<T> {
  const upstreams = await dnsUpstreams(config, (problem) => log.warn(problem));
  const silent = { ...config, server: { ...config.server, listen: [] } };
  const options = dnsOptions(silent, {
    ...{ upstreams, certificate: null, odoh: null, seed: 0, isolates: 1, logQueues: [] },
    ...{ openMax: OPEN_MAX, trust: null, checks: null, former: null },
    recursion: await dnsRecursion(config, 1),
  });
  const policy = new Policy({
    seed: 0,
    state: emptyState(),
    base: { rules: null, sources: [], badfilters: [] },
    publish: () => Promise.resolve(),
    compile: compileRules,
  });
  const native = openNative();
  const seats = native === null ? null : openSeats(native, NOWHERE, 1);
  const dns = new DnsSupervisor(options, seats, policy.data);
  await dns.start();
  try {
    return await work(nodeHttpGet({ lookup: hostLookup(dns) }));
  } finally {
    await dns.stop(STOP_MS);
  }
}
