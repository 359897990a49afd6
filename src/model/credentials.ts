import * as z from "zod";
import type { PersistentMap } from "./persistent_map.ts";
import { type Envelope, moment, name } from "./resources.ts";

/** What is named and has a secret of its own, beside users: it lets in, or it signs what is sent. */
export const CREDENTIALS = ["tokens", "webhooks"] as const;
export type CredentialKind = typeof CREDENTIALS[number];

/** What the IDs of each begin with. */
export const CREDENTIAL_PREFIX = {
  tokens: "to_",
  webhooks: "wh_",
} as const satisfies Record<CredentialKind, string>;

/** What the audit log calls each. */
export const CREDENTIAL_TYPE = {
  tokens: "token",
  webhooks: "webhook",
} as const satisfies Record<CredentialKind, string>;

/** Most of each: tokens are looked through in memory, and each webhook has a queue. */
export const CREDENTIALS_MAX = {
  tokens: 256,
  webhooks: 32,
} as const satisfies Record<CredentialKind, number>;

/** Largest of either as JSON, with what is secret of it. */
export const CREDENTIAL_BYTES_MAX = 8 * 1024;
/** Longest address that a webhook is sent to. */
export const WEBHOOK_URL_LENGTH_MAX = 2_048;
/** Characters of a key that signs. */
export const WEBHOOK_KEY_LENGTH = { min: 16, max: 256 } as const;

/** What a webhook may be sent for. */
export const WEBHOOK_EVENTS = [
  "client_seen",
  "problem_began",
  "problem_ended",
  "list_failed",
  "sign_in_locked",
  "member_lost",
  "member_back",
] as const;
export type WebhookEvent = typeof WEBHOOK_EVENTS[number];

export const CREDENTIAL_SPECS = {
  /** Who sends it has a role, until then. */
  tokens: z.strictObject({
    name: name(
      "what the audit log calls whoever sends it; no two tokens have names that read alike",
    ),
    role: z.enum(["admin", "viewer"]).describe("admin: everything; viewer: reads"),
    expires_at: moment.default(null).describe("when it ends to be valid; null: it does not"),
  }),
  /** Where events are sent. Of the address the origin is no secret: paths often are. */
  webhooks: z.strictObject({
    name: name("what people call it; no two webhooks have names that read alike"),
    origin: z.string().max(WEBHOOK_URL_LENGTH_MAX).describe("scheme, host and port of its address"),
    events: z.array(z.enum(WEBHOOK_EVENTS)).min(1).max(WEBHOOK_EVENTS.length)
      .meta({ uniqueItems: true, description: "what it is sent for" }),
    enabled: z.boolean().default(true).describe("false: it is kept, and nothing is sent"),
  }),
} as const satisfies Record<CredentialKind, z.ZodType>;

/** What is never shown, nor told to the audit log. */
export const CREDENTIAL_SECRETS = {
  tokens: z.strictObject({ sha256: z.string().regex(/^[0-9a-f]{64}$/) }),
  webhooks: z.strictObject({
    url: z.string().max(WEBHOOK_URL_LENGTH_MAX),
    key: z.string().min(WEBHOOK_KEY_LENGTH.min).max(WEBHOOK_KEY_LENGTH.max),
  }),
} as const satisfies Record<CredentialKind, z.ZodType>;

export type CredentialSpec<K extends CredentialKind> = z.infer<typeof CREDENTIAL_SPECS[K]>;
export type CredentialSecret<K extends CredentialKind> = z.infer<typeof CREDENTIAL_SECRETS[K]>;

/** One as it is stored. What is secret never leaves the store but for its use. */
export interface Credential<K extends CredentialKind> extends Envelope<CredentialSpec<K>> {
  readonly secret: CredentialSecret<K>;
}

/** One of a backup. */
export interface RestoredCredential<K extends CredentialKind> extends Envelope<CredentialSpec<K>> {
  /** `null`: the backup was made or is read without. */
  readonly secret: CredentialSecret<K> | null;
}

/** The maps of a state, one a kind. */
export type Credentials = {
  readonly [K in CredentialKind]: PersistentMap<Credential<K>>;
};

function credential<S extends z.ZodType, T extends z.ZodType>(spec: S, secret: T) {
  return z.strictObject({
    id: z.string().min(1),
    revision: z.int().min(1),
    created_at: z.iso.datetime(),
    updated_at: z.iso.datetime(),
    spec,
    secret,
  });
}

/** What a stored one looks like: held against each before it is stored and after it is read. */
export const CREDENTIAL_SCHEMAS: { readonly [K in CredentialKind]: z.ZodType<Credential<K>> } = {
  tokens: credential(CREDENTIAL_SPECS.tokens, CREDENTIAL_SECRETS.tokens),
  webhooks: credential(CREDENTIAL_SPECS.webhooks, CREDENTIAL_SECRETS.webhooks),
};

/** Says whether one of a kind may have this ID. */
export function isCredentialId(kind: CredentialKind, id: string): boolean {
  const prefix = CREDENTIAL_PREFIX[kind];
  return id.startsWith(prefix) && /^[0-9a-f]{16}$/.test(id.slice(prefix.length));
}
