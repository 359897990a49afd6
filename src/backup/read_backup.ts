import * as z from "zod";
import { findUserNameProblem } from "../auth/mod.ts";
import { SvcError } from "../errors.ts";
import {
  type Change,
  type Collection,
  COLLECTION_SIZE_MAX,
  COLLECTIONS,
  type CredentialKind,
  CREDENTIALS_MAX,
  type CredentialSpec,
  type Decoded,
  decodeSettings,
  decodeSpec,
  type Envelope,
  findNameProblem,
  parseWith,
  placedAt,
  PROBLEMS_MAX,
  type RestoredUser,
  type SpecOf,
  type SpecProblem,
  USERS_MAX,
} from "../model/mod.ts";
import {
  BACKUP_FORMAT,
  BACKUP_VERSION,
  BackupFile,
  CREDENTIAL_ENVELOPES,
  ResourceEnvelope,
  UserEnvelope,
} from "./backup_file.ts";
import { type OpenedSecrets, openSecrets } from "./sealed.ts";

type Restore = Extract<Change, { type: "restore" }>;
/** A file whose secrets, where it has such, are still sealed. */
type Read = Omit<Restore, "users" | "credentials" | "hasSecrets"> & {
  readonly users: readonly Omit<RestoredUser, "secrets">[];
  readonly credentials:
    | { readonly [K in CredentialKind]: readonly Envelope<CredentialSpec<K>>[] }
    | null;
  readonly secrets: BackupFile["secrets"];
};

/** How a file of each version is read; every one that a release wrote stays here. */
const READERS: Readonly<Record<number, (file: object) => Decoded<Read>>> = {
  1: (file) => readFrame(Frame, file, () => null),
  2: (file) => readFrame(WholeFrame, file, readCredentials),
};

const items = (most: number) => z.array(z.unknown()).max(most);
/** What is counted before anything is made of it. */
const Frame = BackupFile.omit({ tokens: true, webhooks: true }).extend({
  version: z.int(),
  settings: z.unknown(),
  schedules: items(COLLECTION_SIZE_MAX),
  lists: items(COLLECTION_SIZE_MAX),
  records: items(COLLECTION_SIZE_MAX),
  groups: items(COLLECTION_SIZE_MAX),
  clients: items(COLLECTION_SIZE_MAX),
  rules: items(COLLECTION_SIZE_MAX),
  users: items(USERS_MAX),
});
const WholeFrame = Frame.extend({
  tokens: items(CREDENTIALS_MAX.tokens),
  webhooks: items(CREDENTIALS_MAX.webhooks),
});

/**
 * Reads a backup, which may be anything that is JSON, as the change that restores it. Without a
 * passphrase it restores nothing that is secret.
 *
 * @throws {SvcError} `invalid`, for a passphrase that does not open it; `unavailable`, when too many
 * keys are being made.
 */
export async function readBackup(
  json: unknown,
  passphrase: string | null,
): Promise<Decoded<Restore>> {
  const read = readFile(json);
  if (!read.ok) return read;
  const { secrets: sealed, users, credentials, ...rest } = read.spec;
  const secrets = passphrase === null || sealed === null
    ? null
    : await openSecrets(sealed, json as object, passphrase);
  if (passphrase !== null && secrets === null) {
    const message = "the backup was made without a passphrase: give none";
    return { ok: false, problems: [{ path: "secrets", message }] };
  }
  const i = secrets === null ? -1 : users.findIndex(({ id }) => !secrets.users.has(id));
  if (i >= 0) throw new SvcError("invalid", `users[${i}]: secrets has nothing of this user`);
  const whole = users.map((user) => ({ ...user, secrets: secrets?.users.get(user.id) ?? null }));
  const withSecrets = credentials === null ? null : {
    tokens: joined("tokens", credentials.tokens, secrets),
    webhooks: joined("webhooks", credentials.webhooks, secrets),
  };
  const hasSecrets = secrets !== null;
  return { ok: true, spec: { ...rest, users: whole, credentials: withSecrets, hasSecrets } };
}

/** @throws {SvcError} `invalid`, where something has no secret that should have one. */
function joined<K extends CredentialKind>(
  kind: K,
  envelopes: readonly Envelope<CredentialSpec<K>>[],
  secrets: OpenedSecrets | null,
) {
  const byId = secrets?.credentials[kind];
  const i = byId === undefined ? -1 : envelopes.findIndex(({ id }) => !byId.has(id));
  if (i >= 0) throw new SvcError("invalid", `${kind}[${i}]: secrets has nothing of it`);
  return envelopes.map((one) => ({ ...one, secret: byId?.get(one.id) ?? null }));
}

