import type { Logger } from "@opentelemetry/api";
import { ExportResultCode } from "@opentelemetry/core";
import { ProtobufLogsSerializer } from "@opentelemetry/otlp-transformer";
import { LoggerProvider, type ReadableLogRecord } from "@opentelemetry/sdk-logs";
import { OtlpExporter, REQUEST_MS_MAX } from "./exporter.ts";
import { SCOPE_NAME } from "./metrics.ts";
import { LIMITS, type OtlpLogLine, type OtlpOptions, recordOf, resourceOf, urlOf } from "./otlp.ts";
import { Outage } from "./outage.ts";

export type OtlpRecordsOptions =
  & Pick<OtlpOptions, "endpoint" | "headers" | "node" | "version" | "ports">
  & { readonly stopped: AbortSignal };

/** Sends log records a batch at a time, for who has a queue of its own. */
export class OtlpRecords {
  readonly #exporter: OtlpExporter<ReadableLogRecord[]>;
  readonly #logger: Logger;
  /** What the batch is made of that is sent next. */
  #records: ReadableLogRecord[] = [];

  constructor(options: OtlpRecordsOptions) {
    const { endpoint, headers, version, ports, stopped } = options;
    this.#exporter = new OtlpExporter({
      signal: "logs",
      url: urlOf(endpoint, "logs"),
      headers,
      serializer: ProtobufLogsSerializer,
      ports,
      outage: new Outage({ begins: () => {}, ends: () => {} }),
      stopped,
      retries: 0,
      requestMs: REQUEST_MS_MAX,
      onSuccess: () => {},
    });
    const provider = new LoggerProvider({
      resource: resourceOf(options),
      logRecordLimits: LIMITS,
      processors: [{
        onEmit: (record) => void this.#records.push(record),
        forceFlush: () => Promise.resolve(),
        shutdown: () => Promise.resolve(),
      }],
    });
    this.#logger = provider.getLogger(SCOPE_NAME, version);
  }

  /** Sends a batch; throws with the reason where it is not taken. */
  send(lines: readonly OtlpLogLine[]): Promise<void> {
    this.#records = [];
    for (const line of lines) this.#logger.emit(recordOf(line));
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.#exporter.export(this.#records, ({ code, error }) => {
      if (code === ExportResultCode.SUCCESS) resolve();
      else reject(error ?? new Error("the endpoint did not take it"));
    });
    return promise;
  }
}
