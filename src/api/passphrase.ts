import { SvcError } from "../errors.ts";

/** A header, as no address of a request may hold a secret: those are logged. */
export const PASSPHRASE_HEADER = "Svc-Passphrase";
const LENGTH_MIN = 8;
const LENGTH_MAX = 1_024;

/**
 * Reads what came as passphrase: percent-encoded UTF-8, as a header holds no other letters.
 *
 * @throws {SvcError} `bad_request`; it never repeats what was sent.
 */
export function parsePassphrase(header: string | null): string | null {
  if (header === null) return null;
  let text = "";
  try {
    if (header.length <= 9 * LENGTH_MAX) text = decodeURIComponent(header);
  } catch {
    throw new SvcError("bad_request", `${PASSPHRASE_HEADER}: write % as %25, and others likewise`);
  }
  if (text.length >= LENGTH_MIN && text.length <= LENGTH_MAX) return text;
  throw new SvcError(
    "bad_request",
    `${PASSPHRASE_HEADER}: it has ${LENGTH_MIN} to ${LENGTH_MAX} characters`,
  );
}
