import {
  H2Error,
  Setting,
  settingFailure,
  WINDOW_BYTES_DEFAULT,
  WINDOW_BYTES_MAX,
} from "./frames.ts";
import { Stream, type StreamOwner, StreamState } from "./request.ts";

/** Streams kept for the next requests. */
const FREE_STREAMS_MAX = 64;

/** The open streams of one connection by ID: those whose body or answer is not whole yet. */
export class OpenStreams {
  /** Bytes of answers that wait for the client's windows. */
  unsentBytes = 0;
  readonly #owner: StreamOwner;
  readonly #byId = new Map<number, Stream>();
  readonly #free: Stream[] = [];
  /** How much of an answer a new stream may send at first. */
  #window = WINDOW_BYTES_DEFAULT;
  #isClosed = false;

  constructor(owner: StreamOwner) {
    this.#owner = owner;
  }

  get size(): number {
    return this.#byId.size;
  }

  get(id: number): Stream | undefined {
    return this.#byId.get(id);
  }

  values(): MapIterator<Stream> {
    return this.#byId.values();
  }

  /** A stream that is not among the open ones yet. */
  take(id: number): Stream {
    const stream = this.#free.pop() ?? new Stream(this.#owner);
    stream.reset(id, this.#window);
    return stream;
  }

  add(stream: Stream): void {
    this.#byId.set(stream.id, stream);
  }

  /** Keeps the rest of an answer until the client has a window for it. */
  keep(stream: Stream, rest: Uint8Array): void {
    stream.pending = rest;
    stream.pendingAt = 0;
    stream.state = StreamState.Sending;
    this.unsentBytes += rest.length;
    // A request without a body was not put among the open ones.
    this.add(stream);
  }

  /** The answer is sent, and the client goes on sending its body. */
  discard(stream: Stream): void {
    this.unsentBytes -= stream.pending.length;
    stream.release();
    stream.state = StreamState.Discarding;
    this.add(stream);
  }

  /** It stays among those that wait: resetting is no way to have more than `requestsMax`. */
  abandon(stream: Stream): void {
    stream.state = StreamState.Abandoned;
    this.#byId.delete(stream.id);
  }

  /** A stream is done with and not to be found any more. */
  forget(stream: Stream): void {
    this.#byId.delete(stream.id);
    this.unsentBytes -= stream.pending.length;
    // One whose answer is awaited is recycled when that comes.
    if (stream.state === StreamState.Waiting && this.#isClosed) {
      stream.state = StreamState.Abandoned;
    } else this.recycle(stream);
  }

  recycle(stream: Stream): void {
    stream.state = StreamState.Closed;
    stream.release();
    if (this.#free.length < FREE_STREAMS_MAX && !this.#isClosed) this.#free.push(stream);
  }

  /** Forgets all of them. */
  close(): void {
    this.#isClosed = true;
    for (const stream of this.#byId.values()) this.forget(stream);
  }

  /** Takes a setting of the client's; returns what is wrong with it. */
  set(setting: number, value: number): H2Error {
    const failure = settingFailure(setting, value);
    const isWindow = setting === Setting.InitialWindowSize;
    return failure === H2Error.NoError && isWindow ? this.#setWindow(value) : failure;
  }

  /** Streams that are open have as much more or less as new ones will (RFC 9113 §6.9.2). */
  #setWindow(value: number): H2Error {
    const change = value - this.#window;
    this.#window = value;
    for (const stream of this.#byId.values()) {
      stream.window += change;
      if (stream.window > WINDOW_BYTES_MAX) return H2Error.FlowControlError;
    }
    return H2Error.NoError;
  }
}
