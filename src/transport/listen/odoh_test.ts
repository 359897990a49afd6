import assert from "node:assert/strict";
import { Aes128Gcm, CipherSuite, DhkemX25519HkdfSha256, HkdfSha256 } from "@hpke/core";
import { decodeHex, encodeHex } from "../../bytes/mod.ts";
import { Prng, seedFromEnv } from "../../../tests/prng.ts";
import { Oblivious, ObliviousKeys, ObliviousQuery } from "./odoh.ts";
import { ODOH_SEED_BYTES } from "./odoh_seed.ts";

const VECTORS = new URL("../../../../shared/vectors/odoh.json", import.meta.url);
const HPKE_VECTORS = new URL("../../../../shared/vectors/hpke-rfc9180.json", import.meta.url);
const hpkeReading = { permissions: { read: [HPKE_VECTORS] } };
const reading = { permissions: { read: [VECTORS] } };
const none = { permissions: "none" } as const;

interface Vector {
  readonly odohconfigs: string;
  readonly public_key_seed: string;
  readonly key_id: string;
  readonly transactions: readonly {
    readonly query: string;
    readonly queryPaddingLength: number;
    readonly response: string;
    readonly responsePaddingLength: number;
    readonly obliviousQuery: string;
    readonly obliviousResponse: string;
  }[];
}

interface HpkeVector {
  readonly setup: Readonly<
    Record<"kem_id" | "kdf_id" | "aead_id" | "ikmR" | "info" | "enc", string>
  >;
  readonly encryptions: readonly Readonly<
    Record<"sequence number" | "pt" | "aad" | "ct", string>
  >[];
  readonly exports: readonly Readonly<
    Record<"exporter_context" | "L" | "exported_value", string>
  >[];
}

function readJson<T>(url: URL): readonly T[] {
  try {
    return JSON.parse(Deno.readTextFileSync(url)).vectors;
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
    console.log(`skipped: there is no ${url.pathname.split("/").at(-1)} beside the checkout`);
    return [];
  }
}

const readVectors = () => readJson<Vector>(VECTORS);

const hex = (text: string) => decodeHex(text)!;

Deno.test(
  "ObliviousKeys answer the test vectors of RFC 9230's implementations",
  reading,
  async () => {
    for (const vector of readVectors()) {
      const keys = await ObliviousKeys.derive([hex(vector.public_key_seed)]);
      assert.equal(encodeHex(keys.configs), vector.odohconfigs);
      assert.ok(vector.transactions.length > 0);
      for (const transaction of vector.transactions) {
        const query = hex(transaction.obliviousQuery);
        const found = keys.find(query, 0, query.length);
        assert.ok(found instanceof ObliviousQuery);
        const opened = await found.open();
        assert.ok(opened !== null);
        assert.equal(encodeHex(opened.message), transaction.query);
        // Nonce and padding are those of whoever made the vector.
        const nonce = hex(transaction.obliviousResponse).subarray(3, 19);
        const response = hex(`ff${transaction.response}`);
        const sealed = opened.seal(
          response,
          1,
          response.length - 1,
          nonce,
          transaction.responsePaddingLength,
        );
        assert.equal(encodeHex(sealed), transaction.obliviousResponse);
        const padded = opened.seal(response, 1, response.length - 1);
        assert.equal(padded.length, 3 + 16 + 2 + 4 + 468 + 16);
      }
    }
  },
);

Deno.test("the HPKE library does as RFC 9180's vectors", hpkeReading, async () => {
  const vector = readJson<HpkeVector>(HPKE_VECTORS)
    .find(({ setup }) => setup.kem_id === "32" && setup.kdf_id === "1" && setup.aead_id === "1");
  if (vector === undefined) return;
  const { setup, encryptions, exports } = vector;
  const suite = new CipherSuite({
    kem: new DhkemX25519HkdfSha256(),
    kdf: new HkdfSha256(),
    aead: new Aes128Gcm(),
  });
  const recipientKey = await suite.kem.deriveKeyPair(hex(setup.ikmR).buffer);
  const [info, enc] = [hex(setup.info).buffer, hex(setup.enc).buffer];
  const context = await suite.createRecipientContext({ recipientKey, info, enc });
  let sequence = 0;
  for (const { "sequence number": number, pt, aad, ct } of encryptions) {
    if (Number(number) !== sequence++) break; // The list goes on far ahead.
    assert.equal(encodeHex(new Uint8Array(await context.open(hex(ct), hex(aad)))), pt);
  }
  assert.ok(sequence > 1 && exports.length > 0);
  for (const { exporter_context, L, exported_value } of exports) {
    const exported = await context.export(hex(exporter_context), Number(L));
    assert.equal(encodeHex(new Uint8Array(exported)), exported_value);
  }
});

Deno.test("ObliviousKeys accept the former key and offer the current one", reading, async () => {
  const [vector] = readVectors();
  if (vector === undefined) return;
  const query = hex(vector.transactions[0].obliviousQuery);
  const other = new Uint8Array(ODOH_SEED_BYTES).fill(7);
  const both = await ObliviousKeys.derive([other, hex(vector.public_key_seed)]);
  const found = both.find(query, 0, query.length);
  assert.ok(found instanceof ObliviousQuery);
  assert.equal(encodeHex((await found.open())!.message), vector.transactions[0].query);
  assert.notEqual(encodeHex(both.configs), vector.odohconfigs);
  const newer = await ObliviousKeys.derive([other]);
  assert.equal(newer.find(query, 0, query.length), Oblivious.UnknownKey);
});

Deno.test("ObliviousKeys refuse what is malformed or was changed", reading, async () => {
  const [vector] = readVectors();
  if (vector === undefined) return;
  const keys = await ObliviousKeys.derive([hex(vector.public_key_seed)]);
  const whole = hex(vector.transactions[0].obliviousQuery);
  for (let length = 0; length < whole.length; length++) {
    assert.equal(keys.find(whole, 0, length), Oblivious.Malformed, `${length} bytes`);
  }
  const longer = Uint8Array.of(...whole, 0);
  assert.equal(keys.find(longer, 0, longer.length), Oblivious.Malformed);
  const prng = new Prng(seedFromEnv());
  for (let i = 0; i < 60; i++) {
    const changed = whole.slice();
    const at = prng.int(whole.length);
    changed[at] ^= 1 << prng.int(8);
    const found = keys.find(changed, 0, changed.length);
    if (found instanceof ObliviousQuery) assert.equal(await found.open(), null, `byte ${at}`);
  }
});

Deno.test("ObliviousKeys take any bytes without harm", none, async () => {
  const keys = await ObliviousKeys.derive([new Uint8Array(ODOH_SEED_BYTES)]);
  const prng = new Prng(seedFromEnv());
  for (let i = 0; i < 2_000; i++) {
    const bytes = prng.bytes(prng.int(200));
    if (bytes.length > 0 && prng.chance(0.8)) bytes[0] = 1;
    const found = keys.find(bytes, 0, bytes.length);
    assert.ok(found === Oblivious.Malformed || found === Oblivious.UnknownKey);
  }
});
