import {
  formatIp,
  isPrivateAt,
  parseHostPort,
  TOLD_IPV4_BITS,
  TOLD_IPV6_BITS,
} from "../addr/mod.ts";
import type { ForwardingConfig, Upstream } from "./config.ts";
import { quote } from "./problem.ts";
import {
  boolean,
  domain,
  duration,
  integer,
  ip,
  type IpBytes,
  matching,
  network,
  oneOf,
  parseDomain,
  path,
  text,
} from "./readers.ts";
import { arrayOf, type Place, type Reader, type Table } from "./table.ts";

const DNS_PORT = 53;
/** Of DNS over TLS (RFC 7858 §3.1) and over QUIC (RFC 9250 §4.1.1). */
const SECURE_PORT = 853;
const HTTPS_PORT = 443;

/** Most addresses of one named upstream. */
const BOOTSTRAP_COUNT_MAX = 16;
/** Most domains that one upstream is for. */
const DOMAIN_COUNT_MAX = 1_000;
const TIMEOUT_MS_MIN = 100;
/** A stub resolver gives up within half a minute (resolv.conf(5): timeout at most 30 s). */
const TIMEOUT_MS_MAX = 30_000;

const IPV4_BYTES = 4;
/** Upstreams asked at once: more would be a nuisance to all of them, and win little. */
const PARALLEL_MIN = 2;
const PARALLEL_MAX = 5;

/** Where an upstream is, read from its `address` alone. */
type Target =
  | { kind: "udp"; ip: IpBytes; port: number }
  | { kind: "tls" | "quic"; host: string; ip: IpBytes | null; port: number; serverName: string }
  | {
    kind: "https";
    host: string;
    ip: IpBytes | null;
    port: number;
    serverName: string;
    path: string;
  };

/** Reads `[forwarding]`. */
export function readForwarding(table: Table): ForwardingConfig {
  const strategy = table.read("strategy", oneOf("order", "fastest", "parallel"), "order");
  if (strategy !== "parallel" && table.has("parallel_max")) {
    table.place.at("parallel_max").problem(
      `means nothing with the strategy ${
        quote(strategy)
      }: set that to "parallel", or leave this out`,
      "note",
    );
  }
  return {
    strategy,
    parallelMax: table.read("parallel_max", integer(PARALLEL_MIN, PARALLEL_MAX), 3),
  };
}

const upstreamName = matching(
  /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/,
  'a name: write 1 to 63 lowercase letters, digits and hyphens, such as "family"',
);

/** Reports what stands in the way of upstreams by group. `upstreams` may have holes. */
export function checkGroupUpstreams(
  upstreams: readonly Upstream[],
  isRecursing: boolean,
  place: Place,
): void {
  const names = new Map<string, number>();
  for (const [index, { name, address }] of Object.entries(upstreams)) {
    for (const text of name === null ? [address] : [name, address]) {
      const first = names.get(text);
      if (name === text && first !== undefined) {
        place.at(Number(index)).at("name").problem(
          `is ${quote(text)}, which ${place.at(first)} is called as well: rename one`,
        );
      }
      names.set(text, first ?? Number(index));
    }
  }
  const all = Object.values(upstreams);
  if (isRecursing || all.length === 0 || all.some(({ groupsOnly }) => !groupsOnly)) return;
  place.at(0).at("groups_only").problem(
    "is true of every upstream, so queries of other groups fail: add an upstream for everybody",
    "check",
  );
}

/** `"off"`, `"client"`, or a network that stands for every client. */
const readClientSubnet: Reader<Upstream["clientSubnet"]> = (value, place) => {
  if (value === "off" || value === "client") return value;
  if (typeof value !== "string" || !value.includes("/")) {
    return place.problem('is neither "off" nor "client" nor a network such as "192.0.2.0/24"');
  }
  const read = network(value, place);
  if (read === null) return null;
  const bitsMax = read.ip.length === IPV4_BYTES ? TOLD_IPV4_BITS : TOLD_IPV6_BITS;
  if (read.lengthBits > bitsMax) {
    return place.problem(
      `is ${quote(value)}, which tells too much: give it ${bitsMax} bits or fewer`,
    );
  }
  if (isPrivateAt(read.ip, 0, read.ip.length)) {
    return place.problem(
      `is ${quote(value)}, a private network, which is never told: write another`,
    );
  }
  return read;
};

