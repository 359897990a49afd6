import { createPrivateKey, X509Certificate } from "node:crypto";
import http from "node:http";
import https from "node:https";
import type { AddressInfo, Socket } from "node:net";
import { Readable } from "node:stream";
import {
  formatHostPort,
  formatIp,
  type HostPort,
  isLoopback,
  parseIp,
  unmapIpv4,
} from "../addr/mod.ts";
import { messageOf, SvcError } from "../errors.ts";
import { log } from "../log.ts";
import type { ApiHandler } from "./app.ts";
import { SECURITY_HEADERS } from "./headers.ts";

export interface ApiLimits {
  /** Over all addresses; one more is closed at once, before any TLS handshake. */
  readonly connectionsMax: number;
  /** For the TLS handshake, and for the head of each request. */
  readonly headMs: number;
  /** For a request to come in as a whole. */
  readonly requestMs: number;
  /** Longest silence of a connection while a request is answered. */
  readonly silenceMs: number;
  /** How long a connection without a request stays open. */
  readonly idleMs: number;
}

export const API_LIMITS: ApiLimits = {
  connectionsMax: 64,
  headMs: 10_000,
  requestMs: 30_000,
  silenceMs: 40_000, // Longer than an answer may take, so that the handler's own limit speaks.
  idleMs: 5_000,
};
/** How often connections are held against the limits of time. */
const CHECK_MS_MAX = 1_000;
/** Most bytes of a request's head. */
const HEAD_BYTES_MAX = 16 * 1024;

/** A certificate with its chain, and its private key. */
export interface TlsPem {
  readonly cert: string;
  readonly key: string;
}

export interface ApiServerOptions {
  readonly listen: readonly HostPort[];
  /** `null`: clear text. */
  readonly tls: TlsPem | null;
  readonly hasToken: boolean;
  readonly handler: ApiHandler;
  readonly limits?: ApiLimits;
}

type Server = http.Server | https.Server;

/** Serves the API over HTTP/1.1 on every address, within the limits. */
export class ApiServer {
  readonly #options: ApiServerOptions;
  readonly #limits: ApiLimits;
  #servers: Server[] = [];
  #connections = 0;
  /** Connections that were one too many. */
  refused = 0;

  constructor(options: ApiServerOptions) {
    this.#options = options;
    this.#limits = options.limits ?? API_LIMITS;
  }

  /**
   * Listens on every address, or on none; returns them with the ports that the system gave for 0.
   *
   * @throws {SvcError} `invalid`, for an address beyond loopback without a token or a certificate that
   * can't be used; `unavailable`.
   */
  async start(): Promise<HostPort[]> {
    const { listen, hasToken, tls } = this.#options;
    const beyond = listen.filter(({ ip }) => !isLoopback(ip));
    if (beyond.length > 0 && !hasToken) {
      const address = formatHostPort(beyond[0]);
      throw new SvcError(
        "invalid",
        `api.listen: ${address} is beyond loopback: set api.token_sha256 (svc token makes one)`,
      );
    }
    if (beyond.length > 0 && tls === null) {
      log.warn("the API's token crosses the network in clear text: set api.tls_cert and tls_key", {
        listen: beyond.map(formatHostPort),
      });
    }
    if (tls !== null) checkTls(tls);
    const addresses: HostPort[] = [];
    try {
      for (const address of listen) addresses.push(await this.#listen(address));
    } catch (error) {
      await this.stop(0);
      throw error;
    }
    return addresses;
  }

  /**
   * Takes a renewed certificate for the handshakes to come.
   *
   * @throws {SvcError} `invalid`, if it can't be used; the former one stays.
   */
  renewTls(tls: TlsPem): void {
    checkTls(tls);
    for (const server of this.#servers) {
      if (server instanceof https.Server) server.setSecureContext(tls);
    }
  }

  /** Takes nothing new, lets requests end within the time, then closes what is left. */
  async stop(graceMs: number): Promise<void> {
    const servers = this.#servers;
    this.#servers = [];
    const closed = servers.map((server) =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeIdleConnections();
      })
    );
    const timer = setTimeout(() => {
      for (const server of servers) server.closeAllConnections();
    }, graceMs);
    await Promise.all(closed);
    clearTimeout(timer);
  }

  async #listen({ ip, port }: HostPort): Promise<HostPort> {
    const server = this.#createServer();
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    server.once("error", reject);
    server.listen(
      { host: formatIp(ip), port, ipv6Only: ip.length === 16, exclusive: true },
      resolve,
    );
    try {
      await promise;
    } catch (error) {
      const address = formatHostPort({ ip, port });
      throw new SvcError("unavailable", `api.listen: ${address}: ${messageOf(error)}`);
    }
    server.on("error", (error) => log.error("the API's listener failed", { error }));
    this.#servers.push(server);
    return { ip, port: (server.address() as AddressInfo).port };
  }

  #createServer(): Server {
    const { headMs, requestMs, silenceMs, idleMs } = this.#limits;
    const options = {
      headersTimeout: headMs,
      requestTimeout: requestMs,
      keepAliveTimeout: idleMs,
      connectionsCheckingInterval: Math.min(CHECK_MS_MAX, headMs / 4),
      maxHeaderSize: HEAD_BYTES_MAX,
    };
    const onRequest = (request: http.IncomingMessage, response: http.ServerResponse) => {
      // A failure of the connection: nobody is left to tell.
      response.on("error", () => undefined);
      void this.#answer(request, response);
    };
    const { tls } = this.#options;
    const server = tls === null
      ? http.createServer(options, onRequest)
      : https.createServer({ ...options, ...tls, handshakeTimeout: headMs }, onRequest);
    server.timeout = silenceMs;
    server.on("connection", (socket: Socket) => this.#admit(socket));
    server.on("clientError", (error, socket) => refuseUnread(error, socket as Socket));
    server.on("tlsClientError", (_, socket) => socket.destroy());
    return server;
  }

  #admit(socket: Socket): void {
    if (this.#connections >= this.#limits.connectionsMax) {
      this.refused++;
      socket.destroy();
      return;
    }
    this.#connections++;
    socket.once("close", () => this.#connections--);
    socket.on("error", () => undefined);
  }

  async #answer(message: http.IncomingMessage, response: http.ServerResponse): Promise<void> {
    try {
      const request = requestOf(message);
      const remoteAddress = addressOf(message.socket);
      const answer = request === null
        ? badRequest()
        : await this.#options.handler(request, remoteAddress);
      const headers = headersOf(answer);
      // Whoever asks for `body` turns it into a stream, which costs more than the rest of an answer.
      if (headers["transfer-encoding"] === "chunked" && answer.body !== null) {
        await sendStream(answer.status, headers, answer.body, response);
        return;
      }
      const body = new Uint8Array(await answer.arrayBuffer());
      // What is left of a body would have to be read before the next request.
      if (!message.complete) headers["connection"] = "close";
      const isBodiless = answer.status === 204 || message.method === "HEAD";
      if (!isBodiless) headers["content-length"] = String(body.length);
      response.writeHead(answer.status, headers);
      response.end(isBodiless ? undefined : body);
    } catch (error) {
      log.error("api request failed", { path: message.url ?? "", error });
      response.destroy();
    }
  }
}

