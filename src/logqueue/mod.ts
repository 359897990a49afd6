/**
 * The queue between those who answer queries and the one who logs them: records in shared memory,
 * one writer and one reader each. Writing never waits and leaves no garbage; a full queue counts what
 * it can't take. Both ends find the same layout here. Scope: none. @module
 */
export { ExportFigure, figuresMemory, LogFigure } from "./figures.ts";
export {
  DNSSEC_NAMES,
  DROPPED_NOT_COUNTED,
  LOG_MESSAGE_BYTES_MAX,
  OUTCOME_NAMES,
  PROTOCOL_NAMES,
  RecordAt,
  RecordFlag,
  RecordLength,
  TEXT_SEPARATOR,
} from "./layout.ts";
export {
  NO_RECORD,
  NO_ROOM,
  QUEUE_BYTES,
  type QueueFigures,
  queueFigures,
  queueMemory,
  QueueReader,
  QueueWriter,
} from "./queue.ts";
