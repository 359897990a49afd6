import { createCipheriv, createHmac } from "node:crypto";
import { Aes128Gcm, CipherSuite, DhkemX25519HkdfSha256, HkdfSha256, HpkeError } from "@hpke/core";
import { equalBytes, getU16, setU16 } from "../../bytes/mod.ts";
import { invariant } from "../../errors.ts";

// The one suite that every client has to know (RFC 9230 §9).
const [KEM_X25519, KDF_SHA256, AEAD_AES128] = [0x0020, 0x0001, 0x0001];
const CONFIG_VERSION = 0x0001;
const KEY_BYTES = 32;
/** Nh, Nk and Nn of the suite (RFC 9180 §7). */
const [HASH_BYTES, AEAD_KEY_BYTES, AEAD_NONCE_BYTES, AEAD_TAG_BYTES] = [32, 16, 12, 16];
/** max(Nn, Nk) (RFC 9230 §6.4). */
const RESPONSE_NONCE_BYTES = Math.max(AEAD_KEY_BYTES, AEAD_NONCE_BYTES);
/** Message types (RFC 9230 §6.2). */
const [TYPE_QUERY, TYPE_RESPONSE] = [0x01, 0x02];
/** Responses are padded to blocks, as over DoH (RFC 8467 §4.1). */
const BLOCK_BYTES = 468;
const MESSAGE_BYTES_MAX = 0xffff;

const encoder = new TextEncoder();
const suite = new CipherSuite({
  kem: new DhkemX25519HkdfSha256(),
  kdf: new HkdfSha256(),
  aead: new Aes128Gcm(),
});

/** What came of an oblivious message; each but `Ok` ends in a status of HTTP. */
export const Oblivious = { Ok: 0, Malformed: 1, UnknownKey: 2 } as const;
export type Oblivious = typeof Oblivious[keyof typeof Oblivious];

interface KeyPair {
  readonly id: Uint8Array;
  /** `ObliviousDoHConfigContents` (RFC 9230 §6.1). */
  readonly contents: Uint8Array;
  readonly privateKey: CryptoKey;
}

/** The keys of a target: the one that is offered, and those still accepted (RFC 9230 §6). */
export class ObliviousKeys {
  /** `ObliviousDoHConfigs` with the current key. */
  readonly configs: Uint8Array;
  readonly #pairs: readonly KeyPair[];

  private constructor(pairs: readonly KeyPair[]) {
    this.#pairs = pairs;
    const { contents } = pairs[0];
    const configs = new Uint8Array(6 + contents.length);
    setU16(configs, 0, 4 + contents.length);
    setU16(configs, 2, CONFIG_VERSION);
    setU16(configs, 4, contents.length);
    configs.set(contents, 6);
    this.configs = configs;
  }

  /** Derives the keys from seeds of `ODOH_SEED_BYTES`; the first is the current one. */
  static async derive(seeds: readonly Uint8Array[]): Promise<ObliviousKeys> {
    invariant(seeds.length > 0, "there is a current key");
    return new ObliviousKeys(await Promise.all(seeds.map(derivePair)));
  }

  /** Reads what stands in front of the encrypted query at `start` to `end`. */
  find(message: Uint8Array, start: number, end: number): ObliviousQuery | Oblivious {
    if (end - start < 3 || message[start] !== TYPE_QUERY) return Oblivious.Malformed;
    const idEnd = start + 3 + getU16(message, start + 1);
    if (idEnd + 2 > end) return Oblivious.Malformed;
    const sealedStart = idEnd + 2;
    if (sealedStart + getU16(message, idEnd) !== end) return Oblivious.Malformed;
    if (end - sealedStart <= KEY_BYTES + AEAD_TAG_BYTES) return Oblivious.Malformed;
    const id = message.subarray(start + 3, idEnd);
    const pair = this.#pairs.find((candidate) => equalBytes(candidate.id, id));
    if (pair === undefined) return Oblivious.UnknownKey;
    const aad = message.slice(start, idEnd);
    return new ObliviousQuery(pair.privateKey, aad, message.slice(sealedStart, end));
  }
}

/** A query that is not decrypted yet. */
export class ObliviousQuery {
  readonly #privateKey: CryptoKey;
  readonly #aad: Uint8Array;
  readonly #sealed: Uint8Array;

  constructor(privateKey: CryptoKey, aad: Uint8Array, sealed: Uint8Array) {
    this.#privateKey = privateKey;
    this.#aad = aad;
    this.#sealed = sealed;
  }

