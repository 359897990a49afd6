/** Places of what the log says of itself in shared memory. */
export const LogFigure = {
  /** Entries there are. */
  Entries: 0,
  /** Entries written since the process started. */
  Written: 1,
  /** Records that nobody could read. */
  Unreadable: 2,
} as const;

const FIGURES = 3;

/** Memory for the figures, which outlives the isolate that writes them. */
export function figuresMemory(): SharedArrayBuffer {
  return new SharedArrayBuffer(FIGURES * 8);
}
