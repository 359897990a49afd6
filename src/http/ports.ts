/** The head of an HTTP response and the body as it comes in. Header names are in lower case. */
export interface HttpResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** As on the wire, not unpacked; throws when the connection ends before the body does. */
  readonly body: AsyncIterable<Uint8Array>;
}

export interface HttpGetOptions {
  readonly headers: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
  /** `HEAD` asks for the response's head alone; `GET` if left out. */
  readonly method?: "GET" | "HEAD";
}

/**
 * Sends one request and resolves at the end of the response's head; follows no redirect. Aborting
 * `signal` closes the connection, before the head and after it.
 */
export type HttpGet = (url: URL, options: HttpGetOptions) => Promise<HttpResponse>;

/** A request with a body, to the end of the response's head. */
export type HttpPost = (
  url: URL,
  options: Pick<HttpGetOptions, "headers" | "signal"> & { readonly body: Uint8Array },
) => Promise<HttpResponse>;

/** A request to an API, to the end of the response's head. */
export type HttpAsk = (
  url: URL,
  options: Pick<HttpGetOptions, "headers" | "signal"> & {
    readonly method: "GET" | "POST" | "DELETE";
    readonly body?: Uint8Array;
  },
) => Promise<HttpResponse>;

/** Addresses of a host in the order to try them; this service's own upstreams answer it. */
export type Lookup = (hostname: string, signal: AbortSignal) => Promise<readonly string[]>;
