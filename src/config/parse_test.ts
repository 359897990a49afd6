import assert from "node:assert/strict";
import { formatHostPort, formatIp, formatPrefix } from "../addr/mod.ts";
import { defaultConfig, formatProblem, parseConfig, type ParseOptions } from "./mod.ts";
import { TEXT_LENGTH_MAX } from "./parse.ts";

const none = { permissions: "none" } as const;
const OPTIONS: ParseOptions = { file: "svc.toml", directory: "/etc/svc" };

/** The problems of a text, one a line; those that do not stop the service are marked. */
function problemsOf(text: string, options: Partial<ParseOptions> = {}): string[] {
  const { config, problems } = parseConfig(text, { ...OPTIONS, ...options });
  const isRefused = problems.some(({ severity }) => severity === "error");
  assert.equal(config === null, isRefused, "there is a configuration unless there is an error");
  return problems.map((p) => formatProblem(p) + (p.severity === "check" ? " (check)" : ""));
}

/** Addresses and networks as text, everything else as it is: what a person would compare. */
function readable(value: unknown): unknown {
  if (value instanceof Uint8Array) return formatIp(value);
  if (Array.isArray(value)) return value.map(readable);
  if (typeof value !== "object" || value === null) return value;
  if ("ip" in value && value.ip instanceof Uint8Array) {
    const ip = Uint8Array.from(value.ip);
    if ("port" in value && typeof value.port === "number") {
      return formatHostPort({ ip, port: value.port });
    }
    if ("lengthBits" in value && typeof value.lengthBits === "number") {
      return formatPrefix({ ip, lengthBits: value.lengthBits });
    }
  }
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, readable(inner)]));
}

Deno.test("defaultConfig() has the documented defaults", none, () => {
  assert.deepEqual(readable(defaultConfig("/etc/svc")), {
    server: {
      listen: ["0.0.0.0:53", "[::]:53"],
      user: null,
      workers: 0,
      tls: {
        files: null,
        serverName: null,
        dot: [],
        doh: [],
        doq: [],
        odoh: false,
        requireClientId: false,
      },
      rateLimit: { queriesPerSecond: 300, burst: 1_000, exempt: ["127.0.0.0/8", "::1"] },
    },
    upstreams: [],
    forwarding: { strategy: "order", parallelMax: 3 },
    dns64: { enabled: false, prefix: "64:ff9b::/96", exclude: ["::ffff:0.0.0.0/96"] },
    cache: {
      sizeBytes: 33_554_432,
      minTtl: 0,
      maxTtl: 86_400,
      negativeMaxTtl: 3_600,
      serveStaleMs: 0,
      prefetch: false,
    },
    filter: {
      lists: [],
      rules: [],
      services: true,
      servicesFile: null,
      servicesUrl: null,
      directory: true,
      directoryUrl: null,
      defaultLists: true,
      onFailure: "open",
      localListsDir: "/etc/svc/lists",
    },
    recursion: {
      enabled: false,
      dnssec: true,
      qnameMinimisation: true,
      rootHintsFile: null,
      trustAnchorFile: null,
      negativeTrustAnchors: [],
      validateForwarded: false,
    },
    security: { sandbox: true, rebindingProtection: true, rebindingExempt: [] },
    querylog: {
      enabled: true,
      retentionMs: 604_800_000,
      maxEntries: 1_000_000,
      anonymize: false,
      dir: "/var/lib/svc/querylog",
      dnstap: null,
      otlp: null,
      timeZone: null,
    },
    api: {
      listen: ["127.0.0.1:8053"],
      tokenSha256: null,
      tls: null,
      docs: false,
      webUi: true,
      publicUrl: null,
    },
    store: { dir: "/var/lib/svc" },
    update: { url: null },
    acme: null,
    cluster: null,
    vrrp: null,
    telemetry: {
      endpoint: null,
      headersFile: null,
      caFile: null,
      metrics: true,
      logs: true,
      traces: false,
      traceSampleRatio: 0.05,
      queryDetails: false,
      intervalMs: 60_000,
    },
    webhooks: {
      networks: ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "fc00::/7"],
    },
    devices: { hostsFiles: ["/etc/hosts"], leaseFiles: [], neighbours: true },
  });
});

