import { formatHostPort, parseIp } from "../addr/mod.ts";
import type { Config, DnstapConfig, LogOtlpConfig } from "../config/mod.ts";
import { messageOf } from "../errors.ts";
import type { Lookup } from "../http/mod.ts";
import { type ExportFigures, type ExportOptions, ExportSupervisor } from "../isolate/mod.ts";
import { log } from "../log.ts";
import type { LogExport } from "../querylog/mod.ts";
import { VERSION } from "../version.ts";
import type { Problems } from "./problems.ts";
import { readHeaders, readText } from "./telemetry.ts";

const HTTPS_PORT = 443;
const HTTP_PORT = 80;
/** `localhost` is never looked up (RFC 6761 §6.3). */
const LOOPBACK = ["127.0.0.1", "::1"];

interface Surroundings {
  readonly node: string;
  /** As the dns isolates have them. */
  readonly upstreams: readonly string[];
  readonly lookup: Lookup;
  readonly problems: Problems;
}

/** Everywhere that the query log goes beside its file. */
export class NodeLogExports {
  readonly #exports: readonly ExportSupervisor[];

  private constructor(exports: readonly ExportSupervisor[]) {
    this.#exports = exports;
  }

  /** Reads what they need; the status tells of one that can't be. */
  static async open(config: Config, surroundings: Surroundings): Promise<NodeLogExports> {
    const { dnstap, otlp, enabled } = config.querylog;
    const { problems } = surroundings;
    const found: ExportSupervisor[] = [];
    const open = async (make: () => Promise<ExportOptions>) => {
      try {
        found.push(new ExportSupervisor(await make()));
      } catch (error) {
        problems.add("querylog", `${messageOf(error)}; the query log is not sent there`);
        log.error("the query log can't be sent", { error });
      }
    };
    if (enabled && dnstap !== null) {
      await open(() => dnstapOptions(dnstap, config.querylog.anonymize, surroundings));
    }
    if (enabled && otlp !== null) await open(() => otlpOptions(otlp, surroundings));
    return new NodeLogExports(found);
  }

  get wanted(): readonly LogExport[] {
    return this.#exports.map(({ wanted }) => wanted);
  }

  get figures(): readonly ExportFigures[] {
    return this.#exports.map(({ figures }) => figures);
  }

  start(): void {
    for (const one of this.#exports) one.start();
  }

  /** Has what waits sent, for `graceMs` at most. */
  async stop(graceMs: number): Promise<void> {
    await Promise.all(this.#exports.map((one) => one.stop(graceMs)));
  }
}

async function dnstapOptions(
  { address, target, caFile, identity, outcomes }: DnstapConfig,
  isAnonymized: boolean,
  { node, upstreams, lookup }: Surroundings,
): Promise<ExportOptions> {
  const caPem = caFile === null ? null : await readText("querylog.dnstap.ca", caFile);
  const common = {
    exporter: "dnstap",
    name: address,
    version: VERSION,
    outcomes,
    upstreams,
  } as const;
  const to = { kind: "dnstap", identity: identity ?? node, isAnonymized } as const;
  if (target.kind === "unix") {
    const { path } = target;
    return {
      ...{ ...common, host: null, addresses: [], lookup, reach: () => path },
      to: () => ({ ...to, place: { kind: "unix", path } }),
    };
  }
  const { kind, host, port, serverName } = target;
  return {
    ...{ ...common, lookup, ...reachOf(host, port) },
    to: (addresses) => ({ ...to, place: { kind, addresses, port, serverName, caPem } }),
  };
}

async function otlpOptions(
  { endpoint, headersFile, caFile, outcomes }: LogOtlpConfig,
  { node, upstreams, lookup }: Surroundings,
): Promise<ExportOptions> {
  const headers = headersFile === null
    ? {}
    : await readHeaders("querylog.otlp.headers_file", headersFile);
  const caPem = caFile === null ? null : await readText("querylog.otlp.ca_file", caFile);
  const { host: name, hostname, port, protocol } = new URL(endpoint);
  const byDefault = protocol === "https:" ? HTTPS_PORT : HTTP_PORT;
  return {
    ...{ exporter: "otlp", name, version: VERSION, outcomes, upstreams, lookup },
    ...reachOf(hostname.replace(/^\[|\]$/g, ""), port === "" ? byDefault : Number(port)),
    to: (addresses) => ({ kind: "otlp", endpoint, addresses, headers, caPem, node }),
  };
}

/** What is known of a host's addresses, and what is open to who goes there. */
function reachOf(host: string, port: number): Pick<ExportOptions, "host" | "addresses" | "reach"> {
  const isAddress = parseIp(host) !== null;
  const isLocal = /^(.+\.)?localhost\.?$/i.test(host);
  return {
    host: isAddress || isLocal ? null : host,
    addresses: isAddress ? [host] : isLocal ? LOOPBACK : [],
    reach: (addresses) =>
      addresses.map((address) => formatHostPort({ ip: parseIp(address)!, port })).join(),
  };
}
