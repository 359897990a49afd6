/**
 * Sends metrics, log lines and traces to a collector by OTLP over HTTP, with the OpenTelemetry SDK.
 * What goes in are families of metrics, lines and spans; what comes out are requests through a port.
 * Loaded only where an endpoint is configured. Scope: none. OTLP 1.x, protobuf. @module
 */
export { OtlpExport, type OtlpLogLine, type OtlpOptions, type OtlpSpan } from "./otlp.ts";
export { OtlpRecords, type OtlpRecordsOptions } from "./records.ts";
export { Outage, type OutageEvents, type Signal } from "./outage.ts";
export type { OtlpPorts, Post, PostRequest } from "./ports.ts";
