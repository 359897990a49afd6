import { openFirst, pathsOf } from "./library_paths.ts";

const SYMBOLS = {
  OpenSSL_version_num: { parameters: [], result: "u64" },
  BIO_s_mem: { parameters: [], result: "pointer" },
  BIO_new: { parameters: ["pointer"], result: "pointer" },
  BIO_write: { parameters: ["pointer", "buffer", "i32"], result: "i32" },
  BIO_ctrl: { parameters: ["pointer", "i32", "i64", "pointer"], result: "i64" },
  d2i_PUBKEY_bio: { parameters: ["pointer", "pointer"], result: "pointer" },
  EVP_PKEY_dup: { parameters: ["pointer"], result: "pointer" },
  EVP_PKEY_set1_encoded_public_key: { parameters: ["pointer", "buffer", "usize"], result: "i32" },
  EVP_PKEY_free: { parameters: ["pointer"], result: "void" },
  EVP_MD_fetch: { parameters: ["pointer", "buffer", "pointer"], result: "pointer" },
  EVP_MD_CTX_new: { parameters: [], result: "pointer" },
  EVP_MD_CTX_reset: { parameters: ["pointer"], result: "i32" },
  EVP_DigestVerifyInit: {
    parameters: ["pointer", "pointer", "pointer", "pointer", "pointer"],
    result: "i32",
  },
  EVP_DigestVerify: {
    parameters: ["pointer", "buffer", "usize", "buffer", "usize"],
    result: "i32",
  },
  ERR_clear_error: { parameters: [], result: "void" },
} as const satisfies Deno.ForeignLibraryInterface;

type Symbols = Deno.DynamicLibrary<typeof SYMBOLS>["symbols"];

/** The name says which version's interface it has: that of 3.0, whatever has come since. */
const FILE = "libcrypto.so.3";
/** Where distributions have it; no other file may be opened. */
export const LIBCRYPTO_PATHS: readonly string[] = pathsOf(FILE);

const MAJOR = 3;
const BIO_CTRL_RESET = 1;
const FITS = 1;
const DOES_NOT_FIT = 0;

/** A public key in the library's memory: whoever has it frees it. */
export type LibraryKey = Deno.PointerObject;

/** Hashes as the library names them. */
export type LibraryHash = "SHA1" | "SHA256" | "SHA384" | "SHA512";

/**
 * The system's libcrypto, OpenSSL 3, for the checks of signatures alone: it takes a fifth of what the
 * runtime does for the most common kind. Nothing is handed to it but bytes that it copies or is done
 * with when a call returns, and it hands out nothing but keys. Of one thread.
 */
export class LibCrypto {
  /** Such as `3.0.19`. */
  readonly version: string;
  readonly #symbols: Symbols;
  readonly #input: Deno.PointerObject;
  readonly #context: Deno.PointerObject;
  readonly #hashes = new Map<LibraryHash, Deno.PointerValue>();

  private constructor(
    symbols: Symbols,
    version: string,
    input: Deno.PointerObject,
    context: Deno.PointerObject,
  ) {
    this.#symbols = symbols;
    this.version = version;
    this.#input = input;
    this.#context = context;
  }

  /** Opens the first that is there; `null` where none is, or it is of another kind. */
  static open(paths: readonly string[] = LIBCRYPTO_PATHS): LibCrypto | null {
    const library = openFirst(paths, SYMBOLS);
    return library === null ? null : LibCrypto.#of(library.symbols);
  }

  static #of(symbols: Symbols): LibCrypto | null {
    const number = Number(symbols.OpenSSL_version_num());
    const [major, minor, patch] = [number >>> 28, (number >> 20) & 0xff, (number >> 4) & 0xffff];
    if (major !== MAJOR) return null;
    const input = symbols.BIO_new(symbols.BIO_s_mem());
    const context = symbols.EVP_MD_CTX_new();
    if (input === null || context === null) return null;
    return new LibCrypto(symbols, `${major}.${minor}.${patch}`, input, context);
  }

  /** The key of a SubjectPublicKeyInfo in DER, or `null`. */
  keyOf(spki: Uint8Array<ArrayBuffer>): LibraryKey | null {
    const symbols = this.#symbols;
    const written = symbols.BIO_write(this.#input, spki, spki.length);
    const key = written === spki.length ? symbols.d2i_PUBKEY_bio(this.#input, null) : null;
    symbols.BIO_ctrl(this.#input, BIO_CTRL_RESET, 0n, null);
    symbols.ERR_clear_error();
    return key;
  }

  /**
   * The key of a point (0x04, X, Y) on the curve of another key, or `null`, where it is not on it. Of
   * DER it would take ten times as long.
   */
  keyLike(other: LibraryKey, point: Uint8Array<ArrayBuffer>): LibraryKey | null {
    const symbols = this.#symbols;
    const key = symbols.EVP_PKEY_dup(other);
    const length = BigInt(point.length);
    const isSet = key !== null &&
      symbols.EVP_PKEY_set1_encoded_public_key(key, point, length) === 1;
    symbols.ERR_clear_error();
    if (isSet) return key;
    this.free(key);
    return null;
  }

  free(key: LibraryKey | null): void {
    this.#symbols.EVP_PKEY_free(key);
  }

  /**
   * Says whether a signature fits; `hash` is `null` where it is part of the algorithm. `null`: the
   * library can't or won't say.
   */
  verify(
    key: LibraryKey,
    hash: LibraryHash | null,
    signature: Uint8Array<ArrayBuffer>,
    data: Uint8Array<ArrayBuffer>,
  ): boolean | null {
    const symbols = this.#symbols;
    const context = this.#context;
    const method = hash === null ? null : this.#hashOf(hash);
    if (hash !== null && method === null) return null;
    let result = -1;
    if (symbols.EVP_DigestVerifyInit(context, null, method, null, key) === 1) {
      const [signed, covered] = [BigInt(signature.length), BigInt(data.length)];
      result = symbols.EVP_DigestVerify(context, signature, signed, data, covered);
    }
    symbols.EVP_MD_CTX_reset(context); // It holds on to the key.
    if (result === FITS) return true;
    symbols.ERR_clear_error(); // A check that fails leaves its reasons.
    return result === DOES_NOT_FIT ? false : null;
  }

  #hashOf(name: LibraryHash): Deno.PointerValue {
    const known = this.#hashes.get(name);
    if (known !== undefined) return known;
    const hash = this.#symbols.EVP_MD_fetch(null, new TextEncoder().encode(`${name}\0`), null);
    this.#symbols.ERR_clear_error();
    this.#hashes.set(name, hash);
    return hash;
  }
}
