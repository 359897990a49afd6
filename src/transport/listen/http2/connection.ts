import { getU16, getU32 } from "../../../bytes/mod.ts";
import { invariant } from "../../../errors.ts";
import {
  BODY_BYTES_MAX,
  dateField,
  type HttpConnection,
  HttpFailure,
  type HttpHandler,
  type HttpLimits,
  type HttpPeer,
  type HttpSocket,
  Method,
  type ResponseHead,
} from "../http.ts";
import { InputBuffer } from "../input_buffer.ts";
import type { ByteSink, Outbox } from "../outbox.ts";
import {
  Flag,
  FRAME_HEADER_BYTES,
  FrameType,
  H2Error,
  PAYLOAD_BYTES_MAX,
  PREFACE,
  Setting,
  settingFailure,
  settingsFrame,
  startsPreface,
  WINDOW_BYTES_DEFAULT,
  WINDOW_BYTES_MAX,
  withoutPadding,
} from "./frames.ts";
import { BLOCK_BYTES_MAX, Hpack, HpackDecoder } from "./hpack.ts";
import { HeaderBlock } from "./header_block.ts";
import { CONNECTION_WINDOW_BYTES, ReceiveWindow } from "./receive_window.ts";
import { FrameWriter } from "./writer.ts";
import {
  HEADER_LIST_BYTES_MAX,
  RequestReader,
  Stream,
  type StreamOwner,
  StreamState,
} from "./request.ts";

/** Bytes a stream takes in all: the largest body, and padding beside it. */
const STREAM_WINDOW_BYTES = BODY_BYTES_MAX + PAYLOAD_BYTES_MAX;
/**
 * Frames that ask nothing (PING, SETTINGS, RST_STREAM, empty DATA, …) a second. Each answer allows
 * a few more, up to a bound.
 */
const IDLE_FRAMES_MAX = 512;
const IDLE_FRAMES_PER_ANSWER = 4;
const IDLE_FRAMES_SAVED_MAX = 4_096;
/** Bytes of answers that a client leaves without a window; then it is cut off. */
const UNSENT_BYTES_MAX = 1024 * 1024;
/** Streams kept for the next requests. */
const FREE_STREAMS_MAX = 64;

const TOO_LARGE = new HttpFailure(413, "the body is larger than a DNS message can be: 65535 bytes");
const HEADERS_TOO_LARGE = new HttpFailure(
  431,
  `the header fields are more than ${HEADER_LIST_BYTES_MAX} bytes: send fewer`,
);
const NO_BYTES = new Uint8Array(0);

/** The server's side of one HTTP/2 connection (RFC 9113). Bytes in, requests out; no I/O. */
export class Http2Connection implements HttpConnection, StreamOwner, ByteSink {
  readonly #socket: HttpSocket;
  readonly #handler: HttpHandler;
  readonly #limits: HttpLimits;
  readonly #out: Outbox;
  readonly #writer: FrameWriter;
  readonly #input = new InputBuffer();
  readonly #decoder = new HpackDecoder();
  readonly #reader = new RequestReader();
  /** Open streams by ID: those whose body or answer is not whole yet. */
  readonly #streams = new Map<number, Stream>();
  readonly #free: Stream[] = [];
  #lastStreamId = 0;
  /** Requests that the handler has; those of abandoned streams too. */
  #waiting = 0;
  #prefaceRead = false;
  #settingsRead = false;
  readonly #block = new HeaderBlock();
  readonly #received = new ReceiveWindow();
  #streamWindow = WINDOW_BYTES_DEFAULT;
  #idleFrames = IDLE_FRAMES_MAX;
  #lastRequestMs: number;
  /** Since when a frame or header block is not whole; 0 while all are. */
  #partialSinceMs = 0;
  #nowMs: number;
  /** Bytes of answers that wait for the client's windows. */
  #unsentBytes = 0;
  #draining = false;
  #peerEnded = false;
  #closed = false;

