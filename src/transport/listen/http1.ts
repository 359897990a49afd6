import { invariant } from "../../errors.ts";
import { Chunked, ChunkedReader } from "./chunked.ts";
import {
  BODY_BYTES_MAX,
  dateField,
  FIELDS_BYTES_MAX,
  type HttpClient,
  type HttpConnection,
  HttpFailure,
  type HttpHandler,
  type HttpLimits,
  type HttpRequest,
  type HttpSocket,
  type MediaType,
  Method,
  put,
  type ResponseHead,
  writeFields1,
} from "./http.ts";
import { Head, HEAD_BYTES_MAX, RequestHead } from "./http1_head.ts";
import { InputBuffer } from "./input_buffer.ts";
import type { ByteSink, Outbox } from "./outbox.ts";

/** Bytes that wait behind a request whose answer is awaited; then the client is not read on. */
const AHEAD_BYTES_MAX = 64 * 1024;

const encoder = new TextEncoder();
const CONTINUE = encoder.encode("HTTP/1.1 100 Continue\r\n\r\n");
const CLOSE = encoder.encode("connection: close\r\n\r\n");
const END = encoder.encode("\r\n");
const NO_BYTES = new Uint8Array(0);

/** Why a request was not read, by status. */
const FAILURES: ReadonlyMap<number, HttpFailure> = new Map(
  ([
    [400, "the request is no well-formed HTTP/1.1"],
    [413, "the body is larger than a DNS message can be: 65535 bytes"],
    [414, "the path and query string are too long: use POST"],
    [417, "no expectation but 100-continue is known"],
    [431, `the header fields are more than ${HEAD_BYTES_MAX} bytes: send fewer`],
    [501, "no transfer coding but chunked is known"],
    [505, "versions are HTTP/1.1, and HTTP/2 where the TLS handshake names h2"],
  ] as const).map(([status, text]) => [status, new HttpFailure(status, text)]),
);

/** The server's side of one HTTP/1.1 connection (RFC 9112): one request after the other. No I/O. */
export class Http1Connection implements HttpConnection, HttpRequest, ByteSink {
  readonly #socket: HttpSocket;
  readonly #handler: HttpHandler;
  readonly #limits: HttpLimits;
  readonly #out: Outbox;
  readonly #input = new InputBuffer();
  readonly #head = new RequestHead();
  /** The head of the request at hand is read; its body is still to come. */
  #inBody = false;
  #chunks: ChunkedReader | null = null;
  #continued = false;
  /** The request at hand is the handler's, or one that is refused. */
  #waiting = false;
  #reading = false;
  #paused = false;
  /** The connection ends with the answer to the request at hand. */
  #last = false;
  #lastRequestMs: number;
  /** Since when a request comes in; 0 while none does. */
  #partialSinceMs = 0;
  #draining = false;
  #clientEnded = false;
  #closed = false;
  target: Uint8Array = NO_BYTES;

  constructor(socket: HttpSocket, handler: HttpHandler, limits: HttpLimits, out: Outbox) {
    this.#socket = socket;
    this.#handler = handler;
    this.#limits = limits;
    this.#out = out;
    this.#lastRequestMs = performance.now();
  }

  get from(): HttpClient {
    return this.#socket;
  }

  get method(): Method {
    return this.#head.method;
  }

  get mediaType(): MediaType {
    return this.#head.mediaType;
  }

  get targetStart(): number {
    return this.#head.targetStart;
  }

  get targetEnd(): number {
    return this.#head.targetEnd;
  }

  get isWaiting(): boolean {
    return this.#waiting;
  }

  /** Called by the outbox. */
  write(bytes: Uint8Array): void {
    this.#socket.write(bytes);
  }

  get unfinishedBytes(): number {
    return this.#input.length + (this.#chunks?.bodyBytes ?? 0);
  }

  get unsentBytes(): number {
    return 0;
  }

