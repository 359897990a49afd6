/** The client's side of an HTTP/2 connection, for requests with a short body. RFC 9113, 7541. */
import { getU16, getU32, setU32 } from "../../bytes/mod.ts";
import {
  Flag,
  FRAME_HEADER_BYTES,
  frameFailure,
  FrameType,
  H2Error,
  PAYLOAD_BYTES_MAX,
  PREFACE,
  Setting,
  SETTING_BYTES,
  settingFailure,
  settingsFrame,
  WINDOW_BYTES_DEFAULT,
  WINDOW_BYTES_MAX,
  withoutPadding,
  writeFrameHeader,
} from "../listen/http2/frames.ts";
import { FrameReader, Read } from "../listen/http2/frame_reader.ts";
import { HeaderBlock } from "../listen/http2/header_block.ts";
import { BLOCK_BYTES_MAX, Hpack, HpackDecoder } from "../listen/http2/hpack.ts";
import { TABLE_SIZE_ZERO } from "../listen/http2/hpack_writer.ts";
import { IdleFrames } from "../listen/http2/idle_frames.ts";
import { CONNECTION_WINDOW_BYTES, ReceiveWindow } from "../listen/http2/receive_window.ts";
import { InputBuffer } from "../listen/input_buffer.ts";
import { ResponseHeadReader } from "./response_head.ts";

/** Streams at a time until the server has said how many: what it is to take at least (§6.5.2). */
const STREAMS_ASSUMED = 100;
const STREAM_ID_MAX = 2 ** 31 - 1;
/** What a server may send on a stream: more than is taken, so that too much is seen as such. */
const STREAM_WINDOW_BYTES = 128 * 1024;
const NO_BYTES = new Uint8Array(0);

/** A request on its way, and what has come of its response. */
export class Http2Stream<Owner> {
  /** Bytes that the server takes on it. */
  window = 0;
  /** What of the body did not fit the windows. */
  unsent: Uint8Array = NO_BYTES;
  /** 0 before the head has come. */
  status = 0;
  contentType = "";
  /** -1: the head did not say. */
  contentLength = -1;
  bodyBytes = 0;
  #body: Uint8Array = NO_BYTES;

  constructor(readonly owner: Owner, readonly id: number) {}

  /** The body as far as it has come. */
  get body(): Uint8Array {
    return this.#body.subarray(0, this.bodyBytes);
  }