const FULL = `
[server]
listen = ["0.0.0.0:53", "[2001:db8::1]:53", "127.0.0.1:0"]
user = "svc"
workers = 4

[server.tls]
cert = "tls/dns.crt"
key = "/etc/ssl/private/dns.key"
server_name = "DNS.Example."
dot = ["192.0.2.1:853"]
doh = ["192.0.2.1:443"]
doq = ["192.0.2.1:853"]
odoh = true
require_client_id = true

[server.rate_limit]
queries_per_second = 50
burst = 100
exempt = ["192.0.2.0/24", "2001:db8::/32"]

[[upstream]]
address = "9.9.9.9"

[[upstream]]
address = "tls://dns.quad9.net"
bootstrap = ["9.9.9.9", "2620:fe::fe"]
timeout = "500ms"

[[upstream]]
address = "https://dns.example/dns-query"
bootstrap = ["192.0.2.53"]
ca = "ca.pem"
domains = ["lan", "Bücher.Example"]

[forwarding]
strategy = "parallel"
parallel_max = 2

[dns64]
enabled = true
prefix = "2001:db8:122::/48"
exclude = ["::ffff:0:0/96", "2002::/16"]

[cache]
size = "64MiB"
min_ttl = 10
max_ttl = 3600
negative_max_ttl = 60
serve_stale = "1d"
prefetch = true

[filter]
lists = [
  { name = "Ads", url = "https://lists.example/ads.txt" },
  { name = "Test", url = "http://127.0.0.1:8080/list" },
  { name = "Own", path = "my-lists/own.txt" },
]
rules = ["||ads.example^", "0.0.0.0\\ttracker.example"]
services = false
services_file = "services.json"
services_url = "https://services.example/services.json"
directory = false
directory_url = "https://services.example/filters.json"
default_lists = false
on_failure = "closed"
local_lists_dir = "my-lists/"

[recursion]
enabled = true
dnssec = false
qname_minimisation = false
root_hints = "root.hints"
trust_anchor = "root.ds"
negative_trust_anchors = ["Broken.example", "münchen.example."]
validate_forwarded = true

[security]
sandbox = false
rebinding_protection = false
rebinding_exempt = ["corp.example"]

[querylog]
enabled = false
retention = "24h"
max_entries = 0
anonymize = true

[api]
listen = ["0.0.0.0:8053"]
token_sha256 = "${"Ab".repeat(32)}"
tls_cert = "api.crt"
tls_key = "api.key"
docs = true
web_ui = false
public_url = "https://DNS.example:8443/"

[store]
path = "../data/./svc"

[update]
url = "https://releases.example/svc"

[cluster]
node = "node-a"
bootstrap = true
listen = ["192.0.2.1:8054"]
ca = "cluster/ca.crt"
cert = "cluster/node-a.crt"
key = "cluster/node-a.key"

[[cluster.member]]
node = "node-b"
address = "192.0.2.2"

[[cluster.member]]
node = "witness"
address = "[2001:db8::3]:9054"

[vrrp]
interface = "eth0"
address = "192.0.2.53/24"
peer = "192.0.2.2"
router_id = 53
priority = 150
preempt = false
interval_ms = 500
unicast = true

[webhooks]
networks = ["127.0.0.1"]

[telemetry]
endpoint = "http://collector.example:4318"
headers_file = "otlp.headers"
ca_file = "otlp.pem"
metrics = false
logs = false
traces = true
trace_sample_ratio = 1
query_details = true
interval = "10s"

[devices]
hosts_files = ["hosts"]
lease_files = ["/var/lib/misc/dnsmasq.leases"]
neighbours = false
`;

