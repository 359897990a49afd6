// Goal: the system's library says of a signature what the runtime says, whatever it is given, and what
// it can't say is never taken for good. Method: keys and signatures of every algorithm, drawn from one
// seed and then flipped, cut, and bent to the edges of their numbers; both check each.
// SVC_ROUNDS=N checks so many keys of each algorithm, SVC_SEED=N repeats a run.
import assert from "node:assert/strict";
import { generateKeyPairSync, type KeyObject, sign } from "node:crypto";
import { concat, decodeBase64url } from "../../bytes/mod.ts";
import {
  Algorithm,
  SAMPLES,
  type SignatureCheck,
  SignatureVerifier,
  verifySignature,
} from "../../dnssec/verify.ts";
import { LibCrypto, LIBCRYPTO_PATHS } from "../../native/checking.ts";
import { Prng, seedFromEnv } from "../../../tests/prng.ts";
import { LibraryVerifier } from "./library_verifier.ts";

const ROUNDS = Number(Deno.env.get("SVC_ROUNDS") ?? 3);
const permissions = { ffi: [...LIBCRYPTO_PATHS] };
const library = LibCrypto.open();
if (library === null) console.warn("skipped: this system has no libcrypto.so.3");
const OPTIONS = { permissions, ignore: library === null } as const;

/** How keys of an algorithm are made, what signs, and their half of a signature where that has two. */
interface Kind {
  readonly make: () => { publicKey: KeyObject; privateKey: KeyObject };
  readonly hash: string | null;
  readonly order?: bigint;
  readonly half?: number;
}

const rsa = (hash: string, modulusLength = 1_024, publicExponent = 65_537): Kind => ({
  make: () => generateKeyPairSync("rsa", { modulusLength, publicExponent }),
  hash,
});
const ec = (namedCurve: string, hash: string, half: number, order: bigint): Kind => ({
  make: () => generateKeyPairSync("ec", { namedCurve }),
  ...{ hash, half, order },
});
const P256_ORDER = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n;
const P384_ORDER =
  0xffffffffffffffffffffffffffffffffffffffffffffffffc7634d81f4372ddf581a0db248b0a77aecec196accc52973n;
const KINDS: readonly (readonly [number, Kind])[] = [
  [Algorithm.RsaSha1, rsa("sha1")],
  [Algorithm.RsaSha1Nsec3, rsa("sha1", 1_024, 3)],
  [Algorithm.RsaSha256, rsa("sha256", 512)],
  [Algorithm.RsaSha256, rsa("sha256", 2_048)],
  [Algorithm.RsaSha512, rsa("sha512", 1_031)],
  [Algorithm.EcdsaP256, ec("P-256", "sha256", 32, P256_ORDER)],
  [Algorithm.EcdsaP384, ec("P-384", "sha384", 48, P384_ORDER)],
  [Algorithm.Ed25519, { make: () => generateKeyPairSync("ed25519"), hash: null }],
  [Algorithm.Ed448, { make: () => generateKeyPairSync("ed448"), hash: null }],
];

/** A key as a DNSKEY record holds it. */
function dnskeyOf(publicKey: KeyObject): Uint8Array {
  const jwk = publicKey.export({ format: "jwk" });
  const bytes = (text: string | undefined) => decodeBase64url(text ?? "")!;
  if (jwk.kty === "RSA") return rsaKey(bytes(jwk.e), bytes(jwk.n));
  if (jwk.kty === "EC") return concat(bytes(jwk.x), bytes(jwk.y));
  return bytes(jwk.x);
}

function rsaKey(exponent: Uint8Array, modulus: Uint8Array): Uint8Array {
  const { length } = exponent;
  const head = length < 256 ? Uint8Array.of(length) : Uint8Array.of(0, length >> 8, length);
  return concat(head, exponent, modulus);
}

function bytesOf(number: bigint, length: number): Uint8Array {
  return Uint8Array.from(
    { length },
    (_, i) => Number(number >> BigInt(8 * (length - 1 - i)) & 255n),
  );
}

