/** RDATA in presentation form, for people: the query log, the API, tests. */
import { formatIp } from "../addr/mod.ts";
import { encodeBase32hex, encodeBase64, encodeHex, getU16, getU32 } from "../bytes/mod.ts";
import { readNameText } from "./name.ts";
import { qtypeName } from "./numbers.ts";
import { Field, layoutOf, skipField } from "./rdata.ts";
import { formatSvcb } from "./svcb.ts";
import { formatCharString } from "./text.ts";

/**
 * RDATA of a record in presentation form, its names without the dot at their end. RDATA of a type
 * not known here, or without the form of its type, is shown as RFC 3597 §5 does: `\# 2 c00c`.
 */
export function formatRdata(
  packet: Uint8Array,
  type: number,
  rdataOffset: number,
  rdataLength: number,
): string {
  const rdata = () => packet.subarray(rdataOffset, rdataOffset + rdataLength);
  return formatFields(packet, type, rdataOffset, rdataOffset + rdataLength) ??
    `\\# ${rdataLength} ${encodeHex(rdata())}`.trimEnd();
}

function formatFields(
  packet: Uint8Array,
  type: number,
  offset: number,
  end: number,
): string | null {
  const words: string[] = [];
  let at = offset;
  for (const field of layoutOf(type) ?? []) {
    const next = skipField(packet, field, at, end);
    const word = next < 0 ? null : formatField(packet, field, at, next);
    if (word === null) return null;
    if (word !== "") words.push(word);
    at = next;
  }
  return at === end && words.length > 0 ? words.join(" ") : null;
}

/** A part that `skipField` found well formed; `null` if it can't be shown and read again. */
function formatField(packet: Uint8Array, field: Field, at: number, end: number): string | null {
  switch (field) {
    case Field.U8:
      return `${packet[at]}`;
    case Field.U16:
      return `${getU16(packet, at)}`;
    case Field.U32:
      return `${getU32(packet, at)}`;
    case Field.Time:
      return formatTime(getU32(packet, at));
    case Field.Type:
      return qtypeName(getU16(packet, at));
    case Field.Ipv4:
    case Field.Ipv6:
      return formatIp(packet, at, end - at);
    case Field.Name:
    case Field.PlainName:
      return readNameText(packet, at);
    case Field.String:
      return formatCharString(packet, at + 1, end - at - 1);
    case Field.Tag: {
      const tag = String.fromCharCode(...packet.subarray(at + 1, end));
      // The registry's tags are letters and digits (RFC 8659 §4.1); others would break the text.
      return /^[0-9A-Za-z]+$/.test(tag) ? tag : null;
    }
    case Field.Strings: {
      const strings: string[] = [];
      for (let from = at; from < end; from += 1 + packet[from]) {
        strings.push(formatCharString(packet, from + 1, packet[from]));
      }
      return strings.join(" ");
    }
    case Field.Text:
      return formatCharString(packet, at, end - at);
    case Field.Hex:
      return at === end ? null : encodeHex(packet.subarray(at, end));
    case Field.Base64:
      return at === end ? null : encodeBase64(packet.subarray(at, end));
    case Field.Salt:
      return end === at + 1 ? "-" : encodeHex(packet.subarray(at + 1, end));
    case Field.Hash:
      return encodeBase32hex(packet.subarray(at + 1, end));
    case Field.Bitmap:
      return formatBitmap(packet, at, end);
    case Field.Svcb:
      return formatSvcb(packet, at, end - at);
  }
}

/** `YYYYMMDDHHmmSS` in UTC (RFC 4034 §3.2). */
function formatTime(seconds: number): string {
  return new Date(seconds * 1000).toISOString().replace(/[-:T]|\.\d+Z$/g, "");
}

/** Most types of a bitmap that are shown; a full one would make a text 70 times its size. */
const BITMAP_TYPES_MAX = 1_024;

function formatBitmap(packet: Uint8Array, offset: number, end: number): string | null {
  const names: string[] = [];
  for (let at = offset; at < end; at += 2 + packet[at + 1]) {
    for (let i = 0; i < packet[at + 1] * 8; i++) {
      if ((packet[at + 2 + (i >> 3)] & (0x80 >> (i & 7))) !== 0) {
        names.push(qtypeName((packet[at] << 8) | i));
      }
    }
  }
  return names.length > BITMAP_TYPES_MAX ? null : names.join(" ");
}