Deno.test("parseConfig() reads every key", none, () => {
  const ignored = [
    /^svc\.toml:23: upstream\[0\]\.address: is not asked/,
    /^svc\.toml:26: upstream\[1\]/,
    /^svc\.toml:\d+: recursion\.validate_forwarded: means nothing/,
  ];
  const problems = problemsOf(FULL);
  assert.equal(problems.length, ignored.length);
  for (const [i, want] of ignored.entries()) assert.match(problems[i], want);
  assert.deepEqual(readable(parseConfig(FULL, OPTIONS).config), {
    server: {
      listen: ["0.0.0.0:53", "[2001:db8::1]:53", "127.0.0.1:0"],
      user: "svc",
      workers: 4,
      tls: {
        files: { certFile: "/etc/svc/tls/dns.crt", keyFile: "/etc/ssl/private/dns.key" },
        serverName: "dns.example",
        dot: ["192.0.2.1:853"],
        doh: ["192.0.2.1:443"],
        doq: ["192.0.2.1:853"],
        odoh: true,
        requireClientId: true,
      },
      rateLimit: { queriesPerSecond: 50, burst: 100, exempt: ["192.0.2.0/24", "2001:db8::/32"] },
    },
    upstreams: [
      {
        kind: "udp",
        address: "9.9.9.9",
        timeoutMs: 2_000,
        domains: [],
        clientSubnet: "off",
        name: null,
        groupsOnly: false,
        endpoint: "9.9.9.9:53",
      },
      {
        kind: "tls",
        address: "tls://dns.quad9.net",
        timeoutMs: 500,
        domains: [],
        clientSubnet: "off",
        name: null,
        groupsOnly: false,
        host: "dns.quad9.net",
        ips: ["9.9.9.9", "2620:fe::fe"],
        port: 853,
        serverName: "dns.quad9.net",
        caFile: null,
      },
      {
        kind: "https",
        address: "https://dns.example/dns-query",
        timeoutMs: 2_000,
        domains: ["lan", "xn--bcher-kva.example"],
        clientSubnet: "off",
        name: null,
        groupsOnly: false,
        host: "dns.example",
        ips: ["192.0.2.53"],
        port: 443,
        serverName: "dns.example",
        caFile: "/etc/svc/ca.pem",
        path: "/dns-query",
      },
    ],
    forwarding: { strategy: "parallel", parallelMax: 2 },
    dns64: {
      enabled: true,
      prefix: "2001:db8:122::/48",
      exclude: ["::ffff:0.0.0.0/96", "2002::/16"],
    },
    cache: {
      sizeBytes: 67_108_864,
      minTtl: 10,
      maxTtl: 3_600,
      negativeMaxTtl: 60,
      serveStaleMs: 86_400_000,
      prefetch: true,
    },
    filter: {
      lists: [
        { kind: "url", name: "Ads", url: "https://lists.example/ads.txt" },
        { kind: "url", name: "Test", url: "http://127.0.0.1:8080/list" },
        { kind: "path", name: "Own", path: "/etc/svc/my-lists/own.txt", isInside: true },
      ],
      rules: ["||ads.example^", "0.0.0.0\ttracker.example"],
      services: false,
      servicesFile: "/etc/svc/services.json",
      servicesUrl: "https://services.example/services.json",
      directory: false,
      directoryUrl: "https://services.example/filters.json",
      defaultLists: false,
      onFailure: "closed",
      localListsDir: "/etc/svc/my-lists",
    },
    recursion: {
      enabled: true,
      dnssec: false,
      qnameMinimisation: false,
      rootHintsFile: "/etc/svc/root.hints",
      trustAnchorFile: "/etc/svc/root.ds",
      negativeTrustAnchors: ["broken.example", "xn--mnchen-3ya.example"],
      validateForwarded: true,
    },
    security: {
      sandbox: false,
      rebindingProtection: false,
      rebindingExempt: ["corp.example"],
    },
    querylog: {
      enabled: false,
      retentionMs: 86_400_000,
      maxEntries: 0,
      anonymize: true,
      dir: "/etc/data/svc/querylog",
      dnstap: null,
      otlp: null,
      timeZone: null,
    },
    api: {
      listen: ["0.0.0.0:8053"],
      tokenSha256: "ab".repeat(32),
      tls: { certFile: "/etc/svc/api.crt", keyFile: "/etc/svc/api.key" },
      docs: true,
      webUi: false,
      publicUrl: "https://dns.example:8443",
    },
    store: { dir: "/etc/data/svc" },
    update: { url: "https://releases.example/svc" },
    acme: null,
    cluster: {
      node: "node-a",
      bootstrap: true,
      listen: ["192.0.2.1:8054"],
      caFile: "/etc/svc/cluster/ca.crt",
      certFile: "/etc/svc/cluster/node-a.crt",
      keyFile: "/etc/svc/cluster/node-a.key",
      members: [
        { node: "node-b", address: "192.0.2.2:8054" },
        { node: "witness", address: "[2001:db8::3]:9054" },
      ],
    },
    vrrp: {
      interface: "eth0",
      address: "192.0.2.53",
      prefixLengthBits: 24,
      peer: "192.0.2.2",
      routerId: 53,
      priority: 150,
      preempt: false,
      intervalMs: 500,
      unicast: true,
    },
    telemetry: {
      endpoint: "http://collector.example:4318/",
      headersFile: "/etc/svc/otlp.headers",
      caFile: "/etc/svc/otlp.pem",
      metrics: false,
      logs: false,
      traces: true,
      traceSampleRatio: 1,
      queryDetails: true,
      intervalMs: 10_000,
    },
    webhooks: { networks: ["127.0.0.1"] },
    devices: {
      hostsFiles: ["/etc/svc/hosts"],
      leaseFiles: ["/var/lib/misc/dnsmasq.leases"],
      neighbours: false,
    },
  });
});

const CLUSTER = `
node = "a"
ca = "ca.crt"
cert = "a.crt"
key = "a.key"
`;

Deno.test("parseConfig() fills in the defaults of [cluster] and [vrrp]", none, () => {
  const vrrp = `interface = "eth0"\naddress = "192.0.2.53"\npeer = "192.0.2.2"\nrouter_id = 1`;
  const { config } = parseConfig(`[cluster]${CLUSTER}[vrrp]\n${vrrp}`, OPTIONS);
  assert.deepEqual(readable(config?.cluster), {
    node: "a",
    bootstrap: false,
    listen: ["0.0.0.0:8054", "[::]:8054"],
    caFile: "/etc/svc/ca.crt",
    certFile: "/etc/svc/a.crt",
    keyFile: "/etc/svc/a.key",
    members: [],
  });
  assert.deepEqual(readable(config?.vrrp), {
    interface: "eth0",
    address: "192.0.2.53",
    prefixLengthBits: 32,
    peer: "192.0.2.2",
    routerId: 1,
    priority: 100,
    preempt: true,
    intervalMs: 1_000,
    unicast: false,
  });
});

Deno.test("parseConfig() understands the earlier two-node [cluster]", none, async (t) => {
  const peer = `[cluster.peer]\nnode = "b"\naddress = "192.0.2.2:8054"\n`;
  for (const [role, bootstrap] of [["primary", true], ["replica", false]] as const) {
    await t.step(role, () => {
      const text = `[cluster]\nrole = "${role}"\nlisten = "192.0.2.1:8054"${CLUSTER}${peer}`;
      assert.deepEqual(problemsOf(text), []);
      const { config } = parseConfig(text, OPTIONS);
      assert.equal(config?.cluster?.bootstrap, bootstrap);
      assert.deepEqual(readable(config?.cluster?.listen), ["192.0.2.1:8054"]);
      assert.deepEqual(readable(config?.cluster?.members), [
        { node: "b", address: "192.0.2.2:8054" },
      ]);
    });
  }
});

