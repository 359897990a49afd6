import { BLOCK_BYTES_MAX } from "./hpack.ts";

/** CONTINUATION frames of one header block; ours would need none. */
const CONTINUATIONS_MAX = 8;
const NO_BYTES = new Uint8Array(0);

/** A header block that comes in several frames, which nothing else may come between. */
export class HeaderBlock {
  bytes: Uint8Array = NO_BYTES;
  /** 0 while no block is under way. */
  streamId = 0;
  endsStream = false;
  #continuations = 0;

  /** A HEADERS frame without END_HEADERS. */
  begin(streamId: number, endsStream: boolean, fragment: Uint8Array): void {
    this.streamId = streamId;
    this.endsStream = endsStream;
    this.bytes = fragment.slice();
    this.#continuations = 0;
  }

  /** A CONTINUATION frame; returns false when that makes it too long. */
  add(fragment: Uint8Array): boolean {
    const length = this.bytes.length + fragment.length;
    if (length > BLOCK_BYTES_MAX || ++this.#continuations > CONTINUATIONS_MAX) return false;
    const joined = new Uint8Array(length);
    joined.set(this.bytes);
    joined.set(fragment, this.bytes.length);
    this.bytes = joined;
    return true;
  }

  /** Ends the block and hands it out. */
  take(): Uint8Array {
    const { bytes } = this;
    this.bytes = NO_BYTES;
    this.streamId = 0;
    return bytes;
  }
}
