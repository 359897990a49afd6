/**
 * RDATA of SVCB and HTTPS (RFC 9460): read in place, and to presentation form and back. The forms
 * of the parameters are those of RFC 9460 §14.3.2, RFC 9461 (dohpath) and RFC 9540 (ohttp).
 */
import { formatIp, parseIp } from "../addr/mod.ts";
import { decodeBase64, encodeBase64, getU16, setU16 } from "../bytes/mod.ts";
import { formatName, parseName, skipPlainName } from "./name.ts";
import { formatCharString, tokenize, unescape } from "./text.ts";

/** Parameters that are read; others are carried as they are. */
export const SvcParam = {
  Mandatory: 0,
  Alpn: 1,
  NoDefaultAlpn: 2,
  Port: 3,
  Ipv4Hint: 4,
  Ech: 5,
  Ipv6Hint: 6,
  DohPath: 7,
  Ohttp: 8,
} as const;
export type SvcParam = typeof SvcParam[keyof typeof SvcParam];

/** Their names in presentation form, by number. */
const KEY_NAMES: readonly string[] = [
  "mandatory",
  "alpn",
  "no-default-alpn",
  "port",
  "ipv4hint",
  "ech",
  "ipv6hint",
  "dohpath",
  "ohttp",
];
/** Bytes before the value of a parameter: key and length. */
const PARAM_HEADER_BYTES = 4;
/** The last key; 65535 is reserved as invalid (RFC 9460 §14.3.2). */
const KEY_MAX = 65_534;
const RDATA_BYTES_MAX = 0xffff;
/** Longest text that can be RDATA: four characters a byte, and some between them. */
const TEXT_LENGTH_MAX = 5 * RDATA_BYTES_MAX;
const PORT_MAX = 0xffff;
/** Most bytes of a protocol's name (RFC 7301 §3.1). */
const ALPN_BYTES_MAX = 255;

/** A parameter of an SVCB record; `key` is -1 before the first is read. */
export class SvcParamView {
  key = -1;
  valueOffset = 0;
  valueLength = 0;
}

/**
 * Reads the parameter at `offset` into `view`, which holds the one before it, for keys ascend
 * (RFC 9460 §2.2). Returns where the next starts, or -1 when it is cut off or out of order.
 */
export function readSvcParam(
  packet: Uint8Array,
  offset: number,
  end: number,
  view: SvcParamView,
): number {
  const valueOffset = offset + PARAM_HEADER_BYTES;
  if (valueOffset > end) return -1;
  const key = getU16(packet, offset);
  const valueLength = getU16(packet, offset + 2);
  if (key <= view.key || valueOffset + valueLength > end) return -1;
  view.key = key;
  view.valueOffset = valueOffset;
  view.valueLength = valueLength;
  return valueOffset + valueLength;
}

/**
 * Returns where the parameters of the SVCB record start whose RDATA is at `offset`, or -1 when
 * priority or target are cut off. The target is not compressed (RFC 9460 §2.2).
 */
export function skipSvcbTarget(packet: Uint8Array, offset: number, end: number): number {
  return skipPlainName(packet, offset + 2, end);
}

/** Scratch of `checkSvcb`, which runs to its end before anything else can use it. */
const checked = new SvcParamView();

/**
 * Says whether RDATA of SVCB or HTTPS is well formed: keys ascend, the values of known keys have
 * their form, and every mandatory key is there (RFC 9460 §2.2, §8). Leaves no garbage.
 */
export function checkSvcb(packet: Uint8Array, offset: number, length: number): boolean {
  const end = offset + length;
  let at = skipSvcbTarget(packet, offset, end);
  if (at < 0) return false;
  checked.key = -1;
  // Parameters ascend, and so must the mandatory keys: one pass over both meets each key that is
  // there. A key twice, out of order, missing, or `mandatory` itself leaves the list unfinished.
  let mandatory = 0;
  let mandatoryEnd = 0;
  while (at < end) {
    at = readSvcParam(packet, at, end, checked);
    if (at < 0 || !checkValue(packet, checked)) return false;
    if (checked.key === SvcParam.Mandatory) {
      mandatory = checked.valueOffset;
      mandatoryEnd = at;
    } else if (mandatory < mandatoryEnd && getU16(packet, mandatory) === checked.key) {
      mandatory += 2;
    }
  }
  return mandatory === mandatoryEnd;
}