  constructor(socket: HttpSocket, handler: HttpHandler, limits: HttpLimits, out: Outbox) {
    this.#socket = socket;
    this.#handler = handler;
    this.#limits = limits;
    this.#out = out;
    this.#writer = new FrameWriter(out, this);
    this.#nowMs = this.#lastRequestMs = performance.now();
    this.#writer.frame(settingsFrame([
      [Setting.MaxConcurrentStreams, limits.requestsMax],
      [Setting.InitialWindowSize, STREAM_WINDOW_BYTES],
      [Setting.MaxHeaderListSize, HEADER_LIST_BYTES_MAX],
      [Setting.NoRfc7540Priorities, 1],
    ]));
    this.#writer.windowUpdate(CONNECTION_WINDOW_BYTES - WINDOW_BYTES_DEFAULT);
  }

  get peer(): HttpPeer {
    return this.#socket;
  }

  get isWaiting(): boolean {
    return this.#waiting > 0;
  }

  /** Called by the outbox. */
  write(bytes: Uint8Array): void {
    this.#socket.write(bytes);
  }

  get unfinishedBytes(): number {
    return this.#input.length + this.#block.bytes.length + this.#received.heldBytes;
  }

  get unsentBytes(): number {
    return this.#unsentBytes;
  }

  receive(chunk: Uint8Array): number {
    if (this.#closed) return 0;
    this.#nowMs = performance.now();
    dateField.refresh();
    const outer = this.#out.beginRead(this);
    const input = this.#input;
    input.push(chunk);
    let frames = 0;
    while (!this.#closed && this.#readNext()) frames++;
    if (this.#closed) input.clear();
    else input.keep();
    if (input.length === 0 && this.#block.streamId === 0) this.#partialSinceMs = 0;
    else if (this.#partialSinceMs === 0 || (frames > 0 && this.#block.streamId === 0)) {
      this.#partialSinceMs = this.#nowMs;
    }
    this.#out.endRead(outer);
    this.#endIfDone();
    return frames;
  }

  onEnd(): void {
    this.#peerEnded = true;
    this.#endIfDone();
  }

  onClose(): void {
    this.#closed = true;
    this.#input.clear();
    this.#block.take();
    for (const stream of this.#streams.values()) this.#forget(stream);
  }

  tick(nowMs: number): void {
    if (this.#closed) return;
    this.#nowMs = nowMs;
    this.#idleFrames = Math.max(this.#idleFrames, IDLE_FRAMES_MAX);
    const { requestMs, idleMs } = this.#limits;
    let isLate = this.#partialSinceMs > 0 && nowMs - this.#partialSinceMs > requestMs;
    for (const { state, sinceMs } of this.#streams.values()) {
      if (state !== StreamState.Waiting && nowMs - sinceMs > requestMs) isLate = true;
    }
    if (isLate) return this.#fail(H2Error.EnhanceYourCalm);
    const isIdle = this.#streams.size === 0 && this.#waiting === 0;
    if (isIdle && nowMs - this.#lastRequestMs > idleMs) this.#close(H2Error.NoError);
  }

  drain(): void {
    if (this.#draining || this.#closed) return;
    this.#draining = true;
    this.#writer.goaway(this.#lastStreamId, H2Error.NoError);
    this.#endIfDone();
  }

  /** Called by a stream of this connection. */
  respond(
    stream: Stream,
    head: ResponseHead,
    maxAge: number,
    bytes: Uint8Array,
    offset: number,
    length: number,
  ): void {
    const isAbandoned = stream.state === StreamState.Abandoned;
    invariant(isAbandoned || stream.state === StreamState.Waiting, "a request is answered once");
    this.#waiting--;
    this.#idleFrames = Math.min(this.#idleFrames + IDLE_FRAMES_PER_ANSWER, IDLE_FRAMES_SAVED_MAX);
    if (this.#closed || isAbandoned) this.#recycle(stream);
    else this.#answer(stream, head, maxAge, bytes, offset, length);
    this.#endIfDone();
  }

  #answer(
    stream: Stream,
    head: ResponseHead,
    maxAge: number,
    bytes: Uint8Array,
    offset: number,
    length: number,
  ): void {
    const sent = this.#writer.answer(stream, head, maxAge, bytes, offset, length);
    if (sent === length || stream.method === Method.Head) return this.#answered(stream);
    stream.pending = bytes.slice(offset + sent, offset + length);
    stream.pendingAt = 0;
    stream.state = StreamState.Sending;
    stream.sinceMs = this.#nowMs;
    this.#unsentBytes += stream.pending.length;
    // A request without a body was not put among the open ones.
    this.#streams.set(stream.id, stream);
    if (this.#unsentBytes > UNSENT_BYTES_MAX) this.#fail(H2Error.EnhanceYourCalm);
  }

  /** Sends on what waited for a window. */
  #pump(stream: Stream): void {
    if (stream.state === StreamState.Sending && this.#writer.pump(stream)) this.#answered(stream);
  }

  /** The whole answer is written. */
  #answered(stream: Stream): void {
    if (stream.isWhole) return this.#forget(stream);
    // A reset would say so at once (RFC 9113 §8.1), but some clients take it for a failure.
    this.#unsentBytes -= stream.pending.length;
    stream.release();
    stream.state = StreamState.Discarding;
    this.#streams.set(stream.id, stream);
  }

  /** Reads the preface or one frame; returns false when it is not whole or nothing is left. */
  #readNext(): boolean {
    const input = this.#input;
    const { bytes, start } = input;
    if (!this.#prefaceRead) {
      if (!startsPreface(bytes, start, input.end)) this.#fail(H2Error.ProtocolError);
      if (this.#closed || input.length < PREFACE.length) return false;
      input.start += PREFACE.length;
      this.#prefaceRead = true;
      return true;
    }
    if (input.length < FRAME_HEADER_BYTES) return false;
    const length = (bytes[start] << 16) | getU16(bytes, start + 1);
    if (length > PAYLOAD_BYTES_MAX) {
      this.#fail(H2Error.FrameSizeError);
      return false;
    }
    if (input.length < FRAME_HEADER_BYTES + length) return false;
    const from = start + FRAME_HEADER_BYTES;
    input.start = from + length;
    const streamId = getU32(bytes, start + 5) & 0x7fffffff;
    this.#onFrame(bytes[start + 3], bytes[start + 4], streamId, bytes, from, from + length);
    return true;
  }

  #onFrame(
    type: number,
    flags: number,
    streamId: number,
    bytes: Uint8Array,
    start: number,
    end: number,
  ): void {
    const inBlock = this.#block.streamId !== 0;
    if (inBlock && (type !== FrameType.Continuation || streamId !== this.#block.streamId)) {
      return this.#fail(H2Error.ProtocolError);
    }
    if (!this.#settingsRead && (type !== FrameType.Settings || (flags & Flag.Ack) !== 0)) {
      return this.#fail(H2Error.ProtocolError);
    }
    switch (type) {
      case FrameType.Headers:
        return this.#onHeaders(flags, streamId, bytes, start, end);
      case FrameType.Data:
        return this.#onData(flags, streamId, bytes, start, end);
      case FrameType.WindowUpdate:
        return this.#onWindowUpdate(streamId, bytes, start, end);
      case FrameType.Continuation:
        return this.#onContinuation(flags, streamId, bytes, start, end);
      case FrameType.RstStream:
        return this.#onReset(streamId, end - start);
      case FrameType.Settings:
        return this.#onSettings(flags, streamId, bytes, start, end);
      case FrameType.Ping:
        return this.#onPing(flags, streamId, bytes, start, end);
      case FrameType.Priority:
        if (streamId === 0) return this.#fail(H2Error.ProtocolError);
        if (end - start !== 5) return this.#resetStream(streamId, H2Error.FrameSizeError);
        return this.#countIdleFrame();
      case FrameType.PushPromise:
        return this.#fail(H2Error.ProtocolError);
      case FrameType.Goaway:
        if (streamId !== 0) return this.#fail(H2Error.ProtocolError);
        if (end - start < 8) return this.#fail(H2Error.FrameSizeError);
        return this.#countIdleFrame();
      default:
        return this.#countIdleFrame(); // Unknown ones are to be ignored (RFC 9113 §4.1).
    }
  }

  #onHeaders(flags: number, id: number, bytes: Uint8Array, start: number, end: number): void {
    if (id === 0 || (id & 1) === 0) return this.#fail(H2Error.ProtocolError);
    const blockEnd = withoutPadding(flags, bytes, start, end);
    let from = start + ((flags & Flag.Padded) !== 0 ? 1 : 0);
    if ((flags & Flag.Priority) !== 0) from += 5;
    if (blockEnd < from) return this.#fail(H2Error.ProtocolError);
    const endsStream = (flags & Flag.EndStream) !== 0;
    if ((flags & Flag.EndHeaders) !== 0) {
      return this.#onBlock(id, endsStream, bytes, from, blockEnd);
    }
    this.#block.begin(id, endsStream, bytes.subarray(from, blockEnd));
  }

  #onContinuation(flags: number, id: number, bytes: Uint8Array, start: number, end: number): void {
    if (this.#block.streamId === 0) return this.#fail(H2Error.ProtocolError);
    if (!this.#block.add(bytes.subarray(start, end))) return this.#fail(H2Error.EnhanceYourCalm);
    if ((flags & Flag.EndHeaders) === 0) return;
    const block = this.#block.take();
    this.#onBlock(id, this.#block.endsStream, block, 0, block.length);
  }

  /** A whole header block: a request, or the trailers of one. */
  #onBlock(id: number, endsStream: boolean, bytes: Uint8Array, start: number, end: number): void {
    if (end - start > BLOCK_BYTES_MAX) return this.#fail(H2Error.EnhanceYourCalm);
    const isNew = id > this.#lastStreamId;
    const mayOpen = isNew && !this.#draining && this.#waiting < this.#limits.requestsMax &&
      this.#streams.size < this.#limits.requestsMax;
    const stream = mayOpen ? this.#take(id) : null;
    this.#reader.begin(stream); // Nobody's is read too: the next block refers to its fields.
    if (this.#decoder.read(bytes, start, end, this.#reader) !== Hpack.Ok) {
      return this.#fail(H2Error.CompressionError);
    }
    if (isNew) this.#lastStreamId = id;
    if (!isNew) return this.#onTrailers(id, endsStream);
    if (stream === null) {
      if (!this.#draining) this.#handler.onRejected();
      return this.#resetStream(id, H2Error.RefusedStream);
    }
    if (!this.#reader.end() || (endsStream && stream.contentLength > 0)) {
      this.#recycle(stream);
      return this.#refuse(id, H2Error.ProtocolError);
    }
    stream.sinceMs = this.#nowMs;
    if (!endsStream) this.#streams.set(id, stream);
    stream.isWhole = endsStream;
    if (stream.headersTooLarge) this.#answerEarly(stream, HEADERS_TOO_LARGE);
    else if (endsStream) this.#dispatch(stream, NO_BYTES, 0, 0);
    else if (stream.contentLength > BODY_BYTES_MAX) this.#answerEarly(stream, TOO_LARGE);
  }

  #onTrailers(id: number, endsStream: boolean): void {
    const stream = this.#streams.get(id);
    if (stream?.state === StreamState.Discarding) return this.#discard(stream, 0, endsStream);
    if (stream?.state !== StreamState.Receiving) return this.#refuse(id, H2Error.StreamClosed);
    if (!endsStream || !stream.fits(stream.bodyBytes)) {
      return this.#refuse(id, H2Error.ProtocolError);
    }
    stream.isWhole = true;
    this.#dispatchBody(stream);
  }

  #onData(flags: number, id: number, bytes: Uint8Array, start: number, end: number): void {
    if (id === 0 || id > this.#lastStreamId) return this.#fail(H2Error.ProtocolError);
    const size = end - start;
    if (!this.#received.take(size)) return this.#fail(H2Error.FlowControlError);
    const dataEnd = withoutPadding(flags, bytes, start, end);
    if (dataEnd < 0) return this.#fail(H2Error.ProtocolError);
    const from = start + ((flags & Flag.Padded) !== 0 ? 1 : 0);
    const endsStream = (flags & Flag.EndStream) !== 0;
    const stream = this.#streams.get(id);
    if (stream === undefined || stream.state !== StreamState.Receiving) {
      // Of a stream that was answered before its end, or reset: what is under way is let pass.
      this.#giveBack(size);
      if (stream !== undefined) this.#discard(stream, size, endsStream);
      return this.#countIdleFrame();
    }
    stream.receivedBytes += size;
    if (stream.receivedBytes > STREAM_WINDOW_BYTES) {
      this.#giveBack(size);
      return this.#refuse(id, H2Error.FlowControlError);
    }
    stream.isWhole = endsStream;
    const length = dataEnd - from;
    if (length === 0 && !endsStream) this.#countIdleFrame();
    if (stream.bodyBytes + length > BODY_BYTES_MAX) {
      this.#giveBack(size);
      return this.#answerEarly(stream, TOO_LARGE);
    }
    if (endsStream && !stream.fits(stream.bodyBytes + length)) {
      this.#giveBack(size);
      return this.#refuse(id, H2Error.ProtocolError);
    }
    if (endsStream && stream.bodyBytes === 0) {
      this.#giveBack(size);
      this.#dispatch(stream, bytes, from, dataEnd);
      return;
    }
    // The client gets room back for padding at once, for the body when it is done with.
    this.#giveBack(size - length);
    stream.addBody(bytes, from, dataEnd);
    if (endsStream) this.#dispatchBody(stream);
  }

  /** Reads over the body of a request that is answered, as far as the client's window goes. */
  #discard(stream: Stream, size: number, endsStream: boolean): void {
    stream.receivedBytes += size;
    stream.isWhole = stream.isWhole || endsStream;
    if (stream.state !== StreamState.Discarding) return;
    if (stream.isWhole) this.#forget(stream);
    else if (stream.receivedBytes >= STREAM_WINDOW_BYTES) {
      this.#resetStream(stream.id, H2Error.NoError);
    }
  }

  #dispatchBody(stream: Stream): void {
    const { body, bodyBytes } = stream;
    stream.body = NO_BYTES;
    stream.bodyBytes = 0;
    this.#giveBack(bodyBytes);
    this.#dispatch(stream, body, 0, bodyBytes);
  }

  #dispatch(stream: Stream, body: Uint8Array, start: number, end: number): void {
    this.#lastRequestMs = this.#nowMs;
    stream.state = StreamState.Waiting;
    stream.sinceMs = this.#nowMs;
    this.#waiting++;
    // One that is answered during the call need not be found again.
    this.#handler.onRequest(stream, body, start, end);
    if (stream.state === StreamState.Waiting && !this.#closed) this.#streams.set(stream.id, stream);
  }

  /** Answers a request that is too large; what of it is still to come is not wanted. */
  #answerEarly(stream: Stream, failure: HttpFailure): void {
    this.#handler.onRejected();
    this.#giveBack(stream.bodyBytes);
    stream.release();
    stream.state = StreamState.Waiting;
    this.#waiting++;
    failure.answer(stream);
    this.#countIdleFrame();
  }

  #onReset(id: number, length: number): void {
    if (length !== 4) return this.#fail(H2Error.FrameSizeError);
    if (id === 0 || id > this.#lastStreamId) return this.#fail(H2Error.ProtocolError);
    const stream = this.#streams.get(id);
    if (stream !== undefined) this.#abandon(stream);
    this.#countIdleFrame();
  }

  /** The client has no use for a stream any more. */
  #abandon(stream: Stream): void {
    if (stream.state === StreamState.Waiting) {
      // It stays among those that wait: resetting is no way to have more than `requestsMax`.
      stream.state = StreamState.Abandoned;
      this.#streams.delete(stream.id);
      return;
    }
    this.#giveBack(stream.bodyBytes);
    this.#forget(stream);
  }

  #onWindowUpdate(id: number, bytes: Uint8Array, start: number, end: number): void {
    if (end - start !== 4) return this.#fail(H2Error.FrameSizeError);
    this.#countIdleFrame();
    const increment = getU32(bytes, start) & 0x7fffffff;
    if (id === 0) {
      if (increment === 0) return this.#fail(H2Error.ProtocolError);
      this.#writer.window += increment;
      if (this.#writer.window > WINDOW_BYTES_MAX) return this.#fail(H2Error.FlowControlError);
      for (const stream of this.#streams.values()) this.#pump(stream);
      return;
    }
    if (id > this.#lastStreamId) return this.#fail(H2Error.ProtocolError);
    if (increment === 0) return this.#refuse(id, H2Error.ProtocolError);
    const stream = this.#streams.get(id);
    if (stream === undefined) return;
    stream.window += increment;
    if (stream.window > WINDOW_BYTES_MAX) return this.#refuse(id, H2Error.FlowControlError);
    this.#pump(stream);
  }

  #onSettings(flags: number, id: number, bytes: Uint8Array, start: number, end: number): void {
    const size = end - start;
    if (id !== 0) return this.#fail(H2Error.ProtocolError);
    if ((flags & Flag.Ack) !== 0) {
      if (size !== 0) return this.#fail(H2Error.FrameSizeError);
      return this.#countIdleFrame();
    }
    if (size % 6 !== 0) return this.#fail(H2Error.FrameSizeError);
    for (let at = start; at < end; at += 6) {
      const [setting, value] = [getU16(bytes, at), getU32(bytes, at + 2) >>> 0];
      let failure: H2Error = settingFailure(setting, value);
      if (failure === H2Error.NoError && setting === Setting.InitialWindowSize) {
        failure = this.#setStreamWindow(value);
      }
      if (failure !== H2Error.NoError) return this.#fail(failure);
    }
    this.#settingsRead = true;
    this.#writer.settingsAck();
    for (const stream of this.#streams.values()) this.#pump(stream);
    this.#countIdleFrame();
  }

  /** Streams that are open have as much more or less as new ones will (RFC 9113 §6.9.2). */
  #setStreamWindow(value: number): H2Error {
    const change = value - this.#streamWindow;
    this.#streamWindow = value;
    for (const stream of this.#streams.values()) {
      stream.window += change;
      if (stream.window > WINDOW_BYTES_MAX) return H2Error.FlowControlError;
    }
    return H2Error.NoError;
  }

  #onPing(flags: number, id: number, bytes: Uint8Array, start: number, end: number): void {
    if (id !== 0) return this.#fail(H2Error.ProtocolError);
    if (end - start !== 8) return this.#fail(H2Error.FrameSizeError);
    this.#countIdleFrame();
    if ((flags & Flag.Ack) === 0 && !this.#closed) this.#writer.pong(bytes, start);
  }

  /** A frame that asks nothing. */
  #countIdleFrame(): void {
    if (--this.#idleFrames < 0) this.#fail(H2Error.EnhanceYourCalm);
  }

  /** A request that breaks the rules: its stream ends, and only that. */
  #refuse(id: number, error: H2Error): void {
    this.#handler.onRejected();
    this.#resetStream(id, error);
  }

  #resetStream(id: number, error: H2Error): void {
    const stream = this.#streams.get(id);
    if (stream !== undefined) this.#abandon(stream);
    if (!this.#closed) this.#writer.reset(id, error);
    this.#countIdleFrame();
  }

  #take(id: number): Stream {
    const stream = this.#free.pop() ?? new Stream(this);
    stream.reset(id, this.#streamWindow);
    return stream;
  }

  /** A stream is done with and not to be found any more. */
  #forget(stream: Stream): void {
    this.#streams.delete(stream.id);
    this.#unsentBytes -= stream.pending.length;
    // One whose answer is awaited is recycled when that comes.
    if (stream.state === StreamState.Waiting && this.#closed) stream.state = StreamState.Abandoned;
    else this.#recycle(stream);
  }

  #recycle(stream: Stream): void {
    stream.state = StreamState.Closed;
    stream.release();
    if (this.#free.length < FREE_STREAMS_MAX && !this.#closed) this.#free.push(stream);
  }

  /** Room of the connection's window that is free again. */
  #giveBack(length: number): void {
    const increment = this.#received.giveBack(length);
    if (increment > 0 && !this.#closed) this.#writer.windowUpdate(increment);
  }

  #endIfDone(): void {
    if (this.#closed || this.#waiting > 0) return;
    const isDone = this.#draining && this.#streams.size === 0;
    if (isDone || this.#peerEnded) this.#close(H2Error.NoError);
  }

  /** Ends the connection for what the client did. */
  #fail(error: H2Error): void {
    if (this.#closed) return;
    this.#handler.onRejected();
    this.#close(error);
  }

  #close(error: H2Error): void {
    // Draining has said so already.
    if (!this.#draining || error !== H2Error.NoError) {
      this.#writer.goaway(this.#lastStreamId, error);
    }
    this.#writer.flush();
    this.onClose();
    this.#socket.end();
  }
}
