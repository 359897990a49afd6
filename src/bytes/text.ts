const HEX = "0123456789abcdef";
const BASE32HEX = "0123456789ABCDEFGHIJKLMNOPQRSTUV";

/** Lower-case hexadecimal. */
export function encodeHex(bytes: Uint8Array): string {
  let text = "";
  for (const byte of bytes) text += HEX[byte >> 4] + HEX[byte & 15];
  return text;
}

/** Reads hexadecimal of either case, or returns `null` where it is none. */
export function decodeHex(text: string): Uint8Array<ArrayBuffer> | null {
  if (text.length % 2 !== 0 || !/^[0-9a-fA-F]*$/.test(text)) return null;
  const bytes = new Uint8Array(text.length / 2);
  for (let i = 0; i < bytes.length; i++) bytes[i] = parseInt(text.slice(2 * i, 2 * i + 2), 16);
  return bytes;
}

/** Base64 with padding (RFC 4648 §4). */
export function encodeBase64(bytes: Uint8Array): string {
  let text = "";
  for (const byte of bytes) text += String.fromCharCode(byte);
  return btoa(text);
}

/** Reads base64 with or without padding, or returns `null` where it is none. */
export function decodeBase64(text: string): Uint8Array<ArrayBuffer> | null {
  if (!/^[A-Za-z0-9+/]*={0,2}$/.test(text) || text.replace(/=+$/, "").length % 4 === 1) return null;
  return Uint8Array.from(atob(text.replace(/=+$/, "")), (c) => c.charCodeAt(0));
}

/** Base64url without padding (RFC 4648 §5), as DoH uses it (RFC 8484 §6). */
export function encodeBase64url(bytes: Uint8Array): string {
  return encodeBase64(bytes).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}

/** Reads base64url without padding, or returns `null` where it is none. */
export function decodeBase64url(text: string): Uint8Array<ArrayBuffer> | null {
  if (!/^[A-Za-z0-9_-]*$/.test(text)) return null;
  return decodeBase64(text.replaceAll("-", "+").replaceAll("_", "/"));
}

/** Base32 with the extended hex alphabet, no padding: NSEC3 hashes (RFC 5155 §3.3). */
export function encodeBase32hex(bytes: Uint8Array): string {
  let text = "";
  let bits = 0;
  let value = 0;
  for (const byte of bytes) {
    value = ((value << 8) | byte) & 0xfff;
    bits += 8;
    while (bits >= 5) {
      bits -= 5;
      text += BASE32HEX[(value >> bits) & 31];
    }
  }
  return bits > 0 ? text + BASE32HEX[(value << (5 - bits)) & 31] : text;
}

/** Reads base32 of either case as `encodeBase32hex` writes it, or returns `null`. */
export function decodeBase32hex(text: string): Uint8Array<ArrayBuffer> | null {
  // Lengths that no whole number of bytes has.
  if ([1, 3, 6].includes(text.length % 8)) return null;
  const bytes = new Uint8Array(Math.floor((text.length * 5) / 8));
  let at = 0;
  let bits = 0;
  let value = 0;
  for (const digit of text.toUpperCase()) {
    const index = BASE32HEX.indexOf(digit);
    if (index < 0) return null;
    value = ((value << 5) | index) & 0xfff;
    bits += 5;
    if (bits < 8) continue;
    bits -= 8;
    bytes[at++] = value >> bits;
  }
  return bytes;
}
