import { invariant } from "../errors.ts";

/** Block size of padded responses, in bytes (RFC 8467 §4.1). */
export const RESPONSE_BLOCK_BYTES = 468;
/** Code and length of a Padding option (RFC 7830 §3). */
export const PADDING_HEAD_BYTES = 4;

/**
 * Returns the length of a padded response, so that an observer of DoT, DoH or DoQ learns its size
 * to the nearest block only. `lengthBytes` counts the whole message with the 4-byte header of an
 * empty Padding option (RFC 7830 §3); `limitBytes` is what the transport takes.
 *
 * @throws {InvariantError} If the message is over the limit before it is padded.
 */
export function paddedLength(lengthBytes: number, limitBytes: number): number {
  invariant(lengthBytes <= limitBytes, "response fits before it is padded");
  const blocks = Math.ceil(lengthBytes / RESPONSE_BLOCK_BYTES);
  return Math.min(blocks * RESPONSE_BLOCK_BYTES, limitBytes);
}
