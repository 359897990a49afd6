/** Signed messages as phones take them: CMS SignedData (RFC 5652), in DER. */
import { Buffer } from "node:buffer";
import { createPrivateKey, type KeyObject, sign, X509Certificate } from "node:crypto";

const OID_DATA = "2a864886f70d010701";
const OID_SIGNED_DATA = "2a864886f70d010702";
const OID_SHA256 = "608648016503040201";
const OID_RSA = "2a864886f70d010101";
const OID_ECDSA_SHA256 = "2a8648ce3d040302";

const Tag = {
  Integer: 0x02,
  Octets: 0x04,
  Null: 0x05,
  Oid: 0x06,
  Sequence: 0x30,
  Set: 0x31,
} as const;
/** Constructed, of this context. */
const CONTEXT_0 = 0xa0;

const CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

function der(tag: number, ...parts: readonly Uint8Array[]): Buffer {
  const body = Buffer.concat(parts);
  const length = body.length;
  const digits: number[] = [];
  for (let rest = length; rest > 0; rest = Math.floor(rest / 256)) digits.unshift(rest % 256);
  const head = length < 128 ? [tag, length] : [tag, 0x80 | digits.length, ...digits];
  return Buffer.concat([Buffer.from(head), body]);
}

function oid(hex: string): Buffer {
  return der(Tag.Oid, Buffer.from(hex, "hex"));
}

function algorithm(hex: string, hasNull: boolean): Buffer {
  return hasNull ? der(Tag.Sequence, oid(hex), der(Tag.Null)) : der(Tag.Sequence, oid(hex));
}

/** The elements inside of one in DER, whole. */
function elementsOf(bytes: Buffer): Buffer[] {
  const inner = bytes.subarray(headLength(bytes));
  const found: Buffer[] = [];
  for (let at = 0; at < inner.length;) {
    const rest = inner.subarray(at);
    const end = headLength(rest) + bodyLength(rest);
    found.push(rest.subarray(0, end));
    at += end;
  }
  return found;
}

function headLength(bytes: Buffer): number {
  return bytes[1] < 128 ? 2 : 2 + (bytes[1] & 0x7f);
}

function bodyLength(bytes: Buffer): number {
  return bytes[1] < 128 ? bytes[1] : bytes.readUIntBE(2, bytes[1] & 0x7f);
}

/** Issuer and serial number of a certificate, by which a signer is named. */
function signerName(certificate: Buffer): Buffer {
  const [tbs] = elementsOf(certificate);
  const fields = elementsOf(tbs);
  // Versions above the first say so before everything else.
  const [serial, , issuer] = fields[0][0] === CONTEXT_0 ? fields.slice(1) : fields;
  return der(Tag.Sequence, issuer, serial);
}

function signatureAlgorithm(key: KeyObject): Buffer | null {
  switch (key.asymmetricKeyType) {
    case "rsa":
      return algorithm(OID_RSA, true);
    case "ec":
      return algorithm(OID_ECDSA_SHA256, false);
    default:
      return null;
  }
}

/**
 * Signs a text by the first certificate of a chain in PEM, with the text and the chain inside; `null`
 * for a key of another kind than RSA and ECDSA.
 */
export function signCms(
  text: Uint8Array,
  certPem: string,
  keyPem: string,
): Uint8Array<ArrayBuffer> | null {
  const key = createPrivateKey(keyPem);
  const by = signatureAlgorithm(key);
  const chain = (certPem.match(CERTIFICATE) ?? []).map((pem) => new X509Certificate(pem).raw);
  if (by === null || chain.length === 0) return null;
  const version = der(Tag.Integer, Buffer.from([1]));
  const sha256 = algorithm(OID_SHA256, true);
  const signature = der(Tag.Octets, sign("sha256", text, key));
  const signer = der(
    Tag.Sequence,
    version,
    signerName(Buffer.from(chain[0])),
    sha256,
    by,
    signature,
  );
  const content = der(Tag.Sequence, oid(OID_DATA), der(CONTEXT_0, der(Tag.Octets, text)));
  const signed = der(
    Tag.Sequence,
    version,
    der(Tag.Set, sha256),
    content,
    der(CONTEXT_0, ...chain),
    der(Tag.Set, signer),
  );
  return Uint8Array.from(der(Tag.Sequence, oid(OID_SIGNED_DATA), der(CONTEXT_0, signed)));
}
