/** Places of what the log says of itself in shared memory. */
export const LogFigure = {
  /** Entries there are. */
  Entries: 0,
  /** Entries written since the process started. */
  Written: 1,
  /** Records that nobody could read. */
  Unreadable: 2,
} as const;

/** The same of what leaves by one way. */
export const ExportFigure = {
  /** Entries that were sent. */
  Sent: 0,
  /** Tries that failed: connections, handshakes, batches. */
  Failures: 1,
  /** Entries that nobody could read, or took. */
  Lost: 2,
  /** 1 while the last try failed. */
  Failing: 3,
} as const;

const FIGURES = 4;

/** Memory for the figures, which outlives the isolate that writes them. */
export function figuresMemory(): SharedArrayBuffer {
  return new SharedArrayBuffer(FIGURES * 8);
}
