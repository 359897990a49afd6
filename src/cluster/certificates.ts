/**
 * Makes the private CA of a cluster and the certificates of its members: ECDSA P-256, valid for ten
 * years, the member's name as the one DNS name. For the command line alone. Scope: none. RFC 5280.
 * @module
 */
import "reflect-metadata"; // Before the library, whose classes it describes.
import {
  AuthorityKeyIdentifierExtension,
  BasicConstraintsExtension,
  ExtendedKeyUsage,
  ExtendedKeyUsageExtension,
  KeyUsageFlags,
  KeyUsagesExtension,
  PemConverter,
  SubjectAlternativeNameExtension,
  SubjectKeyIdentifierExtension,
  X509Certificate,
  X509CertificateGenerator,
} from "@peculiar/x509";
import { encodeHex } from "../bytes/mod.ts";
import { SvcError } from "../errors.ts";

const ALGORITHM = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" } as const;
const SERIAL_BYTES = 16;
const HOUR_MS = 60 * 60 * 1_000;
const VALID_YEARS = 10;

/** A certificate and its key, both PEM. */
export interface Issued {
  readonly cert: string;
  readonly key: string;
}

/** Makes an authority that nobody knows yet. `chance` fills an array. */
export async function makeAuthority(nowMs: number, chance: Chance): Promise<Issued> {
  const { keys, key } = await newKeys();
  const serial = serialNumber(chance);
  const certificate = await X509CertificateGenerator.createSelfSigned({
    serialNumber: serial,
    // Two authorities are told apart by their names, where one file holds both.
    name: [{ CN: [`svc cluster ${serial.slice(0, 8)}`] }],
    ...validity(nowMs),
    keys,
    signingAlgorithm: ALGORITHM,
    extensions: [
      new BasicConstraintsExtension(true, 0, true),
      new KeyUsagesExtension(KeyUsageFlags.keyCertSign | KeyUsageFlags.cRLSign, true),
      await SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  });
  return { cert: pemOf(certificate), key };
}

/**
 * Issues the certificate of a member, with a new key.
 *
 * @throws {SvcError} `invalid`, for an authority that can't be used; what it says follows the file.
 */
export async function issueMember(
  node: string,
  authority: Issued,
  nowMs: number,
  chance: Chance,
): Promise<Issued> {
  const { certificate: root, signingKey } = await readAuthority(authority);
  const { keys, key } = await newKeys();
  const certificate = await X509CertificateGenerator.create({
    serialNumber: serialNumber(chance),
    subject: [{ CN: [node] }],
    issuer: root.subjectName,
    ...validity(nowMs),
    publicKey: keys.publicKey,
    signingKey,
    signingAlgorithm: ALGORITHM,
    extensions: [
      new BasicConstraintsExtension(false, undefined, true),
      new KeyUsagesExtension(KeyUsageFlags.digitalSignature, true),
      // Members connect to each other both ways.
      new ExtendedKeyUsageExtension([ExtendedKeyUsage.serverAuth, ExtendedKeyUsage.clientAuth]),
      new SubjectAlternativeNameExtension([{ type: "dns", value: node }]),
      await SubjectKeyIdentifierExtension.create(keys.publicKey),
      await AuthorityKeyIdentifierExtension.create(root.publicKey),
    ],
  });
  return { cert: pemOf(certificate), key };
}

/** Fills an array with chance. */
export type Chance = (bytes: Uint8Array<ArrayBuffer>) => Uint8Array;

async function readAuthority({ cert, key }: Issued) {
  let certificate: X509Certificate;
  try {
    certificate = new X509Certificate(cert);
  } catch (cause) {
    throw new SvcError("invalid", "ca.crt: holds no PEM certificate", { cause });
  }
  let signingKey: CryptoKey;
  try {
    const pkcs8 = PemConverter.decodeFirst(key);
    signingKey = await crypto.subtle.importKey("pkcs8", pkcs8, ALGORITHM, true, ["sign"]);
  } catch (cause) {
    // The cause may tell of the key: it stays here.
    throw new SvcError("invalid", "ca.key: holds no PEM private key of ECDSA P-256", { cause });
  }
  if (!await areOnePair(certificate, signingKey)) {
    throw new SvcError("invalid", "ca.key: is not the key of ca.crt: bring the pair together");
  }
  return { certificate, signingKey };
}

async function areOnePair(certificate: X509Certificate, signingKey: CryptoKey): Promise<boolean> {
  try {
    const probe = new Uint8Array(SERIAL_BYTES);
    const signature = await crypto.subtle.sign(ALGORITHM, signingKey, probe);
    const publicKey = await certificate.publicKey.export(ALGORITHM, ["verify"]);
    return await crypto.subtle.verify(ALGORITHM, publicKey, signature, probe);
  } catch {
    return false; // A key of another kind.
  }
}

async function newKeys(): Promise<{ keys: CryptoKeyPair; key: string }> {
  const keys = await crypto.subtle.generateKey(ALGORITHM, true, ["sign", "verify"]);
  const pkcs8 = await crypto.subtle.exportKey("pkcs8", keys.privateKey);
  return { keys, key: `${PemConverter.encode(pkcs8, "PRIVATE KEY")}\n` };
}

/** From an hour ago, as the clocks of members differ. */
function validity(nowMs: number) {
  const notAfter = new Date(nowMs);
  notAfter.setUTCFullYear(notAfter.getUTCFullYear() + VALID_YEARS);
  return { notBefore: new Date(nowMs - HOUR_MS), notAfter };
}

function serialNumber(chance: Chance): string {
  const bytes = chance(new Uint8Array(SERIAL_BYTES));
  bytes[0] = (bytes[0] & 0x7f) | 0x40; // Positive, and of full length (RFC 5280 §4.1.2.2).
  return encodeHex(bytes);
}

function pemOf(certificate: X509Certificate): string {
  return `${certificate.toString("pem")}\n`;
}
