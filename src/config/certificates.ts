import type { KeyObject, X509Certificate } from "node:crypto";
import { isNodeName } from "./cluster.ts";

/** RSA keys below this are refused by clients and by the TLS library alike (RFC 9325 §4.5). */
const RSA_BITS_MIN = 2_048;
/** Curves of TLS 1.3 certificates (RFC 8446 §4.2.3), by the name that the platform gives them. */
const CURVES: readonly string[] = ["prime256v1", "secp384r1", "secp521r1"];

/** What is wrong with a private key for TLS; `null`: nothing. */
export function keyWeakness(key: KeyObject): string | null {
  const { asymmetricKeyType: type, asymmetricKeyDetails: details } = key;
  if (type === "rsa") {
    const bits = Number(details?.modulusLength ?? 0);
    return bits < RSA_BITS_MIN ? `an RSA key of ${bits} bits is too weak` : null;
  }
  if (type === "ec") {
    const curve = details?.namedCurve ?? "";
    return CURVES.includes(curve) ? null : `keys of the curve ${curve} are not for TLS`;
  }
  return type === "ed25519" ? null : `keys of the kind ${type} are not for TLS`;
}

function dnsNamesOf({ subjectAltName }: X509Certificate): string[] {
  return (subjectAltName ?? "").split(", ").filter((entry) => entry.startsWith("DNS:"))
    .map((entry) => entry.slice(4));
}

/** Says whether a certificate covers a name, by itself or by a wildcard of its parent (RFC 9525). */
export function coversName(certificate: X509Certificate, name: string): boolean {
  const wanted = name.toLowerCase();
  const names = dnsNamesOf(certificate).map((covered) => covered.toLowerCase());
  const dot = wanted.indexOf(".");
  return names.includes(wanted) || (dot > 0 && names.includes(`*${wanted.slice(dot)}`));
}

/** The name that a member's certificate is for: its one DNS name; `null`: it is no member's. */
export function memberNameOf(certificate: X509Certificate): string | null {
  const names = dnsNamesOf(certificate);
  return !certificate.ca && names.length === 1 && isNodeName(names[0]) ? names[0] : null;
}

/** What keeps a certificate from being that of the member `node`; `null`: nothing. */
export function memberFault(
  certificate: X509Certificate,
  authorities: readonly X509Certificate[],
  node: string,
): string | null {
  if (!authorities.some((authority) => isIssuedBy(certificate, authority))) {
    return "was not made by this cluster's CA: make one with svc cluster cert";
  }
  const name = memberNameOf(certificate);
  if (name === node) return null;
  return name === null
    ? "is no member's: make one with svc cluster cert"
    : `is the certificate of ${name}, and this node is ${node}: name that of ${node}`;
}

/** Says whether an authority has made a certificate. */
export function isIssuedBy(certificate: X509Certificate, authority: X509Certificate): boolean {
  try {
    return certificate.checkIssued(authority) && certificate.verify(authority.publicKey);
  } catch {
    return false; // Another kind of key can't have made the signature.
  }
}

/** Says whether a certificate covers the names of clients that put their ID before `name`. */
export function coversClientIds(certificate: X509Certificate, name: string): boolean {
  return coversName(certificate, `x.${name}`);
}
