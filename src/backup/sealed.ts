import * as z from "zod";
import { deriveKey, isKnownHash, KEY_LIMITS, randomBytes } from "../auth/mod.ts";
import { decodeBase64, encodeBase64 } from "../bytes/mod.ts";
import { SvcError } from "../errors.ts";
import {
  type Credential,
  CREDENTIAL_SECRETS,
  type CredentialKind,
  CREDENTIALS_MAX,
  type CredentialSecret,
  parseWith,
  type RestoredUser,
  type StoredUser,
  USERS_MAX,
} from "../model/mod.ts";

/** What a key costs that is made today; a file says what its own did. */
const MEMORY_KIB = 64 * 1_024;
const PASSES = 3;
const LANES = 1;

const SALT_BYTES = 16;
/** Of AES-GCM (NIST SP 800-38D §5.2.1.1); drawn at random for one message under a key of its own. */
const NONCE_BYTES = 12;
const RECOVERY_CODES_MAX = 32;

const base64 = z.string().regex(/^[A-Za-z0-9+/]+={0,2}$/, "it is no base64");

/** What is secret, and how its key is made of the passphrase; within what a small board can do. */
export const Sealed = z.strictObject({
  kdf: z.literal("argon2id").describe("how a key is made of the passphrase (RFC 9106)"),
  memory_kib: z.int().min(KEY_LIMITS.memoryKibMin).max(KEY_LIMITS.memoryKibMax)
    .describe("memory that the key takes"),
  passes: z.int().min(1).max(KEY_LIMITS.passesMax).describe("passes over the memory"),
  lanes: z.int().min(1).max(KEY_LIMITS.lanesMax).describe("threads"),
  salt: base64.min(22).max(88).describe("of the key"),
  cipher: z.literal("aes-256-gcm").describe("what it is sealed with"),
  nonce: base64.length(16).describe("of the cipher, used once"),
  data: base64.describe("authenticated together with all else of the file"),
});
export type Sealed = z.infer<typeof Sealed>;

/** What is to be sealed. */
export interface SecretParts {
  readonly users: readonly StoredUser[];
  readonly tokens: readonly Credential<"tokens">[];
  readonly webhooks: readonly Credential<"webhooks">[];
}

type ById<T> = ReadonlyMap<string, T>;

/** What was sealed, by ID. */
export interface OpenedSecrets {
  readonly users: ById<NonNullable<RestoredUser["secrets"]>>;
  readonly credentials: { readonly [K in CredentialKind]: ById<CredentialSecret<K>> };
}

const UserSecrets = z.array(z.strictObject({
  id: z.string(),
  password_hash: z.string().refine(isKnownHash, "it is no Argon2id hash within bounds"),
  otp: z.strictObject({
    secret: z.string().regex(/^[A-Z2-7]{16,128}$/),
    active: z.literal(true),
    last_step: z.int().min(0),
    recovery: z.array(z.string().regex(/^[0-9a-f]{64}$/)).max(RECOVERY_CODES_MAX),
  }).nullable(),
})).max(USERS_MAX);

function secretsOf<S extends z.ZodType>(secret: S, most: number) {
  return z.array(z.strictObject({ id: z.string(), secret })).max(most);
}

const WholeSecrets = z.strictObject({
  users: UserSecrets,
  tokens: secretsOf(CREDENTIAL_SECRETS.tokens, CREDENTIALS_MAX.tokens),
  webhooks: secretsOf(CREDENTIAL_SECRETS.webhooks, CREDENTIALS_MAX.webhooks),
});
/** Of files of version 1, which had users alone. */
const EarlierSecrets = UserSecrets.transform((users) => ({ users, tokens: [], webhooks: [] }));

/** Seals what is secret. An open reset link is left out, and a half set up factor. */
export async function sealSecrets(
  { users, tokens, webhooks }: SecretParts,
  file: object,
  passphrase: string,
): Promise<Sealed> {
  const secrets = {
    users: users.map(({ id, password_hash, otp }) => ({
      id,
      password_hash,
      otp: otp?.active === true ? otp : null,
    })),
    tokens: tokens.map(({ id, secret }) => ({ id, secret })),
    webhooks: webhooks.map(({ id, secret }) => ({ id, secret })),
  };
  const [salt, nonce] = [randomBytes(SALT_BYTES), randomBytes(NONCE_BYTES)];
  const sealed: Sealed = {
    kdf: "argon2id",
    memory_kib: MEMORY_KIB,
    passes: PASSES,
    lanes: LANES,
    salt: encodeBase64(salt),
    cipher: "aes-256-gcm",
    nonce: encodeBase64(nonce),
    data: "",
  };
  const key = await importKey(sealed, salt, passphrase);
  const algorithm = { name: "AES-GCM", iv: nonce, additionalData: boundTo(file, sealed) };
  const text = new TextEncoder().encode(JSON.stringify(secrets));
  const data = new Uint8Array(await crypto.subtle.encrypt(algorithm, key, text));
  return { ...sealed, data: encodeBase64(data) };
}

/**
 * Opens what was sealed. `file` is the whole of it as it was read, before anything was
 * filled in.
 *
 * @throws {SvcError} `invalid`, for another passphrase, or where the file was changed;
 * `unavailable`, when too many keys are being made.
 */
export async function openSecrets(
  sealed: Sealed,
  file: object,
  passphrase: string,
): Promise<OpenedSecrets> {
  const [salt, iv] = [bytesOf("salt", sealed.salt), bytesOf("nonce", sealed.nonce)];
  const data = bytesOf("data", sealed.data);
  const key = await importKey(sealed, salt, passphrase);
  const algorithm = { name: "AES-GCM", iv, additionalData: boundTo(file, sealed) };
  let text: string;
  try {
    text = new TextDecoder().decode(await crypto.subtle.decrypt(algorithm, key, data));
  } catch (cause) {
    throw new SvcError(
      "invalid",
      "secrets: the passphrase is another, or the file was changed since it was made",
      { cause },
    );
  }
  const json = parseJson(text);
  const parsed = parseWith(Array.isArray(json) ? EarlierSecrets : WholeSecrets, json);
  if (!parsed.ok) {
    // Of problems the place alone is told: the rest is secret.
    throw new SvcError("invalid", `secrets: ${parsed.problems[0].path} is not as svc makes it`);
  }
  const { users, tokens, webhooks } = parsed.value;
  return {
    users: new Map(users.map(({ id, ...secrets }) => [id, secrets])),
    credentials: {
      tokens: new Map(tokens.map(({ id, secret }) => [id, secret])),
      webhooks: new Map(webhooks.map(({ id, secret }) => [id, secret])),
    },
  };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

function bytesOf(name: string, text: string): Uint8Array<ArrayBuffer> {
  const bytes = decodeBase64(text);
  if (bytes === null) throw new SvcError("invalid", `secrets.${name}: it is no base64`);
  return bytes;
}

async function importKey(
  { memory_kib, passes, lanes }: Sealed,
  salt: Uint8Array,
  passphrase: string,
): Promise<CryptoKey> {
  const cost = { memoryKib: memory_kib, passes, lanes };
  const bytes = await deriveKey(passphrase, salt, cost);
  return await crypto.subtle.importKey("raw", bytes, "AES-GCM", false, ["encrypt", "decrypt"]);
}

/** All of the file but what is sealed: changed, it opens no more. */
function boundTo(file: object, sealed: Sealed): Uint8Array<ArrayBuffer> {
  const text = JSON.stringify({ ...file, secrets: { ...sealed, data: "" } });
  return new TextEncoder().encode(text);
}
