import { formatHostPort, formatPrefix, isLoopback } from "../addr/mod.ts";
import { parse as parseToml, TomlError } from "smol-toml";
import { messageOf } from "../errors.ts";
import { readAcme } from "./acme.ts";
import { readServerTls, readTlsFiles } from "./server_tls.ts";
import { readCluster } from "./cluster.ts";
import type {
  AcmeConfig,
  ApiConfig,
  CacheConfig,
  Config,
  RecursionConfig,
  SecurityConfig,
  ServerConfig,
  TelemetryConfig,
} from "./config.ts";
import { readDevices } from "./devices.ts";
import { readFilter } from "./filter.ts";
import { readDns64 } from "./dns64.ts";
import { DEPTH_MAX, KeyLines } from "./key_lines.ts";
import { formatKeyPath, type KeyPath, type Problem, quote } from "./problem.ts";
import {
  boolean,
  domain,
  duration,
  integer,
  matching,
  network,
  origin,
  path,
  ratio,
  size,
  Sockets,
  url,
} from "./readers.ts";
import { arrayOf, Place, type Reader, readWhole, type Report, Table } from "./table.ts";
import { readQuerylog } from "./querylog.ts";
import {
  checkGroupUpstreams,
  checkNames,
  noteIgnored,
  readForwarding,
  readUpstream,
} from "./upstream.ts";
import { checkListeners, readVrrp } from "./vrrp.ts";

/** Longest file that is read, in UTF-16 units; a large one with rules has some ten thousand lines. */
export const TEXT_LENGTH_MAX = 4 * 2 ** 20;

/** Most entries of any array of addresses, networks or domains. */
const ENTRY_COUNT_MAX = 1_000;
/** Most upstreams; each costs sockets and a health check. */
const UPSTREAM_COUNT_MAX = 64;

/** Where receivers of households are. */
const WEBHOOK_NETWORKS = [
  "10.0.0.0/8",
  "172.16.0.0/12",
  "192.168.0.0/16",
  "100.64.0.0/10",
  "fc00::/7",
];

const WORKER_COUNT_MAX = 64;
const QUERIES_PER_SECOND_MAX = 1_000_000;
const BURST_MAX = 10_000_000;
const CACHE_BYTES_MIN = 2 ** 20;
const CACHE_BYTES_MAX = 16 * 2 ** 30;
/** The largest TTL there is (RFC 2181 §8). */
const TTL_MAX = 2 ** 31 - 1;
const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;
/** RFC 8767 §5 suggests one to three days; more than a month is surely a slip. */
const SERVE_STALE_MS_MAX = 30 * DAY_MS;

const DNS_PORT = 53;
const API_PORT = 8053;

/** Every table of the file, and whether a witness has it as well. */
const TABLES = {
  server: false,
  upstream: false,
  forwarding: false,
  dns64: false,
  cache: false,
  filter: false,
  recursion: false,
  security: false,
  querylog: false,
  api: false,
  store: true,
  update: false,
  acme: false,
  cluster: true,
  vrrp: false,
  telemetry: false,
  webhooks: false,
  devices: false,
} as const;

export interface ParseOptions {
  /** What problems call the file. */
  readonly file: string;
  /** The absolute folder that relative paths start from. */
  readonly directory: string;
  /** A witness has `[cluster]` and `[store]` only. */
  readonly role?: "node" | "witness";
}

/** The file that a `Config` was read from: where later checks report their problems. */
export interface Source {
  readonly file: string;
  /** The line of a key, or of what is nearest around it. */
  lineOf(path: KeyPath): number;
}

export interface ParsedConfig {
  /** `null` if any problem is an `error`. */
  readonly config: Config | null;
  /**
   * What could be read in spite of errors, for `checkFiles` alone, so that one run finds them all:
   * defaults stand in for what is wrong, and arrays of tables have holes. `null`: no TOML at all.
   */
  readonly draft: Config | null;
  /** In the order of the file. */
  readonly problems: Problem[];
  readonly source: Source;
}