/** Reads one `[[upstream]]`; `null` if a problem is reported. */
export function readUpstream(table: Table, directory: string): Upstream | null {
  const address = table.required("address", text(1_024));
  const bootstrap = table.optional("bootstrap", arrayOf(ip, BOOTSTRAP_COUNT_MAX, formatIp));
  const caFile = table.optional("ca", path(directory));
  const timeoutMs = table.read("timeout", duration(TIMEOUT_MS_MIN, TIMEOUT_MS_MAX), "2s");
  const domains = table.optional("domains", arrayOf(domain, DOMAIN_COUNT_MAX, String));
  if (domains?.length === 0) {
    table.place.at("domains").problem("names no domain: take it away to ask for every name here");
  }
  const clientSubnet = table.read("client_subnet", readClientSubnet, "off");
  const name = table.optional("name", upstreamName);
  const groupsOnly = table.read("groups_only", boolean, false);
  if (address === null) return null;
  const target = parseTarget(address, table.place.at("address"));
  if (target === null) return null;
  const common = { address, timeoutMs, domains: domains ?? [], clientSubnet, name, groupsOnly };
  if (target.kind === "udp") {
    if (caFile !== null) {
      table.place.at("ca").problem("is for tls://, https:// and quic:// upstreams: take it away");
    }
    if (bootstrap !== null) {
      table.place.at("bootstrap").problem("is for upstreams with a name: take it away");
    }
    return { kind: "udp", ...common, endpoint: { ip: target.ip, port: target.port } };
  }
  if (target.ip !== null && bootstrap !== null) {
    table.place.at("bootstrap").problem(
      "is for upstreams with a name, and this one has an address: take it away",
    );
  }
  const { host, port, serverName } = target;
  const ips = target.ip !== null ? [target.ip] : bootstrap ?? [];
  const encrypted = { ...common, host, ips, port, serverName, caFile };
  return target.kind === "https"
    ? { kind: "https", ...encrypted, path: target.path }
    : { kind: target.kind, ...encrypted };
}

/**
 * Reports upstreams with a name that no other upstream can look up: the system's resolver is not
 * asked, which may be this service. `upstreams` may have holes; `place` is that of the array.
 */
export function checkNames(upstreams: readonly Upstream[], place: Place): void {
  for (const [index, upstream] of Object.entries(upstreams)) {
    if (!isNamed(upstream)) continue;
    const host = upstream.host.split(".");
    // As queries are given to upstreams: those of the most specific domain, and no others.
    let most = -1;
    let asked: Upstream[] = [];
    for (const other of Object.values(upstreams)) {
      if (other.groupsOnly) continue;
      for (const labels of other.domains.length === 0 ? [[]] : other.domains.map(labelsOf)) {
        const isBelow = labels.every((label, i) => host[host.length - labels.length + i] === label);
        if (!isBelow || labels.length < most) continue;
        if (labels.length > most) asked = [];
        most = labels.length;
        asked.push(other);
      }
    }
    if (asked.some((other) => !isNamed(other))) continue;
    place.at(Number(index)).at("address").problem(
      `has the name ${upstream.host}, which no other upstream with an address can look up: write ` +
        "its addresses in bootstrap",
      "check",
    );
  }
}

/** Says which upstreams recursion does not ask: those without names of their own. */
export function noteIgnored(upstreams: readonly Upstream[], place: Place): void {
  for (const [index, { domains, groupsOnly }] of Object.entries(upstreams)) {
    if (domains.length > 0 || groupsOnly) continue;
    place.at(Number(index)).at("address").problem(
      "is not asked, for recursion is enabled and this upstream has no domains: leave it out, or " +
        "give it the names that are to be asked there",
      "note",
    );
  }
}

/** Says whether an upstream's address has to be looked up. */
function isNamed(upstream: Upstream): upstream is Exclude<Upstream, { kind: "udp" }> {
  return upstream.kind !== "udp" && upstream.ips.length === 0;
}

