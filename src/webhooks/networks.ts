import {
  type IpPrefix,
  isPrivateAt,
  parseIp,
  parsePrefix,
  prefixHolds,
  unmapIpv4,
} from "../addr/mod.ts";

/**
 * Where clouds keep what belongs to a machine, its credentials among it. A network around one of them
 * does not let it through: only the address itself does.
 */
const METADATA = [
  "169.254.169.254",
  "100.100.100.200",
  "168.63.129.16",
  "192.0.0.192",
  "fd00:ec2::254",
].map((text) => parsePrefix(text)!);

/** What is no single host of the Internet. */
const NO_HOST = ["224.0.0.0/3", "192.0.0.0/24", "198.18.0.0/15", "ff00::/8"]
  .map((text) => parsePrefix(text)!);

/** What IPv6 addresses hold an IPv4 address in: NAT64 (RFC 6052) and 6to4 (RFC 3056). */
const NAT64 = parsePrefix("64:ff9b::/96")!;
const SIX_TO_FOUR = parsePrefix("2002::/16")!;

/** Why nothing may be sent to an address; `null`: it may. `isSecure`: it is sent by TLS. */
export type Admit = (address: string, isSecure: boolean) => string | null;

/** Lets the Internet through, and `networks` of what is not: to these by plain http as well. */
export function networkCheck(networks: readonly IpPrefix[]): Admit {
  return (address, isSecure) => {
    const parsed = parseIp(address);
    if (parsed === null) return "it is no address";
    const ip = innermost(parsed);
    const isNamed = networks.some((network) => prefixHolds(network, ip) && !isBehind(network, ip));
    if (isNamed) return null;
    const isInternet = ![...METADATA, ...NO_HOST].some((one) => prefixHolds(one, ip)) &&
      !isPrivateAt(ip, 0, ip.length);
    if (!isInternet) return "webhooks.networks does not let it through";
    return isSecure ? null : "plain http is for webhooks.networks alone: use https";
  };
}

/** A network that holds such an address, and is larger. */
function isBehind({ lengthBits }: IpPrefix, ip: Uint8Array): boolean {
  return lengthBits < ip.length * 8 && METADATA.some((one) => prefixHolds(one, ip));
}

/** The IPv4 address that an IPv6 address leads to, or it itself. */
function innermost(parsed: Uint8Array): Uint8Array {
  const ip = unmapIpv4(parsed);
  if (prefixHolds(NAT64, ip)) return ip.subarray(12);
  return prefixHolds(SIX_TO_FOUR, ip) ? ip.subarray(2, 6) : ip;
}
