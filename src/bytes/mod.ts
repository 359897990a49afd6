/**
 * Integers, text codecs and comparisons over byte arrays. Big-endian throughout, as in DNS.
 * Scope: none. @module
 */
export { getU16, getU32, setU16, setU32 } from "./integers.ts";
export {
  decodeBase32hex,
  decodeBase64,
  decodeBase64url,
  encodeBase32hex,
  encodeBase64,
  encodeBase64url,
} from "./text.ts";
export { decodeHex, encodeHex } from "./text.ts";
export { SIP_HASH_BYTES, SIP_KEY_BYTES, sipHash } from "./sip_hash.ts";
export { concat } from "./concat.ts";
export { equalBytes, equalConstantTime } from "./equal.ts";
