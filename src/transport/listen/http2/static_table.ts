/** What a server needs to tell apart of the names of header fields. */
export const FieldName = {
  Other: 0,
  Method: 1,
  Scheme: 2,
  Authority: 3,
  Path: 4,
  /** A pseudo-header field that no request has. */
  BadPseudo: 5,
  ContentType: 6,
  ContentLength: 7,
  /** `te`, which says `trailers` or nothing (RFC 9113 §8.2.2). */
  Te: 8,
  /** Of a connection, and so not of HTTP/2 (RFC 9113 §8.2.2). */
  ConnectionSpecific: 9,
  Host: 10,
} as const;
export type FieldName = typeof FieldName[keyof typeof FieldName];

const encoder = new TextEncoder();

const KNOWN: readonly (readonly [string, FieldName])[] = [
  [":method", FieldName.Method],
  [":scheme", FieldName.Scheme],
  [":authority", FieldName.Authority],
  [":path", FieldName.Path],
  ["content-type", FieldName.ContentType],
  ["content-length", FieldName.ContentLength],
  ["te", FieldName.Te],
  ["connection", FieldName.ConnectionSpecific],
  ["proxy-connection", FieldName.ConnectionSpecific],
  ["keep-alive", FieldName.ConnectionSpecific],
  ["transfer-encoding", FieldName.ConnectionSpecific],
  ["upgrade", FieldName.ConnectionSpecific],
  ["host", FieldName.Host],
];
const known = KNOWN.map(([text, name]) => ({ bytes: encoder.encode(text), name }));
const COLON = 0x3a;

/** Says whether a text in ASCII stands at `start` to `end`. */
export function isText(bytes: Uint8Array, start: number, end: number, text: Uint8Array): boolean {
  if (end - start !== text.length) return false;
  for (let i = 0; i < text.length; i++) if (bytes[start + i] !== text[i]) return false;
  return true;
}

/** Reads a name of a header field, which is in lower case. */
export function readFieldName(bytes: Uint8Array, start: number, end: number): FieldName {
  for (const { bytes: text, name } of known) if (isText(bytes, start, end, text)) return name;
  return end > start && bytes[start] === COLON ? FieldName.BadPseudo : FieldName.Other;
}

/** A field as a table of HPACK keeps it. */
export interface TableEntry {
  readonly name: FieldName;
  /** Name and value meet RFC 9113 §8.2.1. */
  readonly nameValid: boolean;
  readonly valueValid: boolean;
  readonly nameBytes: Uint8Array;
  readonly value: Uint8Array;
}

/** Names, with the values of those that have one (RFC 7541 Appendix A); the first is number 1. */
const STATIC: readonly (readonly [string, string?])[] = [
  [":authority"],
  [":method", "GET"],
  [":method", "POST"],
  [":path", "/"],
  [":path", "/index.html"],
  [":scheme", "http"],
  [":scheme", "https"],
  [":status", "200"],
  [":status", "204"],
  [":status", "206"],
  [":status", "304"],
  [":status", "400"],
  [":status", "404"],
  [":status", "500"],
  ["accept-charset"],
  ["accept-encoding", "gzip, deflate"],
  ["accept-language"],
  ["accept-ranges"],
  ["accept"],
  ["access-control-allow-origin"],
  ["age"],
  ["allow"],
  ["authorization"],
  ["cache-control"],
  ["content-disposition"],
  ["content-encoding"],
  ["content-language"],
  ["content-length"],
  ["content-location"],
  ["content-range"],
  ["content-type"],
  ["cookie"],
  ["date"],
  ["etag"],
  ["expect"],
  ["expires"],
  ["from"],
  ["host"],
  ["if-match"],
  ["if-modified-since"],
  ["if-none-match"],
  ["if-range"],
  ["if-unmodified-since"],
  ["last-modified"],
  ["link"],
  ["location"],
  ["max-forwards"],
  ["proxy-authenticate"],
  ["proxy-authorization"],
  ["range"],
  ["referer"],
  ["refresh"],
  ["retry-after"],
  ["server"],
  ["set-cookie"],
  ["strict-transport-security"],
  ["transfer-encoding"],
  ["user-agent"],
  ["vary"],
  ["via"],
  ["www-authenticate"],
];

export const STATIC_TABLE: readonly TableEntry[] = STATIC.map(([name, value = ""]) => {
  const nameBytes = encoder.encode(name);
  return {
    name: readFieldName(nameBytes, 0, nameBytes.length),
    nameValid: true,
    valueValid: true,
    nameBytes,
    value: encoder.encode(value),
  };
});

/** The number of a name of the static table; an answer's field refers to it. */
export function staticIndex(name: string): number {
  return 1 + STATIC.findIndex(([text]) => text === name);
}

/** The number of a field with its value, or 0. */
export function staticIndexOf(name: string, value: string): number {
  return 1 + STATIC.findIndex(([n, v]) => n === name && v === value);
}
