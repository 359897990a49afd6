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

/**
 * The configured upstreams that are asked as dns isolates take them; these have no access to files. One whose file
 * of authorities can't be read is left out: to trust others in its place would not be safe.
 * `problem` is told what is wrong.
 */
export async function dnsUpstreams(
  { upstreams: configured, recursion }: Config,
  problem: (text: string) => void,
): Promise<DnsUpstream[]> {
  // Who asks name servers leaves upstreams the names that are theirs.
  const upstreams = recursion.enabled
    ? configured.filter(({ domains, groupsOnly }) => domains.length > 0 || groupsOnly)
    : configured;
  if (upstreams.length === 0 && !recursion.enabled) {
    log.info("no upstream is configured: asking Quad9", { upstreams: DEFAULT_UPSTREAMS });
    return DEFAULT_UPSTREAMS.map((address) => {
      const endpoint = parseHostPort(address);
      invariant(endpoint !== null, `${address} is an address`);
      return { transport: "udp", address, endpoint, timeoutMs: DEFAULT_TIMEOUT_MS, domains: [] };
    });
  }
  const found: DnsUpstream[] = [];
  for (const upstream of upstreams) {
    try {
      found.push(await dnsUpstream(upstream));
    } catch (error) {
      const reason = messageOf(error).split("\n", 1)[0];
      const text = `upstream[${
        configured.indexOf(upstream)
      }].ca: ${upstream.address} is not asked: ${reason}`;
      problem(text);
      log.error("an upstream can't be used", { upstream: upstream.address, key: "ca", error });
    }
  }
  return found;
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