/** Reads a configuration file. Every problem in it is found, not only the first. Never throws. */
export function parseConfig(text: string, options: ParseOptions): ParsedConfig {
  const { file, directory, role = "node" } = options;
  const lines = new KeyLines(text);
  const source: Source = { file, lineOf: (path) => lines.lineOf(path) };
  const raw = parseText(text, file);
  if (raw.problem !== null) {
    return { config: null, draft: null, problems: [raw.problem], source };
  }
  const problems: Problem[] = [];
  const report: Report = (path, message, severity) => {
    const line = lines.lineOf(path);
    problems.push({ file, line, key: formatKeyPath(path), message, severity });
  };
  const root = new Place(report, []);
  const value = role === "witness" ? forWitness(raw.value, root) : raw.value;
  const draft = readWhole(new Table(value, root), (t) => readConfig(t, directory, role));
  problems.sort((a, b) => a.line - b.line);
  const isUsable = problems.every(({ severity }) => severity !== "error");
  return { config: isUsable ? draft : null, draft, problems, source };
}

/** What holds where no file says otherwise; `directory` is where one would be. */
export function defaultConfig(directory: string): Config {
  const { config, problems } = parseConfig("", { file: "defaults", directory });
  if (config === null) throw new TypeError(problems.map(({ message }) => message).join());
  return config;
}

type ParsedText =
  | { readonly value: Readonly<Record<string, unknown>>; readonly problem: null }
  | { readonly problem: Problem };

function parseText(text: string, file: string): ParsedText {
  const refused = (line: number, message: string): ParsedText => ({
    problem: { file, line, key: "", message, severity: "error" },
  });
  if (text.length > TEXT_LENGTH_MAX) {
    return refused(0, `is longer than ${TEXT_LENGTH_MAX} characters: move rules into a list`);
  }
  try {
    return { value: parseToml(text, { maxDepth: DEPTH_MAX }), problem: null };
  } catch (error) {
    if (!(error instanceof TomlError)) return refused(0, `is no valid TOML: ${messageOf(error)}`);
    // The library draws the place below its first line; ours is said by line and column.
    const reason = error.message.split("\n", 1)[0].replace(/^Invalid TOML document: /, "");
    return refused(error.line, `column ${error.column}: is no valid TOML: ${reason}`);
  }
}

/** Leaves out the tables that mean nothing to a witness, each a problem. */
function forWitness(
  value: Readonly<Record<string, unknown>>,
  root: Place,
): Readonly<Record<string, unknown>> {
  const kept: [string, unknown][] = [];
  for (const [key, inner] of Object.entries(value)) {
    if (Object.hasOwn(TABLES, key) && !TABLES[key as keyof typeof TABLES]) {
      root.at(key).problem("means nothing to a witness: leave [cluster] and [store] only");
    } else kept.push([key, inner]);
  }
  return Object.fromEntries(kept);
}

