import { parsePrefix } from "../../addr/mod.ts";
import { Fragment } from "../fragment.ts";
import { withoutHostBits } from "../identities.ts";
import { Upstreams } from "../upstreams.ts";
import { inFile, type Item, lost } from "../wishes.ts";
import type { PiholeData } from "./read.ts";

/** What it has where nobody changed it. */
const RATE_LIMIT_DEFAULT = { count: 1_000, interval: 60 };
const DNS_PORT = 53;
const RETENTION_DAYS_DEFAULT = 91;
const RETENTION_DAYS_MAX = 400;
const STALE_SECONDS_MAX = 30 * 86_400;
/** From here on it keeps neither names nor addresses of clients. */
const PRIVACY_CLIENTS = 2;
const PRIVACY_ALL = 3;

/** The part of `svc.toml` that is made of a Pi-hole; `items` hears of each piece of it. */
export function piholeFilePart(data: PiholeData, items: Item[]): string {
  const { config: { dns, dhcp, misc, database, webserver } } = data;
  const fragment = new Fragment(`${data.host}${data.version === null ? "" : `, ${data.version}`}`);
  const port = dns.port ?? DNS_PORT;
  if (port !== DNS_PORT) {
    const listen = [`0.0.0.0:${port}`, `[::]:${port}`];
    const note = "Free once the other product is stopped.";
    fragment.table("[server]", { listen }, { isComment: true, note });
    items.push(inFile(`port ${port}`, "commented out"));
  }
  listeners(data, fragment, items);
  rateLimit(data, fragment, items);
  upstreams(data, fragment, items);
  const staleSeconds = Math.round(dns.cache?.optimizer ?? 0);
  if (staleSeconds > 0) {
    const serve_stale = `${Math.min(staleSeconds, STALE_SECONDS_MAX)}s`;
    fragment.table("[cache]", { serve_stale });
    items.push(inFile("cache"));
  }
  if (dns.dnssec === true) {
    fragment.table("[recursion]", { validate_forwarded: true });
    items.push(inFile("DNSSEC"));
  }
  const days = Math.round(database?.maxDBdays ?? RETENTION_DAYS_DEFAULT);
  const level = misc?.privacylevel ?? 0;
  fragment.table("[querylog]", {
    enabled: days === 0 || level >= PRIVACY_ALL ? false : null,
    retention: days > 0 ? `${Math.min(days, RETENTION_DAYS_MAX)}d` : null,
    anonymize: level >= PRIVACY_CLIENTS ? true : null,
  });
  const isCut = level > 0 && level < PRIVACY_ALL ? "names are logged" : null;
  items.push(inFile("query log", isCut));
  const raw = [dns.hostRecord ?? "", ...misc?.dnsmasq_lines ?? []].filter((line) => line !== "");
  for (const line of raw) items.push(lost("file", line, "there is no dnsmasq here"));
  if (dhcp?.active === true) {
    items.push(lost("setting", "DHCP server", "svc gives no addresses away: let the router do it"));
  }
  const { excludeClients = [], excludeDomains = [] } = webserver?.api ?? {};
  for (const name of [...excludeClients, ...excludeDomains]) {
    items.push(lost("file", `query log without ${name}`, "every query is logged, or none"));
  }
  return fragment.text;
}

function listeners({ config: { dns } }: PiholeData, fragment: Fragment, items: Item[]): void {
  const [doh, dot] = [
    dns.doh === true ? ["0.0.0.0:443", "[::]:443"] : null,
    dns.dot === true ? ["0.0.0.0:853", "[::]:853"] : null,
  ];
  if (doh === null && dot === null) return;
  fragment.table("[server.tls]", { cert: "dns.crt", key: "dns.key", doh, dot }, {
    isComment: true,
    note: "Once a certificate and its key are at these places, and the ports are free:",
  });
  for (const [name, listen] of [["DoH", doh], ["DoT", dot]] as const) {
    if (listen !== null) {
      items.push(inFile(`${name} listener`, "commented out: it needs a certificate and its key"));
    }
  }
}

function rateLimit({ config: { dns } }: PiholeData, fragment: Fragment, items: Item[]): void {
  const count = dns.rateLimit?.count ?? RATE_LIMIT_DEFAULT.count;
  const interval = dns.rateLimit?.interval ?? RATE_LIMIT_DEFAULT.interval;
  const isDefault = count === RATE_LIMIT_DEFAULT.count && interval === RATE_LIMIT_DEFAULT.interval;
  if (isDefault || count < 0) return;
  const isOff = count === 0 || interval <= 0;
  const perSecond = isOff ? 0 : Math.min(1e6, Math.max(1, Math.ceil(count / interval)));
  fragment.table("[server.rate_limit]", { queries_per_second: perSecond });
  items.push(inFile("rate limit", "counted by the second"));
}

function upstreams({ config: { dns } }: PiholeData, fragment: Fragment, items: Item[]): void {
  const found = new Upstreams(items);
  for (const upstream of dns.upstreams) found.add(upstream);
  for (const line of dns.revServers) {
    const [isOn, network = "", server = "", domain = ""] = line.split(",").map((part) =>
      part.trim()
    );
    if (isOn !== "true") continue;
    const zones = reverseZones(network);
    if (zones === null || server === "") {
      items.push(lost("file", `upstream ${line}`, "its network can't be read"));
    } else found.add(server, [...zones, ...domain === "" ? [] : [domain]]);
  }
  found.write(fragment, []);
}

/** The zones in which the addresses of a network have their names; `null`: it is no network. */
export function reverseZones(network: string): readonly string[] | null {
  const prefix = parsePrefix(network) ?? withoutHostBits(network);
  if (prefix === null) return null;
  const { ip, lengthBits } = prefix;
  if (ip.length === 16) {
    const digits = Array.from(ip, (byte) => byte.toString(16).padStart(2, "0")).join("");
    const zone = Array.from(digits.slice(0, lengthBits >> 2)).reverse();
    return zone.length === 0 ? null : [[...zone, "ip6", "arpa"].join(".")];
  }
  const octets = Array.from(ip);
  const whole = lengthBits >> 3;
  const name = (labels: readonly number[]) => [...labels.toReversed(), "in-addr", "arpa"].join(".");
  if ((lengthBits & 7) === 0) return whole === 0 ? null : [name(octets.slice(0, whole))];
  // A zone ends at an octet: each of those that the network has is one.
  const count = 1 << (8 - (lengthBits & 7));
  return Array.from(
    { length: count },
    (_, n) => name([...octets.slice(0, whole), octets[whole] + n]),
  );
}
