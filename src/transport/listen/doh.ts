import { getU16, getU32 } from "../../bytes/mod.ts";
import { HEADER_BYTES, Qtype, skipName } from "../../dns/mod.ts";
import {
  HttpFailure,
  type HttpHandler,
  type HttpRequest,
  MediaType,
  Method,
  ResponseHead,
} from "./http.ts";

/** Where queries are answered, and where the keys of Oblivious DoH are (RFC 8484 §4.1, RFC 9230). */
const QUERY_PATH = "/dns-query";
const ODOH_PATH = "/.well-known/odohconfigs";
const CLIENT_ID_LENGTH_MAX = 63;
/** RDATA of an SOA at least: two root names and five numbers. */
const SOA_BYTES_MIN = 22;
/** How long caches may keep the keys of Oblivious DoH, in seconds; they hold for a day or two. */
const ODOH_CONFIGS_MAX_AGE = 3_600;

/** Who answers queries that came over HTTPS. Each request is answered once, now or later. */
export interface DohHandler {
  /**
   * A DNS message at `start` to `end`, good during the call. It goes to `answerQuery`, or to
   * `refuseQuery` where it is no query. `clientId` is that of the path, in lower case.
   */
  onQuery(
    request: HttpRequest,
    message: Uint8Array,
    start: number,
    end: number,
    clientId: Uint8Array | null,
  ): void;
  /** An oblivious query (RFC 9230), or `null` where the service is no target for them. */
  readonly oblivious: ObliviousHandler | null;
  /** A request was no query, or a connection was closed for what it did. */
  onRejected(): void;
}

export interface ObliviousHandler {
  /** An oblivious message at `start` to `end`, good during the call. */
  onMessage(request: HttpRequest, message: Uint8Array, start: number, end: number): void;
  /** `ObliviousDoHConfigs` as clients fetch them (RFC 9230 §6.1). */
  readonly configs: Uint8Array;
}

const ANSWER = new ResponseHead(200, { "content-type": "application/dns-message" });
const CONFIGS = new ResponseHead(200, { "content-type": "application/octet-stream" });

const QUERY_METHODS = { allow: "GET, HEAD, POST" };
const FAILURES = {
  notFound: new HttpFailure(404, "there is nothing here: queries go to /dns-query"),
  queryMethod: new HttpFailure(405, "queries come by GET or POST", QUERY_METHODS),
  configsMethod: new HttpFailure(405, "the keys are to be fetched by GET", { allow: "GET, HEAD" }),
  noDns: new HttpFailure(400, "the parameter dns is missing: /dns-query?dns=<message, base64url>"),
  badDns: new HttpFailure(400, "the parameter dns is no message in base64url without padding"),
  noQuery: new HttpFailure(400, "the message is no DNS query"),
  clientId: new HttpFailure(400, "a client ID is 1 to 63 of the characters a-z, 0-9 and -"),
  mediaType: new HttpFailure(415, "queries come as content-type application/dns-message", {
    accept: "application/dns-message",
  }),
} as const;

const encoder = new TextEncoder();
const queryPath = encoder.encode(QUERY_PATH);
const odohPath = encoder.encode(ODOH_PATH);
const dnsParameter = encoder.encode("dns=");
const [SLASH, QUESTION_MARK, AMPERSAND, HYPHEN] = [0x2f, 0x3f, 0x26, 0x2d];

/** Answers a query with a DNS response; how long it may be cached stands in it. */
export function answerQuery(
  request: HttpRequest,
  response: Uint8Array,
  offset: number,
  length: number,
): void {
  const maxAge = freshness(response, offset, offset + length);
  request.respond(ANSWER, maxAge, response, offset, length);
}

/** Refuses a message that is no query. */
export function refuseQuery(request: HttpRequest): void {
  FAILURES.noQuery.answer(request);
}

/** Finds out what a request asks for, of either version of HTTP (RFC 8484 §4, §5). */
export class DohServer implements HttpHandler {
  readonly #handler: DohHandler;

  constructor(handler: DohHandler) {
    this.#handler = handler;
  }

  onRejected(): void {
    this.#handler.onRejected();
  }

  onRequest(request: HttpRequest, body: Uint8Array, start: number, end: number): void {
    const { target, targetStart, targetEnd } = request;
    let pathEnd = targetStart;
    while (pathEnd < targetEnd && target[pathEnd] !== QUESTION_MARK) pathEnd++;
    const idStart = targetStart + queryPath.length;
    if (startsWith(target, targetStart, pathEnd, queryPath)) {
      if (idStart === pathEnd) {
        this.#onQueryPath(request, pathEnd, body, start, end, null);
        return;
      }
      if (target[idStart] === SLASH) {
        const clientId = readClientId(target, idStart + 1, pathEnd);
        if (clientId !== null) this.#onQueryPath(request, pathEnd, body, start, end, clientId);
        else {this.#refuse(
            request,
            isOneSegment(target, idStart + 1, pathEnd) ? FAILURES.clientId : FAILURES.notFound,
          );}
        return;
      }
    }
    const { oblivious } = this.#handler;
    const isConfigs = pathEnd - targetStart === odohPath.length &&
      startsWith(target, targetStart, pathEnd, odohPath);
    if (oblivious === null || !isConfigs) {
      this.#refuse(request, FAILURES.notFound);
    } else if (request.method !== Method.Get && request.method !== Method.Head) {
      this.#refuse(request, FAILURES.configsMethod);
    } else {
      const { configs } = oblivious;
      request.respond(CONFIGS, ODOH_CONFIGS_MAX_AGE, configs, 0, configs.length);
    }
  }

  #refuse(request: HttpRequest, failure: HttpFailure): void {
    this.#handler.onRejected();
    failure.answer(request);
  }

  #onQueryPath(
    request: HttpRequest,
    pathEnd: number,
    body: Uint8Array,
    start: number,
    end: number,
    clientId: Uint8Array | null,
  ): void {
    switch (request.method) {
      case Method.Post:
        if (request.mediaType === MediaType.Dns) {
          this.#handler.onQuery(request, body, start, end, clientId);
          return;
        }
        if (request.mediaType === MediaType.Oblivious && this.#handler.oblivious !== null) {
          this.#handler.oblivious.onMessage(request, body, start, end);
          return;
        }
        return this.#refuse(request, FAILURES.mediaType);
      case Method.Get:
      case Method.Head: {
        const { target, targetEnd } = request;
        const parameter = findDnsParameter(target, pathEnd, targetEnd);
        if (parameter < 0) return this.#refuse(request, FAILURES.noDns);
        const length = readBase64url(target, parameter, targetEnd);
        if (length < 0) return this.#refuse(request, FAILURES.badDns);
        this.#handler.onQuery(request, decoded, 0, length, clientId);
        return;
      }
      default:
        return this.#refuse(request, FAILURES.queryMethod);
    }
  }
}

