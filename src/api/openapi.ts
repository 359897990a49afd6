import * as z from "zod";
import type { ErrorCode } from "../errors.ts";
import { CREDENTIAL_PREFIX, ID_PREFIX, USER_ID_PREFIX } from "../model/mod.ts";
import type { Endpoint } from "./endpoint.ts";
import { STATUS } from "./errors.ts";
import { bodyBytesMax } from "./request_body.ts";
import { EVENT_STREAM } from "./event_stream.ts";
import { PASSPHRASE_HEADER } from "./passphrase.ts";
import { CSV, JSON_FILE, NDJSON } from "./log_streams.ts";
import {
  answerSchemas,
  ErrorAnswer,
  EXAMPLE_DIGITS,
  exampleOf,
  requestSchemas,
} from "./schemas/common.ts";
import { QuerylogEntry } from "./schemas/logs.ts";
import { PROFILE_TYPE } from "./schemas/profiles.ts";
import { METRICS_TYPE } from "./schemas/node.ts";
import { Statistics } from "./schemas/statistics.ts";

/** Of the interface, not of the program: it grows with what the API can do. */
const API_VERSION = "1.4.0";
const SCHEMAS = "#/components/schemas/";

type JsonObject = Record<string, unknown>;

/** An OpenAPI 3.1 document, as JSON. */
export interface OpenApiDocument {
  readonly openapi: "3.1.0";
  readonly info: JsonObject;
  readonly servers: readonly JsonObject[];
  readonly tags: readonly JsonObject[];
  readonly paths: Readonly<Record<string, JsonObject>>;
  readonly components: JsonObject;
}

const DESCRIPTION = `The management API of svc, a filtering DNS resolver.

Changes hold for the next query once they are answered. A resource carries its revision as ETag; send
it back as If-Match, and the change is refused with 412 if somebody else came first. A wrong method is
answered 405 without a body. New fields may appear in answers; unknown ones in requests are refused.`;

const TAGS: Readonly<Record<string, string>> = {
  node: "This node: health, status, pause, cache, explanations",
  schedules: "When something applies",
  lists: "Lists of rules, and what can be chosen from",
  rules: "Custom rules, for every filtered group",
  records: "Answers of your own",
  groups: "What a set of clients gets",
  clients: "Who asks, by address, network or client ID",
  settings: "What holds for every client",
  backup: "The whole configuration as one file, and that of another product",
  users: "Who may sign in",
  tokens: "What programs show instead of signing in",
  webhooks: "Who is told elsewhere of what happens",
  auth: "Signing in, and one's own account",
  logs: "Query log, statistics, audit log, leak tests",
  cluster: "The members that share one configuration",
};

/** When an error is what a request is answered; the same words for every endpoint. */
const WHEN: Readonly<Record<ErrorCode, string>> = {
  bad_request: "malformed request",
  unauthorized: "no session and no valid token, or wrong credentials",
  otp_required: "the second factor's code is needed",
  forbidden: "not for this role, a disabled account, or a foreign host or origin",
  not_found: "no such resource",
  conflict: "refers to something missing, is still referred to, or clashes with what is there",
  revision_mismatch: "changed since the revision of If-Match",
  invalid: "invalid value or unknown field",
  too_many_requests: "too many failed attempts: wait as long as Retry-After says",
  internal: "the service failed",
  unavailable: "a dependency is unavailable: try again",
};

/** What transforms and strips is described as what goes in: the same shape comes out. */
function simplify(context: { zodSchema: z.core.$ZodTypes; jsonSchema: JsonObject }): void {
  const { def } = context.zodSchema._zod;
  if (def.type === "pipe" && def.out._zod.def.type === "transform") {
    Object.assign(context.jsonSchema, bare(z.toJSONSchema(def.in, { io: "input" })));
  }
  // The default is lost in requests where what is inside of it is transformed.
  if (def.type === "default") context.jsonSchema.default = def.defaultValue;
  // The format says it in one word; the pattern that goes with it takes four lines.
  if (context.jsonSchema.format === "date-time") delete context.jsonSchema.pattern;
  // An answer may get new fields; only what refuses unknown ones in requests says so.
  if (def.type === "object" && def.catchall === undefined) {
    delete context.jsonSchema.additionalProperties;
  }
}

