/** Requests for certificates, and the stand-in. Loaded where one is made: the library is large. */
import "reflect-metadata"; // Before the library, whose classes it describes.
import {
  Pkcs10CertificateRequestGenerator,
  SubjectAlternativeNameExtension,
  X509CertificateGenerator,
} from "@peculiar/x509";
import { createPrivateKey, createPublicKey } from "node:crypto";
import { newKeyPem } from "./jws.ts";

const ALGORITHM = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" } as const;
const DAY_MS = 24 * 60 * 60 * 1_000;
/** It is replaced as soon as there is a better one. */
const STAND_IN_DAYS = 365;
/** A clock that is behind takes it all the same. */
const EARLIER_MS = 60 * 60 * 1_000;
const SERIAL = "01";

export interface CertificateRequest {
  /** Of the certificate, PEM. */
  readonly key: string;
  /** PKCS #10 in DER, base64url. */
  readonly csr: string;
}

/** A request for a certificate of these names, with a new key. */
export async function makeRequest(domains: readonly string[]): Promise<CertificateRequest> {
  const key = newKeyPem();
  const request = await Pkcs10CertificateRequestGenerator.create({
    keys: await keysOf(key),
    signingAlgorithm: ALGORITHM,
    extensions: [alternativeNames(domains)],
  });
  const csr = new Uint8Array(request.rawData);
  return { key, csr: csr.toBase64({ alphabet: "base64url", omitPadding: true }) };
}

/** A certificate that nobody else has signed, with its key: the listeners have something to show. */
export async function makeStandIn(domains: readonly string[], nowMs: number): Promise<string> {
  const key = newKeyPem();
  const certificate = await X509CertificateGenerator.createSelfSigned({
    serialNumber: SERIAL,
    name: [{ CN: [domains[0].slice(0, 64)] }],
    notBefore: new Date(nowMs - EARLIER_MS),
    notAfter: new Date(nowMs + STAND_IN_DAYS * DAY_MS),
    keys: await keysOf(key),
    signingAlgorithm: ALGORITHM,
    extensions: [alternativeNames(domains)],
  });
  return `${certificate.toString("pem")}\n${key}`;
}

function alternativeNames(domains: readonly string[]): SubjectAlternativeNameExtension {
  return new SubjectAlternativeNameExtension(
    domains.map((value) => ({ type: "dns" as const, value })),
  );
}

async function keysOf(pem: string): Promise<CryptoKeyPair> {
  const key = createPrivateKey(pem);
  const [secret, open] = [
    key.export({ type: "pkcs8", format: "der" }),
    createPublicKey(key).export({ type: "spki", format: "der" }),
  ].map((bytes) => new Uint8Array(bytes));
  const { subtle } = crypto;
  return {
    privateKey: await subtle.importKey("pkcs8", secret, ALGORITHM, true, ["sign"]),
    publicKey: await subtle.importKey("spki", open, ALGORITHM, true, ["verify"]),
  };
}
