import { createHmac } from "node:crypto";

export const SIGNATURE_HEADER = "svc-signature";

/**
 * What a receiver holds against the body: `t`, when it was sent in seconds since 1970, and `v1`, the
 * HMAC-SHA256 of that time, a full stop and the body under the webhook's key, in hexadecimal. The time
 * is signed as well, so that a request that was listened in to is of no use later.
 */
export function signature(key: string, body: Uint8Array, atMs: number): string {
  const seconds = Math.floor(atMs / 1_000);
  const mac = createHmac("sha256", key).update(`${seconds}.`).update(body).digest("hex");
  return `t=${seconds},v1=${mac}`;
}
