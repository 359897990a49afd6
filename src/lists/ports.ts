/** Wall-clock time: it is kept on disk and compared after a restart. */
export interface Clock {
  nowMs(): number;
}

/** Draws from 0 (included) to 1 (excluded), as `Math.random` does. */
export type Chance = () => number;

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

/** Addresses of a host in the order to try them; this service's own upstreams answer it. */
export type Lookup = (hostname: string, signal: AbortSignal) => Promise<readonly string[]>;

/** A file being written. */
export interface DiskFile {
  /** Writes all of `bytes`. */
  write(bytes: Uint8Array): Promise<void>;
  /** Returns once what was written would outlast a loss of power. */
  sync(): Promise<void>;
  close(): void;
}

export interface DiskStat {
  readonly isFile: boolean;
  readonly sizeBytes: number;
}

/** The file system, as far as lists need it. What is absent throws `Deno.errors.NotFound`. */
export interface Disk {
  /** Makes the directory with its parents, for the owner alone; one that is there stays as it is. */
  makeDirectory(path: string): Promise<void>;
  names(path: string): Promise<string[]>;
  stat(path: string): Promise<DiskStat>;
  /** The path with every symbolic link followed. */
  realPath(path: string): Promise<string>;
  /** Reads the file in pieces; a piece is the caller's until it asks for the next. */
  chunks(path: string): AsyncIterable<Uint8Array>;
  /** Makes the file, or empties the one that is there; for the owner alone. */
  create(path: string): Promise<DiskFile>;
  /** Replaces `to` in one step. */
  rename(from: string, to: string): Promise<void>;
  remove(path: string): Promise<void>;
  /** Makes the renames in this directory outlast a loss of power. */
  syncDirectory(path: string): Promise<void>;
}
