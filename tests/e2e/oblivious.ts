/** A client of Oblivious DoH (RFC 9230) without the proxy, made from the RFC and not from the service. */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { Aes128Gcm, CipherSuite, DhkemX25519HkdfSha256, HkdfSha256 } from "@hpke/core";
import { getU16, setU16 } from "../../src/bytes/mod.ts";

/** Content type of its messages. */
export const OBLIVIOUS = "application/oblivious-dns-message";

const suite = new CipherSuite({
  kem: new DhkemX25519HkdfSha256(),
  kdf: new HkdfSha256(),
  aead: new Aes128Gcm(),
});
const text = (s: string) => new TextEncoder().encode(s);

async function hmac(key: Uint8Array, ...parts: Uint8Array[]): Promise<Uint8Array<ArrayBuffer>> {
  const secret = key.length === 0 ? new Uint8Array(32) : Uint8Array.from(key);
  const imported = await crypto.subtle.importKey(
    "raw",
    secret,
    { name: "HMAC", hash: "SHA-256" },
    false,
    ["sign"],
  );
  return new Uint8Array(await crypto.subtle.sign("HMAC", imported, Buffer.concat(parts)));
}

const lengthOf = (bytes: Uint8Array) => {
  const field = new Uint8Array(2);
  setU16(field, 0, bytes.length);
  return field;
};

/** A query for the target, and what opens the response to it. */
export interface Oblivious {
  readonly message: Uint8Array<ArrayBuffer>;
  /** Reads the response's DNS message; it has to be padded to blocks of 468 bytes. */
  open(response: Uint8Array): Promise<Uint8Array>;
}

/** Encrypts a query with the key that a target shows (RFC 9230 §6). */
export async function oblivious(configs: Uint8Array, query: Uint8Array): Promise<Oblivious> {
  assert.equal(getU16(configs, 0), configs.length - 2);
  const contents = configs.subarray(6);
  const key = await suite.kem.deserializePublicKey(Uint8Array.from(contents.subarray(8)).buffer);
  const keyId = await hmac(
    await hmac(new Uint8Array(0), contents),
    text("odoh key id"),
    Uint8Array.of(1),
  );
  const aad = Buffer.concat([Uint8Array.of(1), lengthOf(keyId), keyId]);
  const sender = await suite.createSenderContext({
    recipientPublicKey: key,
    info: text("odoh query").buffer,
  });
  const padding = new Uint8Array(40);
  const plain = Buffer.concat([lengthOf(query), query, lengthOf(padding), padding]);
  const ciphertext = new Uint8Array(
    await sender.seal(Uint8Array.from(plain), Uint8Array.from(aad)),
  );
  const sealed = Buffer.concat([new Uint8Array(sender.enc), ciphertext]);
  const secret = new Uint8Array(await sender.export(text("odoh response"), 16));
  return {
    message: Uint8Array.from(Buffer.concat([aad, lengthOf(sealed), sealed])),
    async open(response: Uint8Array): Promise<Uint8Array> {
      assert.equal(response[0], 2);
      const nonce = response.subarray(3, 3 + getU16(response, 1));
      const prk = await hmac(Buffer.concat([plain, lengthOf(nonce), nonce]), secret);
      const bytes = (await hmac(prk, text("odoh key"), Uint8Array.of(1))).slice(0, 16);
      const iv = (await hmac(prk, text("odoh nonce"), Uint8Array.of(1))).slice(0, 12);
      const aesKey = await crypto.subtle.importKey("raw", bytes, "AES-GCM", false, ["decrypt"]);
      const end = 3 + nonce.length;
      const additionalData = Uint8Array.from(response.subarray(0, end));
      const opened = new Uint8Array(
        await crypto.subtle.decrypt(
          { name: "AES-GCM", iv, additionalData },
          aesKey,
          Uint8Array.from(response.subarray(end + 2)),
        ),
      );
      assert.equal((opened.length - 4) % 468, 0, "padded to blocks");
      return opened.slice(2, 2 + getU16(opened, 0));
    },
  };
}
