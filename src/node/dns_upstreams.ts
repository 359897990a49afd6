import { parseHostPort } from "../addr/mod.ts";
import type { Config, Upstream } from "../config/mod.ts";
import { parseName } from "../dns/mod.ts";
import { invariant, messageOf } from "../errors.ts";
import type { DnsUpstream } from "../isolate/mod.ts";
import { log } from "../log.ts";
import type { PolicyState } from "../snapshot/mod.ts";
import { subnetOption } from "../resolver/mod.ts";

/** Asked where no upstream is configured: Quad9 (RFC 8932 policy, no filtering of ours). */
const DEFAULT_UPSTREAMS = ["9.9.9.9:53", "149.112.112.112:53"];
const DEFAULT_TIMEOUT_MS = 2_000;

/** The configured upstreams, as dns isolates take them; these have no access to files. */
export interface DnsUpstreams {
  readonly asked: readonly DnsUpstream[];
  /** Domains, in wire format, of those that can't be. */
  readonly lostDomains: readonly Uint8Array[];
}

/**
 * Reads the upstreams of a configuration. One whose file of authorities can't be read is left out: to
 * trust others in its place would not be safe, and neither would it be to tell others the names that
 * are its own. `problem` is told what is wrong.
 */
export async function dnsUpstreams(
  { upstreams: configured, recursion }: Config,
  problem: (text: string) => void,
): Promise<DnsUpstreams> {
  // Who asks name servers leaves upstreams the names that are theirs.
  const upstreams = recursion.enabled
    ? configured.filter(({ domains, groupsOnly }) => domains.length > 0 || groupsOnly)
    : configured;
  if (upstreams.length === 0 && !recursion.enabled) {
    log.info("no upstream is configured: asking Quad9", { upstreams: DEFAULT_UPSTREAMS });
    const asked = DEFAULT_UPSTREAMS.map((address): DnsUpstream => {
      const endpoint = parseHostPort(address);
      invariant(endpoint !== null, `${address} is an address`);
      return { transport: "udp", address, endpoint, timeoutMs: DEFAULT_TIMEOUT_MS, domains: [] };
    });
    return { asked, lostDomains: [] };
  }
  const asked: DnsUpstream[] = [];
  const left: { readonly upstream: Upstream; readonly error: unknown }[] = [];
  for (const upstream of upstreams) {
    try {
      asked.push(await dnsUpstream(upstream));
    } catch (error) {
      left.push({ upstream, error });
    }
  }
  // Domains that groups alone have there are not lost to anybody else.
  const domainsOf = ({ domains, groupsOnly }: Upstream) => groupsOnly ? [] : domains;
  const gone = left.map(({ upstream }) => upstream);
  const served = upstreams.filter((upstream) => !gone.includes(upstream)).flatMap(domainsOf);
  const lost: string[] = [];
  for (const { upstream, error } of left) {
    const { address } = upstream;
    const own = domainsOf(upstream).filter((domain) => !served.includes(domain));
    lost.push(...own);
    const place = `upstream[${configured.indexOf(upstream)}].ca`;
    const reason = messageOf(error).split("\n", 1)[0];
    const effect = own.length === 0 ? "" : `; names below ${own.join(", ")} get SERVFAIL`;
    problem(`${place}: ${address} is not asked: ${reason}${effect}`);
    log.error("an upstream can't be used", { upstream: address, key: "ca", error });
  }
  return { asked, lostDomains: wireNames(lost) };
}

async function dnsUpstream(upstream: Upstream): Promise<DnsUpstream> {
  const { address, timeoutMs, clientSubnet: subnet } = upstream;
  const common = {
    ...{ address, timeoutMs, domains: wireNames(upstream.domains) },
    ...(upstream.name !== null && { name: upstream.name }),
    ...(upstream.groupsOnly && { groupsOnly: true }),
    ...(subnet === "client" && { clientSubnet: subnet }),
    ...(typeof subnet === "object" && { clientSubnet: subnetOption(subnet.ip, subnet.lengthBits) }),
  };
  if (upstream.kind === "udp") {
    return { transport: "udp", ...common, endpoint: upstream.endpoint };
  }
  const { kind, host, ips, port, serverName, caFile } = upstream;
  return {
    transport: kind,
    ...common,
    host,
    ips,
    port,
    serverName,
    path: upstream.kind === "https" ? upstream.path : "",
    ca: caFile === null ? null : await Deno.readTextFile(caFile),
  };
}

/** Names as configured, in wire format. */
export function wireNames(domains: readonly string[]): Uint8Array[] {
  return domains.map((domain) => {
    const name = parseName(domain);
    invariant(name !== null, `${domain} was checked as a name`);
    return name;
  });
}

/** What groups name as their upstreams and this node does not have. */
export function missingUpstreams(
  { collections }: Pick<PolicyState, "collections">,
  upstreams: readonly Pick<DnsUpstream, "address" | "name">[],
): string[] {
  const known = new Set(upstreams.flatMap(({ address, name = address }) => [address, name]));
  return [...collections.groups.values()].flatMap(({ spec }) =>
    (spec.upstreams ?? []).filter((name) => !known.has(name)).map((name) =>
      `groups: ${spec.name}: this node has no upstream ${name}: add it to its configuration file, ` +
      "or take it out of the group"
    )
  );
}