Deno.test("parseConfig() lets a witness have [cluster] and [store] only", none, () => {
  const options = { role: "witness" } as const;
  const other = `[[cluster.member]]\nnode = "b"\naddress = "192.0.2.2"\n`;
  const good = `[cluster]${CLUSTER}listen = "127.0.0.1:8053"\n[store]\npath = "data"\n${other}`;
  assert.deepEqual(problemsOf(good, options), []);
  assert.deepEqual(problemsOf(`${good}[api]\n[[upstream]]\n[apx]\n`, options), [
    "svc.toml:12: api: means nothing to a witness: leave [cluster] and [store] only",
    "svc.toml:13: upstream: means nothing to a witness: leave [cluster] and [store] only",
    "svc.toml:14: apx: is an unknown table: did you mean api?",
  ]);
  assert.deepEqual(problemsOf("", options), [
    "svc.toml:1: cluster: is missing: a witness is a member of a cluster",
  ]);
  assert.deepEqual(problemsOf(`[cluster]${CLUSTER}bootstrap = true\n${other}`, options), [
    "svc.toml:6: cluster.bootstrap: is for nodes: a witness never starts a cluster, take it away",
  ]);
});

/** Every table of a file, as problems name them. */
const TABLES =
  "acme, api, cache, cluster, devices, dns64, filter, forwarding, querylog, recursion, security, server, store, telemetry, update, upstream, vrrp, webhooks";

