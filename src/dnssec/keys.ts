/** Algorithms, and which keys are of use (RFC 8624, 9904; 3110, 5702, 6605, 8080). */
import { concat } from "../bytes/mod.ts";
import { type Dnskey, DNSSEC_PROTOCOL, readDnskey, REVOKE_FLAG, ZONE_FLAG } from "./records.ts";
import { DNSKEYS_MAX } from "./limits.ts";

export const Algorithm = {
  RsaSha1: 5,
  /** As `RsaSha1`, for zones with NSEC3 (RFC 5155 §2). */
  RsaSha1Nsec3: 7,
  RsaSha256: 8,
  RsaSha512: 10,
  EcdsaP256: 13,
  EcdsaP384: 14,
  Ed25519: 15,
  Ed448: 16,
} as const;
export type Algorithm = typeof Algorithm[keyof typeof Algorithm];

/** Bytes of the public key and of a signature, where both are fixed. */
const FIXED_SIZES: ReadonlyMap<number, readonly [key: number, signature: number]> = new Map([
  [Algorithm.EcdsaP256, [64, 64]],
  [Algorithm.EcdsaP384, [96, 96]],
  [Algorithm.Ed25519, [32, 64]],
  [Algorithm.Ed448, [57, 114]],
]);
const RSA: readonly number[] = [
  Algorithm.RsaSha1,
  Algorithm.RsaSha1Nsec3,
  Algorithm.RsaSha256,
  Algorithm.RsaSha512,
];

/** Bits of an RSA modulus (RFC 3110 §2, RFC 5702 §2). */
const MODULUS_BITS_MIN = 512;
const MODULUS_BITS_MAX = 4096;
/** Bits of an RSA exponent: 2^32 + 1 is in use; what is longer only costs time. */
const EXPONENT_BITS_MAX = 33;

export function isSupported(algorithm: number): boolean {
  return FIXED_SIZES.has(algorithm) || RSA.includes(algorithm);
}

interface RsaKey {
  readonly exponent: Uint8Array;
  readonly modulus: Uint8Array;
}

/** An RSA key's two numbers without zeros before them, or `null` for one that is of no use. */
function readRsaKey(publicKey: Uint8Array): RsaKey | null {
  if (publicKey.length < 3) return null;
  // A first byte of zero says that two bytes of length follow (RFC 3110 §2).
  const isLong = publicKey[0] === 0;
  const exponentAt = isLong ? 3 : 1;
  const length = isLong ? (publicKey[1] << 8) | publicKey[2] : publicKey[0];
  const modulusAt = exponentAt + length;
  if (length === 0 || modulusAt >= publicKey.length) return null;
  const exponent = withoutZeros(publicKey.subarray(exponentAt, modulusAt));
  const modulus = withoutZeros(publicKey.subarray(modulusAt));
  const exponentBits = bitLength(exponent);
  const modulusBits = bitLength(modulus);
  if (exponentBits < 2 || exponentBits > EXPONENT_BITS_MAX) return null;
  if (modulusBits < MODULUS_BITS_MIN || modulusBits > MODULUS_BITS_MAX) return null;
  // Even ones are of no RSA key, and libraries are known to trip over them.
  const isOdd = (number: Uint8Array) => (number[number.length - 1] & 1) === 1;
  return isOdd(exponent) && isOdd(modulus) ? { exponent, modulus } : null;
}

function withoutZeros(number: Uint8Array): Uint8Array {
  let at = 0;
  while (at < number.length && number[at] === 0) at++;
  return number.subarray(at);
}

function bitLength(number: Uint8Array): number {
  return number.length === 0 ? 0 : 8 * number.length - Math.clz32(number[0]) + 24;
}

/** Says whether a key can sign a zone's records: its flags, its algorithm and its form. */
export function isUsable({ flags, protocol, algorithm, publicKey }: Dnskey): boolean {
  if ((flags & ZONE_FLAG) === 0 || (flags & REVOKE_FLAG) !== 0) return false;
  return protocol === DNSSEC_PROTOCOL && isWellFormed(algorithm, publicKey);
}

