import { getU16, getU32 } from "../../../bytes/mod.ts";
import { invariant } from "../../../errors.ts";
import {
  BODY_BYTES_MAX,
  dateField,
  type HttpClient,
  type HttpConnection,
  type HttpFailure,
  type HttpHandler,
  type HttpLimits,
  type HttpSocket,
  Method,
  type ResponseHead,
} from "../http.ts";
import { InputBuffer } from "../input_buffer.ts";
import type { ByteSink, Outbox } from "../outbox.ts";
import {
  Flag,
  frameFailure,
  FrameType,
  H2Error,
  PAYLOAD_BYTES_MAX,
  Setting,
  SETTING_BYTES,
  settingsFrame,
  WINDOW_BYTES_DEFAULT,
  WINDOW_BYTES_MAX,
  withoutPadding,
} from "./frames.ts";
import { FrameReader, Read } from "./frame_reader.ts";
import { BLOCK_BYTES_MAX, Hpack, HpackDecoder } from "./hpack.ts";
import { HeaderBlock } from "./header_block.ts";
import { IdleFrames } from "./idle_frames.ts";
import { OpenStreams } from "./open_streams.ts";
import { CONNECTION_WINDOW_BYTES, ReceiveWindow } from "./receive_window.ts";
import { FrameWriter } from "./writer.ts";
import {
  HEADER_LIST_BYTES_MAX,
  HEADERS_TOO_LARGE,
  RequestReader,
  type Stream,
  type StreamOwner,
  StreamState,
  TOO_LARGE,
} from "./request.ts";

