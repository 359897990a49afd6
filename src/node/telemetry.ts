import type { Config, TelemetryConfig } from "../config/mod.ts";
import { parseHeaders } from "../config/mod.ts";
import { formatName, qtypeName, rcodeName } from "../dns/mod.ts";
import { messageOf, SvcError } from "../errors.ts";
import { type DnsSupervisor, pause, type SlowQuery, type SlowSample } from "../isolate/mod.ts";
import { type Lookup, nodeHttpPostStatus } from "../http/mod.ts";
import { handLogLines, log, type LogLine } from "../log.ts";
import { OUTCOME_NAMES, PROTOCOL_NAMES } from "../logqueue/mod.ts";
import type { OtlpExport, OtlpPorts, OtlpSpan, Outage } from "../otlp/mod.ts";
import type { MetricFamily } from "../telemetry/mod.ts";
import { VERSION } from "../version.ts";

/** Log lines of the start that wait for the export to begin. */
const EARLY_LINES_MAX = 256;

export interface TelemetryOptions {
  readonly config: Config;
  readonly node: string;
  readonly startedAtMs: number;
  readonly dns: Pick<DnsSupervisor, "onSlow">;
  readonly lookup: Lookup;
  /** As the dns isolates have them. */
  readonly upstreams: readonly string[];
  readonly families: () => readonly MetricFamily[];
}

/** Which queries the dns isolates are to tell of for the export; `null`: none. */
export function slowSample(telemetry: TelemetryConfig): SlowSample | null {
  const { endpoint, traces, traceSampleRatio, queryDetails } = telemetry;
  if (endpoint === null || !traces) return null;
  return { ratio: traceSampleRatio, withNames: queryDetails };
}

/** The export of metrics, logs and traces. Without an endpoint there is nothing of it. */
export class Telemetry {
  readonly #config: TelemetryConfig;
  #early: LogLine[] = [];
  #export: OtlpExport | null = null;
  #outage: Outage | null = null;
  /** Why nothing is sent, though it should be. */
  #problem: string | null = null;

  /** Log lines, also of isolates started later, are kept from now on, for the export to begin with. */
  constructor(config: TelemetryConfig) {
    this.#config = config;
    if (config.endpoint === null || !config.logs) return;
    handLogLines((line) => {
      if (this.#early.length < EARLY_LINES_MAX) this.#early.push(line);
    });
  }

  /** Requests to the endpoint that failed. */
  get failures(): number {
    return this.#outage?.failures ?? 0;
  }

  get problems(): string[] {
    return this.#problem === null ? [] : [this.#problem];
  }

  /** Begins the export; where that can't be, the log and the status say so and nothing is sent. */
  async start(options: TelemetryOptions): Promise<void> {
    const { endpoint } = this.#config;
    if (endpoint === null) return;
    try {
      await this.#start(endpoint, options);
    } catch (error) {
      this.#problem = `${messageOf(error)}; no telemetry is sent`;
      log.error("telemetry can't be sent", { error });
      handLogLines(null);
    } finally {
      this.#early = [];
    }
  }

  async #start(endpoint: string, options: TelemetryOptions): Promise<void> {
    const { headersFile, caFile, metrics, logs, traces, intervalMs } = this.#config;
    const headers = headersFile === null
      ? {}
      : await readHeaders("telemetry.headers_file", headersFile);
    const caPem = caFile === null ? null : await readText("telemetry.ca_file", caFile);
    const { host } = new URL(endpoint);
    // Most nodes send nothing, and do without the libraries.
    const { OtlpExport, Outage } = await import("../otlp/mod.ts");
    const outage = this.#outage = new Outage({
      begins: (signal, reason) =>
        log.warn("telemetry can't be sent; this is said once", { host, signal, reason }),
      ends: (failures) => log.info("telemetry is sent again", { host, failures }),
    });
    const made = this.#export = new OtlpExport({
      endpoint,
      headers,
      metrics,
      logs,
      traces,
      intervalMs,
      node: options.node,
      version: VERSION,
      startedAtMs: options.startedAtMs,
      families: options.families,
      outage,
      ports: portsOf(options.lookup, caPem),
    });
    const { dns, upstreams } = options;
    if (logs) {
      for (const line of this.#early) made.log(line);
      handLogLines((line) => made.log(line));
    }
    if (traces) {
      dns.onSlow = (queries) => {
        for (const query of queries) made.span(spanOf(query, upstreams));
      };
    }
    log.info("sending telemetry", { host, metrics, logs, traces });
  }

  /** Sends what waits, for `graceMs` at most. */
  async stop(graceMs: number): Promise<void> {
    const running = this.#export;
    this.#export = null;
    await running?.stop(graceMs);
    handLogLines(null);
  }
}

/** The text of a file that a key of the configuration names. */
export async function readText(key: string, file: string): Promise<string> {
  try {
    return await Deno.readTextFile(file);
  } catch (error) {
    throw new SvcError("unavailable", `${key}: ${file}: ${messageOf(error)}`);
  }
}

/** The headers of such a file. */
export async function readHeaders(
  key: string,
  file: string,
): Promise<Readonly<Record<string, string>>> {
  const parsed = parseHeaders(await readText(key, file));
  if (parsed.kind === "headers") return parsed.headers;
  const { line, message } = parsed;
  throw new SvcError("invalid", `${key}: ${file}: line ${line}: ${message}`);
}

function portsOf(lookup: Lookup, caPem: string | null): OtlpPorts {
  return {
    post: nodeHttpPostStatus({
      lookup: rememberingLookup(lookup),
      ...(caPem !== null && { caPem }),
    }),
    nowMs: Date.now,
    deadline: (ms, signal) => AbortSignal.any([AbortSignal.timeout(ms), signal]),
    pause,
  };
}

/** Falls back on the addresses last found: a collector nearby is there when upstreams are not. */
function rememberingLookup(lookup: Lookup): Lookup {
  let known: { readonly hostname: string; readonly addresses: readonly string[] } | null = null;
  return async (hostname, signal) => {
    try {
      const addresses = await lookup(hostname, signal);
      known = { hostname, addresses };
      return addresses;
    } catch (error) {
      if (known?.hostname !== hostname || signal.aborted) throw error;
      return known.addresses;
    }
  };
}

/** A query that waited, as a span. Who asked is in none. */
export function spanOf(query: SlowQuery, upstreams: readonly string[]): OtlpSpan {
  const upstream = upstreams[query.upstream];
  const outcome = OUTCOME_NAMES[query.outcome];
  return {
    name: "resolve",
    startMs: query.startMs,
    durationMs: query.durationMs,
    hasFailed: outcome === "failed",
    attributes: {
      "svc.protocol": PROTOCOL_NAMES[query.transport],
      "svc.outcome": outcome,
      "dns.question.type": qtypeName(query.qtype),
      "dns.response.code": rcodeName(query.rcode),
      ...(upstream !== undefined && { "svc.upstream": upstream }),
      ...(query.name !== null && { "dns.question.name": formatName(query.name, 0) }),
    },
  };
}
