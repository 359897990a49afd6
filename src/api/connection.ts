import { Buffer } from "node:buffer";
import type { Socket } from "node:net";
import { setImmediate } from "node:timers";
import { SvcError } from "../errors.ts";
import { log } from "../log.ts";
import { Head, InputBuffer, RequestHead } from "../transport/http1.ts";
import type { ApiHandler } from "./app.ts";
import { BodyError } from "./errors.ts";
import { IncomingBody } from "./incoming_body.ts";
import { bodyBytesMax } from "./request_body.ts";
import { failed, headOf, refusal } from "./responses.ts";
import { PIECE_BYTES } from "./json_bodies.ts";

export interface ConnectionLimits {
  /** For the TLS handshake, and for the head of each request. */
  readonly headMs: number;
  /** For a request to come in as a whole. */
  readonly requestMs: number;
  /** For a client to take `PIECE_BYTES` of an answer. */
  readonly unreadMs: number;
  /** How long a connection without a request stays open. */
  readonly idleMs: number;
  /** How long what still comes is read over, so that a client that is sending sees its answer. */
  readonly lingerMs: number;
}

/** Bytes that wait behind a request whose answer is awaited; more stay in the kernel, unread. */
const AHEAD_BYTES_MAX = 16 * 1024;
/** Most that is read over behind the last answer. */
const LINGER_BYTES_MAX = 64 * 1024 * 1024;

/** Methods that a `Request` can't have; none of them is known to any endpoint. */
const UNKNOWN_METHOD = /^(CONNECT|TRACE|TRACK)$/i;
/** Names tell letters apart (RFC 9110 §9.1); a `Request` would take `get` for GET. */
const METHOD = /^[A-Z]+$/;
const CONTINUE = Buffer.from("HTTP/1.1 100 Continue\r\n\r\n");
const LAST_CHUNK = Buffer.from("0\r\n\r\n");
const CRLF = Buffer.from("\r\n");

/** A request's head is awaited; a request is answered; what comes is read over; it is over. */
type Phase = "head" | "request" | "lingering" | "closed";

interface HeadText {
  readonly method: string;
  readonly target: string;
  readonly headers: Headers;
}

/**
 * The server's side of one connection (RFC 9112): one request after the other. The next one is not
 * read before the answer to the one before it has left, and of an answer no more than a piece waits
 * in the socket: what a client makes this process hold is bounded whatever it sends or leaves unread.
 */
export class Connection {
  readonly #socket: Socket;
  readonly #handler: ApiHandler;
  readonly #limits: ConnectionLimits;
  readonly #address: string;
  readonly #input = new InputBuffer();
  readonly #head = new RequestHead();
  #phase: Phase = "head";
  #body: IncomingBody | null = null;
  /** What is sent piece by piece. */
  #source: ReadableStreamDefaultReader<Uint8Array> | null = null;
  /** Ends the wait for a piece to leave. */
  #onWritten: (() => void) | null = null;
  /** When `tick` does something about what takes too long. */
  #deadlineMs: number;
  #requestSinceMs = 0;
  #isPaused = false;
  #isLast = false;
  #clientEnded = false;
  #lingeredBytes = 0;
  /** Requests that came in whole. */
  requests = 0;
  /** When the last of them was answered, or the connection opened. */
  sinceMs: number;