function numberOf(bytes: Uint8Array): bigint {
  return bytes.reduce((sum, byte) => sum << 8n | BigInt(byte), 0n);
}

const runtime = new SignatureVerifier();

/** Both check it: the library agrees with the runtime, or leaves it to that. */
async function hold(verifier: LibraryVerifier, check: SignatureCheck, what: string) {
  const byLibrary = verifier.verify(check);
  const byRuntime = await runtime.verify(check);
  assert.equal(verifySignature(check), byRuntime, `${what}: the runtime agrees with itself`);
  if (byLibrary === null) assert.equal(byRuntime, false, `${what}: a good one is the library's`);
  else assert.equal(byLibrary, byRuntime, what);
  return byLibrary;
}

Deno.test("LibraryVerifier says what the runtime says, of every algorithm", OPTIONS, async (t) => {
  const verifier = new LibraryVerifier(library!);
  const seed = seedFromEnv();
  const prng = new Prng(seed);
  const flip = (bytes: Uint8Array) => {
    const at = prng.int(bytes.length);
    return bytes.with(at, bytes[at] ^ 1 << prng.int(8));
  };
  for (const [algorithm, kind] of KINDS) {
    await t.step(`${algorithm} ${kind.hash}, seed ${seed}`, async () => {
      for (let round = 0; round < ROUNDS; round++) {
        const { publicKey: made, privateKey } = kind.make();
        const publicKey = dnskeyOf(made);
        const data = Uint8Array.from({ length: 1 + prng.int(600) }, () => prng.int(256));
        const key = { key: privateKey, dsaEncoding: "ieee-p1363" } as const;
        const signature = new Uint8Array(sign(kind.hash, data, key));
        const check = { algorithm, publicKey, data, signature };
        assert.equal(await hold(verifier, check, "good"), true);
        assert.equal(await hold(verifier, check, "good, by a known key"), true);
        const bent: Record<string, Partial<SignatureCheck>> = {
          "another hash or curve": { algorithm: algorithm ^ 1 },
          "no data": { data: new Uint8Array() },
          "no signature": { signature: new Uint8Array() },
          "no key": { publicKey: new Uint8Array() },
          "half a signature": { signature: signature.subarray(signature.length >> 1) },
          "a longer signature": { signature: concat(signature, Uint8Array.of(0)) },
          "a shorter signature": { signature: signature.subarray(0, -1) },
          "a shorter key": { publicKey: publicKey.subarray(0, -1) },
          "a key of zeros": { publicKey: new Uint8Array(publicKey.length) },
          "a signature of zeros": { signature: new Uint8Array(signature.length) },
          "a signature of ones": { signature: new Uint8Array(signature.length).fill(255) },
        };
        for (let i = 0; i < 6; i++) {
          bent[`data ${i}`] = { data: flip(data) };
          bent[`signature ${i}`] = { signature: flip(signature) };
          bent[`key ${i}`] = { publicKey: flip(publicKey) };
        }
        const { half, order } = kind;
        if (half !== undefined && order !== undefined) {
          const [r, s] = [signature.subarray(0, half), signature.subarray(half)];
          const zero = new Uint8Array(half);
          const numbers = {
            "r = 0": [zero, s],
            "s = 0": [r, zero],
            "r = n": [bytesOf(order, half), s],
            "s = n": [r, bytesOf(order, half)],
            "s = n + 1": [r, bytesOf(order + 1n, half)],
          };
          for (const [what, pair] of Object.entries(numbers)) {
            bent[what] = { signature: concat(...pair) };
          }
          // The other one of the two that fit: it is no lie.
          const other = concat(r, bytesOf(order - numberOf(s), half));
          assert.equal(await hold(verifier, { ...check, signature: other }, "n - s"), true);
        }
        for (const [what, changes] of Object.entries(bent)) {
          assert.notEqual(await hold(verifier, { ...check, ...changes }, what), true, what);
        }
      }
    });
  }
});