/** Lines of a file, and its problems without the file's name. */
const BAD: readonly (readonly [string[], string[]])[] = [
  [["[server]", "workers = 65"], [
    "2: server.workers: is 65, out of range: write one from 0 to 64",
  ]],
  [["[server]", 'workers = "2"'], [
    "2: server.workers: is a string, not an integer: write it without quotes",
  ]],
  [["[server]", "workers = 1.5"], [
    "2: server.workers: is a float, not an integer: write a whole number",
  ]],
  [["[server]", "listn = []"], ["2: server.listn: is an unknown key: did you mean listen?"]],
  [["[sever]", "listen = []"], ["1: sever: is an unknown table: did you mean server?"]],
  [["colour = 1"], [
    `1: colour: is an unknown key; known here: ${TABLES}`,
  ]],
  [["[server]", 'listen = "0.0.0.0:53"'], [
    "2: server.listen: is a string, not an array: put it in [brackets]",
  ]],
  [["[server]", "listen = [", '  "127.0.0.1:53",', '  "localhost:53",', '  "127.0.0.1:53",', "]"], [
    '4: server.listen[1]: is "localhost:53", not an IP address with a port: write one such as "192.0.2.1:53" or "[2001:db8::1]:53"',
    '5: server.listen[2]: is "127.0.0.1:53", which server.listen[0] has over udp: change one',
  ]],
  [["[server]", 'user = "a b"'], [
    '2: server.user: is "a b", not a user name: write one such as "svc"',
  ]],
  [["[server]", 'user = ""'], ["2: server.user: is empty: write a value or take it away"]],
  [["[server.tls]", 'dot = ["127.0.0.1:853"]'], [
    "2: server.tls.dot: needs a certificate: set server.tls.cert and server.tls.key, or [acme]",
  ]],
  [["[server.tls]", 'cert = "a.crt"', "odoh = true", "require_client_id = true"], [
    "2: server.tls.cert: goes together with key: set that as well",
    "3: server.tls.odoh: needs a DNS over HTTPS listener: set server.tls.doh",
    "4: server.tls.require_client_id: leaves nobody to answer, as no client can tell its ID: set server.tls.doh, or server.tls.server_name with dot or doq",
  ]],
  [["[server.tls]", 'server_name = "*.dns.example"'], [
    '2: server.tls.server_name: is "*.dns.example", not a domain name: write one such as "home.arpa", without a wildcard',
  ]],
  [[
    "[server.rate_limit]",
    "queries_per_second = -1",
    "burst = 0",
    'exempt = ["192.0.2.1/24", "192.0.2.0/33", "2001:db8::1/32"]',
  ], [
    "2: server.rate_limit.queries_per_second: is -1, out of range: write one from 0 to 1000000",
    "3: server.rate_limit.burst: is 0, so no query ever passes: write 1 or more",
    '4: server.rate_limit.exempt[0]: is "192.0.2.1/24", which has host bits set: write "192.0.2.0/24"',
    '4: server.rate_limit.exempt[1]: is "192.0.2.0/33", not a network: write one such as "192.0.2.0/24" or "2001:db8::/32"',
    '4: server.rate_limit.exempt[2]: is "2001:db8::1/32", which has host bits set: write "2001:db8::/32"',
  ]],
  [["[server.rate_limit]", "burst = 0"], [
    "2: server.rate_limit.burst: is 0, so no query ever passes: write 1 or more",
  ]],
  [["[upstream]", 'address = "9.9.9.9"'], [
    "1: upstream: is a table, not an array of tables: head each [[upstream]]",
  ]],
  [[
    "[[upstream]]",
    "[[upstream]]",
    'address = "dns.example"',
    "[[upstream]]",
    'address = "sdns://dns.example"',
  ], [
    "1: upstream[0].address: is missing: the table is of no use without it",
    '3: upstream[1].address: is "dns.example", and plain DNS takes an IP address: write that, or tls://dns.example',
    '5: upstream[2].address: has the scheme "sdns": use tls://, https://, quic:// or an IP address alone',
  ]],
  [[
    "[[upstream]]",
    'address = "9.9.9.9"',
    'bootstrap = ["192.0.2.1"]',
    'ca = "ca.pem"',
    "domains = []",
    'timeout = "1ms"',
  ], [
    "3: upstream[0].bootstrap: is for upstreams with a name: take it away",
    "4: upstream[0].ca: is for tls://, https:// and quic:// upstreams: take it away",
    "5: upstream[0].domains: names no domain: take it away to ask for every name here",
    "6: upstream[0].timeout: is 1ms, out of range: write one from 100ms to 30s",
  ]],
  [[
    "[[upstream]]",
    'address = "tls://192.0.2.1#dns_example!"',
    "[[upstream]]",
    'address = "tls://192.0.2.1:99999"',
    "[[upstream]]",
    'address = "tls://"',
    "[[upstream]]",
    'address = "https://dns.example"',
    "[[upstream]]",
    'address = "https://"',
    "[[upstream]]",
    'address = "https://192.0.2.1/dns-query"',
    'bootstrap = ["192.0.2.1"]',
  ], [
    '2: upstream[0].address: has "dns_example!" behind #, where the server\'s name belongs',
    "4: upstream[1].address: has the port 99999, out of range: write one from 1 to 65535",
    '6: upstream[2].address: is "tls://", not a DNS over TLS upstream: write "tls://dns.example" or "tls://192.0.2.1#dns.example"',
    '8: upstream[3].address: has no path: most servers take "https://dns.example/dns-query"',
    '10: upstream[4].address: is "https://", not a DNS over HTTPS upstream: write "https://dns.example/dns-query"',
    "13: upstream[5].bootstrap: is for upstreams with a name, and this one has an address: take it away",
  ]],
  [["[[upstream]]", 'address = "192.0.2.1:0"', 'domains = ["*.lan", "lan", "LAN."]'], [
    '2: upstream[0].address: is "192.0.2.1:0", not an upstream: write "9.9.9.9", "tls://dns.example" or "https://dns.example/dns-query"',
    '3: upstream[0].domains[0]: is "*.lan", not a domain name: write one such as "home.arpa", without a wildcard',
    '3: upstream[0].domains[2]: repeats "lan" of upstream[0].domains[1]: take one away',
  ]],
  [[
    "[cache]",
    'size = "32MB"',
    "min_ttl = 100",
    "max_ttl = 50",
    "negative_max_ttl = 2147483648",
    "serve_stale = 10",
    'prefetch = "yes"',
  ], [
    '2: cache.size: is "32MB", not a size: write a whole number and B, KiB, MiB or GiB, such as "32MiB"',
    "3: cache.min_ttl: is 100, more than max_ttl, which is 50: change one",
    "5: cache.negative_max_ttl: is 2147483648, out of range: write one from 0 to 2147483647",
    '6: cache.serve_stale: is a number without a unit: write a duration such as "10s"',
    "7: cache.prefetch: is a string, not a boolean: write true or false without quotes",
  ]],
  [["[cache]", 'size = "1KiB"', 'serve_stale = "31d"'], [
    "2: cache.size: is 1KiB, out of range: write one from 1MiB to 16GiB",
    "3: cache.serve_stale: is 31d, out of range: write one from 0s to 30d",
  ]],
  [[
    "[filter]",
    "lists = [",
    '  { name = "a", url = "http://lists.example/a" },',
    '  { name = "a", url = "https://lists.example/a" },',
    '  { name = "a", path = "lists/a" },',
    '  { name = "b" },',
    '  { url = "https://lists.example/c" },',
    '  { name = "", url = "ftp://x/", path = "lists/x" },',
    '  "d",',
    '  { name = "e", path = "lists/../e" },',
    '  { name = "f", urll = "https://u:p@lists.example/" , url = "https://u:p@lists.example/" },',
    "]",
  ], [
    "3: filter.lists[0].url: is fetched over http, which anybody on the way can change: write https",
    '5: filter.lists[2].name: is "a" once more: rename one',
    "6: filter.lists[3]: has neither url nor path: set one",
    "7: filter.lists[4].name: is missing: the table is of no use without it",
    "8: filter.lists[5].name: is empty: write a value or take it away",
    '8: filter.lists[5].url: is "ftp://x/", not a web address: write one such as "https://www.example/path"',
    "8: filter.lists[5]: has both url and path: take one away",
    "9: filter.lists[6]: is a string, not a table",
    '10: filter.lists[7].path: is outside of filter.local_lists_dir, so the list is skipped: move the file into "/etc/svc/lists" (check)',
    "11: filter.lists[8].url: holds a user name or password: take it out, it would show in logs",
    "11: filter.lists[8].urll: is an unknown key: did you mean url?",
  ]],
  [[
    "[[filter.lists]]",
    'name = "a"',
    'path = "../a"',
    "",
    "[[filter.lists]]",
    "name = 1",
    'path = "lists/b"',
  ], [
    '3: filter.lists[0].path: is outside of filter.local_lists_dir, so the list is skipped: move the file into "/etc/svc/lists" (check)',
    '6: filter.lists[1].name: is an integer, not a string: put it in "quotes"',
  ]],
  [["[filter]", 'on_failure = "shut"', 'rules = ["||a.example^", 1, "a\\nb"]', "services = 1"], [
    '2: filter.on_failure: is "shut", not "open" or "closed"',
    '3: filter.rules[1]: is an integer, not a string: put it in "quotes"',
    "3: filter.rules[2]: holds a control character or a line break: take it out",
    "4: filter.services: is an integer, not a boolean: write true or false without quotes",
  ]],
  [["[recursion]", "enabled = 1", "qname_minimization = true"], [
    "2: recursion.enabled: is an integer, not a boolean: write true or false without quotes",
    "3: recursion.qname_minimization: is an unknown key: did you mean qname_minimisation?",
  ]],
  [["[recursion]", "dnssec = false", "validate_forwarded = true"], [
    "3: recursion.validate_forwarded: means nothing while recursion.dnssec is false: set that to true, or leave this out",
  ]],
  [["[security]", 'rebinding_exempt = ["192.0.2.1", "corp..example"]', 'sandbox = "no"'], [
    '2: security.rebinding_exempt[0]: is "192.0.2.1", not a domain name: write one such as "home.arpa", without a wildcard',
    '2: security.rebinding_exempt[1]: is "corp..example", not a domain name: write one such as "home.arpa", without a wildcard',
    "3: security.sandbox: is a string, not a boolean: write true or false without quotes",
  ]],
  [["[querylog]", 'retention = "30m"', "max_entries = 100000001"], [
    "2: querylog.retention: is 30m, out of range: write one from 1h to 400d",
    "3: querylog.max_entries: is 100000001, out of range: write one from 0 to 100000000",
  ]],
  [["[api]", 'listen = ["0.0.0.0:8053", "127.0.0.1:8053"]'], [
    '2: api.listen[0]: is "0.0.0.0:8053", beyond loopback, which needs api.token_sha256: run svc token',
  ]],
  [["[api]", 'token_sha256 = "abc"', 'listen=["0.0.0.0:8053"]', 'tls_key = "k"'], [
    "2: api.token_sha256: is not a SHA-256 hash of 64 hexadecimal digits: run svc token for one",
    "4: api.tls_key: goes together with tls_cert: set that as well",
  ]],
  [["[api]", 'listen = ["127.0.0.1:53"]', "[server]", 'listen = ["127.0.0.1:53"]'], [
    '2: api.listen[0]: is "127.0.0.1:53", which server.listen[0] has over tcp: change one',
  ]],
  [["[update]", 'url = "example"'], [
    '2: update.url: is "example", not a web address: write one such as "https://www.example/path"',
  ]],
  [["[cluster]", "bootstrap = true"], [
    "1: cluster.node: is missing: the table is of no use without it",
    "1: cluster.ca: is missing: the table is of no use without it",
    "1: cluster.cert: is missing: the table is of no use without it",
    "1: cluster.key: is missing: the table is of no use without it",
  ]],
  [[
    "[cluster]",
    'node = "Node-1"',
    "listen = []",
    'ca = "ca.crt"',
    'cert = "a.crt"',
    'key = "a.key"',
    "[[cluster.member]]",
    'node = "b"',
    'address = "192.0.2.2"',
    "[[cluster.member]]",
    'node = "b"',
    'address = "192.0.2.2:8054"',
    "[[cluster.member]]",
    'address = "b.example:1"',
  ], [
    '2: cluster.node: is "Node-1", not a node name: write 1 to 63 lower-case letters, digits and hyphens, a letter first, no hyphen last',
    "3: cluster.listen: names no address, so no member could reach this one: name one",
    '11: cluster.member[1].node: is "b", as cluster.member[0].node is: each member has its own',
    '12: cluster.member[1].address: is "192.0.2.2:8054", as cluster.member[0].address is: each member has its own',
    "13: cluster.member[2].node: is missing: the table is of no use without it",
    '14: cluster.member[2].address: is "b.example:1", not an IP address with a port: write one such as "192.0.2.1:8054" or "[2001:db8::1]:8054"',
  ]],
  [[
    "[cluster]",
    'node = "a"',
    'role = "replica"',
    "bootstrap = true",
    'ca = "ca.crt"',
    'cert = "a.crt"',
    'key = "a.key"',
    "[cluster.peer]",
    'node = "b"',
  ], [
    '4: cluster.bootstrap: contradicts role = "replica": take role away',
    "8: cluster.peer.address: is missing: the table is of no use without it",
  ]],
  [["[cluster]", 'node = "a"', 'ca = "ca.crt"', 'cert = "a.crt"', 'key = "a.key"'], [
    "1: cluster.member: names no other member, so nobody adds this one: list each with node and address (check)",
  ]],
  [[
    "[cluster]",
    'node = "a"',
    'listen = "192.0.2.1"',
    'ca = "ca.crt"',
    'cert = "a.crt"',
    'key = "a.key"',
    "[[cluster.member]]",
    'node = "b"',
    'address = "192.0.2.1"',
    "[[cluster.member]]",
    'node = "c"',
    'address = "192.0.2.3"',
    "[cluster.peer]",
    'node = "d"',
    'address = "192.0.2.3:8054"',
  ], [
    "9: cluster.member[0].address: is where this node listens itself: write the address of b (check)",
    '15: cluster.peer.address: is "192.0.2.3:8054", as cluster.member[1].address is: each member has its own',
  ]],
  [[
    "[vrrp]",
    'interface = "eth 0"',
    'address = "2001:db8::1"',
    'peer = "192.0.2.2"',
    "router_id = 0",
    "priority = 255",
    "interval_ms = 105",
  ], [
    '2: vrrp.interface: is "eth 0", not a network interface: write one such as "eth0"',
    '3: vrrp.address: is "2001:db8::1", not an IPv4 address: write one such as "192.0.2.1"',
    "5: vrrp.router_id: is 0, out of range: write one from 1 to 255",
    "6: vrrp.priority: is 255, out of range: write one from 1 to 254",
    "7: vrrp.interval_ms: is 105, not a multiple of 10",
  ]],
  [[
    "[vrrp]",
    'interface = "eth0"',
    'address = "192.0.2.2/33"',
    'peer = "192.0.2.2"',
    "router_id = 1",
  ], ['3: vrrp.address: is "192.0.2.2/33", not an IPv4 address with or without a length']],
  [[
    "[vrrp]",
    'interface = "eth0"',
    'address = "192.0.2.2/24"',
    'peer = "192.0.2.2"',
    "router_id = 1",
  ], ["4: vrrp.peer: is the floating address: write the other node's own address"]],
  [[
    "[vrrp]",
    'interface = "eth0"',
    'address = "224.0.0.53"',
    'peer = "127.0.0.2"',
    "router_id = 1",
  ], [
    '3: vrrp.address: is "224.0.0.53", no address that a node of a network has',
    '4: vrrp.peer: is "127.0.0.2", no address that a node of a network has',
  ]],
  [[
    "[vrrp]",
    'interface = "eth0"',
    'address = "192.0.2.255/24"',
    'peer = "192.0.2.2"',
    "router_id = 1",
  ], [
    '3: vrrp.address: is "192.0.2.255/24", the network itself or all of it: name a node\'s',
  ]],
  [[
    "[server]",
    'listen = ["192.0.2.1:53", "[::]:53"]',
    "[vrrp]",
    'interface = "eth0"',
    'address = "192.0.2.53"',
    'peer = "192.0.2.2"',
    "router_id = 1",
  ], [
    '5: vrrp.address: is none that server.listen answers on: add "0.0.0.0:53" or "192.0.2.53:53" there (check)',
  ]],
  [[
    "[server]",
    'listen = ["192.0.2.53:53"]',
    "[vrrp]",
    'interface = "eth0"',
    'address = "192.0.2.53"',
    'peer = "192.0.2.2"',
    "router_id = 1",
  ], [
    '2: server.listen: leaves svc vrrp no address to check this node by: add "127.0.0.1:53" (check)',
  ]],
  [["[telemetry]", 'endpoint = "collector:4318"', "trace_sample_ratio = 1.5", 'interval = "2h"'], [
    '2: telemetry.endpoint: is "collector:4318", not a web address: write one such as "https://www.example/path"',
    "3: telemetry.trace_sample_ratio: is 1.5, out of range: write one from 0 to 1",
    "4: telemetry.interval: is 2h, out of range: write one from 1s to 1h",
  ]],
  [["[server"], ["1: column 8: is no valid TOML: illegal character in key"]],
  [["a = 1", "a = 2"], [
    "2: column 1: is no valid TOML: trying to redefine an already defined table or value",
  ]],
  [["[server]", 'listen = [ "a"'], [
    "3: column 1: is no valid TOML: expected comma or end of structure",
  ]],
  [["x = [[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]"], [
    "1: column 21: is no valid TOML: document contains excessively nested structures. aborting.",
  ]],
  [["server = 3"], ["1: server: is an integer, not a table: write it below one [server] header"]],
  [["[[server]]"], [
    "1: server: is given more than once or as an array: write it below one [server] header",
  ]],
  [["cluster = 1979-05-27"], [
    "1: cluster: is a date, not a table: write it below one [cluster] header",
  ]],
  [['"quoted key" = 1', '"__proto__" = 1', '"bell\\u0007" = 2', '"c1\\u009b" = 2'], [
    `1: "quoted key": is an unknown key; known here: ${TABLES}`,
    `2: __proto__: is an unknown key; known here: ${TABLES}`,
    `3: "bell\\u0007": is an unknown key; known here: ${TABLES}`,
    `4: "c1\\u009b": is an unknown key; known here: ${TABLES}`,
  ]],
  [["server.rate_limit.brst = 1 # dotted", 'server."tls".dto = []'], [
    "1: server.rate_limit.brst: is an unknown key: did you mean burst?",
    "2: server.tls.dto: is an unknown key: did you mean dot?",
  ]],
  [[
    "[filter]",
    'rules = ["""',
    "[server]",
    "workers = 99",
    "\"\"\", '''",
    "[[upstream]]",
    "''']",
    "bogus = 1",
  ], [
    "2: filter.rules[0]: holds a control character or a line break: take it out",
    "5: filter.rules[1]: holds a control character or a line break: take it out",
    "8: filter.bogus: is an unknown key; known in filter: default_lists, directory, directory_url, lists, local_lists_dir, on_failure, rules, services, services_file, services_url",
  ]],
  [["[server]\r", "workers = 99\r"], [
    "2: server.workers: is 99, out of range: write one from 0 to 64",
  ]],
];

