import {
  type Logger,
  SeverityNumber,
  SpanKind,
  SpanStatusCode,
  type Tracer,
} from "@opentelemetry/api";
import {
  ProtobufLogsSerializer,
  ProtobufMetricsSerializer,
  ProtobufTraceSerializer,
} from "@opentelemetry/otlp-transformer";
import { resourceFromAttributes } from "@opentelemetry/resources";
import { BatchLogRecordProcessor, LoggerProvider } from "@opentelemetry/sdk-logs";
import { MeterProvider, PeriodicExportingMetricReader } from "@opentelemetry/sdk-metrics";
import { AlwaysOnSampler, BatchSpanProcessor, TracerProvider } from "@opentelemetry/sdk-trace";
import type { MetricFamily } from "../telemetry/mod.ts";
import {
  EXPORT_MS_MAX,
  type ExporterOptions,
  OtlpExporter,
  REQUEST_MS_MAX,
  RETRIES_MAX,
} from "./exporter.ts";
import { metricProducer, SCOPE_NAME } from "./metrics.ts";
import type { Outage, Signal } from "./outage.ts";
import type { OtlpPorts } from "./ports.ts";

/** Log lines and spans that wait to be sent; what comes while as many wait is let go. */
const QUEUE_MAX = 2_048;
const BATCH_MAX = 512;
/** Lines and spans wait this long for others to go with. */
const BATCH_DELAY_MS = 1_000;
/** Attributes of one line or span, and characters of one. */
export const LIMITS = { attributeCountLimit: 64, attributeValueLengthLimit: 2_000 };

export interface OtlpOptions {
  /** The base URL: `v1/metrics` and the like are added to its path. */
  readonly endpoint: string;
  /** Sent with every request; they may hold secrets. */
  readonly headers: Readonly<Record<string, string>>;
  readonly metrics: boolean;
  readonly logs: boolean;
  readonly traces: boolean;
  /** How often metrics are sent. */
  readonly intervalMs: number;
  /** This node: its name and the program's version. */
  readonly node: string;
  readonly version: string;
  readonly startedAtMs: number;
  readonly families: () => readonly MetricFamily[];
  readonly outage: Outage;
  readonly ports: OtlpPorts;
}

/** What lines and spans say beside their text. */
type Fields = Readonly<Record<string, string | number | boolean>>;

/** A log line. */
export interface OtlpLogLine {
  readonly timeMs: number;
  readonly level: "info" | "warn" | "error";
  readonly message: string;
  readonly fields: Fields;
}

/** Something that took its time. */
export interface OtlpSpan {
  readonly name: string;
  readonly startMs: number;
  readonly durationMs: number;
  readonly attributes: Fields;
  readonly hasFailed: boolean;
}

const SEVERITY = {
  info: SeverityNumber.INFO,
  warn: SeverityNumber.WARN,
  error: SeverityNumber.ERROR,
} as const;

/** The export of one node, from its making to `stop`. It holds up nobody and throws nothing. */
export class OtlpExport {
  readonly #stopped = new AbortController();
  readonly #ports: OtlpPorts;
  readonly #metrics: MeterProvider | null = null;
  readonly #logs: LoggerProvider | null = null;
  readonly #traces: TracerProvider | null = null;
  readonly #logger: Logger | null = null;
  readonly #tracer: Tracer | null = null;

