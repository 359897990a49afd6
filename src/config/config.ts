/** What the configuration file says, with every default filled in and every value in its own type. */
import type { HostPort, IpPrefix } from "../addr/mod.ts";
import type { OUTCOME_NAMES } from "../logqueue/mod.ts";

type Ip = Uint8Array<ArrayBuffer>;

/** The files of a certificate (with its chain) and its private key, both PEM. */
export interface TlsFiles {
  readonly certFile: string;
  readonly keyFile: string;
}

export interface ServerConfig {
  /** Each over UDP and TCP. */
  readonly listen: readonly HostPort[];
  /** Whom the process becomes once its sockets are open; `null` keeps the user it was started as. */
  readonly user: string | null;
  /** 0: as many as the machine is good for. */
  readonly workers: number;
  readonly tls: ServerTlsConfig;
  readonly rateLimit: RateLimitConfig;
}

export interface ServerTlsConfig {
  readonly files: TlsFiles | null;
  /** The domain that client IDs stand before. */
  readonly serverName: string | null;
  readonly dot: readonly HostPort[];
  readonly doh: readonly HostPort[];
  readonly doq: readonly HostPort[];
  readonly odoh: boolean;
  /** Only encrypted queries of known client IDs are answered. */
  readonly requireClientId: boolean;
}

/** Counted per IPv4 address and per IPv6 /64. */
export interface RateLimitConfig {
  /** 0: no limit. */
  readonly queriesPerSecond: number;
  readonly burst: number;
  readonly exempt: readonly IpPrefix[];
}

interface UpstreamCommon {
  /** As written in the file: its name in statuses and logs. */
  readonly address: string;
  readonly timeoutMs: number;
  /** Lower-case A-labels: only names at or below these are asked here. Empty: every name. */
  readonly domains: readonly string[];
  /** What it is told of where clients are: nothing, a part of their address, or always the same. */
  readonly clientSubnet: "off" | "client" | IpPrefix;
  /** What groups call it by; `null`: by its address alone. */
  readonly name: string | null;
  /** It is asked for groups that name it, and for nobody else. */
  readonly groupsOnly: boolean;
}

/** Plain DNS over UDP, with TCP for truncated responses. */
export interface UdpUpstream extends UpstreamCommon {
  readonly kind: "udp";
  readonly endpoint: HostPort;
}

interface EncryptedUpstream extends UpstreamCommon {
  /** A name in lower-case A-labels, or an IP address in its canonical form without brackets. */
  readonly host: string;
  /** The addresses to connect to. Empty: `host` is a name that has to be looked up. */
  readonly ips: readonly Ip[];
  readonly port: number;
  /** The name or IP address that the certificate has to cover. */
  readonly serverName: string;
  /** The CA file of a private upstream; `null` trusts the public ones. */
  readonly caFile: string | null;
}

export interface StreamUpstream extends EncryptedUpstream {
  readonly kind: "tls" | "quic";
}

export interface HttpsUpstream extends EncryptedUpstream {
  readonly kind: "https";
  /** Path and query of the URL, such as `/dns-query`. */
  readonly path: string;
}

export type Upstream = UdpUpstream | StreamUpstream | HttpsUpstream;

/** How the upstreams that serve a name are chosen among. */
export interface ForwardingConfig {
  readonly strategy: "order" | "fastest" | "parallel";
  /** With `parallel`, upstreams that are asked at once. */
  readonly parallelMax: number;
}

/** AAAA records made of A records (RFC 6147). */
export interface Dns64Config {
  readonly enabled: boolean;
  /** The translator's; one of RFC 6052's lengths. */
  readonly prefix: IpPrefix;
  /** IPv6 networks whose addresses are taken for none. */
  readonly exclude: readonly IpPrefix[];
}

export interface CacheConfig {
  readonly sizeBytes: number;
  readonly minTtl: number;
  readonly maxTtl: number;
  readonly negativeMaxTtl: number;
  /** How long an expired answer may still be given (RFC 8767); 0: never. */
  readonly serveStaleMs: number;
  readonly prefetch: boolean;
}