function readConfig(t: Table, directory: string, role: "node" | "witness"): Config {
  const sockets = new Sockets();
  const store = t.table("store", (s) => ({ dir: s.read("path", path(directory), "/var/lib/svc") }));
  const acme = t.has("acme")
    ? t.table("acme", (a) => readAcme(a, { directory, storeDir: store.dir, sockets }))
    : t.table("acme", () => null);
  const server = t.table("server", (s) => readServer(s, directory, sockets, acme));
  const upstreams = t.tables("upstream", UPSTREAM_COUNT_MAX, (u) => readUpstream(u, directory));
  const forwarding = t.table("forwarding", readForwarding);
  const dns64 = t.table("dns64", readDns64);
  const cache = t.table("cache", readCache);
  const filter = t.table("filter", (f) => readFilter(f, directory));
  const recursion = t.table("recursion", (r) => readRecursion(r, directory));
  const security = t.table("security", readSecurity);
  checkGroupUpstreams(upstreams, recursion.enabled, t.place.at("upstream"));
  if (recursion.enabled) noteIgnored(upstreams, t.place.at("upstream"));
  else checkNames(upstreams, t.place.at("upstream"));
  const querylog = t.table("querylog", (q) => readQuerylog(q, store.dir, directory));
  const api = t.table("api", (a) => readApi(a, directory, sockets, acme));
  const update = t.table("update", (u) => ({ url: u.optional("url", url({ plainHttp: false })) }));
  // A witness opens none of the other sockets, not even those that a node has by default.
  const clusterSockets = role === "witness" ? new Sockets() : sockets;
  if (role === "witness" && !t.has("cluster")) {
    t.place.at("cluster").problem("is missing: a witness is a member of a cluster");
  }
  const cluster = t.has("cluster")
    ? t.table("cluster", (c) => readCluster(c, directory, clusterSockets, role))
    : t.table("cluster", () => null);
  const vrrp = t.has("vrrp") ? t.table("vrrp", readVrrp) : t.table("vrrp", () => null);
  if (vrrp !== null) {
    checkListeners(vrrp, server.listen, t.place.at("vrrp"), t.place.at("server"));
  }
  const telemetry = t.table("telemetry", (x) => readTelemetry(x, directory));
  const networks = arrayOf(network, ENTRY_COUNT_MAX, formatPrefix);
  const webhooks = t.table("webhooks", (w) => ({
    networks: w.read("networks", networks, WEBHOOK_NETWORKS),
  }));
  const devices = t.table("devices", (d) => readDevices(d, directory));
  return {
    server,
    upstreams,
    forwarding,
    dns64,
    cache,
    filter,
    recursion,
    security,
    querylog,
    api,
    store,
    update,
    acme,
    cluster,
    vrrp,
    telemetry,
    webhooks,
    devices,
  };
}

function readServer(
  t: Table,
  directory: string,
  sockets: Sockets,
  acme: AcmeConfig | null,
): ServerConfig {
  const listen = t.read(
    "listen",
    arrayOf(sockets.listen(DNS_PORT, "udp", "tcp"), ENTRY_COUNT_MAX),
    ["0.0.0.0:53", "[::]:53"],
  );
  const userName = matching(
    /^[A-Za-z_][A-Za-z0-9_.-]{0,30}\$?$/,
    'a user name: write one such as "svc"',
  );
  const tls = t.table("tls", (inner) => readServerTls(inner, directory, sockets, acme));
  const encryptedCount = tls.dot.length + tls.doh.length + tls.doq.length;
  if (t.has("listen") && listen.length + encryptedCount === 0) {
    t.place.at("listen").problem("leaves no listener at all: name an address", "check");
  }
  return {
    listen,
    user: t.optional("user", userName),
    workers: t.read("workers", integer(0, WORKER_COUNT_MAX), 0),
    tls,
    rateLimit: t.table("rate_limit", (r) => {
      const queriesPerSecond = r.read(
        "queries_per_second",
        integer(0, QUERIES_PER_SECOND_MAX),
        300,
      );
      const burst = r.read("burst", integer(0, BURST_MAX), 1_000);
      if (queriesPerSecond > 0 && burst === 0) {
        r.place.at("burst").problem("is 0, so no query ever passes: write 1 or more");
      }
      const networks = arrayOf(network, ENTRY_COUNT_MAX, formatPrefix);
      return {
        queriesPerSecond,
        burst,
        exempt: r.read("exempt", networks, ["127.0.0.0/8", "::1"]),
      };
    }),
  };
}

