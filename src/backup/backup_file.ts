import * as z from "zod";
import { SvcError } from "../errors.ts";
import {
  type Change,
  type Credential,
  CREDENTIAL_SPECS,
  type CredentialKind,
  type CredentialSpec,
  type Envelope,
  type LiveState,
  type Role,
  type Settings,
  SettingsSpec,
  SPECS,
  type StoredUser,
} from "../model/mod.ts";
import { Sealed, sealSecrets } from "./sealed.ts";

export const BACKUP_FORMAT = "svc backup";
/** Of the form of the file: grows when a program that reads the one before could not read it. */
export const BACKUP_VERSION = 2;
/** Largest file: 100,000 rules have their place, and a small board reads it. */
export const BACKUP_BYTES_MAX = 32 << 20;

const timestamp = z.iso.datetime().describe("RFC 3339 in UTC with fractional seconds");

function envelope<S extends z.ZodType>(spec: S) {
  return z.strictObject({
    id: z.string().describe("a prefix that tells the collection, and 16 hexadecimal digits"),
    revision: z.int().min(1).describe("as it was when the file was made"),
    created_at: timestamp,
    updated_at: timestamp,
    spec: spec.describe("what can be changed of it"),
  });
}

const UserSpec = z.strictObject({
  name: z.string().describe("what the user signs in by"),
  role: z.enum(["admin", "viewer"]).describe(
    "admin: everything; viewer: reads, and its own account",
  ) satisfies z.ZodType<Role>,
  disabled: z.boolean().describe("keeps the user from signing in"),
});
export const UserEnvelope = envelope(UserSpec);
/** Of tokens and webhooks. */
export const CREDENTIAL_ENVELOPES = {
  tokens: envelope(CREDENTIAL_SPECS.tokens),
  webhooks: envelope(CREDENTIAL_SPECS.webhooks),
} as const satisfies Record<CredentialKind, z.ZodType>;
/** Of a resource whose spec is read by its own rules. */
export const ResourceEnvelope = envelope(z.unknown());

/** The file. Whoever reads one holds the parts against it one by one: see `readBackup`. */
export const BackupFile = z.strictObject({
  format: z.literal(BACKUP_FORMAT).describe("tells that it is one"),
  version: z.literal(BACKUP_VERSION)
    .describe("of the form of the file; older ones are read, newer ones are refused"),
  made_at: timestamp,
  program: z.string().max(64).describe("the version of svc that made it"),
  settings: SettingsSpec.describe("as GET settings answers them"),
  schedules: z.array(envelope(SPECS.schedules)).describe("oldest first"),
  lists: z.array(envelope(SPECS.lists)).describe("oldest first"),
  records: z.array(envelope(SPECS.records)).describe("oldest first"),
  groups: z.array(envelope(SPECS.groups)).describe("oldest first; the default group is among them"),
  clients: z.array(envelope(SPECS.clients)).describe("oldest first"),
  rules: z.array(envelope(SPECS.rules)).describe("oldest first"),
  users: z.array(UserEnvelope).describe("without passwords and second factors: see secrets"),
  tokens: z.array(CREDENTIAL_ENVELOPES.tokens).describe("without what they are known by"),
  webhooks: z.array(CREDENTIAL_ENVELOPES.webhooks)
    .describe("without the paths of their addresses, and without their keys"),
  secrets: Sealed.nullable()
    .describe(
      "what is secret of users, tokens and webhooks, under a passphrase; null: it was made without",
    ),
});
type Resources = Extract<Change, { type: "restore" }>["resources"];
/** Parts of it are often the store's own objects. */
export type BackupFile =
  & Omit<
    z.infer<typeof BackupFile>,
    "settings" | "users" | keyof Resources | CredentialKind
  >
  & Resources
  & { readonly [K in CredentialKind]: readonly Envelope<CredentialSpec<K>>[] }
  & { readonly settings: Settings; readonly users: readonly z.infer<typeof UserEnvelope>[] };

/**
 * A backup of a state. With a passphrase it has what is secret, sealed.
 *
 * @throws {SvcError} `unavailable`, when too many keys are being made.
 */
export async function makeBackup(
  { settings, collections, users, credentials }: Pick<
    LiveState,
    "settings" | "collections" | "users" | "credentials"
  >,
  by: { readonly madeAtMs: number; readonly program: string },
  passphrase: string | null,
): Promise<BackupFile> {
  const { schedules, lists, records, groups, clients, rules } = collections;
  const [tokens, webhooks] = [[...credentials.tokens.values()], [...credentials.webhooks.values()]];
  const file = {
    format: BACKUP_FORMAT,
    version: BACKUP_VERSION,
    made_at: new Date(by.madeAtMs).toISOString(),
    program: by.program,
    settings: settings.spec,
    schedules: [...schedules.values()],
    lists: [...lists.values()],
    records: [...records.values()],
    groups: [...groups.values()],
    clients: [...clients.values()],
    rules: [...rules.values()],
    users: Array.from(users.values(), shownUser),
    tokens: tokens.map(shownCredential),
    webhooks: webhooks.map(shownCredential),
    secrets: null,
  } as const;
  if (passphrase === null) return file;
  const secrets = { users: [...users.values()], tokens, webhooks };
  return { ...file, secrets: await sealSecrets(secrets, file, passphrase) };
}

/** Field by field, so that no secret ever comes along. */
function shownUser({ id, revision, created_at, updated_at, name, role, disabled }: StoredUser) {
  return { id, revision, created_at, updated_at, spec: { name, role, disabled } };
}

function shownCredential<K extends CredentialKind>(
  { secret: _, ...shown }: Credential<K>,
): Envelope<CredentialSpec<K>> {
  return shown;
}

const encoder = new TextEncoder();

/** @throws {SvcError} `conflict`, if it is larger than what could be restored. */
export function encodeBackup(file: BackupFile): Uint8Array<ArrayBuffer> {
  const bytes = encoder.encode(JSON.stringify(file));
  if (bytes.length <= BACKUP_BYTES_MAX) return bytes;
  throw new SvcError(
    "conflict",
    `backup: it would have ${bytes.length} bytes, and ${BACKUP_BYTES_MAX} can be restored: move ` +
      "rules into a list, or copy the store's folder while svc is stopped",
  );
}