function labelsOf(domain: string): string[] {
  return domain === "." || domain === "" ? [] : domain.split(".");
}

function parseTarget(address: string, place: Place): Target | null {
  const scheme = /^([a-z][a-z0-9+.-]*):\/\//i.exec(address)?.[1].toLowerCase();
  if (scheme === "tls" || scheme === "quic") return parseSecure(address, scheme, place);
  if (scheme === "https") return parseHttps(address, place);
  if (scheme !== undefined) {
    return place.problem(
      `has the scheme ${quote(scheme)}: use tls://, https://, quic:// or an IP address alone`,
    );
  }
  const plain = parseHostPort(address, DNS_PORT);
  if (plain !== null && plain.port > 0) return { kind: "udp", ...plain };
  const host = address.replace(/:\d+$/, "");
  const isName = parseDomain(host) !== null && /[a-z]/i.test(host);
  return place.problem(
    isName
      ? `is ${quote(address)}, and plain DNS takes an IP address: write that, or tls://${host}`
      : `is ${quote(address)}, not an upstream: write "9.9.9.9", "tls://dns.example" or ` +
        `"https://dns.example/dns-query"`,
  );
}

/**
 * `tls://dns.example`, `quic://192.0.2.1:853#dns.example`: behind the `#` is the server's name.
 * `kind` is the scheme.
 */
function parseSecure(address: string, kind: "tls" | "quic", place: Place): Target | null {
  const match = /^[a-z]+:\/\/(\[[^\]]*\]|[^:/#?@]+)(?::(\d{1,5}))?(?:#(.*))?$/i.exec(address);
  if (match === null) {
    return place.problem(
      `is ${
        quote(address)
      }, not a DNS over ${kind.toUpperCase()} upstream: write "${kind}://dns.example" ` +
        `or "${kind}://192.0.2.1#dns.example"`,
    );
  }
  const server = parseServer(match[1], match[3], place);
  const port = match[2] === undefined ? SECURE_PORT : parsePort(match[2], place);
  return server === null || port === null ? null : { kind, ...server, port };
}

/** A URL (RFC 8484); with an address as its host, the server's name may stand behind a `#`. */
function parseHttps(address: string, place: Place): Target | null {
  const url = URL.parse(address);
  if (url !== null && (url.username !== "" || url.password !== "")) {
    return place.problem("holds a user name or password: take it out, it would show in logs");
  }
  if (url === null) {
    return place.problem(
      `is ${quote(address)}, not a DNS over HTTPS upstream: write "https://dns.example/dns-query"`,
    );
  }
  if (url.pathname === "/") {
    return place.problem(`has no path: most servers take "https://${url.host}/dns-query"`);
  }
  const name = url.hash === "" ? undefined : url.hash.slice(1);
  const server = parseServer(url.hostname, name, place);
  const port = url.port === "" ? HTTPS_PORT : parsePort(url.port, place);
  if (server === null || port === null) return null;
  return { kind: "https", ...server, port, path: url.pathname + url.search };
}

/** Reads the host and the name that its certificate is checked for. */
export function parseServer(
  hostText: string,
  nameText: string | undefined,
  place: Place,
): { host: string; ip: IpBytes | null; serverName: string } | null {
  const bytes = parseHostPort(hostText, DNS_PORT)?.ip ?? null;
  const host = bytes !== null ? formatIp(bytes) : parseDomain(hostText);
  if (host === null || /^[\d.]+$/.test(host) && bytes === null) {
    return place.problem(`has the host ${quote(hostText)}, neither a name nor an IP address`);
  }
  if (nameText === undefined) return { host, ip: bytes, serverName: host };
  const serverName = parseDomain(nameText);
  if (serverName === null) {
    return place.problem(`has ${quote(nameText)} behind #, where the server's name belongs`);
  }
  return { host, ip: bytes, serverName };
}

export function parsePort(text: string, place: Place): number | null {
  const port = Number(text);
  if (port >= 1 && port <= 65_535) return port;
  return place.problem(`has the port ${text}, out of range: write one from 1 to 65535`);
}