/** Says whether a public key has the form of its algorithm, which is one that is supported. */
export function isWellFormed(algorithm: number, publicKey: Uint8Array): boolean {
  const sizes = FIXED_SIZES.get(algorithm);
  if (sizes !== undefined) return publicKey.length === sizes[0];
  return RSA.includes(algorithm) && readRsaKey(publicKey) !== null;
}

/** Says whether a signature has the length of its algorithm; RSA's follows from the key. */
export function isSignatureLength(algorithm: number, length: number): boolean {
  const sizes = FIXED_SIZES.get(algorithm);
  return sizes === undefined ? length * 8 <= MODULUS_BITS_MAX : length === sizes[1];
}

/** The keys of a DNSKEY RRset, malformed ones left out (CVE-2025-8677), at most `DNSKEYS_MAX`. */
export function readDnskeys(rdatas: readonly Uint8Array[]): Dnskey[] {
  const keys: Dnskey[] = [];
  for (const rdata of rdatas) {
    const key = readDnskey(rdata);
    if (key !== null) keys.push(key);
    if (keys.length === DNSKEYS_MAX) break;
  }
  return keys;
}

// SubjectPublicKeyInfo (RFC 5280 §4.1.2.7) but for the key itself: RFC 5480 and RFC 8410.
const SPKI_P256 = bytesOf("3059301306072a8648ce3d020106082a8648ce3d03010703420004");
const SPKI_P384 = bytesOf("3076301006072a8648ce3d020106052b8104002203620004");
const SPKI_ED25519 = bytesOf("302a300506032b6570032100");
const SPKI_ED448 = bytesOf("3043300506032b6571033a00");
/** AlgorithmIdentifier of rsaEncryption (RFC 3279 §2.3.1). */
const RSA_ENCRYPTION = bytesOf("300d06092a864886f70d0101010500");

const DER_INTEGER = 0x02;
const DER_BIT_STRING = 0x03;
const DER_SEQUENCE = 0x30;

function bytesOf(hex: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(hex.match(/../g) ?? [], (byte) => parseInt(byte, 16));
}

/**
 * A DNSKEY's public key as SubjectPublicKeyInfo in DER, which `node:crypto` and WebCrypto import;
 * `null` for one that is of no use. ECDSA signatures stay as they are (ieee-p1363).
 */
export function publicKeySpki(
  algorithm: number,
  publicKey: Uint8Array,
): Uint8Array<ArrayBuffer> | null {
  if (!isWellFormed(algorithm, publicKey)) return null;
  switch (algorithm) {
    case Algorithm.EcdsaP256:
      return concat(SPKI_P256, publicKey);
    case Algorithm.EcdsaP384:
      return concat(SPKI_P384, publicKey);
    case Algorithm.Ed25519:
      return concat(SPKI_ED25519, publicKey);
    case Algorithm.Ed448:
      return concat(SPKI_ED448, publicKey);
    default:
      return rsaSpki(publicKey);
  }
}

function rsaSpki(publicKey: Uint8Array): Uint8Array<ArrayBuffer> | null {
  const key = readRsaKey(publicKey);
  if (key === null) return null;
  const numbers = concat(derInteger(key.modulus), derInteger(key.exponent));
  const bits = concat(Uint8Array.of(0), der(DER_SEQUENCE, numbers));
  return der(DER_SEQUENCE, concat(RSA_ENCRYPTION, der(DER_BIT_STRING, bits)));
}

/** A positive number: a zero byte keeps its first bit from being a sign. */
function derInteger(number: Uint8Array): Uint8Array<ArrayBuffer> {
  return der(DER_INTEGER, number[0] < 0x80 ? number : concat(Uint8Array.of(0), number));
}

function der(tag: number, content: Uint8Array): Uint8Array<ArrayBuffer> {
  const { length } = content;
  if (length < 0x80) return concat(Uint8Array.of(tag, length), content);
  if (length < 0x100) return concat(Uint8Array.of(tag, 0x81, length), content);
  return concat(Uint8Array.of(tag, 0x82, length >> 8, length), content);
}
