// Records in presentation form, as scenarios, vectors and signed zone files have them, to wire form.

import assert from "node:assert/strict";
import { parseIp } from "../../src/addr/mod.ts";
import {
  concat,
  decodeBase32hex,
  decodeBase64,
  decodeHex,
  setU16,
  setU32,
} from "../../src/bytes/mod.ts";
import {
  MessageWriter,
  parseName,
  parseQtype,
  Qclass,
  QR_BIT,
  Qtype,
  Section,
} from "../../src/dns/mod.ts";

export interface TextRecord {
  readonly owner: Uint8Array;
  readonly type: number;
  readonly cls: number;
  readonly ttl: number;
  /** Names uncompressed. */
  readonly rdata: Uint8Array;
}

/** TTL of records that have none. */
const TTL_DEFAULT = 3600;

/** Mnemonics of algorithms that stand in old zone files (RFC 4034 appendix A.1). */
const ALGORITHMS: Readonly<Record<string, number>> = { DSA: 3, RSASHA1: 5, RSASHA256: 8 };

/**
 * What RDATA is made of, a letter a part: u8, u16, u32, Time, Type, Algorithm, name, 4 and 6
 * addresses, string, then what goes to the end: Strings, heX, Base64, bitMap; - salt, Hash.
 */
const LAYOUTS: ReadonlyMap<number, string> = new Map([
  [Qtype.A, "4"],
  [Qtype.AAAA, "6"],
  [Qtype.NS, "n"],
  [Qtype.CNAME, "n"],
  [Qtype.DNAME, "n"],
  [Qtype.PTR, "n"],
  [Qtype.MB, "n"],
  [Qtype.MX, "hn"],
  [Qtype.AFSDB, "hn"],
  [Qtype.RP, "nn"],
  [Qtype.MINFO, "nn"],
  [Qtype.SOA, "nnwwwww"],
  [Qtype.SRV, "hhhn"],
  [Qtype.NAPTR, "hhsssn"],
  [Qtype.TXT, "S"],
  [Qtype.SPF, "S"],
  [Qtype.HINFO, "ss"],
  [Qtype.DS, "habX"],
  [Qtype.CDS, "habX"],
  [Qtype.DNSKEY, "hbaB"],
  [Qtype.CDNSKEY, "hbaB"],
  [Qtype.RRSIG, "TabwtthnB"],
  [Qtype.NSEC, "nM"],
  [Qtype.NSEC3, "bbh-HM"],
  [Qtype.NSEC3PARAM, "bbh-"],
  [Qtype.TLSA, "bbbX"],
  [Qtype.SSHFP, "bbX"],
]);

/** Splits at blanks; strings in quotes keep theirs, and a comment ends the line. */
export function wordsOf(line: string): string[] {
  const words: string[] = [];
  for (const [word] of line.matchAll(/"(?:\\.|[^"\\])*"|;.*$|[^\s";]+/g)) {
    if (word.startsWith(";")) break;
    if (word !== "(" && word !== ")") words.push(word);
  }
  return words;
}

export function wireName(text: string): Uint8Array {
  const name = parseName(text);
  assert(name !== null, `${text} is a name`);
  return name;
}

/** Reads `owner [ttl] [class] type rdata…`. */
export function parseRecord(line: string): TextRecord {
  const words = wordsOf(line);
  const owner = wireName(words[0]);
  let [at, ttl] = [1, TTL_DEFAULT];
  let cls: number = Qclass.IN;
  for (; /^(\d+|IN|CH)$/i.test(words[at]); at++) {
    if (/^\d/.test(words[at])) ttl = +words[at];
    if (/^CH$/i.test(words[at])) cls = Qclass.CH;
  }
  const type = parseQtype(words[at]);
  assert(type !== null, line);
  return { owner, type, cls, ttl, rdata: parseRdata(type, words.slice(at + 1), line) };
}

function parseRdata(type: number, words: readonly string[], line: string): Uint8Array {
  if (words[0] === "\\#") return bytesOf(decodeHex(words.slice(2).join("")), line);
  const layout = LAYOUTS.get(type);
  assert(layout !== undefined, `no layout: ${line}`);
  const parts: Uint8Array[] = [];
  for (const [i, part] of [...layout].entries()) {
    const rest = words.slice(i);
    parts.push(parsePart(part, rest, line));
  }
  return concat(...parts);
}

