/** What both products answer, in their shapes, as recorded of small households; for tests. */
import type { HttpAsk } from "../http/mod.ts";

type Answers = Readonly<Record<string, unknown>>;

const HOUR = 3_600_000;
const ALL_ENGINES = {
  bing: true,
  duckduckgo: true,
  ecosia: true,
  google: true,
  pixabay: true,
  yandex: true,
  youtube: true,
};
const NO_SCHEDULE = { time_zone: "Local" };
const NIGHT = {
  time_zone: "Europe/Berlin",
  mon: { start: 17 * HOUR, end: 20 * HOUR },
  tue: { start: 17 * HOUR, end: 20 * HOUR },
  wed: { start: 17 * HOUR, end: 20 * HOUR },
  thu: { start: 17 * HOUR, end: 20 * HOUR },
  fri: { start: 17 * HOUR, end: 24 * HOUR },
  sat: { start: 0, end: 24 * HOUR },
};

function adguardClient(name: string, ids: readonly string[], more: object = {}) {
  return {
    safe_search: { enabled: false, ...ALL_ENGINES },
    blocked_services_schedule: NO_SCHEDULE,
    name,
    blocked_services: null,
    ids,
    tags: null,
    upstreams: null,
    filtering_enabled: true,
    parental_enabled: false,
    safebrowsing_enabled: false,
    safesearch_enabled: false,
    use_global_blocked_services: true,
    use_global_settings: true,
    ignore_querylog: false,
    ignore_statistics: false,
    upstreams_cache_size: 0,
    upstreams_cache_enabled: null,
    ...more,
  };
}

const KIDS = {
  use_global_settings: false,
  use_global_blocked_services: false,
  safe_search: { enabled: true, ...ALL_ENGINES, ecosia: false },
  blocked_services: ["tiktok", "roblox", "no_such_service"],
  blocked_services_schedule: NIGHT,
};