Deno.test("parseConfig() tells every problem with its line, key and mending", none, async (t) => {
  for (const [lines, want] of BAD) {
    await t.step(lines.join(" ").slice(0, 80), () => {
      assert.deepEqual(problemsOf(lines.join("\n") + "\n"), want.map((line) => `svc.toml:${line}`));
    });
  }
});

Deno.test("parseConfig() refuses a file that is too long before it reads it", none, () => {
  assert.deepEqual(problemsOf("#".repeat(TEXT_LENGTH_MAX)), []);
  assert.deepEqual(problemsOf("#".repeat(TEXT_LENGTH_MAX + 1)), [
    "svc.toml: is longer than 4194304 characters: move rules into a list",
  ]);
});

Deno.test("parseConfig() never repeats what stands in place of the token's hash", none, () => {
  const token = `svc_${"0123456789abcdef".repeat(4)}`;
  const problems = problemsOf(`[api]\ntoken_sha256 = "${token}"\n`);
  assert.equal(problems.length, 1);
  assert.ok(!problems[0].includes("0123456789abcdef"), problems[0]);
});

/** mulberry32: small, and good enough to pick mutations. */
function randomOf(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) % below;
  };
}

const PIECES = [
  ..."[]{}=\"'\\,.#\n\r\t 0-é\u0000",
  '"""',
  "'''",
  "[[",
  "]]",
  "true",
  "1e999",
  "nan",
  "1979-05-27T07:32:00Z",
  "a.b.c = 1\n",
  "[server]\n",
  "[[cluster.member]]\n",
  '"\\U0010FFFF" = 1\n',
  "__proto__",
];

