/**
 * What RDATA of each type is made of. One table tells whether RDATA is well formed, without
 * garbage where a response passes, and how it is written in presentation form.
 */
import { expandName, NAME_BYTES_MAX, skipName, skipPlainName } from "./name.ts";
import { Qtype } from "./numbers.ts";
import { checkSvcb } from "./svcb.ts";

/** A part of RDATA: its wire form, and by that how it is shown. */
export const Field = {
  U8: 0,
  U16: 1,
  U32: 2,
  /** Seconds since 1970, shown as a date (RFC 4034 §3.2). */
  Time: 3,
  /** A type, shown by its name. */
  Type: 4,
  Ipv4: 5,
  Ipv6: 6,
  /** A name that may be compressed: types of RFC 1035, and those of RFC 3597 §4. */
  Name: 7,
  /** A name that must not be. */
  PlainName: 8,
  /** One length byte and so many bytes, shown in quotes. */
  String: 9,
  /** As `String`, shown as it is: the tag of CAA. */
  Tag: 10,
  /** One or more of `String`, to the end. */
  Strings: 11,
  /** All to the end, shown in quotes. */
  Text: 12,
  Hex: 13,
  Base64: 14,
  /** One length byte and so many bytes in hexadecimal; none is shown as a dash (RFC 5155 §3.3). */
  Salt: 15,
  /** One length byte and so many bytes, at least one, in base32hex (RFC 5155 §3.3). */
  Hash: 16,
  /** The bitmap of types of NSEC and NSEC3 (RFC 4034 §4.1.2). */
  Bitmap: 17,
  /** All of SVCB. */
  Svcb: 18,
} as const;
export type Field = typeof Field[keyof typeof Field];

const { U8, U16, U32, Name, PlainName } = Field;
const DS: readonly Field[] = [U16, U8, U8, Field.Hex];
const DNSKEY: readonly Field[] = [U16, U8, U8, Field.Base64];

const LAYOUTS: ReadonlyMap<number, readonly Field[]> = new Map<number, readonly Field[]>([
  [Qtype.A, [Field.Ipv4]],
  [Qtype.NS, [Name]],
  [Qtype.MD, [Name]],
  [Qtype.MF, [Name]],
  [Qtype.CNAME, [Name]],
  [Qtype.SOA, [Name, Name, U32, U32, U32, U32, U32]],
  [Qtype.MB, [Name]],
  [Qtype.MG, [Name]],
  [Qtype.MR, [Name]],
  [Qtype.PTR, [Name]],
  [Qtype.HINFO, [Field.String, Field.String]],
  [Qtype.MINFO, [Name, Name]],
  [Qtype.MX, [U16, Name]],
  [Qtype.TXT, [Field.Strings]],
  [Qtype.RP, [Name, Name]],
  [Qtype.AFSDB, [U16, Name]],
  [Qtype.RT, [U16, Name]],
  [Qtype.AAAA, [Field.Ipv6]],
  [Qtype.SRV, [U16, U16, U16, Name]],
  [Qtype.NAPTR, [U16, U16, Field.String, Field.String, Field.String, Name]],
  [Qtype.DNAME, [Name]],
  [Qtype.DS, DS],
  [Qtype.SSHFP, [U8, U8, Field.Hex]],
  [Qtype.RRSIG, [
    Field.Type,
    U8,
    U8,
    U32,
    Field.Time,
    Field.Time,
    U16,
    PlainName,
    Field.Base64,
  ]],
  [Qtype.NSEC, [PlainName, Field.Bitmap]],
  [Qtype.DNSKEY, DNSKEY],
  [Qtype.NSEC3, [U8, U8, U16, Field.Salt, Field.Hash, Field.Bitmap]],
  [Qtype.NSEC3PARAM, [U8, U8, U16, Field.Salt]],
  [Qtype.TLSA, [U8, U8, U8, Field.Hex]],
  [Qtype.CDS, DS],
  [Qtype.CDNSKEY, DNSKEY],
  [Qtype.SVCB, [Field.Svcb]],
  [Qtype.HTTPS, [Field.Svcb]],
  [Qtype.SPF, [Field.Strings]],
  [Qtype.CAA, [U8, Field.Tag, Field.Text]],
]);

/** Most bytes of a window of a type bitmap: 256 types (RFC 4034 §4.1.2). */
const WINDOW_BYTES_MAX = 32;

