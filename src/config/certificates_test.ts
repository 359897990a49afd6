import assert from "node:assert/strict";
import { generateKeyPairSync, type X509Certificate } from "node:crypto";
import { coversClientIds, coversName, keyWeakness } from "./certificates.ts";

const none = { permissions: "none" } as const;

Deno.test("keyWeakness() takes what clients and the TLS library take", none, () => {
  const { privateKey: rsa } = generateKeyPairSync("rsa", { modulusLength: 2_048 });
  const { privateKey: short } = generateKeyPairSync("rsa", { modulusLength: 1_024 });
  const { privateKey: p256 } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const { privateKey: p384 } = generateKeyPairSync("ec", { namedCurve: "P-384" });
  const { privateKey: edwards } = generateKeyPairSync("ed25519");
  const { privateKey: exchange } = generateKeyPairSync("x25519");
  assert.deepEqual([rsa, p256, p384, edwards].map(keyWeakness), [null, null, null, null]);
  assert.equal(keyWeakness(short), "an RSA key of 1024 bits is too weak");
  assert.equal(keyWeakness(exchange), "keys of the kind x25519 are not for TLS");
});

Deno.test("coversName() and coversClientIds() read names and wildcards", none, () => {
  const rows = [
    ["DNS:dns.example", "dns.example", true, false],
    ["DNS:other.example, DNS:DNS.Example", "dns.EXAMPLE", true, false],
    ["DNS:*.example", "dns.example", true, false],
    ["DNS:*.dns.example", "dns.example", false, true],
    ["DNS:dns.example, DNS:*.dns.example", "dns.example", true, true],
    ["DNS:*.example", "a.dns.example", false, false],
    ["IP Address:192.0.2.1", "192.0.2.1", false, false],
    ["", "dns.example", false, false],
  ] as const;
  for (const [subjectAltName, name, covers, coversIds] of rows) {
    const certificate = { subjectAltName } as X509Certificate;
    assert.equal(coversName(certificate, name), covers, `${subjectAltName} for ${name}`);
    assert.equal(coversClientIds(certificate, name), coversIds, `${subjectAltName} for IDs`);
  }
});
