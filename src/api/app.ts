import { type Context, Hono } from "hono";
import type { ContentfulStatusCode, StatusCode } from "hono/utils/http-status";
import { isLoopback, parseIp } from "../addr/mod.ts";
import { type AccessRequest, authenticate } from "../auth/mod.ts";
import { invariant, SvcError } from "../errors.ts";
import { decodeWith } from "./decode.ts";
import { DOCS_PAGE, DOCS_POLICY } from "./docs_page.ts";
import type { Answer, Endpoint } from "./endpoint.ts";
import { ENDPOINTS } from "./endpoints.ts";
import { errorResponse } from "./errors.ts";
import { formatEtag, parseIfMatch, revisionAsked } from "./etag.ts";
import {
  GZIP_BYTES_MIN,
  gzipped,
  jsonBytes,
  PIECE_BYTES,
  SharedBodies,
  streamOfBytes,
  takesGzip,
} from "./json_bodies.ts";
import { parsePassphrase, PASSPHRASE_HEADER } from "./passphrase.ts";
import { OpenStreams } from "./open_streams.ts";
import type { ApiDeps } from "./ports.ts";
import { currentRevision } from "./revisions.ts";
import { hasBody, readJsonBody } from "./request_body.ts";
import { serveUi } from "./ui_files.ts";

/** Longest time from the end of a request's head to its answer. */
const REQUEST_MS_MAX = 30_000;
const DOCS_PATH = "/api/docs";

type Env = { Bindings: { readonly remoteAddress: string } };
type ApiContext = Context<Env>;

/**
 * Answers one request of the client at this address: an IP address, never an IPv4-mapped one. Who
 * sends the response adds what each has in common (`SECURITY_HEADERS`).
 */
export type ApiHandler = (request: Request, remoteAddress: string) => Promise<Response>;

export interface ApiOptions {
  /** Sees every answer of an endpoint before it is sent. */
  readonly onAnswer?: (endpoint: Endpoint, answer: Answer) => void;
  readonly requestMsMax?: number;
}

/** What each request is served with. */
interface Parts {
  readonly deps: ApiDeps;
  readonly options: ApiOptions;
  readonly streams: OpenStreams;
  readonly shared: SharedBodies;
}

/**
 * The API: from a request to a response, in this order, so that each refusal tells no more than it
 * must: browser protections, route, who it is, role, query and `If-Match`, content type, size, JSON,
 * schema, handler.
 */
export function createApi(deps: ApiDeps, options: ApiOptions = {}): ApiHandler {
  const app = new Hono<Env>();
  app.onError(onError);
  const parts: Parts = {
    deps,
    options,
    streams: new OpenStreams(deps),
    shared: new SharedBodies(),
  };
  const requestMsMax = options.requestMsMax ?? REQUEST_MS_MAX;
  app.use((_, next) => withinTime(next(), requestMsMax));
  for (const [path, endpoints] of Map.groupBy(ENDPOINTS, ({ path }) => path)) {
    const route = path.replace(/\{\w+\}/, ":param");
    for (const endpoint of endpoints) {
      app.on(endpoint.method, route, (c) => serve(parts, endpoint, c));
    }
    const methods = endpoints.map(({ method }) => method);
    app.all(route, (c) => refuseMethod(deps, methods, c));
  }
  if (deps.docs) {
    app.get(DOCS_PATH, (c) => serveDocs(deps, c));
    app.all(DOCS_PATH, (c) => refuseMethod(deps, ["GET"], c));
  }
  app.notFound(async (c) => {
    const proof = c.req.method === "GET" ? deps.proofAt(c.req.path) : null;
    if (proof !== null) return c.text(proof);
    const page = deps.ui === null ? null : serveUi(deps.ui, c.req.raw);
    if (page !== null) return page;
    await checkBrowser(deps, c);
    throw new SvcError("not_found", `${c.req.path}: there is no such endpoint`);
  });
  return async (request, remoteAddress) => await app.fetch(request, { remoteAddress });
}

/** The one place where an error becomes a response. */
function onError(error: unknown, c: ApiContext): Response {
  const { status, body, headers } = errorResponse(error, c.req.path);
  return c.json(body, status as ContentfulStatusCode, { ...headers });
}

/** @throws {SvcError} `unavailable`, when time is up; what goes on behind that is not waited for. */
async function withinTime(work: Promise<void>, msMax: number): Promise<void> {
  const { promise, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => {
    reject(new SvcError("unavailable", `request: it took longer than ${msMax / 1_000} seconds`));
  }, msMax);
  try {
    await Promise.race([work, promise]);
  } finally {
    clearTimeout(timer);
  }
}

function accessRequest(c: ApiContext): AccessRequest {
  const header = (name: string) => c.req.header(name) ?? null;
  return {
    authorization: header("authorization"),
    cookie: header("cookie"),
    host: header("host"),
    origin: header("origin"),
    remoteAddress: c.env.remoteAddress,
  };
}

/** @throws {SvcError} `forbidden`, for a host or an origin that is not ours. */
async function checkBrowser(deps: ApiDeps, c: ApiContext): Promise<void> {
  await authenticate(deps.auth, deps.access, accessRequest(c), "nothing");
}

async function refuseMethod(
  deps: ApiDeps,
  methods: readonly string[],
  c: ApiContext,
): Promise<Response> {
  await checkBrowser(deps, c);
  const allowed = methods.flatMap((method) => method === "GET" ? ["GET", "HEAD"] : [method]);
  return c.body(null, 405, { Allow: allowed.join(", ") });
}

