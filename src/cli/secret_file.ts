import { messageOf, SvcError } from "../errors.ts";

/** Longest file that is read for a secret; whatever is longer holds something else. */
const SECRET_FILE_BYTES_MAX = 64 * 1024;

/**
 * Reads a secret from a file: its first line, without what ends the line.
 *
 * @throws {SvcError} `invalid`, when there is no secret in it; `unavailable`, when it can't be read.
 */
export async function readSecretFile(path: string): Promise<string> {
  let text: string;
  try {
    if ((await Deno.stat(path)).size > SECRET_FILE_BYTES_MAX) {
      throw new SvcError("invalid", `${path}: is too large to hold a secret`);
    }
    text = await Deno.readTextFile(path);
  } catch (cause) {
    if (cause instanceof SvcError) throw cause;
    const reason = cause instanceof Deno.errors.NotFound
      ? "is not there"
      : cause instanceof Deno.errors.PermissionDenied
      ? "may not be read: give this user the right to"
      : `can't be read: ${messageOf(cause)}`;
    throw new SvcError("unavailable", `${path}: ${reason}`, { cause });
  }
  const secret = text.split(/\r\n|\r|\n/, 1)[0];
  if (secret === "") {
    throw new SvcError("invalid", `${path}: its first line is empty: write the secret there`);
  }
  return secret;
}
