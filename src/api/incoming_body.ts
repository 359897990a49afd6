import { SvcError } from "../errors.ts";
import {
  appendBody,
  Chunked,
  ChunkedReader,
  type InputBuffer,
  type RequestHead,
} from "../transport/http1.ts";
import { BodyError } from "./errors.ts";
import { bodyTooLarge } from "./request_body.ts";

/**
 * The body of one request. It stays where it is until somebody asks for it; then it is gathered as
 * it comes in, within the limit, and handed over whole. Nothing here throws.
 */
export class IncomingBody {
  /** What the handler reads; `null` where there is no body. */
  readonly stream: ReadableStream<Uint8Array<ArrayBuffer>> | null;
  readonly #input: InputBuffer;
  readonly #bytesMax: number;
  readonly #chunks: ChunkedReader | null;
  /** Bytes still to come, where the length is known. */
  #left: number;
  #bytes: Uint8Array = new Uint8Array(0);
  #length = 0;
  #isWhole: boolean;
  #isWanted = false;
  #failure: SvcError | null = null;
  /** Who waits for it. */
  #reader: ReadableStreamDefaultController<Uint8Array<ArrayBuffer>> | null = null;

  /**
   * `head` and `input` are those of the connection; `onWanted` hears when the body is asked for, of
   * which no more than `bytesMax` is taken.
   */
  constructor(head: RequestHead, input: InputBuffer, bytesMax: number, onWanted: () => void) {
    this.#input = input;
    this.#bytesMax = bytesMax;
    this.#chunks = head.chunked ? new ChunkedReader(bytesMax) : null;
    this.#left = Math.max(0, head.contentLength);
    this.#isWhole = this.#chunks === null && this.#left === 0;
    this.stream = this.#isWhole ? null : new ReadableStream({
      pull: (controller) => {
        this.#reader = controller;
        this.#isWanted = true;
        onWanted();
      },
      cancel: () => {
        this.#reader = null;
      },
    }, { highWaterMark: 0 });
  }

  /** Somebody waits for what has not come yet. */
  get isAwaited(): boolean {
    return this.#isWanted && !this.#isWhole && this.#failure === null;
  }

  /** Takes what has come in. Returns whether the request ends there: behind it is the next one. */
  readOn(): boolean {
    if (this.#isWhole || this.#failure !== null) return this.#isWhole;
    if (this.#chunks === null) this.#readPlain();
    else this.#readChunks(this.#chunks);
    if (this.#isWhole) this.#handOver();
    return this.#isWhole;
  }

  /** No more comes, or no more is waited for. */
  fail(failure: SvcError): void {
    if (this.#isWhole || this.#failure !== null) return;
    this.#failure = failure;
    this.#bytes = new Uint8Array(0);
    this.#reader?.error(failure);
    this.#reader = null;
  }

  #readPlain(): void {
    if (this.#left + this.#length > this.#bytesMax) return this.fail(bodyTooLarge(this.#bytesMax));
    const input = this.#input;
    const part = input.bytes.subarray(input.start, Math.min(input.end, input.start + this.#left));
    this.#bytes = appendBody(this.#bytes, this.#length, part, this.#bytesMax);
    this.#length += part.length;
    this.#left -= part.length;
    input.start += part.length;
    this.#isWhole = this.#left === 0;
  }

  #readChunks(chunks: ChunkedReader): void {
    const input = this.#input;
    const outcome = chunks.read(input.bytes, input.start, input.end);
    input.start = chunks.at;
    if (outcome === Chunked.Partial) return;
    if (outcome === Chunked.TooLarge) return this.fail(bodyTooLarge(this.#bytesMax));
    if (outcome === Chunked.Malformed) {
      return this.fail(new BodyError(400, "body: its chunks are malformed"));
    }
    this.#bytes = chunks.body;
    this.#length = chunks.bodyBytes;
    this.#isWhole = true;
  }

  #handOver(): void {
    const reader = this.#reader;
    this.#reader = null;
    if (reader === null) return;
    if (this.#length > 0) reader.enqueue(this.#bytes.slice(0, this.#length));
    reader.close();
    this.#bytes = new Uint8Array(0);
  }
}