/** Without what only a document of its own has. */
function bare(
  { $schema: _, $id: __, id: ___, "~standard": ____, ...rest }: JsonObject,
): JsonObject {
  return rest;
}

const CONVERSION = {
  unrepresentable: "any",
  override: simplify,
  uri: (id: string) => SCHEMAS + id,
} as const;

function componentSchemas(): JsonObject {
  const schemas: JsonObject = {};
  const add = (registry: typeof requestSchemas, io: "input" | "output") => {
    for (
      const [id, schema] of Object.entries(z.toJSONSchema(registry, { ...CONVERSION, io }).schemas)
    ) {
      schemas[id] = { title: id, ...bare(schema as JsonObject) };
    }
  };
  add(requestSchemas, "input");
  add(answerSchemas, "output");
  return schemas;
}

/** A reference where the schema has a name, itself where it has none. */
function schemaOf(schema: z.ZodType, io: "input" | "output"): JsonObject {
  const registry = io === "input" ? requestSchemas : answerSchemas;
  const id = registry.get(schema)?.id;
  if (id !== undefined) return { $ref: SCHEMAS + id };
  return bare(z.toJSONSchema(schema, { unrepresentable: "any", override: simplify, io }));
}

/** JSON of a schema, with an example of it where the schema has a name. */
function json(schema: z.ZodType, io: "input" | "output"): JsonObject {
  const named = (io === "input" ? requestSchemas : answerSchemas).get(schema);
  const example = named === undefined ? {} : { example: named.example };
  return { "application/json": { schema: schemaOf(schema, io), ...example } };
}

/** What each parameter of a path is, by the collection that it follows or its own name. */
const PATH_PARAMETERS: Readonly<Record<string, { description: string; example: string }>> = {
  sessions: { description: "the session's ID", example: `se_${EXAMPLE_DIGITS}` },
  node: { description: "the member's name", example: "node2" },
  profiles: { description: "its token", example: "000102030405060708090a0b0c0d0e0f" },
  users: { description: "the user's ID", example: USER_ID_PREFIX + EXAMPLE_DIGITS },
  tokens: { description: "the token's ID", example: CREDENTIAL_PREFIX.tokens + EXAMPLE_DIGITS },
  webhooks: {
    description: "the webhook's ID",
    example: CREDENTIAL_PREFIX.webhooks + EXAMPLE_DIGITS,
  },
  "leak-tests": { description: "the test's ID", example: `lt_${EXAMPLE_DIGITS}` },
  directory: { description: "the ID that the directory gives it", example: "17" },
  ...Object.fromEntries(
    Object.entries(ID_PREFIX).map(([collection, prefix]) => [
      collection,
      { description: "the resource's ID", example: prefix + EXAMPLE_DIGITS },
    ]),
  ),
};

function pathParameters(path: string): JsonObject[] {
  return Array.from(path.matchAll(/([\w-]+)\/\{(\w+)\}/g), ([, before, name]) => ({
    name,
    in: "path",
    required: true,
    ...(PATH_PARAMETERS[before] ?? PATH_PARAMETERS[name]),
    schema: { type: "string" },
  }));
}

function queryParameters(query: z.ZodType): JsonObject[] {
  // As they come out: numbers, though a query string spells them.
  const { properties } = schemaOf(query, "output") as {
    properties: Record<string, JsonObject>;
  };
  const required = (schemaOf(query, "input").required ?? []) as string[];
  return Object.entries(properties).map(([name, { description, example, ...schema }]) => ({
    name,
    in: "query",
    required: required.includes(name),
    description,
    ...(example !== undefined && { example }),
    schema,
  }));
}

