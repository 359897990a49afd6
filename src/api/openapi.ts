import { z } from "zod";
import type { ErrorCode } from "../errors.ts";
import type { Endpoint } from "./endpoint.ts";
import { STATUS } from "./errors.ts";
import { answerSchemas, ErrorAnswer, requestSchemas } from "./schemas/common.ts";

/** Of the interface, not of the program: it grows with what the API can do. */
const API_VERSION = "1.0.0";
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
  users: "Who may sign in",
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
  conflict: "refers to something missing, or is still referred to",
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
      schemas[id] = bare(schema as JsonObject);
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

function json(schema: JsonObject): JsonObject {
  return { "application/json": { schema } };
}

function parametersOf({ path, query, takesIfMatch }: Endpoint): JsonObject[] {
  const parameters: JsonObject[] = [];
  for (const [, name] of path.matchAll(/\{(\w+)\}/g)) {
    parameters.push({ name, in: "path", required: true, schema: { type: "string" } });
  }
  if (query !== null) {
    // As they come out: numbers, though a query string spells them.
    const { properties } = schemaOf(query, "output") as {
      properties: Record<string, JsonObject>;
    };
    const required = (schemaOf(query, "input").required ?? []) as string[];
    for (const [name, { description, ...schema }] of Object.entries(properties)) {
      parameters.push({
        name,
        in: "query",
        required: required.includes(name),
        ...(description !== undefined && { description }),
        schema,
      });
    }
  }
  if (takesIfMatch) {
    parameters.push({
      name: "If-Match",
      in: "header",
      required: false,
      description: "a revision, quoted or bare, or *",
      schema: { type: "string" },
    });
  }
  return parameters;
}

/** Every error an endpoint may answer with, its own and those of what it takes. */
function errorsOf(endpoint: Endpoint): ErrorCode[] {
  const { need, body, query, takesIfMatch, errors } = endpoint;
  const codes = new Set<ErrorCode>(["forbidden", "internal", ...errors]);
  if (need !== "nothing") codes.add("unauthorized");
  if (body !== null || query !== null || takesIfMatch) codes.add("bad_request");
  if (body !== null) codes.add("invalid");
  if (takesIfMatch) codes.add("revision_mismatch");
  return [...codes];
}

function responsesOf(endpoint: Endpoint): JsonObject {
  const text = { schema: { type: "string" } };
  const header = (description: string) => ({ description, ...text });
  const headers = {
    ...(endpoint.hasEtag && { ETag: header("the revision") }),
    ...(endpoint.status === 201 && { Location: header("the path of what was made") }),
    ...(endpoint.hasCookie && { "Set-Cookie": header("the session's cookie") }),
  };
  const { content } = endpoint;
  const responses: JsonObject = {
    [endpoint.status]: {
      description: endpoint.summary,
      ...(Object.keys(headers).length > 0 && { headers }),
      ...(content.kind === "json" && { content: json(schemaOf(content.schema, "output")) }),
      ...(content.kind === "text" && { content: { [content.type]: text } }),
      ...(content.kind === "stream" && {
        content: Object.fromEntries(content.types.map((type) => [type, text])),
      }),
    },
  };
  const refusals = new Map<number, string[]>();
  const add = (status: number, when: string) => {
    refusals.set(status, [...refusals.get(status) ?? [], when]);
  };
  for (const code of errorsOf(endpoint)) add(STATUS[code], `${code}: ${WHEN[code]}`);
  if (endpoint.body !== null) {
    add(413, "bad_request: the body is larger than 1 MiB");
    add(415, "bad_request: the body is not application/json");
  }
  for (const [status, whens] of refusals) {
    responses[status] = {
      description: whens.join("; "),
      content: json(schemaOf(ErrorAnswer, "output")),
    };
  }
  return responses;
}

/** A name for clients that are made from the document: `putGroup`, `postAuthLogin`. */
function operationId({ method, path }: Endpoint): string {
  const words = path.replace(/^\/api\/v1/, "").split(/[^A-Za-z0-9]+/).filter((word) => word !== "");
  const titled = words.map((word) => word[0].toUpperCase() + word.slice(1));
  return method.toLowerCase() + titled.join("");
}

function operationOf(endpoint: Endpoint): JsonObject {
  const { tag, summary, need, body } = endpoint;
  const parameters = parametersOf(endpoint);
  return {
    operationId: operationId(endpoint),
    tags: [tag],
    summary,
    ...(parameters.length > 0 && { parameters }),
    ...(body !== null && {
      requestBody: { required: !body.isOptional, content: json(schemaOf(body.schema, "input")) },
    }),
    responses: responsesOf(endpoint),
    security: need === "nothing" ? [] : [{ token: [] }, { session: [] }],
  };
}

/** The document of a table of endpoints. */
export function documentOf(endpoints: readonly Endpoint[]): OpenApiDocument {
  const paths: Record<string, JsonObject> = {};
  for (const endpoint of endpoints) {
    (paths[endpoint.path] ??= {})[endpoint.method.toLowerCase()] = operationOf(endpoint);
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
