import {
  Algorithm,
  isSignatureLength,
  publicKeySpki,
  SAMPLES,
  type SignatureCheck,
} from "../../dnssec/verify.ts";
import type { LibCrypto, LibraryHash, LibraryKey } from "../../native/checking.ts";

/** Keys that are kept ready, some 3 KiB each. */
const KEYS_MAX = 256;
/** A point begins with this where both its numbers follow. */
const UNCOMPRESSED = 0x04;
const DER_INTEGER = 0x02;
const DER_SEQUENCE = 0x30;

const HASHES: ReadonlyMap<number, LibraryHash | null> = new Map([
  [Algorithm.RsaSha1, "SHA1"],
  [Algorithm.RsaSha1Nsec3, "SHA1"],
  [Algorithm.RsaSha256, "SHA256"],
  [Algorithm.RsaSha512, "SHA512"],
  [Algorithm.EcdsaP256, "SHA256"],
  [Algorithm.EcdsaP384, "SHA384"],
  [Algorithm.Ed25519, null],
  [Algorithm.Ed448, null],
]);

/** Says whether an algorithm's keys are points of a curve as they stand, and its signatures two numbers. */
function isEcdsa(algorithm: number): boolean {
  return algorithm === Algorithm.EcdsaP256 || algorithm === Algorithm.EcdsaP384;
}

/**
 * Checks signatures by the system's library, of the algorithms that it has shown to know: an operator
 * may have forbidden it some, and it then says of good signatures that they fail.
 */
export class LibraryVerifier {
  readonly #library: LibCrypto;
  /** The algorithms that are left to it, and those that are not. */
  readonly algorithms: ReadonlySet<number>;
  readonly lacking: readonly number[];
  /** Those used last come last. */
  readonly #keys = new Map<string, LibraryKey>();
  /** A key on each curve. */
  readonly #curves = new Map<number, LibraryKey>();

  constructor(library: LibCrypto, samples: readonly SignatureCheck[] = SAMPLES) {
    this.#library = library;
    this.algorithms = new Set(
      Array.from(HASHES.keys()).filter((algorithm) => this.#knows(algorithm, samples)),
    );
    this.lacking = Array.from(HASHES.keys()).filter((one) => !this.algorithms.has(one));
    this.#forget(0);
  }

  /** Says whether a signature fits; `null`: somebody else has to. */
  verify(check: SignatureCheck): boolean | null {
    return this.algorithms.has(check.algorithm) ? this.#verify(check) : null;
  }

  /** It has to take a good signature, and neither another one nor other data. */
  #knows(algorithm: number, samples: readonly SignatureCheck[]): boolean {
    const own = samples.filter((sample) => sample.algorithm === algorithm);
    return own.length > 0 && own.every((sample) => {
      const { data, signature } = sample;
      return this.#verify(sample) === true &&
        this.#verify({ ...sample, data: data.with(0, data[0] ^ 1) }) === false &&
        this.#verify({ ...sample, signature: signature.with(-1, signature.at(-1)! ^ 1) }) === false;
    });
  }

  #verify({ algorithm, publicKey, data, signature }: SignatureCheck): boolean | null {
    if (!isSignatureLength(algorithm, signature.length)) return false;
    const key = this.#keyOf(algorithm, publicKey);
    const hash = HASHES.get(algorithm);
    if (key === null || hash === undefined) return null;
    const signed = isEcdsa(algorithm) ? derSignature(signature) : signature;
    type Bytes = Uint8Array<ArrayBuffer>;
    return this.#library.verify(key, hash, signed as Bytes, data as Bytes);
  }

  #keyOf(algorithm: number, publicKey: Uint8Array): LibraryKey | null {
    const name = `${algorithm}:${String.fromCharCode(...publicKey)}`;
    const key = this.#keys.get(name) ?? this.#newKey(algorithm, publicKey);
    if (key === null) return null;
    this.#keys.delete(name);
    this.#keys.set(name, key);
    this.#forget(KEYS_MAX);
    return key;
  }

  #newKey(algorithm: number, publicKey: Uint8Array): LibraryKey | null {
    const spki = publicKeySpki(algorithm, publicKey);
    if (spki === null) return null;
    const curve = this.#curves.get(algorithm);
    if (curve !== undefined) {
      const point = new Uint8Array(1 + publicKey.length);
      point[0] = UNCOMPRESSED;
      point.set(publicKey, 1);
      return this.#library.keyLike(curve, point);
    }
    const key = this.#library.keyOf(spki);
    if (key === null || !isEcdsa(algorithm)) return key;
    this.#curves.set(algorithm, key);
    return this.#newKey(algorithm, publicKey);
  }

  /** Frees all keys but those used last. */
  #forget(left: number): void {
    for (const [name, key] of this.#keys) {
      if (this.#keys.size <= left) return;
      this.#keys.delete(name);
      this.#library.free(key);
    }
  }
}

/** Two numbers of one length as ECDSA-Sig-Value (RFC 3279 §2.2.3). */
function derSignature(signature: Uint8Array): Uint8Array<ArrayBuffer> {
  const half = signature.length >> 1;
  const numbers = [signature.subarray(0, half), signature.subarray(half)].map(derNumber);
  const length = numbers[0].length + numbers[1].length;
  const der = new Uint8Array(2 + length);
  der[0] = DER_SEQUENCE;
  der[1] = length; // Of P-384 102 at most.
  der.set(numbers[0], 2);
  der.set(numbers[1], 2 + numbers[0].length);
  return der;
}

/** A positive number: no zeros before it, but for one where its first bit would be a sign. */
function derNumber(bytes: Uint8Array): Uint8Array {
  let at = 0;
  while (at < bytes.length - 1 && bytes[at] === 0) at++;
  const number = bytes.subarray(at);
  const sign = number[0] >> 7;
  const der = new Uint8Array(2 + sign + number.length);
  der[0] = DER_INTEGER;
  der[1] = sign + number.length;
  der.set(number, 2 + sign);
  return der;
}