/** Mutations of one run; some thousand reach every reader with values of every kind. */
const MUTATION_COUNT = 2_000;

Deno.test("parseConfig() never throws, whatever the file holds", none, () => {
  const seed = Date.now() % 2 ** 31;
  const random = randomOf(seed);
  let refused = 0;
  for (let run = 0; run < MUTATION_COUNT; run++) {
    let text = FULL;
    for (let count = 1 + random(4); count > 0; count--) {
      const [at, length] = [random(text.length), random(3) === 0 ? random(40) : 0];
      const piece = random(4) === 0 ? text.slice(random(text.length)).slice(0, random(60)) : "";
      text = text.slice(0, at) + (piece || PIECES[random(PIECES.length)]) + text.slice(at + length);
    }
    const role = random(4) === 0 ? "witness" : "node";
    try {
      const { config, problems, draft } = parseConfig(text, { ...OPTIONS, role });
      const lineCount = text.split("\n").length;
      for (const problem of problems) {
        assert.ok(problem.line >= 0 && problem.line <= lineCount, formatProblem(problem));
        assert.doesNotMatch(formatProblem(problem), /\p{Cc}/u);
      }
      if (config === null) {
        refused++;
        assert.ok(problems.length > 0, "a refused file has a problem");
      } else assert.equal(config, draft);
    } catch (error) {
      throw new Error(`seed ${seed}, run ${run}:\n${text}`, { cause: error });
    }
  }
  console.log(`seed ${seed}: ${refused} of ${MUTATION_COUNT} mutations were refused`);
  assert.ok(refused > 0 && refused < MUTATION_COUNT, `seed ${seed}: mutations of both kinds`);
});