function parametersOf(endpoint: Endpoint): JsonObject[] {
  const { path, query, takesIfMatch, takesLastEventId, takesPassphrase } = endpoint;
  const parameters = pathParameters(path);
  if (query !== null) parameters.push(...queryParameters(query));
  if (takesLastEventId) {
    parameters.push({
      name: "Last-Event-ID",
      in: "header",
      required: false,
      description: "the ID of the last event that was read: those behind it come first",
      example: "1ex0r5jkhs",
      schema: { type: "string" },
    });
  }
  if (takesPassphrase) {
    parameters.push({
      name: PASSPHRASE_HEADER,
      in: "header",
      required: false,
      description: "what the backup's secrets are sealed with, percent-encoded",
      example: "correct%20horse%20battery%20staple",
      schema: { type: "string" },
    });
  }
  if (takesIfMatch) {
    parameters.push({
      name: "If-Match",
      in: "header",
      required: false,
      description: "a revision, quoted or bare, or *",
      example: '"3"',
      schema: { type: "string" },
    });
  }
  return parameters;
}

/** Every error an endpoint may answer with, its own and those of what it takes. */
function errorsOf(endpoint: Endpoint): ErrorCode[] {
  const { need, body, query, takesIfMatch, takesPassphrase, errors } = endpoint;
  const codes = new Set<ErrorCode>(["forbidden", "internal", ...errors]);
  if (need !== "nothing") codes.add("unauthorized");
  if (body !== null || query !== null || takesIfMatch || takesPassphrase) codes.add("bad_request");
  if (body !== null) codes.add("invalid");
  if (takesIfMatch) codes.add("revision_mismatch");
  return [...codes];
}

const TEXT = { type: "string" };

function header(description: string, schema: JsonObject = TEXT): JsonObject {
  return { description, schema };
}

const RETRY_AFTER = header("seconds to wait", { type: "integer", minimum: 0 });

/** What a text of each type looks like. */
const TEXT_EXAMPLES: Readonly<Record<string, string>> = {
  [METRICS_TYPE]: 'svc_queries_total{outcome="blocked",protocol="udp"} 1204\n',
  [CSV]: "time,client,name\r\n2026-01-02T03:04:05.678Z,192.168.1.20,ads.example\r\n",
  [NDJSON]: `${JSON.stringify(exampleOf(QuerylogEntry))}\n`,
  [PROFILE_TYPE]: '<?xml version="1.0" encoding="UTF-8"?>\n<plist version="1.0">…</plist>\n',
  [EVENT_STREAM]: `data: ${JSON.stringify(exampleOf(QuerylogEntry))}\n\n`,
};

function contentOf({ content }: Endpoint): JsonObject | undefined {
  const textOf = (type: string): JsonObject => ({
    [type]: { schema: TEXT, example: TEXT_EXAMPLES[type] },
  });
  const texts = (types: readonly string[]) =>
    Object.assign(
      {},
      ...types.map((type) => type === JSON_FILE ? json(Statistics, "output") : textOf(type)),
    );
  switch (content.kind) {
    case "none":
      return undefined;
    case "json":
      return json(content.schema, "output");
    case "text":
      return texts([content.type]);
    case "stream":
      return content.events === null ? texts(content.types) : eventsOf(content.events);
  }
}

/** A stream of several kinds of events, whose data is JSON. */
function eventsOf(events: Readonly<Record<string, z.ZodType>>): JsonObject {
  const kinds = Object.entries(events);
  const data = { anyOf: kinds.map(([, schema]) => schemaOf(schema, "output")) };
  const example = kinds.map(([kind, schema]) =>
    `event: ${kind}\ndata: ${JSON.stringify(exampleOf(schema))}\n\n`
  );
  const schema = { ...TEXT, contentMediaType: "application/json", contentSchema: data };
  return { [EVENT_STREAM]: { schema, example: example.join("") } };
}

/** Why the server itself may refuse any request, whatever it asks for. */
const SERVER_REFUSALS: readonly (readonly [number, string])[] = [
  [408, "bad_request: the request took too long to come in"],
  [431, "bad_request: the head of the request is larger than 16 KiB"],
];
/** Why it may refuse the body of one. */
function bodyRefusals({ path, body }: Endpoint): readonly (readonly [number, string])[] {
  if (body === null) return [];
  return [
    [413, `bad_request: the body is larger than ${bodyBytesMax(path) >> 20} MiB`],
    [415, "bad_request: the body is not application/json"],
  ];
}

