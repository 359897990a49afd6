import { setU32 } from "../../../bytes/mod.ts";
import { FIELDS_BYTES_MAX, Method, put, type ResponseHead, writeFields2 } from "../http.ts";
import type { ByteSink, Outbox } from "../outbox.ts";
import {
  Flag,
  FRAME_HEADER_BYTES,
  FrameType,
  type H2Error,
  PAYLOAD_BYTES_MAX,
  WINDOW_BYTES_DEFAULT,
  writeFrameHeader,
} from "./frames.ts";
import { TABLE_SIZE_ZERO } from "./hpack_writer.ts";
import type { Stream } from "./request.ts";

/** Shorter bodies are copied faster by hand. */
const SET_BYTES_MIN = 256;

/** What one connection sends, within the client's windows. */
export class FrameWriter {
  /** Bytes the client takes on the connection. */
  window = WINDOW_BYTES_DEFAULT;
  #blockWritten = false;

  constructor(private readonly out: Outbox, private readonly owner: ByteSink) {}

  /**
   * HEADERS and as much DATA as the windows allow, in one piece. Returns how much of the body that
   * was; `bodyBytes` is its length, which is 0 in an answer to HEAD.
   */
  answer(
    stream: Stream,
    head: ResponseHead,
    maxAge: number,
    bytes: Uint8Array,
    offset: number,
    length: number,
  ): number {
    const { out } = this;
    const target = out.bytes;
    const bodyBytes = stream.method === Method.Head ? 0 : length;
    const now = Math.max(0, Math.min(bodyBytes, this.window, stream.window));
    const frames = 1 + Math.ceil(now / PAYLOAD_BYTES_MAX);
    const headRoom = head.http2.length + FIELDS_BYTES_MAX;
    const start = out.room(this.owner, frames * FRAME_HEADER_BYTES + headRoom + now);
    let at = start + FRAME_HEADER_BYTES;
    if (!this.#blockWritten) target[at++] = TABLE_SIZE_ZERO;
    this.#blockWritten = true;
    at = writeFields2(target, at, head, maxAge, length);
    const flags = Flag.EndHeaders | (bodyBytes === 0 ? Flag.EndStream : 0);
    const blockBytes = at - start - FRAME_HEADER_BYTES;
    writeFrameHeader(target, start, blockBytes, FrameType.Headers, flags, stream.id);
    out.wrote(this.#writeData(at, stream, bytes, offset, now, now === bodyBytes));
    return now;
  }

  /** Sends on what of `stream.pending` the windows allow; returns true once that is all. */
  pump(stream: Stream): boolean {
    const left = stream.pending.length - stream.pendingAt;
    const now = Math.min(left, this.window, stream.window);
    if (now <= 0) return false;
    const frames = Math.ceil(now / PAYLOAD_BYTES_MAX);
    const at = this.out.room(this.owner, frames * FRAME_HEADER_BYTES + now);
    const end = this.#writeData(at, stream, stream.pending, stream.pendingAt, now, now === left);
    this.out.wrote(end);
    stream.pendingAt += now;
    return now === left;
  }

  frame(bytes: Uint8Array): void {
    const at = this.out.room(this.owner, bytes.length);
    this.out.wrote(put(this.out.bytes, at, bytes));
  }

  settingsAck(): void {
    const at = this.out.room(this.owner, FRAME_HEADER_BYTES);
    this.out.wrote(writeFrameHeader(this.out.bytes, at, 0, FrameType.Settings, Flag.Ack, 0));
  }

  /** The 8 bytes of a PING go back. */
  pong(bytes: Uint8Array, start: number): void {
    const at = this.#begin(8, FrameType.Ping, Flag.Ack, 0);
    for (let i = 0; i < 8; i++) this.out.bytes[at + i] = bytes[start + i];
    this.out.wrote(at + 8);
  }

  windowUpdate(increment: number): void {
    const at = this.#begin(4, FrameType.WindowUpdate, 0, 0);
    setU32(this.out.bytes, at, increment);
    this.out.wrote(at + 4);
  }

  reset(id: number, error: H2Error): void {
    const at = this.#begin(4, FrameType.RstStream, 0, id);
    setU32(this.out.bytes, at, error);
    this.out.wrote(at + 4);
  }

  goaway(lastStreamId: number, error: H2Error): void {
    const at = this.#begin(8, FrameType.Goaway, 0, 0);
    setU32(this.out.bytes, at, lastStreamId);
    setU32(this.out.bytes, at + 4, error);
    this.out.wrote(at + 8);
  }

  flush(): void {
    this.out.flush();
  }

  #begin(length: number, type: number, flags: number, id: number): number {
    const at = this.out.room(this.owner, FRAME_HEADER_BYTES + length);
    return writeFrameHeader(this.out.bytes, at, length, type, flags, id);
  }

  /** Writes DATA frames where there is room; returns where they end. */
  #writeData(
    at: number,
    stream: Stream,
    bytes: Uint8Array,
    offset: number,
    length: number,
    isLast: boolean,
  ): number {
    const target = this.out.bytes;
    this.window -= length;
    stream.window -= length;
    for (let sent = 0; sent < length;) {
      const part = Math.min(length - sent, PAYLOAD_BYTES_MAX);
      const flags = isLast && sent + part === length ? Flag.EndStream : 0;
      at = writeFrameHeader(target, at, part, FrameType.Data, flags, stream.id);
      const from = offset + sent;
      if (part >= SET_BYTES_MIN) target.set(bytes.subarray(from, from + part), at);
      else for (let i = 0; i < part; i++) target[at + i] = bytes[from + i];
      at += part;
      sent += part;
    }
    return at;
  }
}
