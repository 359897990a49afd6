import {
  createHash,
  createHmac,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  sign,
} from "node:crypto";

/** The public key of an account, with the members that a thumbprint takes, in its order. */
interface PublicJwk {
  readonly crv: string;
  readonly kty: string;
  readonly x: string;
  readonly y: string;
}

/** Binds a new account to one that the authority knows already (RFC 8555 §7.3.4). */
export interface ExternalAccount {
  readonly kid: string;
  /** As the authority gave it, in base64url. */
  readonly hmacKey: string;
}

/** A request in the form that the authority takes: JWS in flattened JSON. */
export interface SignedRequest {
  readonly protected: string;
  readonly payload: string;
  readonly signature: string;
}

/** A new private key, PEM. */
export function newKeyPem(): string {
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  return String(privateKey.export({ type: "pkcs8", format: "pem" }));
}

/** The key of an account: ECDSA with P-256 and SHA-256. */
export class AccountKey {
  readonly #key: KeyObject;
  readonly #jwk: PublicJwk;

  /** @throws {Error} For what is no such key. */
  constructor(pem: string) {
    this.#key = createPrivateKey(pem);
    const { crv, kty, x, y } = createPublicKey(this.#key).export({ format: "jwk" });
    if (crv !== "P-256" || kty === undefined || x === undefined || y === undefined) {
      throw new TypeError("no key of P-256");
    }
    this.#jwk = { crv, kty, x, y };
  }

  /** What proves that this account is behind an answer to a challenge (RFC 8555 §8.1). */
  keyAuthorization(token: string): string {
    return `${token}.${sha256(JSON.stringify(this.#jwk))}`;
  }

  /** Signs a request; `kid` is the account's URL, `null` before there is one. */
  sign(request: {
    readonly url: string;
    readonly nonce: string;
    readonly kid: string | null;
    /** `null`: what is asked for is only to be read (POST-as-GET). */
    readonly payload: unknown;
  }): SignedRequest {
    const { url, nonce, kid, payload } = request;
    const who = kid === null ? { jwk: this.#jwk } : { kid };
    const head = base64url(JSON.stringify({ alg: "ES256", ...who, nonce, url }));
    const body = payload === null ? "" : base64url(JSON.stringify(payload));
    const key = { key: this.#key, dsaEncoding: "ieee-p1363" as const };
    const signature = sign("sha256", new TextEncoder().encode(`${head}.${body}`), key);
    return { protected: head, payload: body, signature: signature.toString("base64url") };
  }

  /** What a request for a new account has, to bind it to another. */
  bind({ kid, hmacKey }: ExternalAccount, url: string): SignedRequest {
    const head = base64url(JSON.stringify({ alg: "HS256", kid, url }));
    const body = base64url(JSON.stringify(this.#jwk));
    const hmac = createHmac("sha256", Uint8Array.fromBase64(hmacKey, { alphabet: "base64url" }));
    const signature = hmac.update(`${head}.${body}`).digest("base64url");
    return { protected: head, payload: body, signature };
  }
}

export function sha256(text: string): string {
  return createHash("sha256").update(text).digest("base64url");
}

function base64url(text: string): string {
  return new TextEncoder().encode(text).toBase64({ alphabet: "base64url", omitPadding: true });
}
