/**
 * The checks of signatures themselves, for whoever has the time: a thread of its own, or a test.
 * What is checked is plain bytes, so that it can be sent to a thread and back. A way into the module
 * of its own, so that such a thread holds nothing else. @module
 */
import { createPublicKey, verify } from "node:crypto";
import { Algorithm, isSignatureLength, publicKeySpki } from "./keys.ts";

export { Algorithm, isSignatureLength, publicKeySpki } from "./keys.ts";
export { SAMPLES } from "./samples.ts";

/** One signature to check. */
export interface SignatureCheck {
  readonly algorithm: number;
  /** The public key as a DNSKEY holds it. */
  readonly publicKey: Uint8Array;
  /** What the signature covers. */
  readonly data: Uint8Array;
  /** As an RRSIG holds it. */
  readonly signature: Uint8Array;
}

/**
 * Who checks signatures: resolves to whether this one fits. A rejection, for one where too many wait,
 * ends the validation with it.
 */
export type SignatureChecker = (check: SignatureCheck) => Promise<boolean>;

/** The hash that `node:crypto` and, with a dash, WebCrypto name; none where it is part of it. */
const HASHES: ReadonlyMap<number, string> = new Map([
  [Algorithm.RsaSha1, "sha1"],
  [Algorithm.RsaSha1Nsec3, "sha1"],
  [Algorithm.RsaSha256, "sha256"],
  [Algorithm.RsaSha512, "sha512"],
  [Algorithm.EcdsaP256, "sha256"],
  [Algorithm.EcdsaP384, "sha384"],
]);

/** Checks a signature in this thread. Keys that are no keys fit nothing; nothing is thrown. */
export function verifySignature(
  { algorithm, publicKey, data, signature }: SignatureCheck,
): boolean {
  const spki = publicKeySpki(algorithm, publicKey);
  if (spki === null || !isSignatureLength(algorithm, signature.length)) return false;
  try {
    const key = createPublicKey({ key: spki, format: "der", type: "spki" } as never);
    return verify(HASHES.get(algorithm), data, { key, dsaEncoding: "ieee-p1363" }, signature);
  } catch {
    return false; // A point that is on no curve, for one.
  }
}

/** Names of WebCrypto, which has no Ed448. */
function subtleParameters(algorithm: number) {
  const hash = HASHES.get(algorithm)?.replace("sha", "SHA-");
  switch (algorithm) {
    case Algorithm.EcdsaP256:
      return { name: "ECDSA", namedCurve: "P-256", hash };
    case Algorithm.EcdsaP384:
      return { name: "ECDSA", namedCurve: "P-384", hash };
    case Algorithm.Ed25519:
      return { name: "Ed25519" };
    case Algorithm.Ed448:
      return null;
    default:
      return { name: "RSASSA-PKCS1-v1_5", hash };
  }
}

/** Keys that are kept ready. */
const KEYS_MAX = 256;

/**
 * As `verifySignature`, by WebCrypto and so in threads of the runtime, where that can do it. The keys
 * used last are kept: making one of bytes takes a tenth of a check.
 */
export class SignatureVerifier {
  readonly #keys = new Map<string, CryptoKey>();

  async verify(check: SignatureCheck): Promise<boolean> {
    const { algorithm, publicKey, data, signature } = check;
    if (!isSignatureLength(algorithm, signature.length)) return false;
    const parameters = subtleParameters(algorithm);
    if (parameters === null) return verifySignature(check);
    try {
      const key = await this.#keyOf(algorithm, publicKey, parameters);
      if (key === null) return false;
      return await crypto.subtle.verify(
        parameters as never,
        key,
        signature as Uint8Array<ArrayBuffer>,
        data as Uint8Array<ArrayBuffer>,
      );
    } catch {
      return false;
    }
  }

  async #keyOf(
    algorithm: number,
    publicKey: Uint8Array,
    parameters: NonNullable<ReturnType<typeof subtleParameters>>,
  ): Promise<CryptoKey | null> {
    const name = `${algorithm}:${String.fromCharCode(...publicKey)}`;
    const known = this.#keys.get(name);
    if (known !== undefined) return known;
    const spki = publicKeySpki(algorithm, publicKey);
    if (spki === null) return null;
    const usages: KeyUsage[] = ["verify"];
    const key = await crypto.subtle.importKey("spki", spki, parameters as never, false, usages);
    if (this.#keys.size >= KEYS_MAX) {
      for (const oldest of this.#keys.keys()) {
        this.#keys.delete(oldest);
        break;
      }
    }
    this.#keys.set(name, key);
    return key;
  }
}

/** One check as `SignatureVerifier` makes it. */
export function verifySignatureAsync(check: SignatureCheck): Promise<boolean> {
  return new SignatureVerifier().verify(check);
}