  /** Decrypts it (RFC 9230 §6.3); `null` where it can't be. */
  async open(): Promise<OpenedQuery | null> {
    const enc = this.#sealed.slice(0, KEY_BYTES);
    let plain: Uint8Array;
    let secret: Uint8Array;
    try {
      const context = await suite.createRecipientContext({
        recipientKey: this.#privateKey,
        enc: enc.buffer,
        info: encoder.encode("odoh query").buffer,
      });
      const ciphertext = this.#sealed.slice(KEY_BYTES);
      plain = new Uint8Array(await context.open(ciphertext, this.#aad));
      const exported = await context.export(encoder.encode("odoh response"), AEAD_KEY_BYTES);
      secret = new Uint8Array(exported);
    } catch (error) {
      // Whoever made it has another key or none.
      if (error instanceof HpkeError) return null;
      throw error;
    }
    const length = plain.length < 4 ? 0 : getU16(plain, 0);
    if (length === 0 || 2 + length + 2 > plain.length) return null;
    const padding = 2 + length + 2;
    if (padding + getU16(plain, padding - 2) !== plain.length) return null;
    // RFC 9230 §6.2: padding is of zeros.
    for (let i = padding; i < plain.length; i++) if (plain[i] !== 0) return null;
    return new OpenedQuery(plain, length, secret);
  }
}

/** A decrypted query, with what its response is encrypted by. */
export class OpenedQuery {
  readonly #plain: Uint8Array;
  readonly #secret: Uint8Array;
  /** The DNS message. */
  readonly message: Uint8Array;

  constructor(plain: Uint8Array, length: number, secret: Uint8Array) {
    this.#plain = plain;
    this.#secret = secret;
    this.message = plain.subarray(2, 2 + length);
  }

  /**
   * Encrypts the response at `offset` (RFC 9230 §6.2, §6.4). Without `nonce` and `paddingBytes`,
   * the nonce is drawn and the padding fills a block.
   */
  seal(
    response: Uint8Array,
    offset: number,
    length: number,
    nonce: Uint8Array = crypto.getRandomValues(new Uint8Array(RESPONSE_NONCE_BYTES)),
    paddingBytes: number = paddingOf(length),
  ): Uint8Array {
    const plain = new Uint8Array(2 + length + 2 + paddingBytes);
    setU16(plain, 0, length);
    plain.set(response.subarray(offset, offset + length), 2);
    setU16(plain, 2 + length, paddingBytes);
    const salt = new Uint8Array(this.#plain.length + 2 + nonce.length);
    salt.set(this.#plain);
    setU16(salt, this.#plain.length, nonce.length);
    salt.set(nonce, this.#plain.length + 2);
    const prk = extract(salt, this.#secret);
    const key = expand(prk, "odoh key", AEAD_KEY_BYTES);
    const iv = expand(prk, "odoh nonce", AEAD_NONCE_BYTES);
    const sealedBytes = plain.length + AEAD_TAG_BYTES;
    const message = new Uint8Array(3 + nonce.length + 2 + sealedBytes);
    message[0] = TYPE_RESPONSE;
    setU16(message, 1, nonce.length);
    message.set(nonce, 3);
    const aadEnd = 3 + nonce.length;
    setU16(message, aadEnd, sealedBytes);
    const cipher = createCipheriv("aes-128-gcm", key, iv);
    cipher.setAAD(message.subarray(0, aadEnd));
    message.set(cipher.update(plain), aadEnd + 2);
    cipher.final();
    message.set(cipher.getAuthTag(), aadEnd + 2 + plain.length);
    return message;
  }
}

/** Zeros that fill the last block of a response, as far as a message goes. */
function paddingOf(length: number): number {
  const room = MESSAGE_BYTES_MAX - AEAD_TAG_BYTES - 4 - length;
  return Math.max(0, Math.min(Math.ceil(length / BLOCK_BYTES) * BLOCK_BYTES - length, room));
}

async function derivePair(seed: Uint8Array): Promise<KeyPair> {
  const { privateKey, publicKey } = await suite.kem.deriveKeyPair(seed.slice().buffer);
  const publicBytes = new Uint8Array(await suite.kem.serializePublicKey(publicKey));
  const contents = new Uint8Array(8 + KEY_BYTES);
  setU16(contents, 0, KEM_X25519);
  setU16(contents, 2, KDF_SHA256);
  setU16(contents, 4, AEAD_AES128);
  setU16(contents, 6, KEY_BYTES);
  contents.set(publicBytes, 8);
  const id = expand(extract(new Uint8Array(0), contents), "odoh key id", HASH_BYTES);
  return { id, contents, privateKey };
}

/** HKDF-Extract of HKDF-SHA256 (RFC 5869 §2.2). */
function extract(salt: Uint8Array, secret: Uint8Array): Uint8Array {
  return createHmac("sha256", salt).update(secret).digest();
}

/** HKDF-Expand of one block at most (RFC 5869 §2.3). */
function expand(prk: Uint8Array, info: string, length: number): Uint8Array {
  invariant(length <= HASH_BYTES, "one block is enough");
  const block = createHmac("sha256", prk).update(info).update(Uint8Array.of(1)).digest();
  return Uint8Array.from(block.subarray(0, length));
}
