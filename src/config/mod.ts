/**
 * The TOML configuration file as a typed `Config`: text in, the configuration and every problem
 * with its line and a way to mend it out. It reads no file itself; `checkFiles` of `check_files.ts`,
 * which needs more than who only reads, asks a port about those that the configuration names.
 * Scope: none. TOML 1.0.0. @module
 */
export type {
  AcmeConfig,
  ApiConfig,
  CacheConfig,
  ClusterConfig,
  ClusterMember,
  Config,
  ConfigList,
  DevicesConfig,
  DnstapConfig,
  FilterConfig,
  HttpsUpstream,
  LogOtlpConfig,
  QuerylogConfig,
  RateLimitConfig,
  RecursionConfig,
  SecurityConfig,
  ServerConfig,
  ServerTlsConfig,
  StoreConfig,
  TelemetryConfig,
  TlsFiles,
  UdpUpstream,
  UpdateConfig,
  Upstream,
  VrrpConfig,
} from "./config.ts";
export {
  coversClientIds,
  coversName,
  isIssuedBy,
  keyWeakness,
  memberFault,
  memberNameOf,
} from "./certificates.ts";
export { isNodeName, NODE_NAME_FORM } from "./cluster.ts";
export { type ParsedHeaders, parseHeaders } from "./headers_file.ts";
export {
  defaultConfig,
  parseConfig,
  type ParsedConfig,
  type ParseOptions,
  type Source,
} from "./parse.ts";
export { formatProblem, type Problem, type Severity } from "./problem.ts";
export { anybodyInTheWay } from "./taken_ports.ts";
export { formatDuration, parseDuration } from "./units.ts";
