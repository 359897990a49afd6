import {
  appendBody,
  type HttpClient,
  HttpFailure,
  type HttpRequest,
  MediaType,
  Method,
  readContentLength,
  readMediaType,
  readMethod,
  type ResponseHead,
} from "../http.ts";
import type { FieldSink, HeaderField } from "./hpack.ts";
import { FieldName, isText } from "./static_table.ts";

/** Largest list of header fields, each counted with 32 bytes more (RFC 9113 §6.5.2). */
export const HEADER_LIST_BYTES_MAX = 16 * 1024;
const FIELD_OVERHEAD_BYTES = 32;

/** How a request is answered that has too much of either. */
export const TOO_LARGE = new HttpFailure(
  413,
  "the body is larger than a DNS message can be: 65535 bytes",
);
export const HEADERS_TOO_LARGE = new HttpFailure(
  431,
  `the header fields are more than ${HEADER_LIST_BYTES_MAX} bytes: send fewer`,
);

/** Where a request stands. */
export const StreamState = {
  /** Its body comes in. */
  Receiving: 0,
  /** Its answer is awaited. */
  Waiting: 1,
  /** Its answer waits for the client's window. */
  Sending: 2,
  /** It is answered before its body is whole; what comes of that is read over. */
  Discarding: 3,
  /** The client gave up while the answer was awaited; the answer goes nowhere. */
  Abandoned: 4,
  /** Nothing is left to do. */
  Closed: 5,
} as const;
export type StreamState = typeof StreamState[keyof typeof StreamState];

/** What a stream asks of its connection. */
export interface StreamOwner {
  readonly from: HttpClient;
  respond(
    stream: Stream,
    head: ResponseHead,
    maxAge: number,
    bytes: Uint8Array,
    offset: number,
    length: number,
  ): void;
}

const NO_BYTES = new Uint8Array(0);

/** A request and its stream. Used again for another one once it is closed. */
export class Stream implements HttpRequest {
  id = 0;
  state: StreamState = StreamState.Closed;
  method: Method = Method.Other;
  mediaType: MediaType = MediaType.None;
  target: Uint8Array = NO_BYTES;
  targetStart = 0;
  targetEnd = 0;
  /** What the client said; -1 for nothing. */
  contentLength = -1;
  /** The fields are more than fit; it is answered so. */
  headersTooLarge = false;
  /** Parts of a body that is not whole yet. */
  body: Uint8Array = NO_BYTES;
  bodyBytes = 0;
  /** The request is whole. */
  isWhole = false;
  /** Flow-controlled bytes that came in. */
  receivedBytes = 0;
  /** Bytes the client takes on this stream. */
  window = 0;
  /** What is left of an answer, from `pendingAt` on. */
  pending: Uint8Array = NO_BYTES;
  pendingAt = 0;
  /** When it entered its state. */
  sinceMs = 0;

  constructor(private readonly owner: StreamOwner) {}

  get from(): HttpClient {
    return this.owner.from;
  }

  /** Makes it that of a new request. */
  reset(id: number, window: number): void {
    this.id = id;
    this.state = StreamState.Receiving;
    this.method = Method.Other;
    this.mediaType = MediaType.None;
    this.target = NO_BYTES;
    this.targetStart = this.targetEnd = 0;
    this.contentLength = -1;
    this.headersTooLarge = false;
    this.isWhole = false;
    this.receivedBytes = 0;
    this.window = window;
    this.release();
  }

  /** Gives memory back. */
  release(): void {
    this.body = this.pending = NO_BYTES;
    this.bodyBytes = this.pendingAt = 0;
  }

  /** Says whether a body of that length is what the client announced. */
  fits(length: number): boolean {
    return this.contentLength < 0 || this.contentLength === length;
  }

  /** Adds a part of the body; the caller has checked that it fits `BODY_BYTES_MAX`. */
  addBody(bytes: Uint8Array, start: number, end: number): void {
    this.body = appendBody(this.body, this.bodyBytes, bytes.subarray(start, end));
    this.bodyBytes += end - start;
  }

  respond(
    head: ResponseHead,
    maxAge: number,
    bytes: Uint8Array,
    offset: number,
    length: number,
  ): void {
    this.owner.respond(this, head, maxAge, bytes, offset, length);
  }
}

const TRAILERS = new TextEncoder().encode("trailers");
const SLASH = 0x2f;

/** Makes a request of header fields and holds them against RFC 9113 §8.2 and §8.3. */
export class RequestReader implements FieldSink {
  #stream: Stream | null = null;
  #listBytes = 0;
  #sawRegular = false;
  #malformed = false;
  #seen = 0;

  /** What follows are the fields of `stream`; of nobody, where they are only to be read over. */
  begin(stream: Stream | null): void {
    this.#stream = stream;
    this.#listBytes = 0;
    this.#sawRegular = false;
    this.#malformed = false;
    this.#seen = 0;
  }

  /** Says whether the fields made a request (RFC 9113 §8.3.1). */
  end(): boolean {
    const stream = this.#stream;
    if (stream === null) return true;
    if (stream.headersTooLarge) return true;
    const needed = (1 << FieldName.Method) | (1 << FieldName.Scheme) | (1 << FieldName.Path);
    if (this.#malformed || (this.#seen & needed) !== needed) return false;
    if (stream.targetEnd === stream.targetStart) return false;
    // `OPTIONS *` is the one target without a slash; there is nothing at it here.
    return stream.target[stream.targetStart] === SLASH || stream.method === Method.Other;
  }

  onField(field: HeaderField): void {
    const { name, value, valueStart, valueEnd } = field;
    this.#listBytes += FIELD_OVERHEAD_BYTES + field.nameEnd - field.nameStart + valueEnd -
      valueStart;
    const stream = this.#stream;
    if (stream === null) return;
    if (this.#listBytes > HEADER_LIST_BYTES_MAX) {
      stream.headersTooLarge = true;
      return;
    }
    if (!field.valid) this.#malformed = true;
    if (name === FieldName.Other) {
      this.#sawRegular = true;
      return;
    }
    if (name <= FieldName.BadPseudo) {
      // Once each, and before the others (RFC 9113 §8.3).
      const bit = 1 << name;
      if (this.#sawRegular || (this.#seen & bit) !== 0 || name === FieldName.BadPseudo) {
        this.#malformed = true;
      }
      this.#seen |= bit;
    } else {
      this.#sawRegular = true;
    }
    switch (name) {
      case FieldName.Method:
        stream.method = readMethod(value, valueStart, valueEnd);
        return;
      case FieldName.Path:
        if (field.kept) {
          stream.target = value;
          stream.targetStart = valueStart;
          stream.targetEnd = valueEnd;
        } else {
          // The body may come long after the buffer has gone.
          stream.target = value.slice(valueStart, valueEnd);
          stream.targetStart = 0;
          stream.targetEnd = stream.target.length;
        }
        return;
      case FieldName.ContentType:
        stream.mediaType = readMediaType(value, valueStart, valueEnd);
        return;
      case FieldName.ContentLength: {
        const length = readContentLength(value, valueStart, valueEnd);
        const differs = stream.contentLength >= 0 && stream.contentLength !== length;
        if (length < 0 || differs) this.#malformed = true;
        stream.contentLength = length;
        return;
      }
      case FieldName.Te:
        if (!isText(value, valueStart, valueEnd, TRAILERS)) this.#malformed = true;
        return;
      case FieldName.ConnectionSpecific:
        this.#malformed = true;
        return;
      default:
        return; // Scheme, authority and host: any name leads here.
    }
  }
}