  add(chunk: Uint8Array): void {
    const length = this.bodyBytes + chunk.length;
    if (length > this.#body.length) {
      const grown = new Uint8Array(Math.max(length, 2 * this.#body.length));
      grown.set(this.body);
      this.#body = grown;
    }
    this.#body.set(chunk, this.bodyBytes);
    this.bodyBytes = length;
  }
}

/** What becomes of requests. A stream is forgotten before any of these is told of it. */
export interface Http2Events<Owner> {
  /** Sends bytes, which are the taker's. */
  write(bytes: Uint8Array): void;
  /** Something of a response has come. */
  onHeard(): void;
  /** The whole response. */
  onResponse(stream: Http2Stream<Owner>): void;
  /** The body is longer than may be. */
  onOverlong(stream: Http2Stream<Owner>): void;
  /** There will be no response on this connection. */
  onBroken(stream: Http2Stream<Owner>): void;
  /** The server takes no further streams (§6.8). */
  onLeaving(): void;
  /** The server does not keep to the protocol: the connection is of no more use. */
  onFailed(): void;
}

/** One connection: bytes come in by `receive` and go out by `Http2Events.write`. */
export class Http2Client<Owner> {
  readonly #events: Http2Events<Owner>;
  readonly #bodyBytesMax: number;
  readonly #input = new InputBuffer();
  readonly #frames = new FrameReader(false);
  readonly #block = new HeaderBlock();
  readonly #decoder = new HpackDecoder();
  readonly #head = new ResponseHeadReader();
  readonly #idleFrames = new IdleFrames();
  readonly #received = new ReceiveWindow();
  readonly #streams = new Map<number, Http2Stream<Owner>>();
  #nextId = 1;
  #streamsMax = STREAMS_ASSUMED;
  /** Bytes that the server takes on the connection, and on a new stream. */
  #window = WINDOW_BYTES_DEFAULT;
  #streamWindow = WINDOW_BYTES_DEFAULT;
  /** The server's settings have come, which are the first it says (§3.4). */
  #isGreeted = false;
  #isLeaving = false;
  #isClosed = false;

  constructor(bodyBytesMax: number, events: Http2Events<Owner>) {
    this.#bodyBytesMax = bodyBytesMax;
    this.#events = events;
    events.write(PREFACE);
    events.write(settingsFrame([
      [Setting.EnablePush, 0],
      [Setting.InitialWindowSize, STREAM_WINDOW_BYTES],
    ]));
    this.#writeWindowUpdate(CONNECTION_WINDOW_BYTES - WINDOW_BYTES_DEFAULT);
  }

  /** Streams that may be opened beside those there are. */
  get room(): number {
    return this.#isLeaving || this.#isClosed
      ? 0
      : Math.max(0, this.#streamsMax - this.#streams.size);
  }

  /** Sends a request; `head` is its header block, within one frame. */
  request(owner: Owner, head: Uint8Array, body: Uint8Array): Http2Stream<Owner> {
    const isFirst = this.#nextId === 1;
    const stream = new Http2Stream(owner, this.#nextId);
    this.#nextId += 2;
    if (this.#nextId > STREAM_ID_MAX) this.#isLeaving = true;
    this.#streams.set(stream.id, stream);
    const length = head.length + (isFirst ? 1 : 0);
    const frame = new Uint8Array(FRAME_HEADER_BYTES + length);
    let at = writeFrameHeader(frame, 0, length, FrameType.Headers, Flag.EndHeaders, stream.id);
    if (isFirst) frame[at++] = TABLE_SIZE_ZERO;
    frame.set(head, at);
    this.#events.write(frame);
    stream.window = this.#streamWindow;
    stream.unsent = body;
    this.#pump(stream);
    return stream;
  }

  /** Its response is not wanted any more. */
  cancel(stream: Http2Stream<Owner>): void {
    if (this.#streams.delete(stream.id)) this.#writeReset(stream.id, H2Error.Cancel);
  }

  /** Tells of nothing any more. */
  close(): void {
    this.#isClosed = true;
    this.#streams.clear();
    this.#input.clear();
  }

  /** A second has passed. */
  renew(): void {
    this.#idleFrames.renew();
  }

  /** Reads what came in; the chunk stays the caller's. */
  receive({ buffer, byteOffset, length }: Uint8Array): void {
    if (this.#isClosed) return;
    const input = this.#input;
    // A plain view: `slice` of Node's kind shares memory in place of copying it.
    input.push(new Uint8Array(buffer, byteOffset, length));
    for (;;) {
      const read = this.#frames.read(input);
      if (read === Read.Failed) this.#fail();
      else if (read === Read.Frame) this.#onFrame(input.bytes);
      if (this.#isClosed) return;
      if (read !== Read.Frame) break;
    }
    input.keep();
  }

  #onFrame(bytes: Uint8Array): void {
    const { type, flags, streamId: id, start, end } = this.#frames;
    if (frameFailure(type, flags, id, end - start) !== H2Error.NoError) return this.#fail();
    if (!this.#isGreeted && type !== FrameType.Settings) return this.#fail();
    const { streamId: open } = this.#block;
    // Nothing comes between the frames of a header block.
    if (
      (open !== 0 || type === FrameType.Continuation) &&
      (type !== FrameType.Continuation || id !== open)
    ) {
      return this.#fail();
    }
    switch (type) {
      case FrameType.Headers:
        return this.#onHeaders(flags, id, bytes, start, end);
      case FrameType.Continuation:
        return this.#onContinuation(flags, id, bytes, start, end);
      case FrameType.Data:
        return this.#onData(flags, id, bytes, start, end);
      case FrameType.RstStream:
        return this.#onReset(id);
      case FrameType.Settings:
        return this.#onSettings(flags, bytes, start, end);
      case FrameType.WindowUpdate:
        return this.#onWindowUpdate(id, getU32(bytes, start) & 0x7fffffff);
      case FrameType.Goaway:
        return this.#onGoaway(getU32(bytes, start) & 0x7fffffff);
      case FrameType.Ping:
        if (this.#mayIdle() && (flags & Flag.Ack) === 0) this.#pong(bytes.slice(start, end));
        return;
      default:
        this.#mayIdle(); // PRIORITY, and unknown ones, which are to be ignored (§4.1).
    }
  }

  #onHeaders(flags: number, id: number, bytes: Uint8Array, start: number, end: number): void {
    const blockEnd = withoutPadding(flags, bytes, start, end);
    let from = start + ((flags & Flag.Padded) !== 0 ? 1 : 0);
    if ((flags & Flag.Priority) !== 0) from += 5;
    if (blockEnd < from) return this.#fail();
    const endsStream = (flags & Flag.EndStream) !== 0;
    if ((flags & Flag.EndHeaders) !== 0) this.#onBlock(id, endsStream, bytes, from, blockEnd);
    else this.#block.begin(id, endsStream, bytes.subarray(from, blockEnd));
  }

  #onContinuation(flags: number, id: number, bytes: Uint8Array, start: number, end: number): void {
    if (!this.#block.add(bytes.subarray(start, end))) return this.#fail();
    if ((flags & Flag.EndHeaders) === 0) return;
    const block = this.#block.take();
    this.#onBlock(id, this.#block.endsStream, block, 0, block.length);
  }

  /** A whole header block: the head of a response, one before it, or its trailers. */
  #onBlock(id: number, endsStream: boolean, bytes: Uint8Array, start: number, end: number): void {
    if (!this.#wasOpened(id) || end - start > BLOCK_BYTES_MAX) return this.#fail();
    const head = this.#head;
    head.begin();
    // Nobody's is read too: the next block refers to its fields.
    if (this.#decoder.read(bytes, start, end, head) !== Hpack.Ok) return this.#fail();
    const stream = this.#streams.get(id);
    if (stream === undefined) return void this.#mayIdle();
    this.#events.onHeard();
    if (stream.status > 0) return endsStream ? this.#end(stream) : this.#reset(stream);
    if (head.isMalformed) return this.#reset(stream);
    if (head.status < 200) { // There is another to come (RFC 9110 §15.2).
      if (endsStream) this.#reset(stream);
      else this.#mayIdle();
      return;
    }
    stream.status = head.status;
    stream.contentType = head.contentType;
    stream.contentLength = head.contentLength;
    if (endsStream) this.#end(stream);
  }

  #onData(flags: number, id: number, bytes: Uint8Array, start: number, end: number): void {
    const size = end - start;
    if (!this.#wasOpened(id) || !this.#received.take(size)) return this.#fail();
    const dataEnd = withoutPadding(flags, bytes, start, end);
    if (dataEnd < 0) return this.#fail();
    const increment = this.#received.giveBack(size);
    if (increment > 0) this.#writeWindowUpdate(increment);
    const from = start + ((flags & Flag.Padded) !== 0 ? 1 : 0);
    const stream = this.#streams.get(id);
    const endsStream = (flags & Flag.EndStream) !== 0;
    if (stream === undefined || (dataEnd === from && !endsStream)) return void this.#mayIdle();
    this.#events.onHeard();
    if (stream.status === 0) return this.#reset(stream);
    stream.add(bytes.subarray(from, dataEnd));
    if (stream.bodyBytes > this.#bodyBytesMax) {
      this.cancel(stream);
      this.#events.onOverlong(stream);
    } else if (endsStream) {
      this.#end(stream);
    }
  }

  /** The server has said all it had to say on a stream. */
  #end(stream: Http2Stream<Owner>): void {
    const { contentLength, bodyBytes, unsent, id } = stream;
    if (contentLength >= 0 && contentLength !== bodyBytes) return this.#reset(stream);
    this.#streams.delete(id);
    this.#idleFrames.earn();
    if (unsent.length > 0) this.#writeReset(id, H2Error.NoError); // It did not want it all (§8.1).
    this.#events.onResponse(stream);
  }

  /** A response that makes no sense: its stream ends, and only that. */
  #reset(stream: Http2Stream<Owner>): void {
    this.cancel(stream);
    if (this.#mayIdle()) this.#events.onBroken(stream);
  }

  #onReset(id: number): void {
    if (!this.#wasOpened(id)) return this.#fail();
    if (!this.#mayIdle()) return;
    const stream = this.#streams.get(id);
    if (stream === undefined) return;
    this.#streams.delete(id);
    this.#events.onBroken(stream);
  }

  #onGoaway(lastId: number): void {
    if (!this.#mayIdle()) return;
    this.#isLeaving = true;
    for (const stream of [...this.#streams.values()]) {
      if (stream.id > lastId && this.#streams.delete(stream.id)) this.#events.onBroken(stream);
    }
    if (!this.#isClosed) this.#events.onLeaving();
  }

  #onSettings(flags: number, bytes: Uint8Array, start: number, end: number): void {
    if (!this.#mayIdle() || (flags & Flag.Ack) !== 0) return;
    for (let at = start; at < end; at += SETTING_BYTES) {
      const [setting, value] = [getU16(bytes, at), getU32(bytes, at + 2) >>> 0];
      if (settingFailure(setting, value) !== H2Error.NoError) return this.#fail();
      if (setting === Setting.MaxConcurrentStreams) this.#streamsMax = value;
      if (setting === Setting.InitialWindowSize && !this.#setStreamWindow(value)) {
        return this.#fail();
      }
    }
    this.#isGreeted = true;
    const ack = new Uint8Array(FRAME_HEADER_BYTES);
    writeFrameHeader(ack, 0, 0, FrameType.Settings, Flag.Ack, 0);
    this.#events.write(ack);
    this.#pumpAll();
  }

  /** Changes the windows of all streams, which may well be below zero then (§6.9.2). */
  #setStreamWindow(bytes: number): boolean {
    for (const stream of this.#streams.values()) {
      stream.window += bytes - this.#streamWindow;
      if (stream.window > WINDOW_BYTES_MAX) return false;
    }
    this.#streamWindow = bytes;
    return true;
  }

  #onWindowUpdate(id: number, increment: number): void {
    if (!this.#mayIdle()) return;
    if (id === 0) {
      this.#window += increment;
      if (increment === 0 || this.#window > WINDOW_BYTES_MAX) return this.#fail();
      return this.#pumpAll();
    }
    if (!this.#wasOpened(id)) return this.#fail();
    const stream = this.#streams.get(id);
    if (stream === undefined) return;
    stream.window += increment;
    if (increment === 0 || stream.window > WINDOW_BYTES_MAX) return this.#reset(stream);
    this.#pump(stream);
  }

  #pumpAll(): void {
    for (const stream of this.#streams.values()) this.#pump(stream);
  }

  /** Sends as much of a body as the windows allow. */
  #pump(stream: Http2Stream<Owner>): void {
    while (stream.unsent.length > 0) {
      const { unsent, id } = stream;
      const length = Math.min(unsent.length, this.#window, stream.window, PAYLOAD_BYTES_MAX);
      if (length <= 0) return;
      const frame = new Uint8Array(FRAME_HEADER_BYTES + length);
      const flags = length === unsent.length ? Flag.EndStream : 0;
      const at = writeFrameHeader(frame, 0, length, FrameType.Data, flags, id);
      frame.set(unsent.subarray(0, length), at);
      this.#window -= length;
      stream.window -= length;
      stream.unsent = unsent.subarray(length);
      this.#events.write(frame);
    }
  }

  /** Says whether a stream is, or was, one of ours. */
  #wasOpened(id: number): boolean {
    return (id & 1) === 1 && id < this.#nextId;
  }

  /** A frame that says nothing of a response; false: it was one too many. */
  #mayIdle(): boolean {
    if (this.#idleFrames.take()) return true;
    this.#fail();
    return false;
  }

  #fail(): void {
    this.#isClosed = true;
    this.#events.onFailed();
  }

  #pong(payload: Uint8Array): void {
    const frame = new Uint8Array(FRAME_HEADER_BYTES + payload.length);
    const at = writeFrameHeader(frame, 0, payload.length, FrameType.Ping, Flag.Ack, 0);
    frame.set(payload, at);
    this.#events.write(frame);
  }

  #writeWindowUpdate(increment: number): void {
    this.#writeNumber(FrameType.WindowUpdate, 0, increment);
  }

  #writeReset(id: number, error: H2Error): void {
    this.#writeNumber(FrameType.RstStream, id, error);
  }

  #writeNumber(type: number, id: number, value: number): void {
    const frame = new Uint8Array(FRAME_HEADER_BYTES + 4);
    setU32(frame, writeFrameHeader(frame, 0, 4, type, 0, id), value);
    this.#events.write(frame);
  }
}