function startsWith(bytes: Uint8Array, start: number, end: number, text: Uint8Array): boolean {
  if (end - start < text.length) return false;
  for (let i = 0; i < text.length; i++) if (bytes[start + i] !== text[i]) return false;
  return true;
}

function isOneSegment(bytes: Uint8Array, start: number, end: number): boolean {
  for (let i = start; i < end; i++) if (bytes[i] === SLASH) return false;
  return true;
}

/** The client ID at `start` to `end` in lower case, or `null` where there is none. */
function readClientId(bytes: Uint8Array, start: number, end: number): Uint8Array | null {
  if (start === end || end - start > CLIENT_ID_LENGTH_MAX) return null;
  const id = new Uint8Array(end - start);
  for (let i = 0; i < id.length; i++) {
    const byte = bytes[start + i];
    const lower = byte >= 0x41 && byte <= 0x5a ? byte | 0x20 : byte;
    const isLetter = lower >= 0x61 && lower <= 0x7a;
    if (!isLetter && (lower < 0x30 || lower > 0x39) && lower !== HYPHEN) return null;
    id[i] = lower;
  }
  return id;
}

/** Where the value of `dns` begins in a query string, or -1. */
function findDnsParameter(bytes: Uint8Array, start: number, end: number): number {
  for (let at = start + 1; at < end;) {
    if (startsWith(bytes, at, end, dnsParameter)) return at + dnsParameter.length;
    while (at < end && bytes[at] !== AMPERSAND) at++;
    at++;
  }
  return -1;
}

/** The value of each character of base64url; 64 for what is none (RFC 4648 §5). */
const sextets = new Uint8Array(256).fill(64);
for (
  const [value, char] of [
    ..."ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_",
  ].entries()
) {
  sextets[char.charCodeAt(0)] = value;
}
/** The message of a GET, until the next one; as long as the longest target makes it. */
const decoded = new Uint8Array(16 * 1024);

/** Reads the value at `start` into `decoded`, up to `end` or `&`; returns its length, or -1. */
function readBase64url(bytes: Uint8Array, start: number, end: number): number {
  let [bits, value, at] = [0, 0, 0];
  let i = start;
  for (; i < end && bytes[i] !== AMPERSAND; i++) {
    const sextet = sextets[bytes[i]];
    if (sextet === 64 || at === decoded.length) return -1;
    value = ((value << 6) | sextet) & 0xffff;
    bits += 6;
    if (bits >= 8) {
      bits -= 8;
      decoded[at++] = value >> bits;
    }
  }
  // One character alone is less than a byte.
  return i === start || bits === 6 ? -1 : at;
}

/**
 * How long a response may be kept, in seconds: the smallest TTL of its answer, for a negative one
 * the least of TTL and MINIMUM of its SOA (RFC 8484 §5.1, RFC 2308 §5). 0 where nothing says.
 */
export function freshness(bytes: Uint8Array, start: number, end: number): number {
  if (end - start < HEADER_BYTES) return 0;
  let at = start + HEADER_BYTES;
  for (let i = getU16(bytes, start + 4); i > 0; i--) {
    const nameEnd = skipName(bytes, at, end);
    if (nameEnd < 0) return 0;
    at = nameEnd + 4;
  }
  const answers = getU16(bytes, start + 6);
  const records = answers + getU16(bytes, start + 8);
  let least = Infinity;
  for (let i = 0; i < records; i++) {
    const fixed = skipName(bytes, at, end);
    if (fixed < 0 || fixed + 10 > end) return 0;
    const next = fixed + 10 + getU16(bytes, fixed + 8);
    if (next > end) return 0;
    // One with its highest bit set is 0 (RFC 2181 §8).
    const ttl = Math.max(0, getU32(bytes, fixed + 4) | 0);
    if (i < answers) {
      least = Math.min(least, ttl);
    } else if (getU16(bytes, fixed) === Qtype.SOA && next - fixed - 10 >= SOA_BYTES_MIN) {
      least = Math.min(least, ttl, Math.max(0, getU32(bytes, next - 4) | 0));
    }
    at = next;
  }
  return least === Infinity ? 0 : least;
}
