import { fieldOf, literalPrefix, string } from "./http2/hpack_writer.ts";
import { staticIndex } from "./http2/static_table.ts";

/** Largest body of a request: a DNS message, or an oblivious one with what is around it. */
export const BODY_BYTES_MAX = 0xffff;
/** First room for a body that comes in parts; it doubles. */
const BODY_BYTES_MIN = 1_024;

/** Methods that any path knows. */
export const Method = { Other: 0, Get: 1, Head: 2, Post: 3 } as const;
export type Method = typeof Method[keyof typeof Method];

/** Content types of requests that mean something here. */
export const MediaType = { None: 0, Other: 1, Dns: 2, Oblivious: 3 } as const;
export type MediaType = typeof MediaType[keyof typeof MediaType];

/** Who is at the other end of a connection. */
export interface HttpClient {
  /** The client's address as text; IPv4-mapped ones as IPv4. */
  readonly client: string;
  /** The name that the client gave in its TLS handshake. */
  readonly serverName: string | null;
  /** The query just asked was over its client's limit. */
  overLimit(): void;
}

/** A connection's socket, as the versions of HTTP see it. */
export interface HttpSocket extends HttpClient {
  /** Sends bytes that are the socket's from then on; nothing happens once it is closed. */
  write(bytes: Uint8Array): void;
  /** Closes the connection behind what was written. */
  end(): void;
  /** Has no more come in for a while, and again. */
  stopReading(): void;
  goOnReading(): void;
}

/** A request of either version. It is answered exactly once, at once or later. */
export interface HttpRequest {
  readonly from: HttpClient;
  readonly method: Method;
  readonly mediaType: MediaType;
  /** Path and query string in ASCII; good during `onRequest` only. */
  readonly target: Uint8Array;
  readonly targetStart: number;
  readonly targetEnd: number;
  /**
   * Answers. `maxAge` is how long a cache may keep it, in seconds; -1 says nothing about that. The
   * bytes at `offset` are copied.
   */
  respond(
    head: ResponseHead,
    maxAge: number,
    bytes: Uint8Array,
    offset: number,
    length: number,
  ): void;
}

export interface HttpHandler {
  /** A whole request, its body at `start` to `end` of `body`, good during the call only. */
  onRequest(request: HttpRequest, body: Uint8Array, start: number, end: number): void;
  /** A request was malformed or too large, or a connection was closed for what it did. */
  onRejected(): void;
}

/** What the listener has of a connection of either version. */
export interface HttpConnection {
  /** A request waits for its answer. */
  readonly isWaiting: boolean;
  /** Bytes of requests that are not whole yet. */
  readonly unfinishedBytes: number;
  /** Bytes of answers that the client has left no room for. */
  readonly unsentBytes: number;
  /** Reads what came in; returns how many requests or frames that were. */
  receive(chunk: Uint8Array): number;
  /** The client sends no more; it is still answered. */
  onEnd(): void;
  /** The socket is gone. */
  onClose(): void;
  /** Looks what takes too long; to be called about once a second. */
  tick(nowMs: number): void;
  /** Takes no more requests, and ends when those that wait are answered. */
  drain(): void;
}

export interface HttpLimits {
  /** Requests of one connection that wait for their answers. */
  readonly requestsMax: number;
  /** A connection without a request for this long is closed. */
  readonly idleMs: number;
  /** Longest time from the first byte of a request to its last, and for an answer to be taken. */
  readonly requestMs: number;
}

const encoder = new TextEncoder();

const REASONS: Readonly<Record<number, string>> = {
  200: "OK",
  400: "Bad Request",
  401: "Unauthorized",
  404: "Not Found",
  405: "Method Not Allowed",
  413: "Content Too Large",
  414: "URI Too Long",
  415: "Unsupported Media Type",
  417: "Expectation Failed",
  431: "Request Header Fields Too Large",
  500: "Internal Server Error",
  501: "Not Implemented",
  503: "Service Unavailable",
  505: "HTTP Version Not Supported",
};

