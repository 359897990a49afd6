import { domainToASCII } from "node:url";
import { isAbsolute, join, normalize } from "node:path/posix";
import {
  formatHostPort,
  formatPrefix,
  type HostPort,
  type IpPrefix,
  isLoopbackHost,
  parseHostPort,
  parseIp,
  parsePrefix,
} from "../addr/mod.ts";
import { quote } from "./problem.ts";
import { kindOf, type Place, type Reader } from "./table.ts";
import { formatDuration, formatSize, parseDuration, parseSize } from "./units.ts";

export type IpBytes = Uint8Array<ArrayBuffer>;

const IPV6_BYTES = 16;
/** Longest domain name in text form without its last dot (RFC 1035 §2.3.4: 255 bytes on the wire). */
const DOMAIN_LENGTH_MAX = 253;
/** Longest path (Linux: PATH_MAX with its ending NUL). */
const PATH_LENGTH_MAX = 4_095;
/** Longest URL; what HTTP servers commonly take (RFC 9110 §4.1 asks for 8000 at least). */
const URL_LENGTH_MAX = 8_000;

export const boolean: Reader<boolean> = (value, place) =>
  typeof value === "boolean"
    ? value
    : place.problem(`is ${kindOf(value)}, not a boolean: write true or false without quotes`);

/** A string of 1 to `lengthMax` characters on one line. */
export function text(lengthMax: number): Reader<string> {
  return (value, place) => {
    if (typeof value !== "string") {
      return place.problem(`is ${kindOf(value)}, not a string: put it in "quotes"`);
    }
    if (value.trim() === "") return place.problem("is empty: write a value or take it away");
    if (value.length > lengthMax) {
      return place.problem(`has ${value.length} characters, more than ${lengthMax}: shorten it`);
    }
    return /[^\P{Cc}\t]/u.test(value) // A tab is a space to the hosts lines among the rules.
      ? place.problem("holds a control character or a line break: take it out")
      : value;
  };
}

/** A string of one form; `expected` names the form in the problem's message. */
function form<T>(
  parse: (text: string) => T | null,
  lengthMax: number,
  expected: string,
): Reader<T> {
  const read = text(lengthMax);
  return (value, place) => {
    const checked = read(value, place);
    if (checked === null) return null;
    return parse(checked) ?? place.problem(`is ${quote(checked)}, not ${expected}`);
  };
}

/** Text that fits a pattern as a whole. */
export function matching(pattern: RegExp, expected: string): Reader<string> {
  return form((value) => pattern.test(value) ? value : null, 256, expected);
}

export function oneOf<const T extends string>(...words: T[]): Reader<T> {
  const expected = words.map((word) => `"${word}"`).join(" or ");
  return form((value) => words.find((word) => word === value) ?? null, 256, expected);
}

export function integer(min: number, max: number): Reader<number> {
  return (value, place) => {
    if (typeof value !== "number" || !Number.isInteger(value)) {
      const mending = typeof value === "string"
        ? "write it without quotes"
        : "write a whole number";
      return place.problem(`is ${kindOf(value)}, not an integer: ${mending}`);
    }
    return inRange(value, min, max, String, place);
  };
}

export function ratio(): Reader<number> {
  return (value, place) => {
    if (typeof value !== "number" || Number.isNaN(value)) {
      return place.problem(`is ${kindOf(value)}, not a number: write one such as 0.05`);
    }
    return inRange(value, 0, 1, String, place);
  };
}

function inRange(
  value: number,
  min: number,
  max: number,
  format: (value: number) => string,
  place: Place,
): number | null {
  if (value >= min && value <= max) return value;
  return place.problem(
    `is ${format(value)}, out of range: write one from ${format(min)} to ${format(max)}`,
  );
}

/** Milliseconds of a duration such as `"10s"`. */
export function duration(msMin: number, msMax: number): Reader<number> {
  const read = form(
    parseDuration,
    256,
    'a duration: write a whole number and ms, s, m, h or d, such as "10s"',
  );
  return (value, place) => {
    if (typeof value === "number") {
      return place.problem(`is a number without a unit: write a duration such as "10s"`);
    }
    const durationMs = read(value, place);
    return durationMs === null ? null : inRange(durationMs, msMin, msMax, formatDuration, place);
  };
}

/** Bytes of a size such as `"32MiB"`. */
export function size(bytesMin: number, bytesMax: number): Reader<number> {
  const read = form(
    parseSize,
    256,
    'a size: write a whole number and B, KiB, MiB or GiB, such as "32MiB"',
  );
  return (value, place) => {
    if (typeof value === "number") {
      return place.problem(`is a number without a unit: write a size such as "32MiB"`);
    }
    const sizeBytes = read(value, place);
    return sizeBytes === null ? null : inRange(sizeBytes, bytesMin, bytesMax, formatSize, place);
  };
}

export const ip: Reader<IpBytes> = form(
  parseIp,
  256,
  'an IP address: write one such as "192.0.2.1" or "2001:db8::1"',
);

export const ipv4: Reader<IpBytes> = form(
  (value) => value.includes(":") ? null : parseIp(value),
  256,
  'an IPv4 address: write one such as "192.0.2.1"',
);

/** An address with a port from `portMin` on; without one it is `defaultPort`. */
export function hostPort(defaultPort: number, portMin: 0 | 1): Reader<HostPort> {
  const example = `"192.0.2.1:${defaultPort}" or "[2001:db8::1]:${defaultPort}"`;
  return form(
    (value) => {
      const parsed = parseHostPort(value, defaultPort);
      return parsed !== null && parsed.port >= portMin ? parsed : null;
    },
    256,
    `an IP address with a port: write one such as ${example}`,
  );
}

