/** An authority for tests: it checks what it is sent as strictly as RFC 8555 asks, and can be ill. */
import "reflect-metadata";
import assert from "node:assert/strict";
import { createHmac, createPublicKey, verify } from "node:crypto";
import {
  Pkcs10CertificateRequest,
  SubjectAlternativeNameExtension,
  X509CertificateGenerator,
} from "@peculiar/x509";
import type { HttpAsk } from "../http/mod.ts";
import { sha256 } from "./jws.ts";

const ALGORITHM = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" } as const;
const ALTERNATIVE_NAMES = "2.5.29.17";
const DAY_MS = 24 * 60 * 60 * 1_000;
const JOSE = "application/jose+json";

export interface FakeAnswer {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

interface FakeOrder {
  status: string;
  readonly domains: readonly string[];
  certificate: string | null;
}

interface FakeAuthorization {
  status: string;
  readonly name: string;
  readonly token: string;
  error?: unknown;
}

export interface FakeCaOptions {
  readonly origin: string;
  readonly nowMs: () => number;
  /** Looks for a proof, as the authority would from outside; what it finds. */
  readonly lookUp: (kind: string, name: string, token: string) => Promise<string | null>;
  readonly lifeDays?: number;
  /** Of an account that has to be bound. */
  readonly hmacKey?: string;
}

export class FakeCa {
  readonly #options: FakeCaOptions;
  readonly #nonces = new Set<string>();
  readonly #accounts = new Map<string, JsonWebKey>();
  readonly #orders: FakeOrder[] = [];
  readonly #authorizations: FakeAuthorization[] = [];
  #keys: Promise<CryptoKeyPair> | null = null;
  #count = 0;
  /** Every request, as method and path. */
  readonly heard: string[] = [];
  /** Answers in its place; `null`: it answers itself. */
  trouble: (path: string) => FakeAnswer | null = () => null;

  constructor(options: FakeCaOptions) {
    this.#options = options;
  }

  get orders(): number {
    return this.heard.filter((one) => one === "POST /order").length;
  }

  /** As a port, where no wire is wanted. */
  readonly ask: HttpAsk = async (url, { method, body, headers, signal }) => {
    signal.throwIfAborted();
    const text = body === undefined ? "" : new TextDecoder().decode(body);
    const answer = await this.answer(method, url.pathname, text, headers["content-type"] ?? "");
    return {
      status: answer.status,
      headers: answer.headers ?? {},
      body: (async function* () {
        yield new TextEncoder().encode(answer.body ?? "");
      })(),
    };
  };

  async answer(method: string, path: string, body: string, type: string): Promise<FakeAnswer> {
    this.heard.push(`${method} ${path}`);
    const nonce = `nonce${++this.#count}`;
    this.#nonces.add(nonce);
    const date = new Date(this.#options.nowMs()).toUTCString();
    const answer = this.trouble(path) ?? await this.#answer(method, path, body, type);
    return { ...answer, headers: { "replay-nonce": nonce, date, ...answer.headers } };
  }

  async #answer(method: string, path: string, body: string, type: string): Promise<FakeAnswer> {
    const { origin } = this.#options;
    if (path === "/directory") {
      const places = { newNonce: "nonce", newAccount: "account", newOrder: "order" };
      return json(
        200,
        Object.fromEntries(
          Object.entries(places).map(([name, place]) => [name, `${origin}/${place}`]),
        ),
      );
    }
    if (path === "/nonce") return { status: 204 };
    assert.equal(method, "POST", path);
    assert.equal(type, JOSE);
    const { head, payload } = this.#open(path, body);
    if (head === null) return refusal(400, "badNonce", "that nonce is used up");
    const [, kind, index] = /^\/(\w+)\/?(\d*)$/.exec(path) ?? [];
    const at = Number(index);
    switch (kind) {
      case "account":
        return this.#account(head, payload);
      case "order":
        return index === "" ? this.#newOrder(payload.identifiers) : this.#order(at);
      case "authorization":
        return json(200, this.#shown(this.#authorizations[at], at));
      case "challenge":
        return await this.#prove(this.#authorizations[at], "http-01", at);
      case "record":
        return await this.#prove(this.#authorizations[at], "dns-01", at);
      case "finalize":
        return await this.#finalize(this.#orders[at], at, payload.csr);
      case "certificate": {
        const body = this.#orders[at].certificate ?? "";
        return {
          status: 200,
          headers: { "content-type": "application/pem-certificate-chain" },
          body,
        };
      }
    }
    return refusal(404, "malformed", "there is no such thing");
  }

  /** Reads a signed request; `head` is `null` for a nonce that is not its. */
  #open(path: string, body: string) {
    const { protected: head64, payload: payload64, signature } = JSON.parse(body);
    const text = (part: string) => new TextDecoder().decode(bytesOf(part));
    const head = JSON.parse(text(head64));
    assert.equal(head.alg, "ES256");
    assert.equal(head.url, `${this.#options.origin}${path}`);
    assert.equal(path === "/account", head.kid === undefined, "a key for a new account alone");
    const jwk = head.jwk ?? this.#accounts.get(head.kid);
    assert.ok(jwk !== undefined, "a known account");
    const key = {
      key: createPublicKey({ key: jwk, format: "jwk" }),
      dsaEncoding: "ieee-p1363" as const,
    };
    const signed = new TextEncoder().encode(`${head64}.${payload64}`);
    assert.ok(verify("sha256", signed, key, bytesOf(signature)), "a signature of that key");
    const isKnown = this.#nonces.delete(head.nonce);
    const payload = payload64 === "" ? {} : JSON.parse(text(payload64));
    return { head: isKnown ? head : null, payload };
  }

