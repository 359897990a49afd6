/** What a stage made of a query. */
export const Verdict = {
  /** Nothing: the next stage has it. */
  Next: 0,
  /** The response is written. */
  Send: 1,
  /** No response at all. */
  Drop: 2,
  /** The upstreams have to be asked. */
  Resolve: 3,
} as const;
export type Verdict = typeof Verdict[keyof typeof Verdict];
