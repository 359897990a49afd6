import { getU16, getU32 } from "../../../bytes/mod.ts";
import type { InputBuffer } from "../input_buffer.ts";
import {
  FRAME_HEADER_BYTES,
  H2Error,
  PAYLOAD_BYTES_MAX,
  PREFACE,
  startsPreface,
} from "./frames.ts";

/** What reading came to: neither is whole yet, or one was read over, or it is neither. */
export const Read = { Partial: 0, Preface: 1, Frame: 2, Failed: 3 } as const;
export type Read = typeof Read[keyof typeof Read];

/**
 * Reads one frame after the other, behind a client's preface; the fields are those of the last
 * frame.
 */
export class FrameReader {
  type = 0;
  flags = 0;
  streamId = 0;
  /** The payload, in the bytes of the input. */
  start = 0;
  end = 0;
  /** What is wrong, where it is neither. */
  failure: H2Error = H2Error.NoError;
  #isBegun: boolean;

  /** `hasPreface`: what is read is a client's. */
  constructor(hasPreface: boolean) {
    this.#isBegun = !hasPreface;
  }

  /** Reads one from the front of `input`, as soon as it is whole. */
  read(input: InputBuffer): Read {
    const { bytes, start } = input;
    if (!this.#isBegun) {
      if (!startsPreface(bytes, start, input.end)) return this.#fail(H2Error.ProtocolError);
      if (input.length < PREFACE.length) return Read.Partial;
      input.start += PREFACE.length;
      this.#isBegun = true;
      return Read.Preface;
    }
    if (input.length < FRAME_HEADER_BYTES) return Read.Partial;
    const length = (bytes[start] << 16) | getU16(bytes, start + 1);
    if (length > PAYLOAD_BYTES_MAX) return this.#fail(H2Error.FrameSizeError);
    if (input.length < FRAME_HEADER_BYTES + length) return Read.Partial;
    this.type = bytes[start + 3];
    this.flags = bytes[start + 4];
    this.streamId = getU32(bytes, start + 5) & 0x7fffffff;
    this.start = start + FRAME_HEADER_BYTES;
    this.end = input.start = this.start + length;
    return Read.Frame;
  }

  #fail(failure: H2Error): Read {
    this.failure = failure;
    return Read.Failed;
  }
}