/** The parts of RDATA of a type, or `undefined` for a type that is carried as it is. */
export function layoutOf(type: number): readonly Field[] | undefined {
  return LAYOUTS.get(type);
}

/** Scratch for names that are only checked. */
const expanded = new Uint8Array(NAME_BYTES_MAX);

/** Returns the offset behind a part of RDATA that ends at `end`, or -1 when it is malformed. */
export function skipField(packet: Uint8Array, field: Field, at: number, end: number): number {
  switch (field) {
    case Field.U8:
      return within(at + 1, end);
    case Field.U16:
    case Field.Type:
      return within(at + 2, end);
    case Field.U32:
    case Field.Time:
    case Field.Ipv4:
      return within(at + 4, end);
    case Field.Ipv6:
      return within(at + 16, end);
    case Field.Name:
      return expandName(packet, at, expanded, 0, end) < 0 ? -1 : skipName(packet, at, end);
    case Field.PlainName:
      return skipPlainName(packet, at, end);
    case Field.String:
    case Field.Salt:
      return skipString(packet, at, end);
    case Field.Tag:
    case Field.Hash:
      return at < end && packet[at] === 0 ? -1 : skipString(packet, at, end);
    case Field.Strings: {
      let next = skipString(packet, at, end);
      while (next >= 0 && next < end) next = skipString(packet, next, end);
      return next;
    }
    case Field.Text:
    case Field.Hex:
    case Field.Base64:
      return end;
    case Field.Bitmap:
      return skipBitmap(packet, at, end);
    case Field.Svcb:
      return checkSvcb(packet, at, end - at) ? end : -1;
  }
}

function within(next: number, end: number): number {
  return next <= end ? next : -1;
}

function skipString(packet: Uint8Array, at: number, end: number): number {
  return at < end ? within(at + 1 + packet[at], end) : -1;
}

/** Windows ascend, and each has 1 to 32 bytes (RFC 4034 §4.1.2). */
function skipBitmap(packet: Uint8Array, from: number, end: number): number {
  let lastWindow = -1;
  let at = from;
  while (at < end) {
    if (at + 2 > end || packet[at] <= lastWindow) return -1;
    lastWindow = packet[at];
    const length = packet[at + 1];
    if (length === 0 || length > WINDOW_BYTES_MAX) return -1;
    at += 2 + length;
  }
  return within(at, end);
}

/**
 * Says whether RDATA has the form of its type, names and their pointers included; any RDATA has
 * for a type that is not known here. Leaves no garbage. Keys and signatures may be empty: that
 * they are of no use is for DNSSEC to say.
 */
export function checkRdata(
  packet: Uint8Array,
  type: number,
  rdataOffset: number,
  rdataLength: number,
): boolean {
  const layout = LAYOUTS.get(type);
  if (layout === undefined) return true;
  const end = rdataOffset + rdataLength;
  let at = rdataOffset;
  for (let i = 0; i < layout.length; i++) {
    at = skipField(packet, layout[i], at, end);
    if (at < 0) return false;
  }
  return at === end;
}

/**
 * Copies RDATA that `checkRdata` takes for well formed, its names uncompressed. Returns the offset
 * behind it in `target`, or -1 when that is too short.
 */
export function copyRdata(
  packet: Uint8Array,
  type: number,
  rdataOffset: number,
  rdataLength: number,
  target: Uint8Array,
  targetOffset: number,
): number {
  const end = rdataOffset + rdataLength;
  const layout = LAYOUTS.get(type);
  let from = rdataOffset;
  let to = targetOffset;
  for (let i = 0; layout !== undefined && i < layout.length; i++) {
    const next = skipField(packet, layout[i], from, end);
    if (next < 0) return -1;
    if (layout[i] === Field.Name) {
      const length = expandName(packet, from, target, to, end);
      if (length < 0) return -1;
      to += length;
    } else {
      to = copyBytes(packet, from, next, target, to);
      if (to < 0) return -1;
    }
    from = next;
  }
  return copyBytes(packet, from, end, target, to);
}

function copyBytes(
  packet: Uint8Array,
  from: number,
  end: number,
  target: Uint8Array,
  to: number,
): number {
  if (to + end - from > target.length) return -1;
  for (let i = from; i < end; i++) target[to + i - from] = packet[i];
  return to + end - from;
}
