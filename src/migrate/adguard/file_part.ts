import { formatPrefix, parsePrefix } from "../../addr/mod.ts";
import { Fragment } from "../fragment.ts";
import { Upstreams } from "../upstreams.ts";
import { inFile, type Item, lost } from "../wishes.ts";
import type { AdguardData } from "./read.ts";

/** What it has where nobody changed it: ours are meant for the same. */
const RATE_LIMIT_DEFAULT = 20;
const CACHE_BYTES_DEFAULT = 4 << 20;
const TIMEOUT_S_DEFAULT = 10;
/** How long it gives expired answers. */
const STALE = "12h";
const CACHE_BYTES_MIN = 1 << 20;
const DNS_PORT = 53;
const DAY_MS = 86_400_000;
const RETENTION_DAYS_MAX = 400;
const LOOPBACK = ["127.0.0.0/8", "::1"];
/** The reverse zones of private addresses (RFC 6303). */
const PRIVATE_REVERSE = [
  "10.in-addr.arpa",
  "168.192.in-addr.arpa",
  ...Array.from({ length: 16 }, (_, n) => `${16 + n}.172.in-addr.arpa`),
  "254.169.in-addr.arpa",
  "d.f.ip6.arpa",
];

/** The part of `svc.toml` that is made of an AdGuard Home; `items` hears of each piece of it. */
export function adguardFilePart(data: AdguardData, items: Item[]): string {
  const fragment = new Fragment(`${data.host}, ${data.status.version}`);
  listeners(data, fragment, items);
  rateLimit(data, fragment, items);
  upstreams(data, fragment, items);
  cache(data, fragment, items);
  queryLog(data, fragment, items);
  notTaken(data, items);
  return fragment.text;
}

function listeners(
  { status, tls }: AdguardData,
  fragment: Fragment,
  items: Item[],
): void {
  const port = status.dns_port;
  if (port !== DNS_PORT) {
    const listen = [`0.0.0.0:${port}`, `[::]:${port}`];
    const note = "Free once the other product is stopped.";
    fragment.table("[server]", { listen }, { isComment: true, note });
    items.push(inFile(`port ${port}`, "commented out"));
  }
  if (tls === null || !tls.enabled) return;
  const anywhere = (at: number | null | undefined) =>
    (at ?? 0) === 0 ? null : [`0.0.0.0:${at}`, `[::]:${at}`];
  const [doh, dot, doq] = [tls.port_https, tls.port_dns_over_tls, tls.port_dns_over_quic].map(
    anywhere,
  );
  fragment.table("[server.tls]", {
    cert: tls.certificate_path || "dns.crt",
    key: tls.private_key_path || "dns.key",
    server_name: tls.server_name || null,
    doh,
    dot,
    doq,
  }, {
    isComment: true,
    note: "Once the certificate and its key are at these places, and the ports are free:",
  });
  for (const [name, listen] of [["DoH", doh], ["DoT", dot], ["DoQ", doq]] as const) {
    if (listen !== null) {
      items.push(inFile(`${name} listener`, "commented out: it needs the certificate and its key"));
    }
  }
  if ((tls.port_dnscrypt ?? 0) !== 0) {
    items.push(lost("file", "DNSCrypt listener", "DNSCrypt is not spoken: use DoH, DoT or DoQ"));
  }
}

function rateLimit({ dns }: AdguardData, fragment: Fragment, items: Item[]): void {
  const perSecond = Math.round(dns.ratelimit ?? RATE_LIMIT_DEFAULT);
  const isChanged = perSecond !== RATE_LIMIT_DEFAULT && perSecond >= 0 && perSecond <= 1e6;
  const given = dns.ratelimit_whitelist.map((text) => parsePrefix(text));
  const exempt = given.flatMap((prefix) => prefix === null ? [] : formatPrefix(prefix))
    .filter((text) => !LOOPBACK.includes(text));
  for (const [i, prefix] of given.entries()) {
    if (prefix !== null) continue;
    const name = `no rate limit for ${dns.ratelimit_whitelist[i]}`;
    items.push(lost("file", name, "it is no address or network"));
  }
  if (!isChanged && exempt.length === 0) return;
  fragment.table("[server.rate_limit]", {
    queries_per_second: isChanged ? perSecond : null,
    exempt: exempt.length === 0 ? null : [...LOOPBACK, ...exempt],
  });
  items.push(inFile("rate limit", "counted by address, not by network"));
}

