import { SvcError } from "../errors.ts";
import { Gate } from "./gate.ts";

/** OWASP's parameters for Argon2id; a hash made with less is made anew at the next sign-in. */
export const ARGON2_MEMORY_KIB = 19 * 1_024;
export const ARGON2_PASSES = 2;
export const ARGON2_LANES = 1;

export const PASSWORD_LENGTH_MIN = 8;
export const PASSWORD_LENGTH_MAX = 256;

/** Hashes at once: each takes 19 MiB and one core of the few that DNS needs too. */
const HASHES_AT_ONCE_MAX = 2;
/** Callers waiting for a hash; the last of them waits for a second or two on a small board. */
const HASHES_WAITING_MAX = 32;

/** `Algorithm.Argon2id`, an ambient constant of the package that can't be imported as a value. */
const ARGON2ID = 2;

/**
 * What a name without a user is checked against, so that it takes as long as one with: the
 * parameters above over 16 and 32 bytes of zeros, which no password is known to come to.
 */
const NOBODYS_HASH = `$argon2id$v=19$m=${ARGON2_MEMORY_KIB},t=${ARGON2_PASSES},p=${ARGON2_LANES}` +
  `$${"A".repeat(22)}$${"A".repeat(43)}`;

const gate = new Gate(HASHES_AT_ONCE_MAX, HASHES_WAITING_MAX);

/** Loads the add-on, once: whoever works with no password does without it. */
function argon2(): Promise<typeof import("@node-rs/argon2")> {
  return import("@node-rs/argon2");
}

/**
 * Loads what passwords need ahead of the first of them: a sandboxed process can load no add-on.
 *
 * @throws {SvcError} `unavailable`, when this machine can't.
 */
export async function preparePasswords(): Promise<void> {
  try {
    await argon2();
  } catch (cause) {
    throw new SvcError("unavailable", "passwords can't be checked: Argon2 does not load", {
      cause,
    });
  }
}

/** The same text for the same password, however the keyboard composes its letters. */
function canonical(password: string): string {
  return password.normalize("NFC");
}

/** Counts characters, not UTF-16 units. */
function isPasswordLength(password: string): boolean {
  // Far longer text is refused before its characters are counted: there are two units in each at most.
  if (password.length > 2 * PASSWORD_LENGTH_MAX) return false;
  const length = [...password].length;
  return length >= PASSWORD_LENGTH_MIN && length <= PASSWORD_LENGTH_MAX;
}

/**
 * Hashes a new password, as a PHC string with a salt of its own.
 *
 * @throws {SvcError} `invalid`, when it is too short or too long; `unavailable`, when too many wait.
 */
export async function hashPassword(password: string): Promise<string> {
  if (!isPasswordLength(password)) {
    throw new SvcError(
      "invalid",
      `password: it has ${PASSWORD_LENGTH_MIN} to ${PASSWORD_LENGTH_MAX} characters`,
    );
  }
  const { hash } = await argon2();
  return await gate.pass(() =>
    hash(canonical(password), {
      algorithm: ARGON2ID,
      memoryCost: ARGON2_MEMORY_KIB,
      timeCost: ARGON2_PASSES,
      parallelism: ARGON2_LANES,
    })
  );
}

/** What a key may cost that somebody else says the cost of, and a hash from elsewhere. */
export const KEY_LIMITS = {
  memoryKibMin: 8 * 1_024,
  memoryKibMax: 256 * 1_024,
  passesMax: 16,
  lanesMax: 4,
} as const;
const KEY_BYTES = 32;
/** A derived key takes far more than a sign-in: one at a time. */
const keyGate = new Gate(1, 4);

/**
 * Makes a key of a passphrase. `cost` is within `KEY_LIMITS`.
 *
 * @throws {SvcError} `unavailable`, when too many wait.
 */
export async function deriveKey(
  passphrase: string,
  salt: Uint8Array,
  cost: { readonly memoryKib: number; readonly passes: number; readonly lanes: number },
): Promise<Uint8Array<ArrayBuffer>> {
  const { hashRaw } = await argon2();
  const key = await keyGate.pass(() =>
    hashRaw(canonical(passphrase), {
      algorithm: ARGON2ID,
      memoryCost: cost.memoryKib,
      timeCost: cost.passes,
      parallelism: cost.lanes,
      outputLen: KEY_BYTES,
      salt,
    })
  );
  return Uint8Array.from(key);
}

/** Says whether a hash from elsewhere is one that may be checked: a sign-in pays what it says. */
export function isKnownHash(hash: string): boolean {
  const match = /^\$argon2id\$v=19\$m=(\d{1,7}),t=(\d{1,2}),p=(\d)(\$[\w+/]{11,86}){2}$/.exec(hash);
  if (match === null) return false;
  const [memoryKib, passes, lanes] = match.slice(1, 4).map(Number);
  return memoryKib >= 8 * lanes && memoryKib <= KEY_LIMITS.memoryKibMax && passes >= 1 &&
    passes <= KEY_LIMITS.passesMax && lanes >= 1 && lanes <= KEY_LIMITS.lanesMax;
}

/** What checking a password came to. */
export interface PasswordCheck {
  readonly isRight: boolean;
  /** The password is right and its hash was made with less than is asked for today. */
  readonly isRehashDue: boolean;
}

/**
 * Checks a password against its PHC string. `null` stands for a user who does not exist, and takes
 * as long.
 *
 * @throws {SvcError} `unavailable`, when too many wait.
 */
export async function verifyPassword(
  hash: string | null,
  password: string,
): Promise<PasswordCheck> {
  // Nobody has such a password, whatever the name: the short way tells nothing.
  if (!isPasswordLength(password)) return { isRight: false, isRehashDue: false };
  const { verify } = await argon2();
  const against = hash !== null && hash.startsWith("$argon2id$v=19$") ? hash : NOBODYS_HASH;
  const isRight = await gate.pass(() => verify(against, canonical(password)));
  if (!isRight || against === NOBODYS_HASH) return { isRight: false, isRehashDue: false };
  return { isRight: true, isRehashDue: isWeaker(against) };
}

/** Says whether a PHC string was made with less of anything than is asked for today. */
function isWeaker(hash: string): boolean {
  const match = /^\$argon2id\$v=19\$m=(\d+),t=(\d+),p=(\d+)\$/.exec(hash);
  if (match === null) return true;
  const [memoryKib, passes, lanes] = match.slice(1).map(Number);
  return memoryKib < ARGON2_MEMORY_KIB || passes < ARGON2_PASSES || lanes < ARGON2_LANES;
}