function refusalsOf(endpoint: Endpoint): JsonObject {
  const refusals = new Map<number, string[]>();
  const add = (status: number, when: string) => {
    refusals.set(status, [...refusals.get(status) ?? [], when]);
  };
  for (const code of errorsOf(endpoint)) add(STATUS[code], `${code}: ${WHEN[code]}`);
  for (const [status, when] of SERVER_REFUSALS) add(status, when);
  for (const [status, when] of bodyRefusals(endpoint)) add(status, when);
  return Object.fromEntries(Array.from(refusals, ([status, whens]) => {
    const waits = status === STATUS.too_many_requests || status === STATUS.unavailable;
    const code = whens[0].slice(0, whens[0].indexOf(":"));
    const example = status === STATUS.invalid
      ? exampleOf(ErrorAnswer)
      : { error: { code, message: whens[0].slice(code.length + 2) } };
    return [status, {
      description: whens.join("; "),
      ...(waits && { headers: { "Retry-After": RETRY_AFTER } }),
      content: { "application/json": { schema: schemaOf(ErrorAnswer, "output"), example } },
    }];
  }));
}

/** From what was made to what can be done with it. */
function linksOf(endpoint: Endpoint, all: readonly Endpoint[]): JsonObject {
  if (endpoint.status !== 201) return {};
  const verbs = { GET: "get", PUT: "replace", DELETE: "delete" } as const;
  const links = Object.entries(verbs).flatMap(([method, verb]) => {
    const target = all.find((one) => one.method === method && one.path === `${endpoint.path}/{id}`);
    if (target === undefined) return [];
    const { operationId, summary } = target;
    const parameters = { id: "$response.body#/id" };
    return [[verb, { operationId, parameters, description: summary }] as const];
  });
  return links.length === 0 ? {} : { links: Object.fromEntries(links) };
}

function responsesOf(endpoint: Endpoint, all: readonly Endpoint[]): JsonObject {
  const headers = {
    ...(endpoint.hasEtag && { ETag: header("the revision") }),
    ...(endpoint.status === 201 && { Location: header("the path of what was made") }),
    ...(endpoint.hasCookie && { "Set-Cookie": header("the session's cookie") }),
  };
  const content = contentOf(endpoint);
  return {
    [endpoint.status]: {
      description: endpoint.summary,
      ...(Object.keys(headers).length > 0 && { headers }),
      ...(content !== undefined && { content }),
      ...linksOf(endpoint, all),
    },
    ...refusalsOf(endpoint),
  };
}

function operationOf(endpoint: Endpoint, all: readonly Endpoint[]): JsonObject {
  const { operationId, tag, summary, need, body } = endpoint;
  const parameters = parametersOf(endpoint);
  return {
    operationId,
    tags: [tag],
    summary,
    ...(parameters.length > 0 && { parameters }),
    ...(body !== null && {
      requestBody: { required: !body.isOptional, content: json(body.schema, "input") },
    }),
    responses: responsesOf(endpoint, all),
    security: need === "nothing" ? [] : [{ token: [] }, { session: [] }],
  };
}

/** The document of a table of endpoints. */
export function documentOf(endpoints: readonly Endpoint[]): OpenApiDocument {
  const paths: Record<string, JsonObject> = {};
  for (const endpoint of endpoints) {
    (paths[endpoint.path] ??= {})[endpoint.method.toLowerCase()] = operationOf(endpoint, endpoints);
  }
  return {
    openapi: "3.1.0",
    info: {
      title: "svc",
      version: API_VERSION,
      description: DESCRIPTION,
      license: { name: "MIT", identifier: "MIT" },
    },
    servers: [{ url: "/" }],
    tags: Object.entries(TAGS).map(([name, description]) => ({ name, description })),
    paths,
    components: {
      schemas: componentSchemas(),
      securitySchemes: {
        token: { type: "http", scheme: "bearer", description: "the admin token of svc token" },
        session: { type: "apiKey", in: "cookie", name: "svc_session" },
      },
    },
  };
}
