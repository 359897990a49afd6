import { concat } from "../bytes/mod.ts";
import assert from "node:assert/strict";
import { createPublicKey, generateKeyPairSync, sign } from "node:crypto";
import { Algorithm, isSupported, isUsable, publicKeySpki } from "./keys.ts";
import { readDnskey } from "./records.ts";
import { verifySignature, verifySignatureAsync } from "./verify.ts";

const none = { permissions: "none" } as const;

/** An odd number of so many bits. */
function odd(bits: number): Uint8Array {
  const bytes = new Uint8Array(Math.ceil(bits / 8)).fill(0xff);
  bytes[0] = 0xff >> ((8 - (bits % 8)) % 8);
  return bytes;
}

function even(bits: number): Uint8Array {
  const bytes = odd(bits);
  bytes[bytes.length - 1] = 0xfe;
  return bytes;
}

/** A key as a DNSKEY holds it (RFC 3110 §2). */
function rsa(
  exponent: Uint8Array,
  modulus: Uint8Array,
  isLong = exponent.length > 255,
): Uint8Array {
  const { length } = exponent;
  const prefix = isLong ? Uint8Array.of(0, length >> 8, length) : Uint8Array.of(length);
  return concat(prefix, exponent, modulus);
}

const F4 = Uint8Array.of(1, 0, 1);
const ROWS: readonly (readonly [string, number, Uint8Array, boolean])[] = [
  ["RSA", Algorithm.RsaSha256, rsa(F4, odd(2048)), true],
  [
    "RSA with the long form of the exponent's length",
    Algorithm.RsaSha256,
    rsa(F4, odd(1024), true),
    true,
  ],
  ["RSA of exponent 3", Algorithm.RsaSha1, rsa(Uint8Array.of(3), odd(512)), true],
  [
    "RSA of exponent 2^32 + 1",
    Algorithm.RsaSha512,
    rsa(Uint8Array.of(1, 0, 0, 0, 1), odd(1024)),
    true,
  ],
  [
    "RSA with zeros before its numbers",
    Algorithm.RsaSha256,
    rsa(concat(Uint8Array.of(0, 0), F4), concat(Uint8Array.of(0), odd(1024))),
    true,
  ],
  ["RSA of 4096 bits", Algorithm.RsaSha256, rsa(F4, odd(4096)), true],
  ["RSA of 4097 bits", Algorithm.RsaSha256, rsa(F4, odd(4097)), false],
  ["RSA of 511 bits", Algorithm.RsaSha256, rsa(F4, odd(511)), false],
  ["RSA of an even modulus", Algorithm.RsaSha256, rsa(F4, even(1024)), false],
  ["RSA of an even exponent", Algorithm.RsaSha256, rsa(Uint8Array.of(4), odd(1024)), false],
  ["RSA of exponent 1", Algorithm.RsaSha256, rsa(Uint8Array.of(1), odd(1024)), false],
  ["RSA of exponent 0", Algorithm.RsaSha256, rsa(Uint8Array.of(0), odd(1024)), false],
  ["RSA of an exponent of 34 bits", Algorithm.RsaSha256, rsa(odd(34), odd(1024)), false],
  ["RSA of an exponent of 4096 bits", Algorithm.RsaSha256, rsa(odd(4096), odd(1024)), false],
  ["RSA without a modulus", Algorithm.RsaSha256, rsa(odd(1024), new Uint8Array(0), true), false],
  ["RSA cut off in its exponent", Algorithm.RsaSha256, Uint8Array.of(0, 9, 9, 1), false],
  ["RSA of an empty exponent", Algorithm.RsaSha256, concat(Uint8Array.of(0), odd(1024)), false],
  ["nothing", Algorithm.RsaSha256, new Uint8Array(0), false],
  ["P-256 of 63 bytes", Algorithm.EcdsaP256, new Uint8Array(63), false],
  ["P-384 of 64 bytes", Algorithm.EcdsaP384, new Uint8Array(64), false],
  ["Ed25519 of 57 bytes", Algorithm.Ed25519, new Uint8Array(57), false],
  ["Ed448 of 32 bytes", Algorithm.Ed448, new Uint8Array(32), false],
  ["DSA", 3, rsa(F4, odd(1024)), false],
  ["GOST", 12, new Uint8Array(64), false],
];

Deno.test(
  "publicKeySpki() takes keys of the form of their algorithm, which the runtime imports",
  none,
  async (t) => {
    for (const [what, algorithm, key, isTaken] of ROWS) {
      await t.step(what, async () => {
        const spki = publicKeySpki(algorithm, key);
        assert.equal(spki !== null, isTaken);
        if (spki !== null) createPublicKey({ key: spki, format: "der", type: "spki" } as never);
        const check = {
          algorithm,
          publicKey: key,
          data: F4,
          signature: new Uint8Array(64).fill(1),
        };
        assert.equal(verifySignature(check), false);
        assert.equal(await verifySignatureAsync(check), false);
      });
    }
  },
);

Deno.test(
  "verifySignature() and verifySignatureAsync() take RSA of each hash and length",
  none,
  async (t) => {
    for (const modulusLength of [512, 1024, 2048]) {
      const { publicKey, privateKey } = generateKeyPairSync("rsa", { modulusLength });
      const { n, e } = publicKey.export({ format: "jwk" }) as { n: string; e: string };
      const bytes = (text: string) =>
        Uint8Array.from(
          atob(text.replaceAll("-", "+").replaceAll("_", "/")),
          (c) => c.charCodeAt(0),
        );
      const key = rsa(bytes(e), bytes(n));
      for (
        const [algorithm, hash] of [[5, "sha1"], [7, "sha1"], [8, "sha256"], [
          10,
          "sha512",
        ]] as const
      ) {
        // A hash of 64 bytes has no room in 512 bits.
        if (modulusLength === 512 && hash === "sha512") continue;
        await t.step(`${modulusLength} bits, ${hash}`, async () => {
          const signature = new Uint8Array(sign(hash, F4, privateKey));
          const check = { algorithm, publicKey: key, data: F4, signature };
          assert(verifySignature(check));
          assert(await verifySignatureAsync(check));
          const other = algorithm === 8 ? 10 : 8;
          assert.equal(verifySignature({ ...check, algorithm: other }), false);
        });
      }
    }
  },
);

Deno.test("isUsable() wants a zone's key that is not revoked", none, async (t) => {
  const key = new Uint8Array(32).fill(7);
  const rows: readonly (readonly [string, number, number, number, boolean])[] = [
    ["a zone key", 256, 3, 15, true],
    ["a zone key with SEP", 257, 3, 15, true],
    ["no zone key", 1, 3, 15, false],
    ["revoked", 385, 3, 15, false],
    ["another protocol", 257, 2, 15, false],
    ["another algorithm", 257, 3, 250, false],
  ];
  for (const [what, flags, protocol, algorithm, want] of rows) {
    await t.step(what, () => {
      const rdata = Uint8Array.of(flags >> 8, flags, protocol, algorithm, ...key);
      assert.equal(isUsable(readDnskey(rdata)!), want);
    });
  }
  assert.deepEqual([1, 3, 5, 6, 7, 8, 10, 12, 13, 14, 15, 16, 17].filter(isSupported), [
    5,
    7,
    8,
    10,
    13,
    14,
    15,
    16,
  ]);
});
