import { SvcError } from "../errors.ts";
import {
  type Collection,
  COLLECTION_SIZE_MAX,
  COLLECTIONS,
  type CredentialKind,
  CREDENTIALS,
  CREDENTIALS_MAX,
  type LiveState,
  SETTINGS_KEY,
  USERS_MAX,
  type Write,
  writesOf,
} from "../model/mod.ts";
import {
  CREDENTIAL_PREFIX,
  keyText,
  PROPOSAL_PREFIX,
  RESOURCE_PREFIX,
  USER_PREFIX,
} from "./keys.ts";
import { SCHEMA_VERSION } from "./load.ts";
import { isRemembered, PROPOSALS_MAX, type Remembered, writeOf } from "./proposals.ts";
import { type Counts, countsOf, restore } from "./restore.ts";
import { partsOf, readPart } from "./transaction.ts";
import { encodeValue, VALUE_BYTES_MAX } from "./values.ts";

/** Most bytes of a part of a state. */
export const STATE_PART_BYTES_MAX = VALUE_BYTES_MAX;
/** Of the parts; what is of another is not taken. */
const FORMAT = 1;

/** Everything that members agree on. */
export interface ReplicatedState {
  readonly state: LiveState;
  /** Which configuration it is: one that takes the place of another has a greater one. */
  readonly epoch: number;
  /** Those that are remembered by then. */
  readonly proposals: readonly Remembered[];
}

/** The first part: what the others are held against. */
interface Header {
  readonly format: number;
  readonly schema: number;
  readonly index: number;
  readonly epoch: number;
  readonly counts: Counts;
}

/** How many there may be of each. */
const COUNTS_MAX: Counts = {
  ...Object.fromEntries(COLLECTIONS.map((collection) => [collection, COLLECTION_SIZE_MAX])),
  users: USERS_MAX,
  ...CREDENTIALS_MAX,
  proposals: PROPOSALS_MAX,
};

/** What a state of an older schema that is read says nothing of. */
const NONE_YET: ReadonlyMap<unknown, Counts> = new Map([[3, { tokens: 0, webhooks: 0 }]]);

/** All that is stored of it, but for its index and epoch. */
export function* replicatedWrites({ state, proposals }: ReplicatedState): Generator<Write> {
  yield* writesOf(state);
  for (const one of proposals) yield writeOf(one);
}

/**
 * The state as parts of bounded size, to be sent or kept. They hold what is secret of users and others: only
 * the service's own user, and the members, may read them.
 */
export function* writeParts(whole: ReplicatedState): Generator<Uint8Array> {
  const { state, epoch, proposals } = whole;
  const counts = { ...countsOf(state), proposals: proposals.length };
  const index = state.appliedIndex;
  yield encodeValue({ format: FORMAT, schema: SCHEMA_VERSION, index, epoch, counts });
  yield* partsOf(replicatedWrites(whole));
}

/**
 * Reads what `writeParts` wrote, and checks it as a store that is opened.
 *
 * @throws {SvcError} `invalid`, if it is none, was cut short, or is of another version.
 */
export async function readParts(
  parts: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
): Promise<ReplicatedState> {
  let header: Header | null = null;
  const found = new Found();
  for await (const part of parts) {
    const json = decode(part);
    if (header === null) header = readHeader(json);
    else found.add(readPart(json) ?? refuse("a part is no list of writes"), header.counts);
  }
  if (header === null) return refuse("it has no parts");
  return found.whole(header);
}

function refuse(message: string): never {
  throw new SvcError("invalid", `state: ${message}`);
}

function decode(part: Uint8Array): unknown {
  if (part.length > STATE_PART_BYTES_MAX) refuse(`a part has ${part.length} bytes`);
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(part));
  } catch (cause) {
    throw new SvcError("invalid", "state: a part is no JSON text", { cause });
  }
}