/** A list of `[filter] lists`. */
export type ConfigList =
  | { readonly kind: "url"; readonly name: string; readonly url: string }
  | {
    readonly kind: "path";
    readonly name: string;
    readonly path: string;
    /** False: the file lies outside of `localListsDir`, so it is skipped and never read. */
    readonly isInside: boolean;
  };

export interface FilterConfig {
  readonly lists: readonly ConfigList[];
  readonly rules: readonly string[];
  readonly services: boolean;
  /** Where the catalog of services is read from instead of its URL. */
  readonly servicesFile: string | null;
  /** `null`: the built-in address. */
  readonly servicesUrl: string | null;
  readonly directory: boolean;
  /** `null`: the built-in address. */
  readonly directoryUrl: string | null;
  readonly defaultLists: boolean;
  readonly onFailure: "open" | "closed";
  readonly localListsDir: string;
}

export interface RecursionConfig {
  readonly enabled: boolean;
  readonly dnssec: boolean;
  readonly qnameMinimisation: boolean;
  /** `null`: the built-in hints. */
  readonly rootHintsFile: string | null;
  /** `null`: the built-in anchors. */
  readonly trustAnchorFile: string | null;
  /** Lower-case A-labels, "." for the root; names at and below them are not validated. */
  readonly negativeTrustAnchors: readonly string[];
  /** Answers of upstreams are validated as well. */
  readonly validateForwarded: boolean;
}

export interface SecurityConfig {
  readonly sandbox: boolean;
  readonly rebindingProtection: boolean;
  /** Lower-case A-labels; further names whose answers keep private addresses. */
  readonly rebindingExempt: readonly string[];
}

export interface QuerylogConfig {
  readonly enabled: boolean;
  readonly retentionMs: number;
  readonly maxEntries: number;
  readonly anonymize: boolean;
  /** By whose midnight the days of statistics begin; `null`: the machine's. */
  readonly timeZone: string | null;
  /** The query log's own folder below the store. */
  readonly dir: string;
  /** Where it goes beside that; `null`: nowhere. */
  readonly dnstap: DnstapConfig | null;
  readonly otlp: LogOtlpConfig | null;
}

/** Where entries go by dnstap, as Frame Streams. */
export interface DnstapConfig {
  /** As written in the file: its name in logs. */
  readonly address: string;
  readonly target: DnstapTarget;
  /** The CA file of a private receiver; `null` trusts the public ones. */
  readonly caFile: string | null;
  /** What the node is called there; `null`: by its name. */
  readonly identity: string | null;
  /** Only entries with one of these; `null`: all. */
  readonly outcomes: readonly typeof OUTCOME_NAMES[number][] | null;
}

export type DnstapTarget =
  | { readonly kind: "unix"; readonly path: string }
  | {
    readonly kind: "tcp" | "tls";
    /** A name in lower-case A-labels, or an IP address in its canonical form without brackets. */
    readonly host: string;
    readonly port: number;
    /** The name or IP address that the certificate has to cover. */
    readonly serverName: string;
  };

/** Where entries go as log records of OTLP. */
export interface LogOtlpConfig {
  /** Base URL of OTLP/HTTP. */
  readonly endpoint: string;
  readonly headersFile: string | null;
  readonly caFile: string | null;
  /** Only entries with one of these; `null`: all. */
  readonly outcomes: readonly typeof OUTCOME_NAMES[number][] | null;
}

export interface ApiConfig {
  readonly listen: readonly HostPort[];
  /** 64 lower-case hexadecimal digits. */
  readonly tokenSha256: string | null;
  readonly tls: TlsFiles | null;
  readonly docs: boolean;
  readonly webUi: boolean;
  /** The origin that people reach the API by, for links; `null`: links are paths. */
  readonly publicUrl: string | null;
}

export interface StoreConfig {
  readonly dir: string;
}