/** By their names in lower case. */
function headersOf(answer: Response): Record<string, string> {
  return { ...SECURITY_HEADERS, ...Object.fromEntries(answer.headers) };
}

/** Sends a body as it comes, no faster than the client takes it, until either of them ends it. */
async function sendStream(
  status: number,
  headers: Record<string, string>,
  body: ReadableStream<Uint8Array>,
  response: http.ServerResponse,
): Promise<void> {
  response.writeHead(status, headers);
  response.flushHeaders();
  const reader = body.getReader();
  const onClose = () => void reader.cancel().catch(() => undefined);
  response.once("close", onClose);
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done || response.destroyed) break;
      if (!response.write(value)) await drained(response);
    }
    response.off("close", onClose);
    response.end();
  } catch (error) {
    // A client can tell: the end of the body is missing.
    response.off("close", onClose);
    response.destroy();
    throw error;
  } finally {
    await reader.cancel();
  }
}

/** Resolves once there is room for more, or nobody left to send it to. */
function drained(response: http.ServerResponse): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const settle = () => {
    response.off("drain", settle);
    response.off("close", settle);
    resolve();
  };
  response.on("drain", settle);
  response.on("close", settle);
  return promise;
}

/**
 * A server would take anything, and fail at each handshake.
 *
 * @throws {SvcError} `invalid`.
 */
function checkTls({ cert, key }: TlsPem): void {
  let isPair: boolean;
  try {
    isPair = new X509Certificate(cert).checkPrivateKey(createPrivateKey(key));
  } catch (error) {
    throw new SvcError("invalid", `api.tls_cert: ${messageOf(error)}`, { cause: error });
  }
  if (!isPair) throw new SvcError("invalid", "api.tls_key: it is not the certificate's key");
}

function badRequest(): Response {
  const body = { error: { code: "bad_request", message: "request: its target is no path" } };
  return Response.json(body, { status: 400 });
}

/** The request as the handler takes it; `null` for a target that is no path (`OPTIONS *`). */
function requestOf(message: http.IncomingMessage): Request | null {
  const { method = "GET", url = "" } = message;
  if (!url.startsWith("/") || /^(CONNECT|TRACE|TRACK)$/i.test(method)) return null;
  const hasBody = method !== "GET" && method !== "HEAD";
  // The host is a header like any other: what is asked for never hangs on it.
  const request = new Request(`http://api.invalid${url}`, {
    method,
    body: hasBody ? Readable.toWeb(message) as ReadableStream<Uint8Array> : null,
  });
  for (let i = 0; i < message.rawHeaders.length; i += 2) {
    request.headers.append(message.rawHeaders[i], message.rawHeaders[i + 1]);
  }
  return request;
}

/** The client's address in its canonical form, without a zone. */
function addressOf({ remoteAddress = "" }: Socket): string {
  const ip = parseIp(remoteAddress.replace(/%.*$/, ""));
  return ip === null ? remoteAddress : formatIp(unmapIpv4(ip));
}

/** Answers what never became a request: a head that can't be read, or that took too long. */
function refuseUnread(error: NodeJS.ErrnoException, socket: Socket): void {
  if (!socket.writable || error.code === "ECONNRESET") {
    socket.destroy();
    return;
  }
  const status = error.code === "ERR_HTTP_REQUEST_TIMEOUT"
    ? "408 Request Timeout"
    : error.code === "HPE_HEADER_OVERFLOW"
    ? "431 Request Header Fields Too Large"
    : "400 Bad Request";
  const body = JSON.stringify({
    error: { code: "bad_request", message: "request: its head can't be read, or took too long" },
  });
  const headers = {
    ...SECURITY_HEADERS,
    "content-type": "application/json",
    "content-length": String(body.length),
    connection: "close",
  };
  const head = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`).join("");
  socket.end(`HTTP/1.1 ${status}\r\n${head}\r\n${body}`, () => socket.destroy());
}
