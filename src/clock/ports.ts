/** Milliseconds since 1970, as far as anyone knows: what is dated by it outlives the process. */
export interface Clock {
  nowMs(): number;
}

/** The clocks of the system, each as it stands. */
export interface SystemClocks {
  /** Milliseconds since 1970. */
  readonly wallMs: () => number;
  /** Milliseconds, monotonic. */
  readonly monotonicMs: () => number;
}
