import http from "node:http";
import https from "node:https";
import { rootCertificates } from "node:tls";
import { parseIp } from "../addr/mod.ts";
import { SvcError } from "../errors.ts";
import type { HttpGet, HttpResponse, Lookup } from "./ports.ts";
import { bareHost, isLocalhostName } from "./source.ts";

/** Most addresses of a host that are tried. */
const ADDRESSES_MAX = 4;
/** How long one address has for its head while there is another to try. */
const ADDRESS_TIMEOUT_MS = 4_000;
/** Most bytes of a response's head. */
const HEAD_BYTES_MAX = 32 * 1024;

export interface NodeHttpGetOptions {
  readonly lookup: Lookup;
  /** A certificate authority trusted beside the built-in ones. */
  readonly extraCaPem?: string;
  readonly addressTimeoutMs?: number;
}

/** GET over TCP and TLS. The system's resolver is never asked: it may well be this service. */
export function nodeHttpGet(options: NodeHttpGetOptions): HttpGet {
  const { lookup, extraCaPem, addressTimeoutMs = ADDRESS_TIMEOUT_MS } = options;
  // A `ca` replaces the built-in authorities, so it names those as well.
  const ca = extraCaPem === undefined ? {} : { ca: [...rootCertificates, extraCaPem] };
  return async (url, { headers, signal }) => {
    const addresses = (await addressesOf(bareHost(url), lookup, signal)).slice(0, ADDRESSES_MAX);
    if (addresses.length === 0) throw new SvcError("unavailable", "the host has no address");
    for (const address of addresses.slice(0, -1)) {
      const attempt = new AbortController();
      const timer = setTimeout(() => attempt.abort(), addressTimeoutMs);
      try {
        return await getFrom(address, url, headers, AbortSignal.any([signal, attempt.signal]), ca);
      } catch (error) {
        // The next address is another chance; the failure of the last one is what is reported.
        if (signal.aborted) throw error;
      } finally {
        clearTimeout(timer);
      }
    }
    return await getFrom(addresses[addresses.length - 1], url, headers, signal, ca);
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

function getFrom(
  address: string,
  url: URL,
  headers: Readonly<Record<string, string>>,
  signal: AbortSignal,
  ca: { readonly ca?: string[] },
): Promise<HttpResponse> {
  const secure = url.protocol === "https:";
  const name = bareHost(url);
  const options = {
    ...ca,
    host: address,
    port: url.port === "" ? (secure ? 443 : 80) : Number(url.port),
    path: url.pathname + url.search,
    headers: { ...headers, host: url.host },
    // The certificate is checked against the name of the URL, not against the address. An IP
    // address is no server name (RFC 6066 §3).
    ...(parseIp(name) === null ? { servername: name } : {}),
    agent: false as const, // A connection of its own: nothing is left open until tomorrow.
    maxHeaderSize: HEAD_BYTES_MAX,
    signal,
  };
  const { promise, resolve, reject } = Promise.withResolvers<HttpResponse>();
  const request = (secure ? https : http).request(options, (message) => {
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
  request.end();
  return promise;
}