/** Status and fields of a response that never change, made ready for both versions once. */
export class ResponseHead {
  readonly http1: Uint8Array;
  /** Begins a header block (RFC 7541). */
  readonly http2: Uint8Array;

  /** Names of `fields` are in lower case. */
  constructor(readonly status: number, fields: Readonly<Record<string, string>>) {
    const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`);
    const reason = REASONS[status] ?? "";
    this.http1 = encoder.encode(`HTTP/1.1 ${status} ${reason}\r\n${lines.join("")}`);
    const block = [...fieldOf(":status", String(status))];
    for (const [name, value] of Object.entries(fields)) block.push(...fieldOf(name, value));
    this.http2 = Uint8Array.from(block);
  }
}

/** An error with a text for people: what is wrong and how to mend it. */
export class HttpFailure {
  readonly head: ResponseHead;
  readonly body: Uint8Array;

  constructor(status: number, text: string, fields: Readonly<Record<string, string>> = {}) {
    this.head = new ResponseHead(status, {
      "content-type": "text/plain; charset=utf-8",
      "cache-control": "no-store",
      ...fields,
    });
    this.body = encoder.encode(text + "\n");
  }

  answer(request: HttpRequest): void {
    request.respond(this.head, -1, this.body, 0, this.body.length);
  }
}

const [CONTENT_LENGTH, CACHE_CONTROL, DATE] = ["content-length", "cache-control", "date"]
  .map((name) => Uint8Array.from(literalPrefix(staticIndex(name))));
const MAX_AGE = encoder.encode("max-age=");
const CONTENT_LENGTH_1 = encoder.encode("content-length: ");
const CACHE_CONTROL_1 = encoder.encode("cache-control: max-age=");
const LINE_END = encoder.encode("\r\n");

/** Most bytes that `writeFields1` and `writeFields2` write behind a head. */
export const FIELDS_BYTES_MAX = 128;

/** The time as responses tell it (RFC 9110 §6.6.1); made anew once a second. */
class DateField {
  http1: Uint8Array = new Uint8Array(0);
  http2: Uint8Array = new Uint8Array(0);
  #second = -1;

  refresh(): void {
    const nowMs = Date.now();
    const second = Math.floor(nowMs / 1_000);
    if (second === this.#second) return;
    this.#second = second;
    const text = new Date(nowMs).toUTCString();
    this.http1 = encoder.encode(`date: ${text}\r\n`);
    this.http2 = Uint8Array.from([...DATE, ...string(text)]);
  }
}

/** `refresh` is called by whoever reads requests. */
export const dateField = new DateField();

/** Writes a head and the fields that differ from answer to answer; returns where they end. */
type WriteFields = (
  target: Uint8Array,
  at: number,
  head: ResponseHead,
  maxAge: number,
  length: number,
) => number;

/** As a header block. */
export const writeFields2: WriteFields = (target, at, head, maxAge, length) => {
  at = put(target, at, head.http2);
  at = put(target, at, dateField.http2);
  at = put(target, at, CONTENT_LENGTH);
  const lengthAt = at++;
  at = writeDecimal(target, at, length);
  target[lengthAt] = at - lengthAt - 1;
  if (maxAge < 0) return at;
  at = put(target, at, CACHE_CONTROL);
  const ageAt = at++;
  at = writeDecimal(target, put(target, at, MAX_AGE), maxAge);
  target[ageAt] = at - ageAt - 1;
  return at;
};

/** As lines of HTTP/1.1; the empty one is left to the caller. */
export const writeFields1: WriteFields = (target, at, head, maxAge, length) => {
  at = put(target, at, head.http1);
  at = put(target, at, dateField.http1);
  at = writeDecimal(target, put(target, at, CONTENT_LENGTH_1), length);
  at = put(target, at, LINE_END);
  if (maxAge < 0) return at;
  at = writeDecimal(target, put(target, at, CACHE_CONTROL_1), maxAge);
  return put(target, at, LINE_END);
};

/**
 * Puts a part behind the `length` bytes of a body, and returns the buffer that holds both: the same
 * one, or a larger one. The caller has checked that they fit `bytesMax`.
 */
export function appendBody(
  body: Uint8Array,
  length: number,
  part: Uint8Array,
  bytesMax = BODY_BYTES_MAX,
): Uint8Array {
  const needed = length + part.length;
  let whole = body;
  if (needed > body.length) {
    let size = BODY_BYTES_MIN;
    while (size < needed) size *= 2;
    whole = new Uint8Array(Math.min(size, bytesMax));
    whole.set(body.subarray(0, length));
  }
  whole.set(part, length);
  return whole;
}

/** Copies `source` to `at`; returns its end there. Faster than `set` for the little there is. */
export function put(target: Uint8Array, at: number, source: Uint8Array): number {
  for (let i = 0; i < source.length; i++) target[at + i] = source[i];
  return at + source.length;
}

/** Writes an integer from 0 on in decimal; returns where it ends. */
function writeDecimal(target: Uint8Array, at: number, value: number): number {
  let digits = 1;
  for (let rest = value; rest >= 10; rest = Math.floor(rest / 10)) digits++;
  for (let i = at + digits - 1, rest = value; i >= at; i--, rest = Math.floor(rest / 10)) {
    target[i] = 0x30 + rest % 10;
  }
  return at + digits;
}

const DNS_MESSAGE = encoder.encode("application/dns-message");
const OBLIVIOUS_MESSAGE = encoder.encode("application/oblivious-dns-message");
const [GET, HEAD, POST] = ["GET", "HEAD", "POST"].map((text) => encoder.encode(text));
const [SPACE, TAB, SEMICOLON] = [0x20, 0x09, 0x3b];

/** Reads a content type; case does not matter and parameters neither (RFC 9110 §8.3.1). */
export function readMediaType(bytes: Uint8Array, start: number, end: number): MediaType {
  let stop = start;
  while (stop < end && bytes[stop] !== SEMICOLON) stop++;
  while (stop > start && (bytes[stop - 1] === SPACE || bytes[stop - 1] === TAB)) stop--;
  if (isAnyCase(bytes, start, stop, DNS_MESSAGE)) return MediaType.Dns;
  return isAnyCase(bytes, start, stop, OBLIVIOUS_MESSAGE) ? MediaType.Oblivious : MediaType.Other;
}

/** Reads a method, whose case matters (RFC 9110 §9.1). */
export function readMethod(bytes: Uint8Array, start: number, end: number): Method {
  if (isSame(bytes, start, end, POST)) return Method.Post;
  if (isSame(bytes, start, end, GET)) return Method.Get;
  return isSame(bytes, start, end, HEAD) ? Method.Head : Method.Other;
}

/** Reads digits: a length in bytes, or -1 for what is none (RFC 9110 §8.6). */
export function readContentLength(bytes: Uint8Array, start: number, end: number): number {
  // What has more digits is too large whatever it is.
  if (start === end || end - start > 15) return -1;
  let value = 0;
  for (let i = start; i < end; i++) {
    const digit = bytes[i] - 0x30;
    if (digit < 0 || digit > 9) return -1;
    value = 10 * value + digit;
  }
  return value;
}

function isSame(bytes: Uint8Array, start: number, end: number, text: Uint8Array): boolean {
  if (end - start !== text.length) return false;
  for (let i = 0; i < text.length; i++) if (bytes[start + i] !== text[i]) return false;
  return true;
}

/** As `isSame`, whatever the case of ASCII letters; `text` is in lower case. */
export function isAnyCase(
  bytes: Uint8Array,
  start: number,
  end: number,
  text: Uint8Array,
): boolean {
  if (end - start !== text.length) return false;
  for (let i = 0; i < text.length; i++) {
    const byte = bytes[start + i];
    const lower = byte >= 0x41 && byte <= 0x5a ? byte | 0x20 : byte;
    if (lower !== text[i]) return false;
  }
  return true;
}
