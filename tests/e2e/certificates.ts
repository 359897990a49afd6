/**
 * Certificates for tests: an authority of their own and what it issues, fresh each time, as PEM. No
 * private key is kept in the tree, and none of them is good for anything outside of a test.
 */
import "reflect-metadata"; // Before the library, whose classes it describes.
import {
  AuthorityKeyIdentifierExtension,
  BasicConstraintsExtension,
  ExtendedKeyUsage,
  ExtendedKeyUsageExtension,
  type Extension,
  KeyUsageFlags,
  KeyUsagesExtension,
  PemConverter,
  SubjectAlternativeNameExtension,
  SubjectKeyIdentifierExtension,
  X509Certificate,
  X509CertificateGenerator,
} from "@peculiar/x509";

const ALGORITHM = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" } as const;
const SERIAL_BYTES = 16;
const HOUR_MS = 60 * 60 * 1_000;
const DAY_MS = 24 * HOUR_MS;

/** A certificate and its key, both PEM. */
export interface Issued {
  readonly cert: string;
  readonly key: string;
}

/** What a certificate is for and how long. */
export interface IssueOptions {
  /** DNS names it covers. */
  readonly names?: readonly string[];
  /** IP addresses it covers. */
  readonly ips?: readonly string[];
  /** Left out: an hour ago. */
  readonly notBefore?: Date;
  /** Left out: in 90 days. */
  readonly notAfter?: Date;
  /** For a client that shows itself to a server; left out: for servers and clients alike. */
  readonly usage?: "server" | "client";
  /** Common name of the subject; left out: the first name or address. */
  readonly commonName?: string;
}

export interface Authority {
  /** PEM of its own certificate. */
  readonly cert: string;
  /** PEM of its own key, for programs that issue certificates themselves. */
  readonly key: string;
  issue(options: IssueOptions): Promise<Issued>;
}

async function newKeys(): Promise<{ keys: CryptoKeyPair; pem: string }> {
  const keys = await crypto.subtle.generateKey(ALGORITHM, true, ["sign", "verify"]);
  const pkcs8 = await crypto.subtle.exportKey("pkcs8", keys.privateKey);
  return { keys, pem: `${PemConverter.encode(pkcs8, "PRIVATE KEY")}\n` };
}

function serialNumber(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(SERIAL_BYTES));
  bytes[0] = (bytes[0] & 0x7f) | 0x40; // Positive, and of full length (RFC 5280 §4.1.2.2).
  return bytes.toHex();
}

function pemOf(certificate: X509Certificate): string {
  return `${certificate.toString("pem")}\n`;
}

/** A new authority; nobody trusts it who is not told to. */
export async function makeAuthority(commonName = "svc test authority"): Promise<Authority> {
  const { keys, pem } = await newKeys();
  const root = await X509CertificateGenerator.createSelfSigned({
    serialNumber: serialNumber(),
    name: [{ CN: [commonName] }],
    notBefore: new Date(Date.now() - DAY_MS),
    notAfter: new Date(Date.now() + 365 * DAY_MS),
    keys,
    signingAlgorithm: ALGORITHM,
    extensions: [
      new BasicConstraintsExtension(true, 1, true),
      new KeyUsagesExtension(KeyUsageFlags.keyCertSign | KeyUsageFlags.cRLSign, true),
      await SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  });
  const issue = async (options: IssueOptions): Promise<Issued> => {
    const { names = [], ips = [], usage } = options;
    const own = await newKeys();
    const usages: string[] = [];
    if (usage !== "client") usages.push(ExtendedKeyUsage.serverAuth);
    if (usage !== "server") usages.push(ExtendedKeyUsage.clientAuth);
    const extensions: Extension[] = [
      new BasicConstraintsExtension(false, undefined, true),
      new KeyUsagesExtension(KeyUsageFlags.digitalSignature, true),
      new ExtendedKeyUsageExtension(usages),
      await SubjectKeyIdentifierExtension.create(own.keys.publicKey),
      await AuthorityKeyIdentifierExtension.create(keys.publicKey),
    ];
    if (names.length + ips.length > 0) {
      extensions.push(
        new SubjectAlternativeNameExtension([
          ...names.map((value) => ({ type: "dns" as const, value })),
          ...ips.map((value) => ({ type: "ip" as const, value })),
        ]),
      );
    }
    const subject = options.commonName ?? names[0] ?? ips[0] ?? "svc test";
    const certificate = await X509CertificateGenerator.create({
      serialNumber: serialNumber(),
      subject: [{ CN: [subject] }],
      issuer: root.subjectName,
      notBefore: options.notBefore ?? new Date(Date.now() - HOUR_MS),
      notAfter: options.notAfter ?? new Date(Date.now() + 90 * DAY_MS),
      publicKey: own.keys.publicKey,
      signingKey: keys.privateKey,
      signingAlgorithm: ALGORITHM,
      extensions,
    });
    return { cert: pemOf(certificate), key: own.pem };
  };
  return { cert: pemOf(root), key: pem, issue };
}

/** Writes a certificate and its key into a directory; returns their paths. */
export async function writePair(
  directory: string,
  name: string,
  { cert, key }: Issued,
): Promise<{ certFile: string; keyFile: string }> {
  const [certFile, keyFile] = [`${directory}/${name}.crt`, `${directory}/${name}.key`];
  await Deno.writeTextFile(certFile, cert);
  await Deno.writeTextFile(keyFile, key, { mode: 0o600 });
  return { certFile, keyFile };
}
