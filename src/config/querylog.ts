import { OUTCOME_NAMES } from "../logqueue/mod.ts";
import type { DnstapConfig, DnstapTarget, LogOtlpConfig, QuerylogConfig } from "./config.ts";
import { isTimeZone } from "../model/constants.ts";
import { quote } from "./problem.ts";
import { boolean, duration, integer, oneOf, path, resolvePath, text, url } from "./readers.ts";
import { arrayOf, type Place, type Reader, type Table } from "./table.ts";
import { parsePort, parseServer } from "./upstream.ts";

type Outcome = typeof OUTCOME_NAMES[number];

const HOUR_MS = 3_600_000;
const RETENTION_MS_MAX = 400 * 24 * HOUR_MS;
const LOG_ENTRIES_MAX = 100_000_000;
const TIME_ZONE_LENGTH_MAX = 64;
const IDENTITY_LENGTH_MAX = 255;
/** The longest path of a socket (unix(7): 108 bytes with its ending NUL). */
const SOCKET_PATH_BYTES_MAX = 107;
/** What collectors commonly listen on. */
const DNSTAP_PORT = 6000;

const timeZone: Reader<string> = (value, place) => {
  const zone = text(TIME_ZONE_LENGTH_MAX)(value, place);
  if (zone === null || isTimeZone(zone)) return zone;
  return place.problem(`is ${quote(zone)}, no IANA time zone: write one such as "Europe/Berlin"`);
};

/** Reads `[querylog]` and what is below it. */
export function readQuerylog(t: Table, storeDir: string, directory: string): QuerylogConfig {
  const enabled = t.read("enabled", boolean, true);
  const dnstap = t.has("dnstap")
    ? t.table("dnstap", (d) => readDnstap(d, directory))
    : t.table("dnstap", () => null);
  const otlp = t.has("otlp")
    ? t.table("otlp", (o) => readOtlp(o, directory))
    : t.table("otlp", () => null);
  for (const key of ["dnstap", "otlp"]) {
    if (enabled || !t.has(key)) continue;
    t.place.at(key).problem(
      "sends nothing, for querylog.enabled is false: take that away, and set max_entries = 0 to " +
        "keep no entries here",
    );
  }
  return {
    enabled,
    retentionMs: t.read("retention", duration(HOUR_MS, RETENTION_MS_MAX), "7d"),
    maxEntries: t.read("max_entries", integer(0, LOG_ENTRIES_MAX), 1_000_000),
    anonymize: t.read("anonymize", boolean, false),
    timeZone: t.optional("time_zone", timeZone),
    dir: resolvePath(storeDir, "querylog"),
    dnstap,
    otlp,
  };
}

const outcomes: Reader<Outcome[]> = (value, place) => {
  if (Array.isArray(value) && value.length === 0) {
    return place.problem("names no outcome: take it away to send every entry");
  }
  return arrayOf(oneOf(...OUTCOME_NAMES), OUTCOME_NAMES.length, String)(value, place);
};

function readDnstap(t: Table, directory: string): DnstapConfig | null {
  const address = t.required("address", text(1_024));
  const caFile = t.optional("ca", path(directory));
  const identity = t.optional("identity", text(IDENTITY_LENGTH_MAX));
  const wanted = t.optional("outcomes", outcomes);
  if (address === null) return null;
  const target = parseTarget(address, t.place.at("address"), directory);
  if (target === null) return null;
  if (caFile !== null && target.kind !== "tls") {
    t.place.at("ca").problem("is for tls:// receivers: take it away");
  }
  return { address, target, caFile, identity, outcomes: wanted };
}

function readOtlp(t: Table, directory: string): LogOtlpConfig | null {
  const endpoint = t.required("endpoint", url({ plainHttp: true }));
  const headersFile = t.optional("headers_file", path(directory));
  const caFile = t.optional("ca_file", path(directory));
  const wanted = t.optional("outcomes", outcomes);
  return endpoint === null ? null : { endpoint, headersFile, caFile, outcomes: wanted };
}

/** `unix:/run/collector.sock`, `tcp://192.0.2.1:6000`, `tls://192.0.2.1#collector.example`. */
function parseTarget(address: string, place: Place, directory: string): DnstapTarget | null {
  const unix = /^unix:(?:\/\/(?=\/))?(.+)$/i.exec(address)?.[1];
  if (unix !== undefined) {
    const socket = resolvePath(directory, unix);
    if (new TextEncoder().encode(socket).length <= SOCKET_PATH_BYTES_MAX) {
      return { kind: "unix", path: socket };
    }
    return place.problem(`is longer than the ${SOCKET_PATH_BYTES_MAX} bytes of a socket's path`);
  }
  const match = /^(tcp|tls):\/\/(\[[^\]]*\]|[^:/#?@]+)(?::(\d{1,5}))?(?:#(.*))?$/i.exec(address);
  if (match === null) {
    return place.problem(
      `is ${quote(address)}, not a receiver of dnstap: write "unix:/run/dnstap.sock", ` +
        '"tcp://192.0.2.1:6000" or "tls://192.0.2.1#collector.example"',
    );
  }
  const kind = match[1].toLowerCase() === "tls" ? "tls" : "tcp";
  if (kind === "tcp" && match[4] !== undefined) {
    return place.problem("has a name behind #, which is for tls:// receivers: take it away");
  }
  const server = parseServer(match[2], match[4], place);
  const port = match[3] === undefined ? DNSTAP_PORT : parsePort(match[3], place);
  if (server === null || port === null) return null;
  return { kind, host: server.host, port, serverName: server.serverName };
}
