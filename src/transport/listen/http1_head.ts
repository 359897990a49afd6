import {
  isAnyCase,
  MediaType,
  Method,
  readContentLength,
  readMediaType,
  readMethod,
} from "./http.ts";

/** Request line and fields of a request at most. */
export const HEAD_BYTES_MAX = 16 * 1024;
/** Empty lines in front of a request that are let pass (RFC 9112 §2.2). */
const EMPTY_LINES_MAX = 2;
/** Longest target; no query that fits a URL needs more. */
export const TARGET_BYTES_MAX = 12 * 1024;
const FIELDS_MAX = 128;

/** What reading a head came to: `Partial`, or the status of a refusal, or `Whole`. */
export const Head = { Partial: 0, Whole: 1 } as const;

const [SPACE, TAB, CR, LF, DEL] = [0x20, 0x09, 0x0d, 0x0a, 0x7f];
const [COLON, SLASH, COMMA, QUESTION_MARK] = [0x3a, 0x2f, 0x2c, 0x3f];

const encoder = new TextEncoder();
const [HOST, CONTENT_LENGTH, CONTENT_TYPE, TRANSFER_ENCODING, CONNECTION, EXPECT] = [
  "host",
  "content-length",
  "content-type",
  "transfer-encoding",
  "connection",
  "expect",
].map((text) => encoder.encode(text));
const [CHUNKED, CLOSE, CONTINUE] = ["chunked", "close", "100-continue"].map((text) =>
  encoder.encode(text)
);
const VERSION = encoder.encode("http/1.");
const SCHEMES = ["http://", "https://"].map((text) => encoder.encode(text));
/** Host and port of a URL; a user in front of them is an error (RFC 9110 §4.2.4). */
const AUTHORITY = /^(?:\[[\da-f:.]+\]|[\w\-.~%!$&'()*+,;=]+)(?::\d{0,5})?$/i;

/** Characters of a token (RFC 9110 §5.6.2). */
const isToken = new Uint8Array(256);
for (
  const char of "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
) {
  isToken[char.charCodeAt(0)] = 1;
}

/**
 * Request line and fields of a request (RFC 9112 §3, §5). Used for one after the other. Lines end
 * with CR and LF: where one server takes a line feed alone and the one before it does not, they see
 * different requests.
 */
export class RequestHead {
  /** Where the request line begins, and the first field. */
  start = 0;
  fieldsStart = 0;
  method: Method = Method.Other;
  mediaType: MediaType = MediaType.None;
  /** Where path and query string stand; of a whole URL the path may be empty. */
  targetStart = 0;
  targetEnd = 0;
  /** Host and port of a target that is a whole URL, which come before Host; `null`: it is none. */
  authority: string | null = null;
  /** -1: there was none. */
  contentLength = -1;
  chunked = false;
  isHttp10 = false;
  /** The connection stays for the next request (RFC 9112 §9.3); never in HTTP/1.0. */
  keepAlive = true;
  /** The client waits for our leave to send the body (RFC 9110 §10.1.1). */
  expectsContinue = false;
  /** Where the body begins. */
  end = 0;
  #hosts = 0;

  /**
   * Reads the head at `start` of what came in so far. Returns `Head.Whole`, `Head.Partial`, or the
   * status to refuse it with: then nothing is sure about where the next request begins.
   */
  read(bytes: Uint8Array, start: number, end: number): number {
    for (let i = 0; i < EMPTY_LINES_MAX && bytes[start] === CR && bytes[start + 1] === LF; i++) {
      if (start + 2 > end) break;
      start += 2;
    }
    const limit = Math.min(end, start + HEAD_BYTES_MAX);
    const headEnd = findEnd(bytes, start, limit);
    if (headEnd === BARE_LF) return 400;
    if (headEnd < 0) {
      if (end - start < HEAD_BYTES_MAX) return Head.Partial;
      return lineEnd(bytes, start, limit) < 0 ? 414 : 431;
    }
    this.method = Method.Other;
    this.mediaType = MediaType.None;
    this.contentLength = -1;
    this.chunked = false;
    this.expectsContinue = false;
    this.end = headEnd;
    this.#hosts = 0;
    let stop = lineEnd(bytes, start, headEnd);
    const status = this.#readRequestLine(bytes, start, stop - 1);
    if (status !== Head.Whole) return status;
    this.start = start;
    this.fieldsStart = stop + 1;
    for (let line = stop + 1, fields = 0;; fields++) {
      stop = lineEnd(bytes, line, headEnd);
      if (stop - 1 === line) break;
      if (fields === FIELDS_MAX) return 431;
      const failure = this.#readField(bytes, line, stop - 1);
      if (failure !== Head.Whole) return failure;
      line = stop + 1;
    }
    // RFC 9112 §3.2: exactly one Host, and §6.1: a length said twice is an attack.
    if (this.#hosts > 1 || (this.#hosts === 0 && !this.isHttp10)) return 400;
    if (this.chunked && (this.contentLength >= 0 || this.isHttp10)) return 400;
    return Head.Whole;
  }

  /** METHOD SP TARGET SP HTTP/1.x */
  #readRequestLine(bytes: Uint8Array, start: number, end: number): number {
    let at = start;
    while (at < end && isToken[bytes[at]] === 1) at++;
    if (at === start || bytes[at] !== SPACE) return 400;
    this.method = readMethod(bytes, start, at);
    const target = ++at;
    while (at < end && bytes[at] > SPACE && bytes[at] < DEL) at++;
    if (at === target || at >= end || bytes[at] !== SPACE) return 400;
    const version = at + 1;
    const minor = version + VERSION.length;
    if (end !== minor + 1 || !isAnyCase(bytes, version, minor, VERSION)) {
      return end - version >= 5 && bytes[version] === 0x48 ? 505 : 400;
    }
    this.isHttp10 = bytes[minor] === 0x30;
    this.keepAlive = !this.isHttp10;
    if (at - target > TARGET_BYTES_MAX) return 414;
    this.targetEnd = at;
    return this.#readTarget(bytes, target, at) ? Head.Whole : 400;
  }

  /** Reads scheme and authority of a target that has them, which any may have (RFC 9112 §3.2.2). */
  #readTarget(bytes: Uint8Array, start: number, end: number): boolean {
    this.targetStart = start;
    this.authority = null;
    if (bytes[start] === SLASH) return true;
    const scheme = SCHEMES.find((text) => isAnyCase(bytes, start, start + text.length, text));
    if (scheme === undefined) return !hasAuthority(bytes, start, end);
    const from = start + scheme.length;
    let at = from;
    while (at < end && bytes[at] !== SLASH && bytes[at] !== QUESTION_MARK) at++;
    this.targetStart = at;
    this.authority = String.fromCharCode(...bytes.subarray(from, at));
    return AUTHORITY.test(this.authority) && URL.canParse(`http://${this.authority}`);
  }

  #readField(bytes: Uint8Array, start: number, end: number): number {
    const colon = fieldColon(bytes, start, end);
    if (colon < 0) return 400;
    let from = colon + 1;
    let to = end;
    while (from < to && (bytes[from] === SPACE || bytes[from] === TAB)) from++;
    while (to > from && (bytes[to - 1] === SPACE || bytes[to - 1] === TAB)) to--;
    switch (colon - start) {
      case HOST.length:
        if (isAnyCase(bytes, start, colon, HOST)) this.#hosts++;
        break;
      case EXPECT.length:
        if (isAnyCase(bytes, start, colon, EXPECT)) {
          if (!isAnyCase(bytes, from, to, CONTINUE)) return 417;
          this.expectsContinue = true;
        }
        break;
      case CONNECTION.length:
        if (isAnyCase(bytes, start, colon, CONNECTION)) {
          if (hasOption(bytes, from, to, CLOSE)) this.keepAlive = false;
        }
        break;
      case CONTENT_TYPE.length:
        if (isAnyCase(bytes, start, colon, CONTENT_TYPE)) {
          this.mediaType = readMediaType(bytes, from, to);
        }
        break;
      case CONTENT_LENGTH.length:
        if (isAnyCase(bytes, start, colon, CONTENT_LENGTH)) {
          const length = readContentLength(bytes, from, to);
          if (length < 0 || (this.contentLength >= 0 && this.contentLength !== length)) return 400;
          this.contentLength = length;
        }
        break;
      case TRANSFER_ENCODING.length:
        if (isAnyCase(bytes, start, colon, TRANSFER_ENCODING)) {
          if (this.chunked) return 400;
          if (!isAnyCase(bytes, from, to, CHUNKED)) return 501;
          this.chunked = true;
        }
        break;
    }
    return Head.Whole;
  }
}