export interface UpdateConfig {
  /** The release service; `null`: nobody is asked. */
  readonly url: string | null;
}

export interface ClusterMember {
  readonly node: string;
  readonly address: HostPort;
}

export interface ClusterConfig extends TlsFiles {
  readonly node: string;
  /** Also said by the earlier `role = "primary"`. */
  readonly bootstrap: boolean;
  readonly listen: readonly HostPort[];
  readonly caFile: string;
  /** As the file lists them, the earlier `[cluster.peer]` last; this node may be among them. */
  readonly members: readonly ClusterMember[];
}

export interface VrrpConfig {
  readonly interface: string;
  /** The floating IPv4 address. */
  readonly address: Ip;
  /** What the address is added to the interface with. */
  readonly prefixLengthBits: number;
  /** The other node's IPv4 address. */
  readonly peer: Ip;
  readonly routerId: number;
  readonly priority: number;
  readonly preempt: boolean;
  /** A multiple of 10: announcements count in centiseconds. */
  readonly intervalMs: number;
  readonly unicast: boolean;
}

export interface TelemetryConfig {
  /** Base URL of OTLP/HTTP; `null`: nothing is sent. */
  readonly endpoint: string | null;
  readonly headersFile: string | null;
  readonly caFile: string | null;
  readonly metrics: boolean;
  readonly logs: boolean;
  readonly traces: boolean;
  readonly traceSampleRatio: number;
  readonly queryDetails: boolean;
  readonly intervalMs: number;
}

/** A certificate that the service gets by itself (RFC 8555). */
export interface AcmeConfig {
  /** URL of the authority's directory. */
  readonly directory: string;
  readonly email: string | null;
  /** Lower-case A-labels, `*.` before the name that a wildcard is of. */
  readonly domains: readonly string[];
  readonly challenge: "http-01" | "dns-01";
  /** Where proofs are shown: over HTTP, beside the API, or over DNS. */
  readonly listen: readonly HostPort[];
  /** The API shows it too. */
  readonly api: boolean;
  /** The CA file of a private authority's own listener; `null` trusts the public ones. */
  readonly caFile: string | null;
  /** Of an account that the authority knows already; the file has its HMAC key in base64url. */
  readonly external: { readonly kid: string; readonly hmacKeyFile: string } | null;
  /** What is kept, and where the certificate lies with its key. */
  readonly dir: string;
  readonly files: TlsFiles;
}

export interface WebhooksConfig {
  /** Beside the Internet, where webhooks may be sent. */
  readonly networks: readonly IpPrefix[];
}

/** Where it is read who is on the network. */
export interface DevicesConfig {
  /** Like `/etc/hosts`. */
  readonly hostsFiles: readonly string[];
  /** Of dnsmasq, Kea or ISC dhcpd. */
  readonly leaseFiles: readonly string[];
  /** Whether MAC addresses are taken from the kernel's table of neighbours. */
  readonly neighbours: boolean;
}

/** The configuration file. Plain data: it may be posted to an isolate. */
export interface Config {
  readonly server: ServerConfig;
  /** In the order in which they are tried. */
  readonly upstreams: readonly Upstream[];
  readonly forwarding: ForwardingConfig;
  readonly dns64: Dns64Config;
  readonly cache: CacheConfig;
  readonly filter: FilterConfig;
  readonly recursion: RecursionConfig;
  readonly security: SecurityConfig;
  readonly querylog: QuerylogConfig;
  readonly api: ApiConfig;
  readonly store: StoreConfig;
  readonly update: UpdateConfig;
  /** `null`: certificates are files of somebody else's. */
  readonly acme: AcmeConfig | null;
  /** `null`: the node is on its own. */
  readonly cluster: ClusterConfig | null;
  /** `null`: there is no floating address. */
  readonly vrrp: VrrpConfig | null;
  readonly telemetry: TelemetryConfig;
  readonly webhooks: WebhooksConfig;
  readonly devices: DevicesConfig;
}