/** A network without host bits, or a single address. */
export const network: Reader<IpPrefix> = (value, place) => {
  const checked = text(256)(value, place);
  if (checked === null) return null;
  const prefix = parsePrefix(checked);
  if (prefix !== null) return prefix;
  const mended = withoutHostBits(checked);
  const form = 'not a network: write one such as "192.0.2.0/24" or "2001:db8::/32"';
  return place.problem(
    mended === null
      ? `is ${quote(checked)}, ${form}`
      : `is ${quote(checked)}, which has host bits set: write "${mended}"`,
  );
};

export const ipv6Network: Reader<IpPrefix> = (value, place) => {
  const read = network(value, place);
  if (read === null || read.ip.length === IPV6_BYTES) return read;
  return place.problem(
    `is ${quote(formatPrefix(read))}, not an IPv6 network: write one such as "2001:db8::/32"`,
  );
};

/** The network that a text with host bits means, or `null` if it means none. */
function withoutHostBits(value: string): string | null {
  const [address, length, ...rest] = value.split("/");
  const bytes = parseIp(address);
  if (bytes === null || length === undefined || rest.length > 0) return null;
  if (!/^(0|[1-9]\d{0,2})$/.test(length) || Number(length) > bytes.length * 8) return null;
  const lengthBits = Number(length);
  const masked = bytes.map((byte, i) =>
    byte & (0xff00 >> Math.min(8, Math.max(0, lengthBits - 8 * i)))
  );
  return formatPrefix({ ip: masked, lengthBits });
}

/**
 * A domain name in lower-case A-labels without its last dot (UTS 46), or `null` if it is none. One
 * label is enough: `lan` is a domain.
 */
export function parseDomain(value: string): string | null {
  const ascii = domainToASCII(value.replace(/\.$/, "")).toLowerCase();
  if (ascii === "" || ascii.length > DOMAIN_LENGTH_MAX || parseIp(ascii) !== null) return null;
  const label = /^[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?$/;
  return ascii.split(".").every((part) => label.test(part)) ? ascii : null;
}

export const domain: Reader<string> = form(
  parseDomain,
  1_024,
  'a domain name: write one such as "home.arpa", without a wildcard',
);

/** A file or folder, made absolute against the folder of the configuration file. */
export function path(directory: string): Reader<string> {
  return form((value) => resolvePath(directory, value), PATH_LENGTH_MAX, "a path");
}

/** An absolute path without `.`, `..` or an ending slash. */
export function resolvePath(directory: string, value: string): string {
  const normal = isAbsolute(value) ? normalize(value) : join(directory, value);
  return normal.length > 1 ? normal.replace(/\/$/, "") : normal;
}

/** Says whether a file lies below a folder; both are absolute and normal. */
export function isInside(file: string, dir: string): boolean {
  return file.startsWith(dir.replace(/\/?$/, "/"));
}

/** A URL; `http` is for this machine only unless `plainHttp` allows it for any. */
export function url(options: { plainHttp: boolean }): Reader<string> {
  const read = text(URL_LENGTH_MAX);
  return (value, place) => {
    const checked = read(value, place);
    if (checked === null) return null;
    const parsed = URL.parse(checked);
    const isWeb = parsed !== null && (parsed.protocol === "https:" || parsed.protocol === "http:");
    if (!isWeb) {
      return place.problem(
        `is ${quote(checked)}, not a web address: write one such as "https://www.example/path"`,
      );
    }
    if (parsed.protocol === "http:" && !options.plainHttp && !isLoopbackHost(parsed.hostname)) {
      return place.problem(
        "is fetched over http, which anybody on the way can change: write https",
      );
    }
    if (parsed.username !== "" || parsed.password !== "") {
      return place.problem("holds a user name or password: take it out, it would show in logs");
    }
    return parsed.href;
  };
}

/** Scheme, host and port of a web address, as a browser writes them: what links begin with. */
export const origin: Reader<string> = (value, place) => {
  const href = url({ plainHttp: true })(value, place);
  if (href === null) return null;
  const parsed = new URL(href);
  // What stands behind the origin, the slash aside, is the pages' own; so is the mark before it.
  if (href === `${parsed.origin}/` && !/[?#]/.test(String(value))) return parsed.origin;
  return place.problem(
    `is ${quote(String(value))}, more than an origin: write "${parsed.origin}"`,
  );
};

/** Sockets by transport and address, so that no two listeners claim the same one. */
export class Sockets {
  readonly #owners = new Map<string, string>();

  /** Reads a listen address and claims its socket of each transport. */
  listen(defaultPort: number, ...transports: ("udp" | "tcp")[]): Reader<HostPort> {
    const read = hostPort(defaultPort, 0);
    return (value, place) => {
      const address = read(value, place);
      if (address === null || place.isSilent) return address;
      if (address.port === 0) return address; // Port 0 is a new one each time.
      for (const transport of transports) {
        const socket = `${transport} ${formatHostPort(address)}`;
        const owner = this.#owners.get(socket);
        if (owner !== undefined) {
          return place.problem(
            `is ${
              quote(formatHostPort(address))
            }, which ${owner} has over ${transport}: change one`,
          );
        }
        this.#owners.set(socket, String(place));
      }
      return address;
    };
  }
}