/** Bytes a stream takes in all: the largest body, and padding beside it. */
const STREAM_WINDOW_BYTES = BODY_BYTES_MAX + PAYLOAD_BYTES_MAX;
/** Bytes of answers that a client leaves without a window; then it is cut off. */
const UNSENT_BYTES_MAX = 1024 * 1024;
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
  readonly #streams = new OpenStreams(this);
  #lastStreamId = 0;
  /** Requests that the handler has; those of abandoned streams too. */
  #waiting = 0;
  readonly #frames = new FrameReader(true);
  #settingsRead = false;
  readonly #block = new HeaderBlock();
  readonly #received = new ReceiveWindow();
  readonly #idleFrames = new IdleFrames();
  #lastRequestMs: number;
  /** Since when a frame or header block is not whole; 0 while all are. */
  #partialSinceMs = 0;
  #nowMs: number;
  #draining = false;
  #clientEnded = false;
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

  get from(): HttpClient {
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
    return this.#streams.unsentBytes;
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
    this.#clientEnded = true;
    this.#endIfDone();
  }

  onClose(): void {
    this.#closed = true;
    this.#input.clear();
    this.#block.take();
    this.#streams.close();
  }

  tick(nowMs: number): void {
    if (this.#closed) return;
    this.#nowMs = nowMs;
    this.#idleFrames.renew();
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
    this.#idleFrames.earn();
    if (this.#closed || isAbandoned) this.#streams.recycle(stream);
    else {
      const sent = this.#writer.answer(stream, head, maxAge, bytes, offset, length);
      if (sent === length || stream.method === Method.Head) this.#answered(stream);
      else this.#keep(stream, bytes.slice(offset + sent, offset + length));
    }
    this.#endIfDone();
  }

  /** Keeps the rest of an answer until the client has a window for it. */
  #keep(stream: Stream, rest: Uint8Array): void {
    stream.sinceMs = this.#nowMs;
    this.#streams.keep(stream, rest);
    if (this.#streams.unsentBytes > UNSENT_BYTES_MAX) this.#fail(H2Error.EnhanceYourCalm);
  }

  /** Sends on what waited for a window. */
  #pump(stream: Stream): void {
    if (stream.state === StreamState.Sending && this.#writer.pump(stream)) this.#answered(stream);
  }

  /** The whole answer is written. */
  #answered(stream: Stream): void {
    if (stream.isWhole) return this.#streams.forget(stream);
    // A reset would say so at once (RFC 9113 §8.1), but some clients take it for a failure.
    this.#streams.discard(stream);
  }

  /** Reads the preface or one frame; returns false when it is not whole or nothing is left. */
  #readNext(): boolean {
    const [frames, input] = [this.#frames, this.#input];
    const outcome = frames.read(input);
    if (outcome === Read.Failed) this.#fail(frames.failure);
    if (outcome !== Read.Frame) return outcome === Read.Preface;
    const { type, flags, streamId, start, end } = frames;
    this.#onFrame(type, flags, streamId, input.bytes, start, end);
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
    const failure = frameFailure(type, flags, streamId, end - start);
    if (failure !== H2Error.NoError) return this.#fail(failure);
    switch (type) {
      case FrameType.Headers:
        return this.#onHeaders(flags, streamId, bytes, start, end);
      case FrameType.Data:
        return this.#onData(flags, streamId, bytes, start, end);
      case FrameType.WindowUpdate:
        return this.#onWindowUpdate(streamId, getU32(bytes, start) & 0x7fffffff);
      case FrameType.Continuation:
        return this.#onContinuation(flags, streamId, bytes, start, end);
      case FrameType.RstStream:
        return this.#onReset(streamId);
      case FrameType.Settings:
        return this.#onSettings(flags, bytes, start, end);
      case FrameType.Ping:
        return this.#onPing(flags, bytes, start);
      case FrameType.Priority:
        if (end - start !== 5) return this.#resetStream(streamId, H2Error.FrameSizeError);
        return this.#countIdleFrame();
      default:
        // GOAWAY, and unknown ones, which are to be ignored (RFC 9113 §4.1).
        return this.#countIdleFrame();
    }
  }

  #onHeaders(flags: number, id: number, bytes: Uint8Array, start: number, end: number): void {
    if ((id & 1) === 0) return this.#fail(H2Error.ProtocolError);
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
    const stream = mayOpen ? this.#streams.take(id) : null;
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
      this.#streams.recycle(stream);
      return this.#refuse(id, H2Error.ProtocolError);
    }
    stream.sinceMs = this.#nowMs;
    if (!endsStream) this.#streams.add(stream);
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
    if (id > this.#lastStreamId) return this.#fail(H2Error.ProtocolError);
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
    if (stream.isWhole) this.#streams.forget(stream);
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
    if (stream.state === StreamState.Waiting && !this.#closed) this.#streams.add(stream);
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

  #onReset(id: number): void {
    if (id > this.#lastStreamId) return this.#fail(H2Error.ProtocolError);
    const stream = this.#streams.get(id);
    if (stream !== undefined) this.#abandon(stream);
    this.#countIdleFrame();
  }

  /** The client has no use for a stream any more. */
  #abandon(stream: Stream): void {
    if (stream.state === StreamState.Waiting) return this.#streams.abandon(stream);
    this.#giveBack(stream.bodyBytes);
    this.#streams.forget(stream);
  }

  #onWindowUpdate(id: number, increment: number): void {
    this.#countIdleFrame();
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

  #onSettings(flags: number, bytes: Uint8Array, start: number, end: number): void {
    if ((flags & Flag.Ack) !== 0) return this.#countIdleFrame();
    for (let at = start; at < end; at += SETTING_BYTES) {
      const [setting, value] = [getU16(bytes, at), getU32(bytes, at + 2) >>> 0];
      const failure = this.#streams.set(setting, value);
      if (failure !== H2Error.NoError) return this.#fail(failure);
    }
    this.#settingsRead = true;
    this.#writer.settingsAck();
    for (const stream of this.#streams.values()) this.#pump(stream);
    this.#countIdleFrame();
  }

  #onPing(flags: number, bytes: Uint8Array, start: number): void {
    this.#countIdleFrame();
    if ((flags & Flag.Ack) === 0 && !this.#closed) this.#writer.pong(bytes, start);
  }

  /** A frame that asks nothing. */
  #countIdleFrame(): void {
    if (!this.#idleFrames.take()) this.#fail(H2Error.EnhanceYourCalm);
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

  /** Room of the connection's window that is free again. */
  #giveBack(length: number): void {
    const increment = this.#received.giveBack(length);
    if (increment > 0 && !this.#closed) this.#writer.windowUpdate(increment);
  }

  #endIfDone(): void {
    if (this.#closed || this.#waiting > 0) return;
    const isDone = this.#draining && this.#streams.size === 0;
    if (isDone || this.#clientEnded) this.#close(H2Error.NoError);
  }

  /** Ends the connection for what the client did. */
  #fail(error: H2Error): void {
    if (this.#closed) return;
    this.#handler.onRejected();
    this.#close(error);
  }

  #close(error: H2Error): void {
    const isSaid = this.#draining && error === H2Error.NoError; // By `drain`.
    if (!isSaid) this.#writer.goaway(this.#lastStreamId, error);
    this.#writer.flush();
    this.onClose();
    this.#socket.end();
  }
}
