/**
 * What leaves of the query log as it is written: by dnstap over Frame Streams, or as log records of
 * OTLP. Records come from a queue in shared memory of their own, are sent in batches and given back
 * once they are; while a receiver lags, what finds no room in the queue is dropped and counted there.
 * Scope: net; read, write: the receiver's socket, where that is a path. dnstap.proto of dnstap.info,
 * Frame Streams as fstrm has it. @module
 */
export { type Connection, dial, type Place } from "./dial.ts";
export { DnstapEncoder, type DnstapOptions } from "./dnstap.ts";
export { openFrameStream } from "./frame_streams.ts";
export { otlpLine } from "./otlp_line.ts";
export { type Receiver, Sender, type SenderPorts, type Session } from "./sender.ts";
