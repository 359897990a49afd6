import { formatIp, parseIp } from "./ip.ts";

/** A network: the first `lengthBits` bits of `ip`, the rest zero. */
export interface IpPrefix {
  readonly ip: Uint8Array<ArrayBuffer>;
  /** 0 to 32 for IPv4, 0 to 128 for IPv6. */
  readonly lengthBits: number;
}

/**
 * Parses `10.0.0.0/8`, `2001:db8::/32` or a single address. Host bits must be zero; returns `null`
 * for anything else.
 */
export function parsePrefix(text: string): IpPrefix | null {
  const [address, length, ...rest] = text.split("/");
  const ip = parseIp(address);
  if (ip === null || rest.length > 0) return null;
  if (length === undefined) return { ip, lengthBits: ip.length * 8 };
  if (!/^(0|[1-9]\d{0,2})$/.test(length) || Number(length) > ip.length * 8) return null;
  const lengthBits = Number(length);
  for (let bit = lengthBits; bit < ip.length * 8; bit++) {
    if ((ip[bit >> 3] & (0x80 >> (bit & 7))) !== 0) return null;
  }
  return { ip, lengthBits };
}

/** Says whether `address` (4 or 16 bytes) lies in the network. Families never mix. */
export function prefixHolds({ ip, lengthBits }: IpPrefix, address: Uint8Array): boolean {
  if (address.length !== ip.length) return false;
  const whole = lengthBits >> 3;
  for (let i = 0; i < whole; i++) if (ip[i] !== address[i]) return false;
  const mask = (0xff00 >> (lengthBits & 7)) & 0xff;
  return mask === 0 || (address[whole] & mask) === ip[whole];
}

/** `10.0.0.0/8`; a single address without its length. */
export function formatPrefix({ ip, lengthBits }: IpPrefix): string {
  return lengthBits === ip.length * 8 ? formatIp(ip) : `${formatIp(ip)}/${lengthBits}`;
}