/** By path below `/control`. */
export const ADGUARD: Answers = {
  "status": {
    dns_addresses: ["127.0.0.1", "192.168.1.2"],
    dns_port: 53,
    http_port: 3000,
    protection_disabled_duration: 0,
    protection_enabled: true,
    dhcp_available: true,
    running: true,
    version: "v0.107.79",
    language: "en",
    start_time: 1_790_000_000_000,
  },
  "dns_info": {
    upstream_dns: [
      "# the two of Quad9",
      "https://dns10.quad9.net/dns-query",
      "tls://1.1.1.1",
      "",
      "[/lan/home.arpa/]192.168.1.1",
      "[/intranet.example/]#",
      "quic://dns.adguard-dns.com",
      "sdns://AgcAAAAAAAAABzEuMC4wLjGgENk8mGSlIfMGXMOlIlCcKvq7AVgcrZxtjon911-ep0cg63Ul",
    ],
    upstream_dns_file: "",
    bootstrap_dns: ["9.9.9.10", "149.112.112.10", "2620:fe::10", "2620:fe::fe:10"],
    fallback_dns: ["8.8.8.8"],
    protection_enabled: true,
    ratelimit: 50,
    ratelimit_subnet_len_ipv4: 24,
    ratelimit_subnet_len_ipv6: 56,
    upstream_timeout: 10,
    ratelimit_whitelist: ["192.168.1.5"],
    blocking_mode: "custom_ip",
    edns_cs_enabled: true,
    edns_cs_use_custom: false,
    dnssec_enabled: true,
    disable_ipv6: false,
    upstream_mode: "parallel",
    blocked_response_ttl: 60,
    cache_size: 8_388_608,
    cache_ttl_min: 60,
    cache_ttl_max: 0,
    cache_enabled: true,
    cache_optimistic: true,
    resolve_clients: true,
    use_private_ptr_resolvers: true,
    local_ptr_upstreams: ["192.168.1.1"],
    blocking_ipv4: "192.168.1.9",
    blocking_ipv6: "",
    protection_disabled_until: null,
    edns_cs_custom_ip: "",
    default_local_ptr_upstreams: ["192.168.1.1"],
  },
  "filtering/status": {
    filters: [
      {
        url: "https://lists.example/ads.txt",
        name: "Ads",
        last_updated: "2026-01-02T03:04:05Z",
        id: 1,
        rules_count: 52_341,
        enabled: true,
      },
      { url: "https://lists.example/off.txt", name: "Off", id: 2, rules_count: 0, enabled: false },
      { url: "http://old.example/hosts", name: "Old", id: 3, rules_count: 7, enabled: true },
      { url: "/opt/lists/own.txt", name: "Own", id: 4, rules_count: 7, enabled: true },
    ],
    whitelist_filters: [
      { url: "https://lists.example/good.txt", name: "Good", id: 5, rules_count: 3, enabled: true },
    ],
    user_rules: [
      "! what the printer asks for",
      "||ads.example^",
      "@@||good.example^$important",
      "",
      "||narrow.example^$client='Laptop'",
      "192.168.1.7 printer.example",
    ],
    interval: 12,
    enabled: true,
  },
  "clients": {
    clients: [
      adguardClient("Laptop", ["192.168.1.20", "2001:db8::20", "laptop"]),
      adguardClient("Tablet", ["aa:bb:cc:dd:ee:01"], KIDS),
      adguardClient("Console", ["192.168.1.22", "AA-BB-CC-DD-EE-77"], KIDS),
      adguardClient("Guests", ["192.168.9.0/24"], {
        use_global_settings: false,
        filtering_enabled: false,
        use_global_blocked_services: false,
        tags: ["user_regular"],
        upstreams: ["8.8.4.4"],
        ignore_querylog: true,
        ignore_statistics: true,
      }),
      adguardClient("Watch", ["aa:bb:cc:dd:ee:99"]),
    ],
    auto_clients: [
      { whois_info: {}, ip: "192.168.1.50", name: "tv", source: "ARP" },
    ],
    supported_tags: ["device_audio", "user_regular"],
  },
  "rewrite/list": [
    { domain: "nas.home.arpa", answer: "192.168.1.5", enabled: true },
    { domain: "nas.home.arpa", answer: "2001:db8::5", enabled: true },
    { domain: "*.dev.example", answer: "192.168.1.6", enabled: true },
    { domain: "files.example", answer: "nas.home.arpa", enabled: false },
    { domain: "keep.dev.example", answer: "A", enabled: true },
    { domain: "self.dev.example", answer: "self.dev.example" },
  ],
  "rewrite/settings": { enabled: true },
  "blocked_services/get": { schedule: NO_SCHEDULE, ids: ["facebook"] },
  "safesearch/status": { enabled: false, ...ALL_ENGINES },
  "safebrowsing/status": { enabled: true },
  "parental/status": { enabled: false, sensitivity: 0 },
  "access/list": {
    allowed_clients: [],
    disallowed_clients: ["192.168.1.66", "guest-phone"],
    blocked_hosts: ["version.bind", "id.server", "hostname.bind", "||secret.example^"],
  },
  "querylog/config": {
    ignored: ["router.example"],
    interval: 30 * 24 * HOUR,
    enabled: true,
    anonymize_client_ip: true,
    ignored_enabled: true,
  },
  "tls/status": {
    not_before: "0001-01-01T00:00:00Z",
    not_after: "0001-01-01T00:00:00Z",
    dns_names: null,
    valid_cert: true,
    valid_chain: true,
    valid_key: true,
    valid_pair: true,
    enabled: true,
    server_name: "dns.example.org",
    force_https: false,
    port_https: 443,
    port_dns_over_tls: 853,
    port_dns_over_quic: 853,
    port_dnscrypt: 5443,
    dnscrypt_config_file: "",
    certificate_chain: "",
    private_key: "",
    certificate_path: "/etc/ssl/dns.crt",
    private_key_path: "/etc/ssl/dns.key",
    private_key_saved: false,
    serve_plain_dns: true,
  },
  "dhcp/status": {
    interface_name: "eth0",
    v4: { gateway_ip: "192.168.1.1", lease_duration: 86_400 },
    v6: { range_start: "", lease_duration: 86_400 },
    leases: [
      {
        expires: "2026-01-03T00:00:00Z",
        ip: "192.168.1.21",
        hostname: "tablet",
        mac: "aa:bb:cc:dd:ee:01",
      },
    ],
    static_leases: [{ ip: "192.168.1.5", hostname: "nas", mac: "aa:bb:cc:dd:ee:05" }],
    enabled: true,
  },
};

/** An instance of which nothing was changed. */
export const ADGUARD_FRESH: Answers = {
  ...ADGUARD,
  "dns_info": {
    upstream_dns: ["https://dns10.quad9.net/dns-query"],
    upstream_dns_file: "",
    bootstrap_dns: ["9.9.9.10", "149.112.112.10"],
    fallback_dns: [],
    ratelimit: 20,
    ratelimit_whitelist: [],
    upstream_timeout: 10,
    blocking_mode: "default",
    blocking_ipv4: "",
    blocking_ipv6: "",
    blocked_response_ttl: 10,
    cache_enabled: true,
    cache_size: 4_194_304,
    cache_ttl_min: 0,
    cache_ttl_max: 0,
    cache_optimistic: false,
    upstream_mode: "load_balance",
    use_private_ptr_resolvers: false,
    local_ptr_upstreams: [],
  },
  "filtering/status": {
    filters: null,
    whitelist_filters: null,
    user_rules: null,
    interval: 24,
    enabled: true,
  },
  "clients": { clients: null, auto_clients: null, supported_tags: [] },
  "rewrite/list": [],
  "blocked_services/get": { schedule: NO_SCHEDULE, ids: null },
  "safebrowsing/status": { enabled: false },
  "access/list": { allowed_clients: null, disallowed_clients: null, blocked_hosts: null },
  "querylog/config": {
    enabled: true,
    interval: 90 * 24 * HOUR,
    anonymize_client_ip: false,
    ignored: [],
  },
  "tls/status": { enabled: false },
  "dhcp/status": { enabled: false, leases: [], static_leases: [] },
};

