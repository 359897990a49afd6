import { createHash } from "node:crypto";
import { decodeHex, encodeBase64url, encodeHex, equalConstantTime } from "../bytes/mod.ts";

/** What the admin token begins with, so that it is known for one wherever it turns up. */
export const TOKEN_PREFIX = "svc_";
/** 256 bits: of the token, of a session and of a reset link. */
const SECRET_BYTES = 32;

/**
 * Crockford's base32 in lower case: no i, l, o or u, which are mistaken for others. As many as bits
 * allow, so a random byte modulo 32 is drawn evenly.
 */
const READABLE = "0123456789abcdefghjkmnpqrstvwxyz";
const GROUP_LENGTH = 5;
/** Recovery codes: 75 bits, so that their plain SHA-256 gives none away. */
const RECOVERY_GROUPS = 3;
const RECOVERY_COUNT = 10;
/** Generated passwords: 100 bits. */
const PASSWORD_GROUPS = 4;

/** SHA-256 of a text, in lower-case hexadecimal: how every random secret is kept. */
export function sha256Hex(text: string): string {
  return createHash("sha256").update(text, "utf8").digest("hex");
}

/** Compares two SHA-256 in hexadecimal in a time that tells nothing; false where one is none. */
export function isSameSha256(a: string, b: string): boolean {
  const [left, right] = [decodeHex(a), decodeHex(b)];
  return left !== null && right !== null && left.length === SECRET_BYTES &&
    equalConstantTime(left, right);
}

/** Bytes that nobody can guess. */
export function randomBytes(count: number): Uint8Array<ArrayBuffer> {
  return crypto.getRandomValues(new Uint8Array(count));
}

/** A new admin token: the prefix and 64 hexadecimal digits. */
export function newToken(): string {
  return TOKEN_PREFIX + encodeHex(randomBytes(SECRET_BYTES));
}

/** What stands in `[api] token_sha256` for a token. */
export function tokenSha256(token: string): string {
  return sha256Hex(token);
}

/** A new value for a session's cookie or a reset link: 43 characters of base64url. */
export function newSecret(): string {
  return encodeBase64url(randomBytes(SECRET_BYTES));
}

function readable(groups: number): string {
  const bytes = randomBytes(groups * GROUP_LENGTH);
  const letters = Array.from(bytes, (byte) => READABLE[byte % READABLE.length]).join("");
  return Array.from(
    { length: groups },
    (_, i) => letters.slice(i * GROUP_LENGTH, (i + 1) * GROUP_LENGTH),
  ).join("-");
}

/** A new password for somebody to copy. */
export function newPassword(): string {
  return readable(PASSWORD_GROUPS);
}

/** Ten new recovery codes, each good once. */
export function newRecoveryCodes(): string[] {
  return Array.from({ length: RECOVERY_COUNT }, () => readable(RECOVERY_GROUPS));
}

/** How a recovery code is kept; case, spaces and hyphens are as one likes to type them. */
export function recoveryCodeSha256(code: string): string {
  const letters = code.toLowerCase().replace(/[\s-]/g, "").replaceAll("o", "0");
  return sha256Hex(letters.replace(/[il]/g, "1"));
}