  constructor(options: OtlpOptions) {
    const { ports, version, intervalMs } = options;
    this.#ports = ports;
    const resource = resourceOf(options);
    // A signal that failed last may have nothing to send for long, and the outage no end.
    const probes = new Map<Signal, () => void>();
    const onSuccess = (failing: readonly Signal[]) => {
      for (const signal of failing) probes.get(signal)?.();
    };
    const exporterOf = <Batch>(
      signal: Signal,
      serializer: ExporterOptions<Batch>["serializer"],
      { retries = RETRIES_MAX, requestMs = REQUEST_MS_MAX } = {},
    ) => {
      const exporter = new OtlpExporter<Batch>({
        signal,
        url: urlOf(options.endpoint, signal),
        headers: options.headers,
        serializer,
        ports,
        outage: options.outage,
        stopped: this.#stopped.signal,
        retries,
        requestMs,
        onSuccess,
      });
      probes.set(signal, () => exporter.probe());
      return exporter;
    };
    const batches = {
      maxQueueSize: QUEUE_MAX,
      maxExportBatchSize: BATCH_MAX,
      scheduledDelayMillis: BATCH_DELAY_MS,
      exportTimeoutMillis: EXPORT_MS_MAX,
    };
    if (options.metrics) {
      const requestMs = Math.min(REQUEST_MS_MAX, intervalMs);
      const reader = new PeriodicExportingMetricReader({
        exporter: exporterOf("metrics", ProtobufMetricsSerializer, { retries: 0, requestMs }),
        exportIntervalMillis: intervalMs,
        exportTimeoutMillis: requestMs,
        metricProducers: [metricProducer({ ...options, nowMs: ports.nowMs })],
      });
      this.#metrics = new MeterProvider({ resource, readers: [reader] });
    }
    if (options.logs) {
      const exporter = exporterOf("logs", ProtobufLogsSerializer);
      this.#logs = new LoggerProvider({
        resource,
        logRecordLimits: LIMITS,
        processors: [new BatchLogRecordProcessor({ ...batches, exporter })],
      });
      this.#logger = this.#logs.getLogger(SCOPE_NAME, version);
    }
    if (options.traces) {
      const exporter = exporterOf("traces", ProtobufTraceSerializer);
      this.#traces = new TracerProvider({
        resource,
        // Whoever answers the queries draws the sample: what comes here is all meant to be sent.
        sampler: new AlwaysOnSampler(),
        spanLimits: LIMITS,
        spanProcessors: [new BatchSpanProcessor({ ...batches, exporter })],
      });
      this.#tracer = this.#traces.getTracer(SCOPE_NAME, version);
    }
  }

  /** Takes a log line along. */
  log(line: OtlpLogLine): void {
    this.#logger?.emit(recordOf(line));
  }

  /** Takes a span along, a trace of its own. */
  span({ name, startMs, durationMs, attributes, hasFailed }: OtlpSpan): void {
    const span = this.#tracer?.startSpan(name, {
      kind: SpanKind.SERVER,
      root: true,
      startTime: startMs,
      attributes: { ...attributes },
    });
    if (hasFailed) span?.setStatus({ code: SpanStatusCode.ERROR });
    span?.end(startMs + durationMs);
  }

  /** Sends what waits, for `graceMs` at most; the rest is let go. */
  async stop(graceMs: number): Promise<void> {
    const providers = [this.#metrics, this.#logs, this.#traces];
    const flushed = Promise.allSettled(providers.map((provider) => provider?.shutdown()));
    await Promise.race([flushed, this.#ports.pause(graceMs, this.#stopped.signal)]);
    this.#stopped.abort();
  }
}

/** Who sends. */
export function resourceOf({ node, version }: Pick<OtlpOptions, "node" | "version">) {
  return resourceFromAttributes({
    "service.name": SCOPE_NAME,
    "service.version": version,
    "service.instance.id": node,
  });
}

/** A log line as the SDK takes it. */
export function recordOf({ timeMs, level, message, fields }: OtlpLogLine) {
  return {
    timestamp: timeMs,
    severityNumber: SEVERITY[level],
    severityText: level.toUpperCase(),
    body: message,
    attributes: { ...fields },
  };
}

/** Where a signal goes: a path below that of the endpoint (OTLP, "OTLP/HTTP Request"). */
export function urlOf(endpoint: string, signal: Signal): URL {
  const url = new URL(endpoint);
  url.pathname = `${url.pathname.replace(/\/+$/, "")}/v1/${signal}`;
  return url;
}