  /** `socket` is in clear text; `address` is the client's. */
  constructor(socket: Socket, address: string, handler: ApiHandler, limits: ConnectionLimits) {
    this.#socket = socket;
    this.#address = address;
    this.#handler = handler;
    this.#limits = limits;
    this.sinceMs = performance.now();
    this.#deadlineMs = this.sinceMs + limits.headMs;
    socket.on("data", ({ buffer, byteOffset, length }: Uint8Array) => {
      this.#guard(() => this.#receive(new Uint8Array(buffer as ArrayBuffer, byteOffset, length)));
    });
    socket.on("end", () => this.#guard(() => this.#onEnd()));
    socket.on("error", () => socket.destroy()); // Resets are part of the network.
    socket.on("close", () => this.#onClose());
  }

  /** No whole request is here that an answer is owed to. */
  get isWithoutRequest(): boolean {
    return this.#phase !== "request" || this.#body?.isAwaited === true;
  }

  /** What this connection holds in memory of its own. */
  get bufferedBytes(): number {
    return this.#input.length + this.#socket.writableLength;
  }

  /** Takes no more requests; the one at hand is answered, and, if asked to, a first one. */
  drain(awaitsFirst = false): void {
    this.#isLast = true;
    if (this.#phase === "request" || (awaitsFirst && this.requests === 0)) return;
    this.#socket.destroy();
  }

  destroy(): void {
    this.#socket.destroy();
  }

  /** Ends what takes too long; to be called about once a second. */
  tick(nowMs: number): void {
    if (nowMs >= this.#deadlineMs) this.#guard(() => this.#onDeadline());
  }

  #onDeadline(): void {
    this.#deadlineMs = Infinity;
    if (this.#phase === "head" && this.#input.length > 0) return this.#refuse(408);
    if (this.#phase !== "request" || this.#onWritten !== null) return this.destroy();
    this.#body?.fail(new BodyError(408, "body: it did not come in time"));
  }

  /** A mistake of ours about one connection ends that one. */
  #guard(step: () => void): void {
    try {
      step();
    } catch (error) {
      log.error("an API connection failed", { error });
      this.destroy();
    }
  }

  #receive(chunk: Uint8Array): void {
    if (this.#phase === "closed") return;
    if (this.#phase === "lingering") {
      this.#lingeredBytes += chunk.length;
      if (this.#lingeredBytes > LINGER_BYTES_MAX) this.destroy();
      return;
    }
    this.#input.push(chunk);
    if (this.#phase === "head") this.#readHead();
    else this.#readBody();
    this.#input.keep();
    // Also where the request has just begun: behind it may be others.
    if (this.#input.length > AHEAD_BYTES_MAX && this.#phase === "request") this.#pause();
  }

  #onEnd(): void {
    this.#clientEnded = true;
    if (this.#phase === "head") return this.#linger();
    if (this.#phase !== "request") return;
    if (this.#body?.isAwaited) this.#body.fail(breaksOff());
    // Whoever watches and has closed its own side has left.
    if (this.#source !== null) this.destroy();
  }

  #onClose(): void {
    if (this.#phase === "closed") return;
    this.#phase = "closed";
    this.#deadlineMs = Infinity;
    this.#input.clear();
    this.#body?.fail(breaksOff());
    this.#source?.cancel().catch(() => undefined);
    this.#onWritten?.();
  }

  #readHead(): void {
    const [input, head] = [this.#input, this.#head];
    if (input.length === 0) return;
    if (this.#requestSinceMs === 0) {
      this.#requestSinceMs = performance.now();
      if (this.requests > 0) this.#deadlineMs = this.#requestSinceMs + this.#limits.headMs;
    }
    const outcome = head.read(input.bytes, input.start, input.end);
    if (outcome === Head.Partial) return;
    if (outcome !== Head.Whole) return this.#refuse(outcome);
    const text = textOf(input.bytes.subarray(head.start, head.end), head);
    input.start = head.end;
    const { method, target } = text;
    if (!target.startsWith("/")) return this.#refuse(UNKNOWN_METHOD.test(method) ? 405 : 400);
    this.#phase = "request";
    this.#deadlineMs = Infinity;
    const body = this.#body = new IncomingBody(
      head,
      input,
      bodyBytesMax(target),
      () => this.#onBodyWanted(),
    );
    const request = requestOf(text, body.stream);
    if (request === null) return this.#refuse(400);
    void this.#serve(request, method, target);
  }

  #onBodyWanted(): void {
    const input = this.#input;
    if (this.#head.expectsContinue && input.length === 0 && this.#phase === "request") {
      this.#socket.write(CONTINUE);
    }
    this.#deadlineMs = this.#requestSinceMs + this.#limits.requestMs;
    this.#readBody();
    input.keep();
    this.#resume();
    if (this.#clientEnded || this.#phase === "closed") this.#body?.fail(breaksOff());
  }

  #readBody(): void {
    const body = this.#body;
    if (body?.isAwaited && body.readOn()) this.#deadlineMs = Infinity;
  }

  async #serve(request: Request, method: string, target: string): Promise<void> {
    let response: Response;
    try {
      response = await this.#handler(request, this.#address);
    } catch (error) {
      log.error("api request failed", { path: target, error });
      response = failed();
    }
    try {
      await this.#answer(method, response);
    } catch (error) {
      // A client can tell: the end of the body is missing.
      if (!(error instanceof SvcError)) log.error("api answer failed", { path: target, error });
      this.destroy();
    }
  }

  async #answer(method: string, response: Response): Promise<void> {
    if (this.#phase !== "request") {
      await response.body?.cancel();
      return;
    }
    // Where the rest of a body is not here, nobody knows where the next request begins.
    if (this.#body?.readOn()) this.requests++;
    else this.#isLast = true;
    this.#input.keep();
    if (!this.#head.keepAlive) this.#isLast = true;
    const { status, headers } = response;
    const fields: (readonly [string, string])[] = [...headers];
    const isBodiless = status === 204 || status === 304 || method === "HEAD";
    const isEndless = headers.has("transfer-encoding");
    if (isEndless && this.#head.isHttp10) this.#isLast = true; // The end of it says the length.
    const isPieces = !isBodiless && (isEndless || headers.has("content-length"));
    if (isPieces && response.body !== null) {
      const isChunked = isEndless && !this.#head.isHttp10;
      await this.#sendPieces(
        headOf(status, this.#withConnection(fields)),
        response.body,
        isChunked,
      );
    } else {
      // Whoever asks for `body` makes a stream of it, which costs more than the rest of an answer.
      const body = isBodiless ? null : Buffer.from(await response.arrayBuffer());
      if (body !== null && !isPieces) fields.push(["content-length", String(body.length)]);
      const head = headOf(status, this.#withConnection(fields));
      await this.#write(body === null ? head : Buffer.concat([head, body]));
    }
    this.#next();
  }

  #withConnection(fields: readonly (readonly [string, string])[]): (readonly [string, string])[] {
    const isHttp10 = this.#head.isHttp10;
    return [
      ...fields.filter(([name]) => !(isHttp10 && name === "transfer-encoding")),
      ...(this.#isLast ? [["connection", "close"] as const] : [
        ["connection", "keep-alive"] as const,
        ["keep-alive", `timeout=${Math.floor(this.#limits.idleMs / 1_000)}`] as const,
      ]),
    ];
  }

  /** Sends a body as it comes, no faster than the client takes it, until either of them ends it. */
  async #sendPieces(
    head: Buffer,
    body: ReadableStream<Uint8Array>,
    isChunked: boolean,
  ): Promise<void> {
    const source = this.#source = body.getReader();
    try {
      await this.#write(head);
      while (this.#phase === "request") {
        const { done, value } = await source.read();
        if (done) break;
        for (let at = 0; at < value.length; at += PIECE_BYTES) {
          const piece = value.subarray(at, at + PIECE_BYTES);
          await this.#write(isChunked ? chunkOf(piece) : piece);
          await turn();
        }
      }
      if (isChunked) await this.#write(LAST_CHUNK);
    } finally {
      this.#source = null;
      source.cancel().catch(() => undefined);
    }
  }

  /** Resolves once the kernel has it, or the connection is over. */
  async #write(bytes: Uint8Array): Promise<void> {
    if (this.#phase !== "request") return;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#onWritten = resolve;
    this.#deadlineMs = performance.now() + this.#limits.unreadMs;
    this.#socket.write(bytes, (error) => {
      if (error) this.#onClose(); // At once: `close` comes in a later turn, and a loop may wait here.
      resolve();
    });
    await promise;
    this.#onWritten = null;
    this.#deadlineMs = Infinity;
  }

  /** An answer has left: the next request may be read. */
  #next(): void {
    if (this.#phase !== "request") return;
    this.#body = null;
    if (this.#isLast) return this.#linger();
    this.#phase = "head";
    this.#requestSinceMs = 0;
    this.sinceMs = performance.now();
    this.#deadlineMs = this.sinceMs + this.#limits.idleMs;
    this.#readHead();
    this.#input.keep();
    if (this.#phase !== "head") return;
    if (this.#clientEnded) this.#linger();
    else this.#resume();
  }

  /** Answers what is no request; where the next one would begin is unknown. */
  #refuse(status: number): void {
    this.#phase = "request";
    this.#isLast = true;
    this.#body = null;
    void this.#write(refusal(status)).then(() => this.#next());
  }

  /** Ends the connection behind what was written; a reset would take that from the client. */
  #linger(): void {
    this.#phase = "lingering";
    this.#input.clear();
    this.#deadlineMs = performance.now() + this.#limits.lingerMs;
    this.#socket.end();
    this.#resume();
  }

  #pause(): void {
    if (this.#isPaused) return;
    this.#isPaused = true;
    this.#socket.pause();
  }

  #resume(): void {
    if (!this.#isPaused) return;
    this.#isPaused = false;
    this.#socket.resume();
  }
}

/** Lets the others of this isolate come by: a client that reads fast would have all of its time. */
function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

function breaksOff(): SvcError {
  return new SvcError("bad_request", "body: it breaks off");
}

function chunkOf(piece: Uint8Array): Buffer {
  return Buffer.concat([Buffer.from(`${piece.length.toString(16)}\r\n`), piece, CRLF]);
}

/** Splits a head that has been checked, and stands at the start of `bytes`. */
function textOf(bytes: Uint8Array, head: RequestHead): HeadText {
  const { buffer, byteOffset, length } = bytes;
  const text = Buffer.from(buffer as ArrayBuffer, byteOffset, length).toString("latin1");
  const [requestLine, ...lines] = text.slice(0, -"\r\n\r\n".length).split("\r\n");
  const method = requestLine.slice(0, requestLine.indexOf(" "));
  const { start, targetStart, targetEnd, authority } = head;
  const path = requestLine.slice(targetStart - start, targetEnd - start);
  const headers = new Headers();
  let cookie = "";
  for (const line of lines) {
    const colon = line.indexOf(":");
    const [name, value] = [line.slice(0, colon), line.slice(colon + 1)];
    // Several of them are one with semicolons, not with commas (RFC 9113 §8.2.3).
    if (name.toLowerCase() === "cookie") cookie += `${cookie === "" ? "" : "; "}${value.trim()}`;
    else headers.append(name, value);
  }
  if (cookie !== "") headers.set("cookie", cookie);
  if (authority === null) return { method, target: path, headers };
  // It says who is asked, whatever Host does (RFC 9112 §3.2.2); its path may be left out.
  headers.set("host", authority);
  return { method, target: path.startsWith("/") ? path : `/${path}`, headers };
}

/** The request as the handler takes it; `null` where its target is no path of a URL. */
function requestOf(
  { method, target, headers }: HeadText,
  body: ReadableStream<Uint8Array<ArrayBuffer>> | null,
): Request | null {
  const takesBody = method !== "GET" && method !== "HEAD";
  // The host is a header like any other: what is asked for never hangs on it.
  const url = `http://api.invalid${target}`;
  if (!URL.canParse(url)) return null;
  const isPossible = METHOD.test(method) && !UNKNOWN_METHOD.test(method);
  return new Request(url, {
    method: isPossible ? method : "UNKNOWN",
    headers,
    body: takesBody ? body : null,
  });
}