async function serve(parts: Parts, endpoint: Endpoint, c: ApiContext): Promise<Response> {
  const { deps, options: { onAnswer }, streams } = parts;
  const from = accessRequest(c);
  const caller = await authenticate(deps.auth, deps.access, from, endpoint.need);
  deps.tokenUses.used(caller);
  const { isSecure } = deps.access;
  const asked = queryOf(c.req.url);
  if (endpoint.query === null) refuseParameters(asked);
  const query = endpoint.query === null
    ? undefined
    : decodeWith(endpoint.query, asked, "query", "bad_request");
  const param = c.req.param("param") ?? "";
  const ifMatch = endpoint.takesIfMatch
    ? revisionAsked(
      parseIfMatch(c.req.header("if-match") ?? null),
      () => currentRevision(deps.replicator.state, endpoint.path, param),
    )
    : null;
  const body = endpoint.body === null ? undefined : await bodyOf(endpoint.body, c.req.raw);
  const answer = await endpoint.handle({
    caller,
    address: from.remoteAddress,
    isSecure,
    param,
    query,
    body,
    lastEventId: endpoint.takesLastEventId ? c.req.header("last-event-id") ?? null : null,
    passphrase: endpoint.takesPassphrase
      ? parsePassphrase(c.req.header(PASSPHRASE_HEADER) ?? null)
      : null,
    ifMatch,
    deps,
  });
  onAnswer?.(endpoint, answer);
  // Before the answer to what ended somebody's access: whoever reads it finds their streams ended.
  if (endpoint.method !== "GET") await streams.check();
  return await responseOf(parts, endpoint, answer, c);
}

/** @throws {SvcError} `bad_request`, with the first of the parameters of what takes none. */
function refuseParameters(query: Readonly<Record<string, string>>): void {
  for (const name of Object.keys(query)) {
    throw new SvcError("bad_request", `${name}: no such parameter`);
  }
}

/** @throws {SvcError} `bad_request`, where a parameter is given twice. */
function queryOf(url: string): Record<string, string> {
  const query = new Map<string, string>();
  for (const [name, value] of new URL(url).searchParams) {
    if (query.has(name)) throw new SvcError("bad_request", `${name}: it is given twice`);
    query.set(name, value);
  }
  return Object.fromEntries(query);
}

async function bodyOf(
  { schema, isOptional, decode }: NonNullable<Endpoint["body"]>,
  request: Request,
): Promise<unknown> {
  const json = isOptional && !hasBody(request.headers) ? {} : await readJsonBody(request);
  return decode === null ? decodeWith(schema, json, "body", "invalid") : decode(json);
}

async function responseOf(
  { streams, shared }: Parts,
  endpoint: Endpoint,
  answer: Answer,
  c: ApiContext,
): Promise<Response> {
  if (answer.revision !== undefined) c.header("ETag", formatEtag(answer.revision));
  if (answer.location !== undefined) c.header("Location", answer.location);
  if (answer.cookie !== undefined) c.header("Set-Cookie", answer.cookie);
  const { content, status } = endpoint;
  switch (content.kind) {
    case "none":
      return c.body(null, status as StatusCode);
    case "text":
      return c.body(String(answer.body), status as ContentfulStatusCode, {
        "Content-Type": content.type,
      });
    case "json": {
      const { madeOf } = answer;
      const make = () => jsonBytes(answer.body ?? null);
      let bytes = madeOf === undefined ? make() : shared.of(madeOf, make);
      c.header("Content-Type", "application/json");
      // Where there is an ETag, a strong one, the bytes are always the same.
      if (!endpoint.hasSecrets && !endpoint.hasEtag && bytes.length >= GZIP_BYTES_MIN) {
        c.header("Vary", "Accept-Encoding");
        if (takesGzip(c.req.header("accept-encoding") ?? null)) {
          c.header("Content-Encoding", "gzip");
          bytes = await (madeOf === undefined ? gzipped(bytes) : shared.gzippedOf(madeOf, make));
        }
      }
      if (bytes.length <= PIECE_BYTES) return c.body(bytes, status as ContentfulStatusCode);
      c.header("Content-Length", String(bytes.length));
      return c.body(streamOfBytes(bytes), status as ContentfulStatusCode);
    }
    case "stream":
      return streamOf(streams, answer, c);
  }
}

/** A response whose body comes piece by piece: the server sends each as soon as it is there. */
function streamOf(streams: OpenStreams, { stream }: Answer, c: ApiContext): Response {
  invariant(stream !== undefined, "an endpoint that streams answers with a stream");
  const { type, filename, body } = stream;
  const headers = {
    "Content-Type": type,
    "Transfer-Encoding": "chunked",
    ...(filename !== undefined && {
      "Content-Disposition": `attachment; filename="${filename}"`,
    }),
  };
  if (c.req.raw.method !== "HEAD") {
    // A file that breaks off must not look like a whole one; a stream of events has no end to miss.
    const isFile = filename !== undefined;
    return c.body(streams.guard(body, accessRequest(c), isFile), 200, headers);
  }
  void body.cancel(); // Nobody will read it.
  return c.body(null, 200, headers);
}

/** The page holds nothing of this node; what it shows it asks for as any client does. */
async function serveDocs(deps: ApiDeps, c: ApiContext): Promise<Response> {
  await checkBrowser(deps, c);
  refuseParameters(queryOf(c.req.url));
  const ip = parseIp(c.env.remoteAddress);
  if (ip === null || !isLoopback(ip)) {
    throw new SvcError("forbidden", `${DOCS_PATH}: it is for clients on this machine`);
  }
  return c.html(DOCS_PAGE, 200, { "Content-Security-Policy": DOCS_POLICY });
}
