/**
 * RDATA of the types of DNSSEC, read in place: what is returned views the bytes that were given.
 * `null` stands for RDATA without the form of its type, and nothing is thrown.
 */
import { getU16, getU32 } from "../bytes/mod.ts";
import { skipPlainName } from "../dns/mod.ts";

/** Flags of a DNSKEY (RFC 4034 §2.1.1, RFC 5011 §3). */
export const ZONE_FLAG = 0x0100;
export const REVOKE_FLAG = 0x0080;
export const SEP_FLAG = 0x0001;
/** The one protocol there is (RFC 4034 §2.1.2). */
export const DNSSEC_PROTOCOL = 3;
/** Opt-out, the one flag of NSEC3 (RFC 5155 §3.1.2.1). */
export const OPT_OUT_FLAG = 0x01;
/** SHA-1, the one hash of NSEC3 (RFC 5155 §11), and its bytes. */
export const NSEC3_SHA1 = 1;
export const NSEC3_HASH_BYTES = 20;
/** Bytes before the public key, before the digest, and before the signer's name. */
const DNSKEY_FIXED_BYTES = 4;
const DS_FIXED_BYTES = 4;
const RRSIG_FIXED_BYTES = 18;
/** Most bytes of a window of a type bitmap (RFC 4034 §4.1.2). */
const WINDOW_BYTES_MAX = 32;

export interface Dnskey {
  readonly flags: number;
  readonly protocol: number;
  readonly algorithm: number;
  readonly publicKey: Uint8Array;
  readonly tag: number;
  readonly rdata: Uint8Array;
}

export interface Ds {
  readonly tag: number;
  readonly algorithm: number;
  readonly digestType: number;
  readonly digest: Uint8Array;
}

export interface Rrsig {
  readonly covered: number;
  readonly algorithm: number;
  readonly labels: number;
  readonly originalTtl: number;
  /** Seconds since 1970, modulo 2^32 (RFC 4034 §3.1.5). */
  readonly expiration: number;
  readonly inception: number;
  readonly tag: number;
  readonly signer: Uint8Array;
  readonly signature: Uint8Array;
  /** All before the signature, which it covers with the signer's name in lower case. */
  readonly signedFields: Uint8Array;
}

export interface Nsec {
  readonly next: Uint8Array;
  readonly types: Uint8Array;
}

export interface Nsec3Param {
  readonly algorithm: number;
  readonly flags: number;
  readonly iterations: number;
  readonly salt: Uint8Array;
}

export interface Nsec3 extends Nsec3Param {
  readonly nextHash: Uint8Array;
  readonly types: Uint8Array;
}

/** The tag of a key by its RDATA (RFC 4034 appendix B), but for algorithm 1, which is not in use. */
export function keyTag(rdata: Uint8Array): number {
  let sum = 0;
  for (let i = 0; i < rdata.length; i++) sum += (i & 1) === 0 ? rdata[i] << 8 : rdata[i];
  return (sum + (sum >>> 16)) & 0xffff;
}

export function readDnskey(rdata: Uint8Array): Dnskey | null {
  if (rdata.length <= DNSKEY_FIXED_BYTES) return null;
  return {
    flags: getU16(rdata, 0),
    protocol: rdata[2],
    algorithm: rdata[3],
    publicKey: rdata.subarray(DNSKEY_FIXED_BYTES),
    tag: keyTag(rdata),
    rdata,
  };
}

export function readDs(rdata: Uint8Array): Ds | null {
  if (rdata.length <= DS_FIXED_BYTES) return null;
  return {
    tag: getU16(rdata, 0),
    algorithm: rdata[2],
    digestType: rdata[3],
    digest: rdata.subarray(DS_FIXED_BYTES),
  };
}

export function readRrsig(rdata: Uint8Array): Rrsig | null {
  const end = skipPlainName(rdata, RRSIG_FIXED_BYTES);
  if (end < 0 || end === rdata.length) return null;
  return {
    covered: getU16(rdata, 0),
    algorithm: rdata[2],
    labels: rdata[3],
    originalTtl: getU32(rdata, 4),
    expiration: getU32(rdata, 8),
    inception: getU32(rdata, 12),
    tag: getU16(rdata, 16),
    signer: rdata.subarray(RRSIG_FIXED_BYTES, end),
    signature: rdata.subarray(end),
    signedFields: rdata.subarray(0, end),
  };
}

export function readNsec(rdata: Uint8Array): Nsec | null {
  const end = skipPlainName(rdata, 0);
  if (end < 0) return null;
  const types = rdata.subarray(end);
  return isBitmap(types) ? { next: rdata.subarray(0, end), types } : null;
}

export function readNsec3Param(rdata: Uint8Array): Nsec3Param | null {
  if (rdata.length < 5 || rdata.length !== 5 + rdata[4]) return null;
  return readParam(rdata);
}

export function readNsec3(rdata: Uint8Array): Nsec3 | null {
  const hashAt = rdata.length < 5 ? rdata.length : 5 + rdata[4];
  if (hashAt >= rdata.length) return null;
  const typesAt = hashAt + 1 + rdata[hashAt];
  if (rdata[hashAt] === 0 || typesAt > rdata.length) return null;
  const types = rdata.subarray(typesAt);
  if (!isBitmap(types)) return null;
  return { ...readParam(rdata), nextHash: rdata.subarray(hashAt + 1, typesAt), types };
}

function readParam(rdata: Uint8Array): Nsec3Param {
  return {
    algorithm: rdata[0],
    flags: rdata[1],
    iterations: getU16(rdata, 2),
    salt: rdata.subarray(5, 5 + rdata[4]),
  };
}

/** Windows ascend, and each has 1 to 32 bytes (RFC 4034 §4.1.2). */
function isBitmap(types: Uint8Array): boolean {
  let lastWindow = -1;
  let at = 0;
  while (at < types.length) {
    if (at + 2 > types.length || types[at] <= lastWindow) return false;
    const length = types[at + 1];
    if (length === 0 || length > WINDOW_BYTES_MAX) return false;
    lastWindow = types[at];
    at += 2 + length;
  }
  return at === types.length;
}

/** Says whether a type stands in a bitmap that a reader above has checked. */
export function hasType(types: Uint8Array, type: number): boolean {
  const byte = (type & 0xff) >> 3;
  for (let at = 0; at < types.length; at += 2 + types[at + 1]) {
    if (types[at] !== type >> 8) continue;
    return byte < types[at + 1] && (types[at + 2 + byte] & (0x80 >> (type & 7))) !== 0;
  }
  return false;
}
