import { formatIp, isUnspecified, parseIp } from "./ip.ts";

/** An address to listen on or to ask. */
export interface HostPort {
  /** 4 or 16 bytes. */
  readonly ip: Uint8Array<ArrayBuffer>;
  /** 0 to 65535; 0 asks the system for a free one. */
  readonly port: number;
}

/**
 * Parses `1.2.3.4:53`, `[2001:db8::1]:53` and, where `defaultPort` is given, an address alone
 * (IPv6 with or without brackets). Returns `null` for anything else.
 */
export function parseHostPort(text: string, defaultPort?: number): HostPort | null {
  const bracketed = /^\[([^\]]*)\](?::(\d{1,5}))?$/.exec(text);
  const plain = /^([^:]*)(?::(\d{1,5}))?$/.exec(text);
  const [host, portText] = bracketed !== null
    ? [bracketed[1], bracketed[2]]
    : plain !== null
    ? [plain[1], plain[2]]
    : [text, undefined];
  const ip = parseIp(host);
  const port = portText === undefined ? defaultPort : Number(portText);
  if (ip === null || port === undefined || port > 65535) return null;
  if (bracketed !== null && ip.length !== 16) return null;
  return { ip, port };
}

/** `1.2.3.4:53` or `[2001:db8::1]:53`. */
export function formatHostPort({ ip, port }: HostPort): string {
  return ip.length === 4 ? `${formatIp(ip)}:${port}` : `[${formatIp(ip)}]:${port}`;
}

/**
 * The addresses of `listen` that take a socket of their own: `0.0.0.0` and `::` of one port are one
 * socket, which takes both families.
 */
export function serverAddresses(listen: readonly HostPort[]): readonly HostPort[] {
  return listen.filter(({ ip, port }) =>
    ip.length === 16 || !isUnspecified(ip) || port === 0 ||
    !listen.some((other) =>
      other.ip.length === 16 && isUnspecified(other.ip) && other.port === port
    )
  );
}