  #account(head: { jwk: JsonWebKey; url: string }, payload: Record<string, unknown>): FakeAnswer {
    assert.equal(payload.termsOfServiceAgreed, true);
    const { hmacKey, origin } = this.#options;
    if (hmacKey !== undefined) {
      const bound = payload.externalAccountBinding as Record<string, string>;
      const hmac = createHmac("sha256", bytesOf(hmacKey));
      const signature = hmac.update(`${bound.protected}.${bound.payload}`).digest("base64url");
      assert.equal(bound.signature, signature);
    }
    const url = `${origin}/account/${sha256(JSON.stringify(head.jwk))}`;
    const isNew = !this.#accounts.has(url);
    this.#accounts.set(url, head.jwk);
    return json(isNew ? 201 : 200, { status: "valid" }, { location: url });
  }

  #newOrder(identifiers: readonly { readonly type: string; readonly value: string }[]): FakeAnswer {
    const at = this.#orders.length;
    const domains = identifiers.map(({ value }) => value);
    this.#orders.push({ status: "pending", domains, certificate: null });
    const { origin } = this.#options;
    for (const name of domains) {
      const token = `token-${at}-${this.#authorizations.length}-0123456789`;
      this.#authorizations.push({ status: "pending", name: name.replace(/^\*\./, ""), token });
    }
    return {
      ...this.#order(at),
      status: 201,
      headers: {
        "content-type": "application/json",
        location: `${origin}/order/${at}`,
      },
    };
  }

  #ofOrder(at: number): { readonly index: number; readonly one: FakeAuthorization }[] {
    return this.#authorizations.flatMap((one, index) =>
      one.token.startsWith(`token-${at}-`) ? [{ index, one }] : []
    );
  }

  #order(at: number): FakeAnswer {
    const order = this.#orders[at];
    if (order === undefined) return refusal(404, "malformed", "no such order");
    const { origin } = this.#options;
    const all = this.#ofOrder(at);
    if (order.status === "pending" && all.every(({ one }) => one.status === "valid")) {
      order.status = "ready";
    }
    if (all.some(({ one }) => one.status === "invalid")) order.status = "invalid";
    return json(200, {
      status: order.status,
      authorizations: all.map(({ index }) => `${origin}/authorization/${index}`),
      finalize: `${origin}/finalize/${at}`,
      ...(order.status === "valid" && { certificate: `${origin}/certificate/${at}` }),
    });
  }

  #shown({ status, name, token, error }: FakeAuthorization, at: number) {
    const { origin } = this.#options;
    const of = (type: string, place: string) => ({
      ...{ type, status, token, url: `${origin}/${place}/${at}` },
      ...(error !== undefined && { error }),
    });
    return {
      status,
      identifier: { type: "dns", value: name },
      challenges: [of("http-01", "challenge"), of("dns-01", "record")],
    };
  }

  async #prove(one: FakeAuthorization, kind: string, at: number): Promise<FakeAnswer> {
    const found = await this.#options.lookUp(kind, one.name, one.token);
    const wanted = [...this.#accounts.values()].map(({ crv, kty, x, y }) => {
      const text = `${one.token}.${sha256(JSON.stringify({ crv, kty, x, y }))}`;
      return kind === "http-01" ? text : sha256(text);
    });
    one.status = found !== null && wanted.includes(found) ? "valid" : "invalid";
    if (one.status === "invalid") {
      one.error = { type: "urn:ietf:params:acme:error:unauthorized", detail: `found ${found}` };
    }
    return json(200, this.#shown(one, at).challenges[0]);
  }

  async #finalize(order: FakeOrder, at: number, csr: string): Promise<FakeAnswer> {
    assert.equal(order.status, "ready");
    const request = new Pkcs10CertificateRequest(bytesOf(csr));
    assert.ok(await request.verify());
    const extension = request.getExtension(ALTERNATIVE_NAMES);
    assert.ok(extension instanceof SubjectAlternativeNameExtension);
    const names = extension.names.toJSON();
    assert.deepEqual(names.map(({ value }) => value), [...order.domains]);
    const { nowMs, lifeDays = 90 } = this.#options;
    const keys =
      await (this.#keys ??= crypto.subtle.generateKey(ALGORITHM, true, ["sign", "verify"]));
    const certificate = await X509CertificateGenerator.create({
      serialNumber: (at + 1).toString(16).padStart(4, "0"),
      subject: "CN=leaf",
      issuer: "CN=Fake authority",
      notBefore: new Date(nowMs()),
      notAfter: new Date(nowMs() + lifeDays * DAY_MS),
      publicKey: request.publicKey,
      signingKey: keys.privateKey,
      signingAlgorithm: ALGORITHM,
      extensions: [new SubjectAlternativeNameExtension(names)],
    });
    order.certificate = `${certificate.toString("pem")}\n`;
    order.status = "valid";
    return this.#order(at);
  }
}

function bytesOf(text: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.fromBase64(text, { alphabet: "base64url" });
}

function json(
  status: number,
  value: unknown,
  headers: Readonly<Record<string, string>> = {},
): FakeAnswer {
  const type = { "content-type": "application/json" };
  return { status, headers: { ...type, ...headers }, body: JSON.stringify(value) };
}

/** A problem document. */
export function refusal(
  status: number,
  type: string,
  detail: string,
  headers: Readonly<Record<string, string>> = {},
): FakeAnswer {
  const problem = { type: `urn:ietf:params:acme:error:${type}`, detail };
  return json(status, problem, { "content-type": "application/problem+json", ...headers });
}