function readCache(t: Table): CacheConfig {
  const ttl = integer(0, TTL_MAX);
  const cache = {
    sizeBytes: t.read("size", size(CACHE_BYTES_MIN, CACHE_BYTES_MAX), "32MiB"),
    minTtl: t.read("min_ttl", ttl, 0),
    maxTtl: t.read("max_ttl", ttl, 86_400),
    negativeMaxTtl: t.read("negative_max_ttl", ttl, 3_600),
    serveStaleMs: t.read("serve_stale", duration(0, SERVE_STALE_MS_MAX), "0s"),
    prefetch: t.read("prefetch", boolean, false),
  };
  if (cache.minTtl > cache.maxTtl) {
    t.place.at("min_ttl").problem(
      `is ${cache.minTtl}, more than max_ttl, which is ${cache.maxTtl}: change one`,
    );
  }
  return cache;
}

function readRecursion(t: Table, directory: string): RecursionConfig {
  const dnssec = t.read("dnssec", boolean, true);
  const validateForwarded = t.read("validate_forwarded", boolean, false);
  if (validateForwarded && !dnssec) {
    t.place.at("validate_forwarded").problem(
      "means nothing while recursion.dnssec is false: set that to true, or leave this out",
      "note",
    );
  }
  return {
    enabled: t.read("enabled", boolean, false),
    dnssec,
    qnameMinimisation: t.read("qname_minimisation", boolean, true),
    rootHintsFile: t.optional("root_hints", path(directory)),
    trustAnchorFile: t.optional("trust_anchor", path(directory)),
    negativeTrustAnchors: t.read(
      "negative_trust_anchors",
      arrayOf(domain, ENTRY_COUNT_MAX, String),
      [],
    ),
    validateForwarded,
  };
}

function readSecurity(t: Table): SecurityConfig {
  return {
    sandbox: t.read("sandbox", boolean, true),
    rebindingProtection: t.read("rebinding_protection", boolean, true),
    rebindingExempt: t.read("rebinding_exempt", arrayOf(domain, ENTRY_COUNT_MAX, String), []),
  };
}

function readApi(
  t: Table,
  directory: string,
  sockets: Sockets,
  acme: AcmeConfig | null,
): ApiConfig {
  // Never repeated in a problem: what stands here by mistake is the token itself.
  const sha256: Reader<string> = (value, place) =>
    typeof value === "string" && /^[0-9a-fA-F]{64}$/.test(value)
      ? value.toLowerCase()
      : place.problem("is not a SHA-256 hash of 64 hexadecimal digits: run svc token for one");
  const guarded = sockets.listen(API_PORT, "tcp");
  const listen = arrayOf((value, place) => {
    const address = guarded(value, place);
    // Without a token everybody who reaches the API would be its administrator.
    if (address !== null && !isLoopback(address.ip) && !t.has("token_sha256")) {
      return place.problem(
        `is ${quote(formatHostPort(address))}, beyond loopback, which needs api.token_sha256: ` +
          "run svc token",
      );
    }
    return address;
  }, ENTRY_COUNT_MAX);
  return {
    listen: t.read("listen", listen, ["127.0.0.1:8053"]),
    tokenSha256: t.optional("token_sha256", sha256),
    tls: readTlsFiles(t, "tls_cert", "tls_key", directory, acme?.api === true ? acme : null),
    docs: t.read("docs", boolean, false),
    webUi: t.read("web_ui", boolean, true),
    publicUrl: t.optional("public_url", origin),
  };
}

function readTelemetry(t: Table, directory: string): TelemetryConfig {
  return {
    endpoint: t.optional("endpoint", url({ plainHttp: true })),
    headersFile: t.optional("headers_file", path(directory)),
    caFile: t.optional("ca_file", path(directory)),
    metrics: t.read("metrics", boolean, true),
    logs: t.read("logs", boolean, true),
    traces: t.read("traces", boolean, false),
    traceSampleRatio: t.read("trace_sample_ratio", ratio(), 0.05),
    queryDetails: t.read("query_details", boolean, false),
    intervalMs: t.read("interval", duration(1_000, HOUR_MS), "60s"),
  };
}