function upstreams({ dns }: AdguardData, fragment: Fragment, items: Item[]): void {
  const found = new Upstreams(items);
  const modes: Readonly<Record<string, string>> = {
    parallel: "asked in turn, not all at once",
    fastest_addr: "asked in turn: no address is measured",
  };
  const note = modes[dns.upstream_mode ?? ""] ?? null;
  const lines = dns.upstream_dns.map((line) => line.trim())
    .filter((line) => line !== "" && !line.startsWith("#"));
  const special = (line: string) => line.startsWith("[/");
  for (const line of lines) if (!special(line)) found.add(line, [], note);
  for (const line of dns.fallback_dns) {
    if (!special(line)) found.add(line, [], "asked when those before it fail");
    else items.push(lost("file", `fallback upstream ${line}`, "these are for every name here"));
  }
  for (const line of lines) if (special(line)) forDomains(line, found, items);
  if (dns.use_private_ptr_resolvers === true) {
    for (const line of dns.local_ptr_upstreams) {
      if (special(line)) forDomains(line, found, items);
      else found.add(line, PRIVATE_REVERSE);
    }
  }
  found.write(fragment, dns.bootstrap_dns);
  const timeoutS = dns.upstream_timeout ?? TIMEOUT_S_DEFAULT;
  if (timeoutS !== TIMEOUT_S_DEFAULT) {
    fragment.comment("", `Each [[upstream]] takes a timeout; there it was ${timeoutS} s for all.`);
    items.push(inFile("upstream timeout", "as a comment"));
  }
  if ((dns.upstream_dns_file ?? "") !== "") {
    const reason = "its API does not give the file away: write its lines as [[upstream]]";
    items.push(lost("file", `upstreams of ${dns.upstream_dns_file}`, reason));
  }
}

/** `[/lan/example.org/]192.168.1.1 192.168.1.2`; `#` stands for those of every name. */
function forDomains(line: string, found: Upstreams, items: Item[]): void {
  const [, named = "", servers = ""] = /^\[\/(.*)\/\]\s*(.*)$/.exec(line) ?? [];
  const all = named.split("/").map((name) => name.replace(/^\*\./, ""));
  const domains = [...new Set(all.filter((name) => name !== ""))];
  if (domains.length < new Set(all).size || servers === "") {
    items.push(
      lost("file", `upstream ${line}`, "names without a dot have no upstream of their own"),
    );
  }
  if (domains.length === 0) return;
  for (const server of servers.split(/\s+/)) {
    if (server === "#") { for (const general of found.general) found.add(general, domains); }
    else if (server !== "") found.add(server, domains);
  }
}

function cache({ dns }: AdguardData, fragment: Fragment, items: Item[]): void {
  const bytes = dns.cache_size ?? CACHE_BYTES_DEFAULT;
  const isOff = dns.cache_enabled === false || bytes === 0;
  const ttl = (value: number | null | undefined) =>
    Number.isSafeInteger(value) && value! > 0 && value! < 2 ** 31 ? value! : null;
  const minTtl = ttl(dns.cache_ttl_min);
  const maxTtl = ttl(dns.cache_ttl_max);
  const size = Math.max(CACHE_BYTES_MIN, Math.min(Math.ceil(bytes), 2 ** 34));
  const values = {
    size: isOff || bytes === CACHE_BYTES_DEFAULT ? null : `${Math.ceil(size / 1024)}KiB`,
    min_ttl: minTtl,
    // A least above the most is refused.
    max_ttl: maxTtl === null && (minTtl ?? 0) > 86_400 ? minTtl : maxTtl,
    serve_stale: dns.cache_optimistic === true ? STALE : null,
  };
  const isWrong = values.min_ttl !== null && values.max_ttl !== null &&
    values.min_ttl > values.max_ttl;
  fragment.table("[cache]", isWrong ? { ...values, min_ttl: null } : values);
  if (Object.values(values).some((value) => value !== null)) items.push(inFile("cache"));
  if (isOff) items.push(lost("file", "no cache", "there is always one: its size is at least 1MiB"));
}

function queryLog({ querylog }: AdguardData, fragment: Fragment, items: Item[]): void {
  if (querylog === null) return;
  const days = Math.round((querylog.interval ?? 0) / DAY_MS);
  const hours = Math.round((querylog.interval ?? 0) / 3_600_000);
  fragment.table("[querylog]", {
    enabled: querylog.enabled ? null : false,
    retention: hours < 1 ? null : days < 1 ? `${hours}h` : `${Math.min(days, RETENTION_DAYS_MAX)}d`,
    anonymize: querylog.anonymize_client_ip === true ? true : null,
  });
  items.push(inFile("query log"));
  for (const name of querylog.ignored) {
    items.push(lost("file", `query log without ${name}`, "every query is logged, or none"));
  }
}

function notTaken({ dns, dhcp, safeBrowsing, parental }: AdguardData, items: Item[]): void {
  const rows: readonly (readonly [boolean | null | undefined, string, string])[] = [
    [dns.edns_cs_enabled, "EDNS client subnet", "networks of clients are told to nobody"],
    [dns.disable_ipv6, "no IPv6 addresses in answers", "AAAA records are answered"],
    [dhcp?.enabled, "DHCP server", "svc gives no addresses away: let the router do it"],
    [safeBrowsing?.enabled, "safe browsing", "no cloud is asked: choose a list against malware"],
    [parental?.enabled, "parental control", "no cloud is asked: choose a list of adult sites"],
  ];
  for (const [isOn, name, reason] of rows) {
    if (isOn === true) items.push(lost("setting", name, reason));
  }
}