Deno.test("api.public_url is an origin and nothing more", none, async (t) => {
  const rows: readonly (readonly [string, RegExp | string])[] = [
    ["https://dns.example", "https://dns.example"],
    ["https://dns.example/", "https://dns.example"],
    ["http://192.168.1.5:8053", "http://192.168.1.5:8053"],
    ["http://[::1]:8053", "http://[::1]:8053"],
    ["https://dns.example/svc", /more than an origin: write "https:\/\/dns\.example"/],
    ["https://dns.example/?", /more than an origin/],
    ["https://dns.example?a=b", /more than an origin/],
    ["https://dns.example/#", /more than an origin/],
    ["https://ann@dns.example", /user name or password/],
    ["https://:pw@dns.example", /user name or password/],
    ["dns.example", /not a web address/],
    ["ftp://dns.example", /not a web address/],
    ["javascript:alert(1)", /not a web address/],
    ["", /empty/],
  ];
  for (const [value, want] of rows) {
    await t.step(value, () => {
      const text = `[api]\npublic_url = ${JSON.stringify(value)}\n`;
      const { config, problems } = parseConfig(text, OPTIONS);
      if (typeof want === "string") assert.equal(config?.api.publicUrl, want);
      else assert.match(problems.map(formatProblem).join(), want);
    });
  }
});