Deno.test("LibraryVerifier agrees about RSA numbers of any size", OPTIONS, async () => {
  const verifier = new LibraryVerifier(library!);
  const sample = SAMPLES.find(({ algorithm }) => algorithm === Algorithm.RsaSha256)!;
  const one = Uint8Array.of(1);
  const odd = (bits: number) => bytesOf((1n << BigInt(bits - 1)) | 1n, bits + 7 >> 3);
  const exponents = [one, Uint8Array.of(2), Uint8Array.of(0, 0, 3), odd(33), odd(34), odd(2_048)];
  const moduli = [one, odd(8), odd(511), odd(512), odd(4_095), odd(4_096), odd(4_097), odd(8_192)];
  for (const exponent of exponents) {
    for (const modulus of moduli) {
      const publicKey = rsaKey(exponent, modulus);
      for (const length of [1, 64, 256, 512, 513]) {
        const check = { ...sample, publicKey, signature: new Uint8Array(length).fill(1) };
        const what = `${exponent.length}, ${modulus.length}, ${length}`;
        assert.notEqual(await hold(verifier, check, what), true, what);
      }
    }
  }
  const [, ...key] = sample.publicKey;
  const longer = Uint8Array.of(4, 0, ...key);
  assert.equal(await hold(verifier, { ...sample, publicKey: longer }, "a zero before"), true);
});

Deno.test("LibraryVerifier keeps few keys, and frees the others", OPTIONS, () => {
  const live = new Set<unknown>();
  const spy = new Proxy(library!, {
    get(target, name) {
      const value = Reflect.get(target, name);
      if (typeof value !== "function") return value;
      return (...args: never[]) => {
        const result = value.apply(target, args);
        if ((name === "keyOf" || name === "keyLike") && result !== null) live.add(result);
        if (name === "free") assert.ok(live.delete(args[0]), "freed once");
        return result;
      };
    },
  });
  const verifier = new LibraryVerifier(spy);
  const [curves] = [live.size];
  assert.equal(curves, 2, "of those that it began with the curves are left");
  for (let i = 0; i < 300; i++) {
    const { publicKey, privateKey } = generateKeyPairSync("ed25519");
    const data = Uint8Array.of(i);
    const check = {
      algorithm: Algorithm.Ed25519,
      publicKey: dnskeyOf(publicKey),
      data,
      signature: new Uint8Array(sign(null, data, privateKey)),
    };
    assert.equal(verifier.verify(check), true);
    // A key that is none is not kept.
    const off = { ...SAMPLES[4], publicKey: new Uint8Array(64).fill(i + 1) };
    assert.equal(verifier.verify(off), null);
  }
  assert.equal(live.size, curves + 256);
});

Deno.test("LibraryVerifier leaves alone what it does not know", OPTIONS, () => {
  const spoilt = SAMPLES.map((sample) =>
    sample.algorithm === Algorithm.RsaSha1
      ? { ...sample, signature: sample.signature.with(9, sample.signature[9] ^ 1) }
      : sample
  );
  const verifier = new LibraryVerifier(library!, spoilt);
  assert.deepEqual(verifier.lacking, [Algorithm.RsaSha1]);
  assert.equal(verifier.verify(SAMPLES[0]), null);
  assert.equal(verifier.verify(SAMPLES[1]), true);
  assert.deepEqual(new LibraryVerifier(library!, []).algorithms, new Set());
  // One that takes everything knows nothing either.
  const yes = new Proxy(library!, {
    get(target, name) {
      const value = Reflect.get(target, name);
      if (name === "verify") return () => true;
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
  assert.deepEqual(new LibraryVerifier(yes).algorithms, new Set());
});

Deno.test("LibCrypto opens no other file, and none of another kind", OPTIONS, () => {
  assert.match(library!.version, /^3\.\d+\.\d+$/);
  assert.equal(LibCrypto.open([]), null);
  assert.equal(LibCrypto.open(["/nowhere/libcrypto.so.3", "/etc/passwd"]), null);
});

Deno.test("SAMPLES are good", { permissions: "none" }, () => {
  assert.deepEqual(SAMPLES.map(({ algorithm }) => algorithm), [5, 7, 8, 10, 13, 14, 15, 16]);
  for (const sample of SAMPLES) assert.equal(verifySignature(sample), true, `${sample.algorithm}`);
});
