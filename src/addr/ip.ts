/** Reads a dotted quad without leading zeros, or returns `null`. */
function parseIpv4(text: string): Uint8Array<ArrayBuffer> | null {
  const parts = text.split(".");
  if (parts.length !== 4) return null;
  const bytes = new Uint8Array(4);
  for (let i = 0; i < 4; i++) {
    // A leading zero reads as octal in some programs: no reading is better than two.
    if (!/^(0|[1-9]\d{0,2})$/.test(parts[i]) || Number(parts[i]) > 255) return null;
    bytes[i] = Number(parts[i]);
  }
  return bytes;
}

function parseIpv6(text: string): Uint8Array<ArrayBuffer> | null {
  let source = text;
  const tail = source.slice(source.lastIndexOf(":") + 1);
  if (tail.includes(".")) {
    const v4 = parseIpv4(tail);
    if (v4 === null) return null;
    const words = [(v4[0] << 8) | v4[1], (v4[2] << 8) | v4[3]];
    source = source.slice(0, -tail.length) + words.map((w) => w.toString(16)).join(":");
  }
  const halves = source.split("::");
  if (halves.length > 2) return null;
  const groups = (half: string) => half === "" ? [] : half.split(":");
  const [head, rest] = [groups(halves[0]), halves.length === 2 ? groups(halves[1]) : []];
  const missing = 8 - head.length - rest.length;
  if (halves.length === 2 ? missing < 1 : missing !== 0) return null;
  const all = [...head, ...Array<string>(missing).fill("0"), ...rest];
  const bytes = new Uint8Array(16);
  for (let i = 0; i < 8; i++) {
    if (!/^[0-9a-fA-F]{1,4}$/.test(all[i])) return null;
    const word = parseInt(all[i], 16);
    bytes[2 * i] = word >> 8;
    bytes[2 * i + 1] = word;
  }
  return bytes;
}

/** Parses an IPv4 (4 bytes) or IPv6 (16 bytes) address without zone or brackets, or `null`. */
export function parseIp(text: string): Uint8Array<ArrayBuffer> | null {
  return text.includes(":") ? parseIpv6(text) : parseIpv4(text);
}

/** Formats 4 or 16 bytes at `offset`; IPv6 in the canonical form of RFC 5952. */
export function formatIp(bytes: Uint8Array, offset = 0, length = bytes.length - offset): string {
  if (length === 4) {
    return `${bytes[offset]}.${bytes[offset + 1]}.${bytes[offset + 2]}.${bytes[offset + 3]}`;
  }
  const words: number[] = [];
  for (let i = 0; i < 8; i++) words.push((bytes[offset + 2 * i] << 8) | bytes[offset + 2 * i + 1]);
  const mapped = words[5] === 0xffff && words.slice(0, 5).every((w) => w === 0);
  if (mapped) return `::ffff:${formatIp(bytes, offset + 12, 4)}`;
  // The first of the longest runs of two or more zero words is shortened (RFC 5952 §4.2).
  let [runStart, runLength] = [-1, 1];
  for (let i = 0; i < 8; i++) {
    let n = 0;
    while (i + n < 8 && words[i + n] === 0) n++;
    if (n > runLength) [runStart, runLength] = [i, n];
  }
  const hex = (part: number[]) => part.map((w) => w.toString(16)).join(":");
  if (runStart < 0) return hex(words);
  return `${hex(words.slice(0, runStart))}::${hex(words.slice(runStart + runLength))}`;
}

/** Says whether the 16 bytes at `offset` are an IPv4-mapped address (RFC 4291 §2.5.5.2). */
export function isMappedAt(bytes: Uint8Array, offset: number): boolean {
  if (bytes[offset + 10] !== 0xff || bytes[offset + 11] !== 0xff) return false;
  for (let i = 0; i < 10; i++) if (bytes[offset + i] !== 0) return false;
  return true;
}

/** The IPv4 address inside an IPv4-mapped IPv6 one, else the address itself. */
export function unmapIpv4(bytes: Uint8Array): Uint8Array {
  return bytes.length === 16 && isMappedAt(bytes, 0) ? bytes.subarray(12) : bytes;
}

/** Says whether an address is 127.0.0.0/8 or ::1, IPv4-mapped ones included. */
export function isLoopback(bytes: Uint8Array): boolean {
  const address = unmapIpv4(bytes);
  if (address.length === 4) return address[0] === 127;
  return address.every((byte, i) => byte === (i === 15 ? 1 : 0));
}

/** Says whether an address is `0.0.0.0` or `::`, which stand for every address of a machine. */
export function isUnspecified(bytes: Uint8Array): boolean {
  return bytes.every((byte) => byte === 0);
}