function readHeader(json: unknown): Header {
  const { format, schema, index, epoch, counts: said } = (json ?? {}) as Partial<Header>;
  if (format !== FORMAT) refuse("its first part is no header that is known");
  const none = schema === SCHEMA_VERSION ? {} : NONE_YET.get(schema);
  if (none === undefined) return refuse(`it has schema ${schema}, not ${SCHEMA_VERSION}`);
  const counts: Counts = { ...none, ...said };
  if (!isCount(index, Number.MAX_SAFE_INTEGER) || !isCount(epoch, Number.MAX_SAFE_INTEGER)) {
    return refuse("it has no index and epoch");
  }
  for (const [name, most] of Object.entries(COUNTS_MAX)) {
    if (!isCount(counts[name], most)) refuse(`its number of ${name} is none`);
  }
  return { format: FORMAT, schema: SCHEMA_VERSION, index, epoch, counts };
}

function isCount(value: unknown, most: number): value is number {
  return Number.isSafeInteger(value) && Number(value) >= 0 && Number(value) <= most;
}

/** What the parts brought until now. */
class Found {
  readonly #resources = {
    schedules: new Map<string, unknown>(),
    lists: new Map<string, unknown>(),
    rules: new Map<string, unknown>(),
    records: new Map<string, unknown>(),
    groups: new Map<string, unknown>(),
    clients: new Map<string, unknown>(),
  } satisfies Record<Collection, Map<string, unknown>>;
  readonly #users = new Map<string, unknown>();
  readonly #credentials = {
    tokens: new Map<string, unknown>(),
    webhooks: new Map<string, unknown>(),
  } satisfies Record<CredentialKind, Map<string, unknown>>;
  readonly #proposals = new Map<string, unknown>();
  #settings: unknown;

  add(writes: readonly Write[], counts: Counts): void {
    for (const { key, value } of writes) {
      const [first, ...rest] = key;
      if (keyText(key) === keyText(SETTINGS_KEY)) this.#settings = value;
      else if (first === RESOURCE_PREFIX) this.#addResource(key, rest, value, counts);
      else if (first === USER_PREFIX[0]) put(this.#users, "users", key, rest, value, counts);
      else if (first === CREDENTIAL_PREFIX) this.#addCredential(key, rest, value, counts);
      else if (first === PROPOSAL_PREFIX[0]) {
        put(this.#proposals, "proposals", key, rest, value, counts);
      } else refuse(`${keyText(key)} is no key of it`);
    }
  }

  #addResource(
    key: Write["key"],
    [name, ...rest]: readonly string[],
    value: unknown,
    counts: Counts,
  ): void {
    const collection = COLLECTIONS.find((known) => known === name);
    if (collection === undefined) return refuse(`${keyText(key)} is no key of it`);
    put(this.#resources[collection], collection, key, rest, value, counts);
  }

  #addCredential(
    key: Write["key"],
    [name, ...rest]: readonly string[],
    value: unknown,
    counts: Counts,
  ): void {
    const kind = CREDENTIALS.find((known) => known === name);
    if (kind === undefined) return refuse(`${keyText(key)} is no key of it`);
    put(this.#credentials[kind], kind, key, rest, value, counts);
  }

  whole({ index, epoch, counts }: Header): ReplicatedState {
    const restored = restore({
      resources: this.#resources,
      users: this.#users,
      credentials: this.#credentials,
      settings: this.#settings,
      appliedIndex: index,
    }, counts);
    if (!restored.ok) return refuse(`${restored.key}: ${restored.message}`);
    const proposals = [...this.#proposals.values()].filter(isRemembered);
    if (proposals.length !== counts.proposals) {
      refuse(`proposals should be ${counts.proposals}, but ${proposals.length} are there`);
    }
    return { state: restored.state, epoch, proposals };
  }
}

/** Bounded by the header's count, so that nobody fills the memory before that is looked at. */
function put(
  map: Map<string, unknown>,
  name: string,
  key: Write["key"],
  rest: readonly string[],
  value: unknown,
  counts: Counts,
): void {
  const [id] = rest;
  if (id === undefined || rest.length > 1) return refuse(`${keyText(key)} is no key of it`);
  if (map.has(id)) refuse(`${keyText(key)} is there twice`);
  if (map.size >= counts[name]) refuse(`${name} should be ${counts[name]}, but there are more`);
  map.set(id, value);
}