  receive(chunk: Uint8Array): number {
    if (this.#closed || this.#last) return 0; // Behind the last request comes nothing of interest.
    let requests = 0;
    this.#input.push(chunk);
    if (!this.#waiting) requests = this.#readOn();
    else if (this.#input.length > AHEAD_BYTES_MAX && !this.#paused) {
      this.#paused = true;
      this.#socket.stopReading();
    }
    this.#input.keep();
    return requests;
  }

  onEnd(): void {
    this.#clientEnded = true;
    if (!this.#waiting) this.#finish();
  }

  onClose(): void {
    this.#closed = true;
    this.#input.clear();
    this.#chunks = null;
  }

  tick(nowMs: number): void {
    if (this.#closed || this.#waiting) return;
    const { requestMs, idleMs } = this.#limits;
    if (this.#partialSinceMs > 0 && nowMs - this.#partialSinceMs > requestMs) {
      this.#handler.onRejected();
      this.#finish();
    } else if (this.#partialSinceMs === 0 && nowMs - this.#lastRequestMs > idleMs) {
      this.#finish();
    }
  }

  drain(): void {
    this.#draining = true;
    if (!this.#waiting) this.#finish();
  }

  respond(
    head: ResponseHead,
    maxAge: number,
    bytes: Uint8Array,
    offset: number,
    length: number,
  ): void {
    invariant(this.#waiting, "a request is answered once");
    this.#waiting = false;
    if (this.#closed) return;
    if (this.#draining || !this.#head.keepAlive) this.#last = true;
    const out = this.#out;
    const headRoom = head.http1.length + FIELDS_BYTES_MAX + CLOSE.length;
    let at = out.room(this, headRoom + length);
    at = writeFields1(out.bytes, at, head, maxAge, length);
    at = put(out.bytes, at, this.#last ? CLOSE : END);
    if (this.#head.method !== Method.Head) {
      out.bytes.set(bytes.subarray(offset, offset + length), at);
      at += length;
    }
    out.wrote(at);
    if (this.#last) return this.#finish();
    if (this.#reading) return; // `#readOn` goes on by itself.
    this.#readOn();
    this.#input.keep();
    if (this.#clientEnded && !this.#waiting) this.#finish();
    if (this.#paused && !this.#waiting && !this.#closed) {
      this.#paused = false;
      this.#socket.goOnReading();
    }
  }

  /** Reads requests until one has to wait; returns how many. */
  #readOn(): number {
    dateField.refresh();
    this.#reading = true;
    const outer = this.#out.beginRead(this);
    let requests = 0;
    while (!this.#closed && !this.#last && !this.#waiting && this.#readRequest()) requests++;
    this.#reading = false;
    this.#out.endRead(outer);
    if (this.#waiting || this.#closed || (this.#input.length === 0 && !this.#inBody)) {
      this.#partialSinceMs = 0;
    } else if (this.#partialSinceMs === 0 || requests > 0) {
      this.#partialSinceMs = performance.now();
    }
    return requests;
  }

  /** Reads one request and hands it on; returns false when it is not whole. */
  #readRequest(): boolean {
    const input = this.#input;
    const head = this.#head;
    if (input.length === 0) return false;
    if (!this.#inBody) {
      const outcome = head.read(input.bytes, input.start, input.end);
      if (outcome === Head.Partial) return false;
      if (outcome !== Head.Whole) return this.#refuse(outcome);
      if (head.contentLength > BODY_BYTES_MAX) return this.#refuse(413);
      this.#inBody = true;
      this.#continued = false;
      this.#chunks = head.chunked ? new ChunkedReader() : null;
      // The bytes of a target have to outlast the body that is read behind them.
      const isAhead = head.chunked || head.end + head.contentLength > input.end;
      this.target = isAhead ? input.bytes.slice(head.targetStart, head.targetEnd) : input.bytes;
      if (isAhead) {
        head.targetEnd -= head.targetStart;
        head.targetStart = 0;
      }
      input.start = head.end;
    }
    return this.#chunks === null ? this.#readPlain() : this.#readChunks(this.#chunks);
  }

  #readPlain(): boolean {
    const input = this.#input;
    const length = Math.max(0, this.#head.contentLength);
    if (input.length < length) return this.#continue();
    const { bytes, start } = input;
    input.start += length;
    return this.#dispatch(bytes, start, start + length);
  }

  #readChunks(chunks: ChunkedReader): boolean {
    const input = this.#input;
    const outcome = chunks.read(input.bytes, input.start, input.end);
    input.start = chunks.at;
    if (outcome === Chunked.Partial) return this.#continue();
    if (outcome !== Chunked.Whole) return this.#refuse(outcome);
    this.#chunks = null;
    return this.#dispatch(chunks.body, 0, chunks.bodyBytes);
  }

  /** The body is awaited: a client that asks for leave to send it gets that, once. */
  #continue(): false {
    if (!this.#head.expectsContinue || this.#continued) return false;
    this.#continued = true;
    const at = this.#out.room(this, CONTINUE.length);
    this.#out.wrote(put(this.#out.bytes, at, CONTINUE));
    return false;
  }

  #dispatch(body: Uint8Array, start: number, end: number): boolean {
    this.#inBody = false;
    this.#waiting = true;
    this.#lastRequestMs = performance.now();
    this.#handler.onRequest(this, body, start, end);
    return true;
  }

  /** Refuses what is no request; where the next one would begin is unknown. */
  #refuse(status: number): false {
    this.#handler.onRejected();
    this.#inBody = false;
    this.#waiting = true;
    this.#last = true;
    this.#head.method = Method.Other;
    (FAILURES.get(status) ?? FAILURES.get(400)!).answer(this);
    return false;
  }

  #finish(): void {
    if (this.#closed) return;
    this.#out.flush();
    this.onClose();
    this.#socket.end();
  }
}
