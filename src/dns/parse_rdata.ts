/** RDATA of what people write: the way back from `formatRdata`, for types of numbers, names and text. */
import { concat } from "../bytes/mod.ts";
import { parseIp } from "../addr/mod.ts";
import { parseName } from "./name.ts";
import { Qtype } from "./numbers.ts";
import { Field, layoutOf } from "./rdata.ts";
import { parseSvcb } from "./svcb.ts";
import { tokenize, unescape } from "./text.ts";

/** Most bytes of a string with a length before it (RFC 1035 §3.3). */
const STRING_BYTES_MAX = 255;
/** Longest text that is looked at: RDATA of it is no longer than a record may have. */
const TEXT_LENGTH_MAX = 16_384;

const INTEGERS: Partial<Record<Field, number>> = { [Field.U8]: 1, [Field.U16]: 2, [Field.U32]: 4 };

/**
 * Reads RDATA in presentation form (RFC 1035 §5.1, RFC 9460 §2.1); `null` for what is none of its
 * type, and for types with other parts. A TXT without any quote is one text, blanks included, and
 * is cut to strings of 255 bytes: nobody should have to know of them.
 */
export function parseRdata(type: number, text: string): Uint8Array<ArrayBuffer> | null {
  if (text.length > TEXT_LENGTH_MAX) return null;
  // deno-lint-ignore no-control-regex -- all of ASCII
  if (!/^[\x00-\x7f]*$/.test(text)) {
    return type === Qtype.TXT ? parseRdata(type, bytesAsText(text)) : null;
  }
  if (type === Qtype.SVCB || type === Qtype.HTTPS) return parseSvcb(text);
  if (type === Qtype.TXT && !text.includes('"')) return textOf(unescape(text));
  const layout = layoutOf(type);
  const tokens = tokenize(text);
  if (layout === undefined || tokens === null) return null;
  const pieces: Uint8Array[] = [];
  let at = 0;
  for (const field of layout) {
    const taken = field === Field.Strings ? tokens.slice(at) : tokens.slice(at, at + 1);
    const parts = taken.map((token) => parseField(field, token));
    if (parts.length === 0) return null;
    for (const part of parts) {
      if (part === null) return null;
      pieces.push(part);
    }
    at += taken.length;
  }
  return at === tokens.length ? concat(...pieces) : null;
}

/** Text with each byte of its UTF-8 beyond ASCII escaped. */
function bytesAsText(text: string): string {
  return Array.from(
    new TextEncoder().encode(text),
    (byte) => byte < 0x80 ? String.fromCharCode(byte) : `\\${byte}`,
  ).join("");
}

function parseField(field: Field, token: string): Uint8Array | null {
  switch (field) {
    case Field.U8:
    case Field.U16:
    case Field.U32:
      return integer(token, INTEGERS[field] ?? 0);
    case Field.Ipv4:
    case Field.Ipv6: {
      const ip = parseIp(token);
      return ip?.length === (field === Field.Ipv4 ? 4 : 16) ? ip : null;
    }
    case Field.Name:
    case Field.PlainName:
      return parseName(token);
    case Field.String:
    case Field.Strings:
      return stringOf(unescape(token));
    case Field.Tag:
      return /^[0-9A-Za-z]+$/.test(token) ? stringOf(unescape(token)) : null;
    case Field.Text:
      return unescape(token);
    default:
      return null;
  }
}

function integer(token: string, lengthBytes: number): Uint8Array | null {
  if (!/^(0|[1-9]\d{0,9})$/.test(token)) return null;
  const value = Number(token);
  if (value >= 2 ** (8 * lengthBytes)) return null;
  return Uint8Array.from(
    { length: lengthBytes },
    (_, i) => Math.floor(value / 2 ** (8 * (lengthBytes - 1 - i))) & 0xff,
  );
}

function stringOf(bytes: Uint8Array | null): Uint8Array | null {
  if (bytes === null || bytes.length > STRING_BYTES_MAX) return null;
  return Uint8Array.of(bytes.length, ...bytes);
}

function textOf(bytes: Uint8Array | null): Uint8Array<ArrayBuffer> | null {
  if (bytes === null) return null;
  const strings: Uint8Array[] = [];
  for (let at = 0; at === 0 || at < bytes.length; at += STRING_BYTES_MAX) {
    const part = bytes.subarray(at, at + STRING_BYTES_MAX);
    strings.push(Uint8Array.of(part.length, ...part));
  }
  return concat(...strings);
}
