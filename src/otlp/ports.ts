/** One request with a body. */
export interface PostRequest {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
  /** Closes the connection, before the response and after it. */
  readonly signal: AbortSignal;
}

/** Sends a request and resolves with the status of the response; throws where there is none. */
export type Post = (url: URL, request: PostRequest) => Promise<number>;

/** What the export needs of its surroundings. */
export interface OtlpPorts {
  readonly post: Post;
  /** Milliseconds since 1970. */
  readonly nowMs: () => number;
  /** Aborts after so long, or when `signal` does. */
  readonly deadline: (ms: number, signal: AbortSignal) => AbortSignal;
  /** Resolves after so long, or when `signal` aborts. */
  readonly pause: (ms: number, signal: AbortSignal) => Promise<void>;
}
