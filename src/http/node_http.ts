/**
 * Requests by TCP and TLS, for who needs no more than these. Scope: net. RFC 9110. @module
 */
import http from "node:http";
import { Duplex } from "node:stream";
import { bareHost, isLocalhostName, parseIp } from "../addr/mod.ts";
import { SvcError } from "../errors.ts";
import { secured } from "./secured.ts";
import type { HttpAsk, HttpGet, HttpGetOptions, HttpPost, HttpResponse, Lookup } from "./ports.ts";

/** Most addresses of a host that are tried. */
const ADDRESSES_MAX = 4;
/** How long one address has for its head while there is another to try. */
const ADDRESS_TIMEOUT_MS = 4_000;
/** Most that is read of a response whose status alone is asked for. */
const UNREAD_BYTES_MAX = 64 * 1024;
/** Most bytes of a response's head. */
const HEAD_BYTES_MAX = 32 * 1024;

export interface NodeHttpGetOptions {
  readonly lookup: Lookup;
  /** A certificate authority trusted beside the built-in ones, for tests. */
  readonly caPem?: string;
  readonly addressTimeoutMs?: number;
  /** Why nothing may be sent to an address, in words; `null`: it may. Left out: to any. */
  readonly admit?: (address: string, isSecure: boolean) => string | null;
}

interface RequestOptions extends Omit<HttpGetOptions, "method"> {
  readonly method?: "GET" | "HEAD" | "POST" | "DELETE";
  readonly body?: Uint8Array;
}

/** GET and HEAD over TCP and TLS. The system's resolver is never asked: it may well be this service. */
export function nodeHttpGet(options: NodeHttpGetOptions): HttpGet {
  return nodeHttp(options);
}

/** The same for POST. */
export function nodeHttpPost(options: NodeHttpGetOptions): HttpPost {
  const send = nodeHttp(options);
  return (url, request) => send(url, { ...request, method: "POST" });
}

/** The same for where the status says all. */
export function nodeHttpPostStatus(
  options: NodeHttpGetOptions,
): (...request: Parameters<HttpPost>) => Promise<number> {
  const post = nodeHttpPost(options);
  return async (url, request) => {
    const { status, body } = await post(url, request);
    // A connection is for one request; it is closed in order.
    let read = 0;
    for await (const chunk of body) {
      read += chunk.length;
      if (read > UNREAD_BYTES_MAX) break;
    }
    return status;
  };
}

/** The same for what an API takes. */
export function nodeHttpAsk(options: NodeHttpGetOptions): HttpAsk {
  return nodeHttp(options);
}

function nodeHttp(options: NodeHttpGetOptions) {
  const { lookup, caPem, addressTimeoutMs = ADDRESS_TIMEOUT_MS, admit = () => null } = options;
  return async (url: URL, request: RequestOptions): Promise<HttpResponse> => {
    const { signal } = request;
    const found = await addressesOf(bareHost(url.hostname), lookup, signal);
    if (found.length === 0) throw new SvcError("unavailable", "the host has no address");
    // What is let through is what is connected to: the name is not looked up again.
    const isSecure = url.protocol === "https:";
    const addresses = found.filter((address) => admit(address, isSecure) === null)
      .slice(0, ADDRESSES_MAX);
    if (addresses.length === 0) {
      throw new SvcError("forbidden", `${found[0]}: ${admit(found[0], isSecure)}`);
    }
    for (const address of addresses.slice(0, -1)) {
      const attempt = new AbortController();
      const timer = setTimeout(() => attempt.abort(), addressTimeoutMs);
      try {
        return await getFrom(
          address,
          url,
          { ...request, signal: AbortSignal.any([signal, attempt.signal]) },
          caPem,
        );
      } catch (error) {
        // The next address is another chance; the failure of the last one is what is reported.
        if (signal.aborted) throw error;
      } finally {
        clearTimeout(timer);
      }
    }
    return await getFrom(addresses[addresses.length - 1], url, request, caPem);
  };
}

function addressesOf(
  host: string,
  lookup: Lookup,
  signal: AbortSignal,
): Promise<readonly string[]> | readonly string[] {
  if (parseIp(host) !== null) return [host];
  if (isLocalhostName(host)) return ["127.0.0.1", "::1"];
  return lookup(host, signal);
}

async function getFrom(
  address: string,
  url: URL,
  { headers, signal, method = "GET", body }: RequestOptions,
  caPem: string | undefined,
): Promise<HttpResponse> {
  const stream = await connect(address, url, signal, caPem);
  // Closing without a farewell is common once the body is whole; before that the body throws.
  stream.on("error", () => undefined);
  const { promise, resolve, reject } = Promise.withResolvers<HttpResponse>();
  const options = {
    createConnection: () => stream,
    method,
    path: url.pathname + url.search,
    headers: {
      ...headers,
      ...(body !== undefined && { "content-length": body.length }),
      host: url.host,
      connection: "close",
    },
    maxHeaderSize: HEAD_BYTES_MAX,
    signal,
  };
  const request = http.request(options, (message) => {
    const head: Record<string, string> = {};
    for (const [key, value] of Object.entries(message.headers)) {
      if (value !== undefined) head[key] = Array.isArray(value) ? value.join(", ") : value;
    }
    // Without a listener, an error that comes before the body is read would end the process.
    message.on("error", () => undefined);
    resolve({
      status: message.statusCode ?? 0,
      headers: head,
      body: message as AsyncIterable<Uint8Array>,
    });
  });
  request.on("error", reject);
  request.end(body);
  try {
    return await promise;
  } catch (error) {
    stream.destroy();
    throw error;
  }
}

/**
 * Connects by TCP and, for https, TLS. Deno's own TLS needs no permission but `net`; node:tls asks
 * for the environment and the system as well, for its authorities.
 */
async function connect(
  address: string,
  url: URL,
  signal: AbortSignal,
  caPem: string | undefined,
): Promise<Duplex> {
  const secure = url.protocol === "https:";
  const port = url.port === "" ? (secure ? 443 : 80) : Number(url.port);
  const tcp = await Deno.connect({ hostname: address, port, signal });
  if (!secure) return duplexOf(tcp);
  // The certificate is checked against the name of the URL, not against the address.
  const caCerts = caPem === undefined ? [] : [caPem];
  return duplexOf(await secured(tcp, { hostname: bareHost(url.hostname), caCerts }, signal));
}

function duplexOf({ readable, writable }: Deno.Conn): Duplex {
  return Duplex.fromWeb({ readable, writable } as Parameters<typeof Duplex.fromWeb>[0]);
}
