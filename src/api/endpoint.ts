import type { z } from "zod";
import type { Identity, Need } from "../auth/mod.ts";
import type { ErrorCode } from "../errors.ts";
import type { ApiDeps } from "./ports.ts";
import type { Shown } from "./schemas/common.ts";

export type Method = "GET" | "POST" | "PUT" | "DELETE";

/** A request that may be carried out: checked, decoded, and from somebody. */
export interface Call<B = unknown, Q = unknown> {
  readonly caller: Identity;
  /** The client's address, as text. */
  readonly address: string;
  /** The API speaks TLS to this client. */
  readonly isSecure: boolean;
  /** The `{id}` or `{node}` of the path. */
  readonly param: string;
  readonly query: Q;
  readonly body: B;
  /** The ID of the last event that a stream's reader has, where it comes again. */
  readonly lastEventId: string | null;
  /** What opens, or is to seal, the secrets of a backup. */
  readonly passphrase: string | null;
  /** The revision of `If-Match`; `null` where there is none, or any will do. */
  readonly ifMatch: number | null;
  readonly deps: ApiDeps;
}

export interface Answer<T = unknown> {
  /** Left out where the endpoint answers nothing. */
  readonly body?: Shown<T>;
  /**
   * What `body` says and nothing else: as long as this is the same object, so is the answer, and all
   * who ask for it share one copy of its bytes.
   */
  readonly madeOf?: object;
  /** Sent as `ETag`. */
  readonly revision?: number;
  readonly location?: string;
  readonly cookie?: string;
  /** In place of a body, where the endpoint streams. */
  readonly stream?: Streamed;
}

/** A body that is sent piece by piece, as fast as the client takes it. */
export interface Streamed {
  readonly type: string;
  readonly body: ReadableStream<Uint8Array<ArrayBuffer>>;
  /** What a browser saves it as; left out: it shows it. */
  readonly filename?: string;
}

/** What stands in a response's body. */
export type Content =
  | { readonly kind: "json"; readonly schema: z.ZodType }
  | { readonly kind: "text"; readonly type: string }
  /** In one of these types. */
  | {
    readonly kind: "stream";
    readonly types: readonly string[];
    /** The data of each kind of event; `null` where there is one kind, an entry of the log. */
    readonly events: Readonly<Record<string, z.ZodType>> | null;
  }
  | { readonly kind: "none" };

/** A row of the table that routes, checks and documents the API. */
export interface Endpoint {
  readonly method: Method;
  /** With at most one `{parameter}`. */
  readonly path: string;
  /** What clients that are made from the document call it: verb first. */
  readonly operationId: string;
  readonly tag: string;
  readonly summary: string;
  readonly need: Need;
  readonly query: z.ZodType | null;
  readonly body: {
    readonly schema: z.ZodType;
    /** No body at all stands for an empty object. */
    readonly isOptional: boolean;
    /** Throws `SvcError` `invalid` with the path of the bad field. */
    readonly decode: ((json: unknown) => unknown) | null;
  } | null;
  readonly takesIfMatch: boolean;
  readonly status: 200 | 201 | 204;
  readonly content: Content;
  readonly hasEtag: boolean;
  readonly hasCookie: boolean;
  /** It goes on behind the event that `Last-Event-ID` names. */
  readonly takesLastEventId: boolean;
  /** `Svc-Passphrase` may come with it. */
  readonly takesPassphrase: boolean;
  /** What it answers is never compressed: its length would tell of secrets in it (BREACH). */
  readonly hasSecrets: boolean;
  /** What it may be refused with beyond what its access, body and query bring. */
  readonly errors: readonly ErrorCode[];
  readonly handle: (call: Call) => Promise<Answer> | Answer;
}

interface Definition<B extends z.ZodType, Q extends z.ZodType, A extends z.ZodType> {
  readonly operationId: string;
  readonly tag: string;
  readonly summary: string;
  readonly need: Need;
  readonly query?: Q;
  readonly body?: B;
  readonly isBodyOptional?: boolean;
  readonly decode?: (json: unknown) => z.output<B>;
  readonly takesIfMatch?: boolean;
  readonly status?: 200 | 201;
  /** Left out: the answer is 204, or `text`, or `streams`. */
  readonly answer?: A;
  readonly text?: string;
  /** The types that it streams. */
  readonly streams?: readonly string[];
  readonly events?: Readonly<Record<string, z.ZodType>>;
  readonly hasEtag?: boolean;
  readonly hasCookie?: boolean;
  readonly hasSecrets?: boolean;
  readonly takesLastEventId?: boolean;
  readonly takesPassphrase?: boolean;
  readonly errors?: readonly ErrorCode[];
  readonly handle: (
    call: Call<z.output<B>, z.output<Q>>,
  ) => Promise<Answer<z.output<A>>> | Answer<z.output<A>>;
}

/** Makes a row: `endpoint("GET /api/v1/health", …)`. */
export function endpoint<
  B extends z.ZodType = z.ZodType<undefined>,
  Q extends z.ZodType = z.ZodType<undefined>,
  A extends z.ZodType = z.ZodType<never>,
>(line: `${Method} /${string}`, definition: Definition<B, Q, A>): Endpoint {
  const [method, path] = line.split(" ", 2) as [Method, string];
  const { answer, text, streams, body } = definition;
  const content: Content = answer !== undefined
    ? { kind: "json", schema: answer }
    : text !== undefined
    ? { kind: "text", type: text }
    : streams !== undefined
    ? { kind: "stream", types: streams, events: definition.events ?? null }
    : { kind: "none" };
  return {
    method,
    path,
    operationId: definition.operationId,
    tag: definition.tag,
    summary: definition.summary,
    need: definition.need,
    query: definition.query ?? null,
    body: body === undefined ? null : {
      schema: body,
      isOptional: definition.isBodyOptional ?? false,
      decode: definition.decode ?? null,
    },
    takesIfMatch: definition.takesIfMatch ?? false,
    status: definition.status ?? (content.kind === "none" ? 204 : 200),
    content,
    hasEtag: definition.hasEtag ?? false,
    hasCookie: definition.hasCookie ?? false,
    takesLastEventId: definition.takesLastEventId ?? false,
    takesPassphrase: definition.takesPassphrase ?? false,
    hasSecrets: definition.hasSecrets ?? false,
    errors: definition.errors ?? [],
    // What it is called with has been decoded by its own schemas.
    handle: definition.handle as Endpoint["handle"],
  };
}