/** What `findEnd` finds beside an end, or none: -1. */
const BARE_LF = -2;

/** Behind the empty line that ends a head, -1, or `BARE_LF` where a line ends without CR. */
function findEnd(bytes: Uint8Array, start: number, end: number): number {
  let line = start;
  for (let at = bytes.indexOf(LF, start); at >= 0 && at < end; at = bytes.indexOf(LF, at + 1)) {
    if (at === line || bytes[at - 1] !== CR) return BARE_LF;
    if (at - 1 === line) return at + 1;
    line = at + 1;
  }
  return -1;
}

/** Where the line feed of a line stands, or -1. */
export function lineEnd(bytes: Uint8Array, start: number, end: number): number {
  const at = bytes.indexOf(LF, start);
  return at < end ? at : -1;
}

/**
 * Where the colon of a field stands, or -1 for what is none: white space in front of the colon or
 * the line hides fields from others (RFC 9112 §5.1, §5.2), and so do control characters.
 */
export function fieldColon(bytes: Uint8Array, start: number, end: number): number {
  let colon = start;
  while (colon < end && isToken[bytes[colon]] === 1) colon++;
  if (colon === start || colon === end || bytes[colon] !== COLON) return -1;
  return isText(bytes, colon + 1, end) ? colon : -1;
}

/** Says whether there is no control character but tabs. */
export function isText(bytes: Uint8Array, start: number, end: number): boolean {
  for (let i = start; i < end; i++) {
    if ((bytes[i] < SPACE && bytes[i] !== TAB) || bytes[i] === DEL) return false;
  }
  return true;
}

/** Says whether a target is a URL of whichever scheme. */
function hasAuthority(bytes: Uint8Array, start: number, end: number): boolean {
  let at = start;
  while (at < end && bytes[at] !== COLON) at++;
  return bytes[at + 1] === SLASH && bytes[at + 2] === SLASH;
}

/** Says whether a list separated by commas holds an option. */
function hasOption(bytes: Uint8Array, start: number, end: number, option: Uint8Array): boolean {
  for (let at = start; at <= end;) {
    let stop = at;
    while (stop < end && bytes[stop] !== COMMA) stop++;
    let [from, to] = [at, stop];
    while (from < to && (bytes[from] === SPACE || bytes[from] === TAB)) from++;
    while (to > from && (bytes[to - 1] === SPACE || bytes[to - 1] === TAB)) to--;
    if (isAnyCase(bytes, from, to, option)) return true;
    at = stop + 1;
  }
  return false;
}