function readFile(json: unknown): Decoded<Read> {
  const refuse = (path: string, message: string): Decoded<Read> => ({
    ok: false,
    problems: [{ path, message }],
  });
  const { format, version } = (json ?? {}) as Partial<Record<string, unknown>>;
  if (format !== BACKUP_FORMAT) return refuse("format", "it is no backup of svc");
  if (typeof version !== "number" || !Number.isSafeInteger(version) || version < 1) {
    return refuse("version", "it is no version of a backup");
  }
  if (version > BACKUP_VERSION) {
    const message = `the file is of version ${version}, and this program reads up to ` +
      `${BACKUP_VERSION}: update svc first`;
    return refuse("version", message);
  }
  return READERS[version](json as object);
}

type Frame = z.output<typeof Frame>;

function readFrame<S extends z.ZodType<Frame>>(
  schema: S,
  json: object,
  credentialsOf: (frame: z.output<S>, found: SpecProblem[]) => Read["credentials"],
): Decoded<Read> {
  const frame = parseWith(schema, json);
  if (!frame.ok) return frame;
  const { value } = frame;
  const found: SpecProblem[] = [];
  const settings = take(decodeSettings(value.settings), "settings", found);
  const envelopesOf = <C extends Collection>(collection: C) =>
    readEach(
      value[collection],
      collection,
      found,
      (item, place) => readResource(collection, item, place, found),
    );
  const resources = {
    schedules: envelopesOf("schedules"),
    lists: envelopesOf("lists"),
    records: envelopesOf("records"),
    groups: envelopesOf("groups"),
    clients: envelopesOf("clients"),
    rules: envelopesOf("rules"),
  } satisfies Record<typeof COLLECTIONS[number], unknown>;
  const users = readEach(value.users, "users", found, (item, place) => {
    const user = take(parsed(UserEnvelope, item), place, found);
    if (user === null) return null;
    const { spec, ...head } = user;
    const problem = findUserNameProblem(spec.name);
    if (problem !== null) found.push({ path: `${place}.spec.name`, message: problem });
    return { ...head, ...spec };
  });
  const credentials = credentialsOf(value, found);
  const [first, ...more] = found.slice(0, PROBLEMS_MAX);
  if (first !== undefined || settings === null) return { ok: false, problems: [first, ...more] };
  const { secrets } = value;
  return { ok: true, spec: { type: "restore", settings, resources, users, credentials, secrets } };
}

function readCredentials(
  frame: z.output<typeof WholeFrame>,
  found: SpecProblem[],
): NonNullable<Read["credentials"]> {
  const read = <K extends CredentialKind>(kind: K) => {
    // Each is of its kind.
    const schema = CREDENTIAL_ENVELOPES[kind] as unknown as z.ZodType<Envelope<CredentialSpec<K>>>;
    return readEach(frame[kind], kind, found, (item, place) => {
      const one = take(parsed(schema, item), place, found);
      const problem = one === null ? null : findNameProblem(one.spec.name);
      if (problem !== null) found.push({ path: `${place}.spec.name`, message: problem });
      return one;
    });
  };
  return { tokens: read("tokens"), webhooks: read("webhooks") };
}

/** Reads on until there is more wrong than is told. */
function readEach<T>(
  given: readonly unknown[],
  name: string,
  found: readonly SpecProblem[],
  read: (item: unknown, place: string) => T | null,
): T[] {
  const taken: T[] = [];
  for (const [i, item] of given.entries()) {
    if (found.length >= PROBLEMS_MAX) break;
    const one = read(item, `${name}[${i}]`);
    if (one !== null) taken.push(one);
  }
  return taken;
}

function readResource<C extends Collection>(
  collection: C,
  item: unknown,
  place: string,
  found: SpecProblem[],
): Envelope<SpecOf<C>> | null {
  const envelope = take(parsed(ResourceEnvelope, item), place, found);
  if (envelope === null) return null;
  const spec = take(decodeSpec(collection, envelope.spec), `${place}.spec`, found);
  return spec === null ? null : { ...envelope, spec };
}

function parsed<S extends z.ZodType>(schema: S, json: unknown): Decoded<z.output<S>> {
  const result = parseWith(schema, json);
  return result.ok ? { ok: true, spec: result.value } : result;
}

/** The value; what is wrong with it goes to `found`, with its place in the file. */
function take<T>(decoded: Decoded<T>, place: string, found: SpecProblem[]): T | null {
  if (decoded.ok) return decoded.spec;
  found.push(...placedAt(place, decoded.problems));
  return null;
}