/** Says whether the value of a known key has its form. */
function checkValue(packet: Uint8Array, param: SvcParamView): boolean {
  const { valueOffset, valueLength } = param;
  switch (param.key) {
    case SvcParam.Alpn:
      return valueLength > 0 && isAlpnList(packet, valueOffset, valueLength);
    case SvcParam.NoDefaultAlpn:
    case SvcParam.Ohttp:
      return valueLength === 0;
    case SvcParam.Port:
      return valueLength === 2;
    case SvcParam.Ipv4Hint:
      return valueLength > 0 && valueLength % 4 === 0;
    case SvcParam.Ipv6Hint:
      return valueLength > 0 && valueLength % 16 === 0;
    case SvcParam.Mandatory:
    case SvcParam.Ech:
    case SvcParam.DohPath:
      return valueLength > 0;
    default:
      return true;
  }
}

/** Length-prefixed protocols, none of them empty, fill the value (RFC 9460 §7.1.1). */
function isAlpnList(packet: Uint8Array, offset: number, length: number): boolean {
  const end = offset + length;
  let at = offset;
  while (at < end) {
    if (packet[at] === 0) return false;
    at += 1 + packet[at];
  }
  return at === end;
}

/** RDATA of SVCB or HTTPS in presentation form, or `null` when it is malformed. */
export function formatSvcb(packet: Uint8Array, offset: number, length: number): string | null {
  if (!checkSvcb(packet, offset, length)) return null;
  const end = offset + length;
  const view = new SvcParamView();
  let text = `${getU16(packet, offset)} ${formatName(packet, offset + 2)}`;
  let at = skipSvcbTarget(packet, offset, end);
  while (at < end) {
    at = readSvcParam(packet, at, end, view);
    text += ` ${keyName(view.key)}${formatValue(packet, view, at)}`;
  }
  return text;
}

function keyName(key: number): string {
  return KEY_NAMES[key] ?? `key${key}`;
}

/** A value with its equals sign, or nothing for an empty one. */
function formatValue(packet: Uint8Array, param: SvcParamView, end: number): string {
  const { key, valueOffset: from, valueLength: length } = param;
  if (length === 0) return "";
  const parts: string[] = [];
  switch (key) {
    case SvcParam.Mandatory:
      for (let at = from; at < end; at += 2) parts.push(keyName(getU16(packet, at)));
      return `=${parts.join(",")}`;
    case SvcParam.Alpn: {
      // Commas within a protocol are escaped once more, before the string is (RFC 9460 §A.1).
      const list: number[] = [];
      for (let at = from; at < end; at += 1 + packet[at]) {
        if (at > from) list.push(COMMA);
        for (const byte of packet.subarray(at + 1, at + 1 + packet[at])) {
          if (byte === COMMA || byte === BACKSLASH) list.push(BACKSLASH);
          list.push(byte);
        }
      }
      return `=${formatCharString(Uint8Array.from(list), 0, list.length)}`;
    }
    case SvcParam.Port:
      return `=${getU16(packet, from)}`;
    case SvcParam.Ipv4Hint:
    case SvcParam.Ipv6Hint: {
      const step = key === SvcParam.Ipv4Hint ? 4 : 16;
      for (let at = from; at < end; at += step) parts.push(formatIp(packet, at, step));
      return `=${parts.join(",")}`;
    }
    case SvcParam.Ech:
      return `=${encodeBase64(packet.subarray(from, end))}`;
    default:
      return `=${formatCharString(packet, from, length)}`;
  }
}

const COMMA = 0x2c;
const BACKSLASH = 0x5c;

