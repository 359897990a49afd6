/** The name of an address in the reverse zone (RFC 1035 §3.5, RFC 3596 §2.5). */
export function reverseName(ip: Uint8Array): string {
  if (ip.length === 4) return `${[...ip].reverse().join(".")}.in-addr.arpa`;
  const digits = Array.from(ip, (byte) => byte.toString(16).padStart(2, "0")).join("");
  return `${[...digits].reverse().join(".")}.ip6.arpa`;
}