function parsePart(part: string, [word, ...more]: readonly string[], line: string): Uint8Array {
  const rest = [word ?? "", ...more].join("");
  switch (part) {
    case "b":
      return Uint8Array.of(Number(word));
    case "a":
      return Uint8Array.of(ALGORITHMS[word] ?? Number(word));
    case "h":
      return integer(2, Number(word));
    case "w":
      return integer(4, Number(word));
    case "t":
      return integer(4, parseTime(word));
    case "T":
      return integer(2, parseQtype(word) ?? assert.fail(line));
    case "n":
      return wireName(word);
    case "4":
    case "6":
      return bytesOf(parseIp(word), line);
    case "s":
      return charString(word);
    case "S":
      return concat(...[word, ...more].map(charString));
    case "X":
      return bytesOf(decodeHex(rest), line);
    case "B":
      return bytesOf(decodeBase64(rest), line);
    case "-": {
      const salt = word === "-" ? new Uint8Array(0) : bytesOf(decodeHex(word), line);
      return concat(Uint8Array.of(salt.length), salt);
    }
    case "H": {
      const hash = bytesOf(decodeBase32hex(word), line);
      return concat(Uint8Array.of(hash.length), hash);
    }
    case "M":
      return bitmap([word, ...more].filter((type) => type !== undefined), line);
    default:
      return assert.fail(part);
  }
}

function bytesOf(bytes: Uint8Array | null, line: string): Uint8Array {
  assert(bytes !== null, line);
  return bytes;
}

function integer(size: 2 | 4, value: number): Uint8Array {
  const bytes = new Uint8Array(size);
  if (size === 2) setU16(bytes, 0, value);
  else setU32(bytes, 0, value);
  return bytes;
}

/** `YYYYMMDDHHmmSS` or seconds since 1970 (RFC 4034 §3.2). */
export function parseTime(word: string): number {
  const parts = /^(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)$/.exec(word);
  if (parts === null) return Number(word);
  const [year, month, day, hour, minute, second] = parts.slice(1).map(Number);
  return Date.UTC(year, month - 1, day, hour, minute, second) / 1000;
}

function charString(word: string): Uint8Array {
  const text = word.replace(/^"|"$/g, "").replace(
    /\\(\d{3}|.)/g,
    (_, escaped) => /^\d/.test(escaped) ? String.fromCharCode(Number(escaped)) : escaped,
  );
  return concat(Uint8Array.of(text.length), Uint8Array.from(text, (c) => c.charCodeAt(0)));
}

function bitmap(types: readonly string[], line: string): Uint8Array {
  const windows = new Map<number, Uint8Array>();
  for (const name of types) {
    const type = parseQtype(name) ?? assert.fail(`${name}: ${line}`);
    const bits = windows.get(type >> 8) ?? new Uint8Array(32);
    bits[(type & 0xff) >> 3] |= 0x80 >> (type & 7);
    windows.set(type >> 8, bits);
  }
  const sorted = [...windows].sort(([a], [b]) => a - b);
  return concat(...sorted.flatMap(([window, bits]) => {
    const length = bits.findLastIndex((byte) => byte !== 0) + 1;
    return [Uint8Array.of(window, length), bits.subarray(0, length)];
  }));
}

/** Records by section, their names uncompressed. */
export interface TextSections {
  readonly answer?: readonly TextRecord[];
  readonly authority?: readonly TextRecord[];
  readonly additional?: readonly TextRecord[];
}

/** A response with these records. */
export function encodeResponse(
  question: { readonly name: Uint8Array; readonly type: number },
  rcode: number,
  { answer = [], authority = [], additional = [] }: TextSections,
): Uint8Array {
  const target = new Uint8Array(0xffff);
  const writer = new MessageWriter();
  assert(writer.start(target, 0, target.length, 0, QR_BIT | rcode));
  assert(writer.question(question.name, question.type));
  const sections = [answer, authority, additional];
  for (const section of [Section.Answer, Section.Authority, Section.Additional]) {
    for (const { owner, type, cls, ttl, rdata } of sections[section]) {
      assert(writer.record(section, owner, type, cls, ttl, rdata), "the response fits");
    }
  }
  return writer.bytes().slice();
}