const DATES = { date_added: 1_594_670_974, date_modified: 1_595_279_300 };

function piholeList(address: string, groups: readonly number[], more: object = {}) {
  return {
    address,
    comment: null,
    groups,
    enabled: true,
    id: 1,
    ...DATES,
    type: "block",
    date_updated: 1_608_435_667,
    number: 20_566,
    invalid_domains: 0,
    abp_entries: 0,
    status: 2,
    ...more,
  };
}

function piholeDomain(
  domain: string,
  type: "allow" | "deny",
  kind: "exact" | "regex",
  groups: readonly number[],
  more: object = {},
) {
  return {
    domain,
    unicode: domain,
    type,
    kind,
    comment: null,
    groups,
    enabled: true,
    id: 1,
    ...DATES,
    ...more,
  };
}

function piholeClient(client: string, groups: readonly number[], comment: string | null = null) {
  return { client, name: "", comment, groups, id: 1, ...DATES };
}

/** By path below `/api`. */
export const PIHOLE: Answers = {
  "info/version": {
    version: {
      core: {
        local: { branch: "master", version: "v6.2.2", hash: "a" },
        remote: { version: null },
      },
      ftl: { local: { branch: "master", version: "v6.4.1", hash: "b", date: "" }, remote: {} },
    },
    took: 0.001,
  },
  "groups": {
    groups: [
      { name: "Default", comment: "The default group", enabled: true, id: 0, ...DATES },
      { name: "Kids", comment: null, enabled: true, id: 1, ...DATES },
      { name: "School", comment: null, enabled: true, id: 2, ...DATES },
      { name: "Old", comment: null, enabled: false, id: 3, ...DATES },
    ],
    took: 0.003,
  },
  "lists": {
    lists: [
      piholeList("https://lists.example/ads.txt", [0, 1]),
      piholeList("https://lists.example/games.txt", [2], { comment: "Games" }),
      piholeList("https://lists.example/good.txt", [0], { type: "allow" }),
      piholeList("file:///etc/pihole/own.list", [0]),
      piholeList("https://lists.example/off.txt", [0], { enabled: false }),
    ],
    took: 0.012,
  },
  "domains": {
    domains: [
      piholeDomain("ads.example", "deny", "exact", [0, 1, 2], { comment: "seen often" }),
      piholeDomain("good.example", "allow", "exact", [1]),
      piholeDomain("(^|\\.)track\\.example$", "deny", "regex", [0, 1, 2]),
      piholeDomain("^ad[0-9]+\\.", "deny", "regex", [0, 1, 2]),
      piholeDomain("^v6\\.;querytype=AAAA", "deny", "regex", [0]),
      piholeDomain("nobody.example", "deny", "exact", []),
      piholeDomain("later.example", "deny", "exact", [0, 1, 2], { enabled: false }),
    ],
    took: 0.012,
  },
  "clients": {
    clients: [
      piholeClient("192.168.1.20", [0], "Laptop"),
      piholeClient("AA:BB:CC:DD:EE:01", [1], "Tablet"),
      piholeClient("192.168.1.22", [1, 2], "Console"),
      piholeClient("192.168.9.7/24", [], "Guests"),
      piholeClient(":eth1", [1]),
      piholeClient("tv.lan", [2]),
      piholeClient("AA:BB:CC:DD:EE:99", [0]),
    ],
    took: 0.012,
  },
  "config": {
    config: {
      dns: {
        upstreams: ["127.0.0.1#5335", "8.8.8.8"],
        CNAMEdeepInspect: true,
        blockTTL: 2,
        hosts: ["192.168.1.5 nas nas.home.arpa # the disk", "2001:db8::5 nas.home.arpa", "oops"],
        expandHosts: true,
        domain: { name: "lan", local: true },
        dnssec: true,
        hostRecord: "",
        listeningMode: "LOCAL",
        cnameRecords: ["*.dev.example,www.dev.example,nas.home.arpa,3600", "alone"],
        port: 53,
        cache: { size: 10_000, optimizer: 3_600, upstreamBlockedTTL: 86_400 },
        revServers: ["true,192.168.0.0/16,192.168.1.1#53,fritz.box", "false,10.0.0.0/8,10.0.0.1"],
        blocking: { active: true, mode: "NODATA", edns: "TEXT" },
        reply: {
          host: { force4: false, IPv4: "", force6: false, IPv6: "" },
          blocking: { force4: false, IPv4: "", force6: false, IPv6: "" },
        },
        rateLimit: { count: 600, interval: 60 },
        dot: true,
        doh: false,
      },
      dhcp: { active: true, hosts: ["AA:BB:CC:DD:EE:02,192.168.1.24,printer"] },
      database: { DBimport: true, maxDBdays: 91 },
      webserver: { api: { excludeClients: [], excludeDomains: ["router\\.example"] } },
      misc: { privacylevel: 0, dnsmasq_lines: ["address=/x.example/192.0.2.1"] },
    },
    took: 0.002,
  },
  "network/devices": {
    devices: [
      {
        id: 1,
        hwaddr: "aa:bb:cc:dd:ee:01",
        interface: "eth0",
        firstSeen: 1_664_623_620,
        lastQuery: 1_664_688_620,
        numQueries: 585_462,
        macVendor: null,
        ips: [{ ip: "192.168.1.21", name: "tablet.lan", lastSeen: 1_664_688_620, nameUpdated: 0 }],
      },
      {
        id: 2,
        hwaddr: "aa:bb:cc:dd:ee:03",
        interface: "eth0",
        firstSeen: 0,
        lastQuery: 0,
        numQueries: 0,
        macVendor: "TV",
        ips: [{ ip: "192.168.1.23", name: "tv.lan", lastSeen: 0, nameUpdated: 0 }],
      },
    ],
    took: 0.001,
  },
};