/**
 * Reads RDATA of SVCB or HTTPS in presentation form, parameters in any order. Returns `null` for
 * a key given twice or unknown, a value without its form, or a mandatory key that is missing.
 */
export function parseSvcb(text: string): Uint8Array<ArrayBuffer> | null {
  const tokens = text.length > TEXT_LENGTH_MAX ? null : tokenize(text);
  if (tokens === null || tokens.length < 2) return null;
  const priority = parseNumber(tokens[0], 0xffff);
  const target = parseName(tokens[1]);
  if (priority === null || target === null) return null;
  const params = new Map<number, Uint8Array>();
  for (const token of tokens.slice(2)) {
    const equals = token.indexOf("=");
    const key = parseKey(equals < 0 ? token : token.slice(0, equals));
    if (key === null || params.has(key)) return null;
    const value = parseValue(key, equals < 0 ? "" : token.slice(equals + 1));
    if (value === null) return null;
    params.set(key, value);
  }
  const sorted = [...params].sort(([a], [b]) => a - b);
  const length = sorted.reduce((sum, [, value]) => sum + PARAM_HEADER_BYTES + value.length, 0);
  const wire = new Uint8Array(2 + target.length + length);
  if (wire.length > RDATA_BYTES_MAX) return null;
  setU16(wire, 0, priority);
  wire.set(target, 2);
  let at = 2 + target.length;
  for (const [key, value] of sorted) {
    setU16(wire, at, key);
    setU16(wire, at + 2, value.length);
    wire.set(value, at + PARAM_HEADER_BYTES);
    at += PARAM_HEADER_BYTES + value.length;
  }
  return checkSvcb(wire, 0, wire.length) ? wire : null;
}

function parseNumber(text: string, max: number): number | null {
  return /^(0|[1-9]\d{0,4})$/.test(text) && Number(text) <= max ? Number(text) : null;
}

function parseKey(text: string): number | null {
  const known = KEY_NAMES.indexOf(text);
  if (known >= 0) return known;
  return text.startsWith("key") ? parseNumber(text.slice(3), KEY_MAX) : null;
}

/** The value of a key in wire format; what `checkSvcb` finds out is left to it. */
function parseValue(key: number, text: string): Uint8Array | null {
  const bytes = unescape(text);
  if (bytes === null) return null;
  let plain = "";
  for (const byte of bytes) plain += String.fromCharCode(byte);
  switch (key) {
    case SvcParam.Mandatory: {
      const keys = plain.split(",").map(parseKey);
      if (keys.includes(null)) return null;
      const sorted = keys.map(Number).sort((a, b) => a - b);
      return Uint8Array.from(sorted.flatMap((number) => [number >> 8, number & 0xff]));
    }
    case SvcParam.Alpn:
      return parseAlpn(bytes);
    case SvcParam.Port: {
      const port = parseNumber(plain, PORT_MAX);
      return port === null ? null : Uint8Array.of(port >> 8, port);
    }
    case SvcParam.Ipv4Hint:
    case SvcParam.Ipv6Hint: {
      const size = key === SvcParam.Ipv4Hint ? 4 : 16;
      const addresses = plain.split(",").map(parseIp);
      if (addresses.some((address) => address?.length !== size)) return null;
      return Uint8Array.from(addresses.flatMap((address) => [...address ?? []]));
    }
    case SvcParam.Ech:
      return decodeBase64(plain);
    default:
      return bytes;
  }
}

/** Reads the comma-separated list within a string, where a backslash escapes (RFC 9460 §A.1). */
function parseAlpn(bytes: Uint8Array): Uint8Array | null {
  const wire: number[] = [];
  let item: number[] = [];
  for (let i = 0; i <= bytes.length; i++) {
    if (i === bytes.length || bytes[i] === COMMA) {
      if (item.length === 0 || item.length > ALPN_BYTES_MAX) return null;
      wire.push(item.length, ...item);
      item = [];
      continue;
    }
    if (bytes[i] === BACKSLASH && ++i === bytes.length) return null;
    item.push(bytes[i]);
  }
  return Uint8Array.from(wire);
}