/** What a server says to one request: its status and a body of JSON, or as it is. */
export interface FakeAnswer {
  readonly status: number;
  readonly json?: unknown;
  readonly text?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

interface FakeRequest {
  readonly method: string;
  /** Below the base of the API, without its query. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly json: unknown;
}

type Answering = (request: FakeRequest) => FakeAnswer;

/** Answers requests without a network. */
export function fakeAsk(answer: Answering): HttpAsk {
  return async (url, { method, headers, body }) => {
    await undefined;
    const json = body === undefined ? undefined : JSON.parse(new TextDecoder().decode(body));
    const answered = answer({ method, path: url.pathname, headers, json });
    const pieces = [new TextEncoder().encode(bodyOf(answered))];
    return {
      status: answered.status,
      headers: answered.headers ?? {},
      body: ReadableStream.from(pieces),
    };
  };
}

/** What is sent as the body of an answer. */
export function bodyOf({ json, text }: FakeAnswer): string {
  return text ?? (json === undefined ? "" : JSON.stringify(json));
}

export const USER = "ann";
export const PASSWORD = "correct horse";
const SID = "kQTGn1X0kKmyR3Z0vlqNIg=";

/** An AdGuard Home that lets one user in. */
export function adguardAnswer(
  { method, path, headers }: FakeRequest,
  answers: Answers = ADGUARD,
): FakeAnswer {
  if (!path.startsWith("/control/")) return { status: 302, headers: { location: "/login.html" } };
  if (headers["authorization"] !== `Basic ${btoa(`${USER}:${PASSWORD}`)}`) {
    return { status: 401, text: "Unauthorized" };
  }
  const json = method === "GET" ? answers[path.replace(/^\/control\//, "")] : undefined;
  return json === undefined ? { status: 404, text: "404 page not found" } : { status: 200, json };
}

/** A Pi-hole that lets one password in, with its sessions. */
export class FakePihole {
  readonly open = new Set<string>();
  readonly #answers: Answers;

  constructor(answers: Answers = PIHOLE) {
    this.#answers = answers;
  }

  answer({ method, path, headers, json }: FakeRequest): FakeAnswer {
    const name = path.replace(/^\/api\//, "");
    const session = (valid: boolean, sid: string | null) => ({
      session: { valid, totp: false, sid, csrf: "x", validity: valid ? 1_800 : -1, message: null },
      took: 0.1,
    });
    if (name === "auth" && method === "POST") {
      const isRight = (json as { password?: string }).password === PASSWORD;
      if (!isRight) return { status: 401, json: session(false, null) };
      this.open.add(SID);
      return { status: 200, json: session(true, SID) };
    }
    if (name === "auth" && method === "GET") return { status: 401, json: session(false, null) };
    if (!this.open.has(headers["x-ftl-sid"] ?? "")) {
      const error = { key: "unauthorized", message: "Unauthorized", hint: null };
      return { status: 401, json: { error, took: 0.1 } };
    }
    if (name === "auth" && method === "DELETE") {
      this.open.clear();
      return { status: 204 };
    }
    const found = method === "GET" ? this.#answers[name] : undefined;
    return found === undefined
      ? { status: 404, json: { error: {} } }
      : { status: 200, json: found };
  }
}
