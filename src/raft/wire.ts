import { invariant } from "../errors.ts";

/** Bytes that are no message of ours; whoever decodes counts them. */
export class WireError extends Error {
  override readonly name = "WireError";
}

const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Room that a writer begins with. */
const ROOM_BYTES = 256;
/** Highest integer of a count or an index: 48 bits, as `TERM_MAX` and `INDEX_MAX`. */
const INTEGER_MAX = 2 ** 48;

/** Writes integers, texts and byte arrays one after another; big-endian. */
export class WireWriter {
  #bytes = new Uint8Array(ROOM_BYTES);
  #view = new DataView(this.#bytes.buffer);
  #length = 0;

  #room(length: number): number {
    const at = this.#length;
    this.#length += length;
    if (this.#length > this.#bytes.length) {
      const bytes = new Uint8Array(Math.max(2 * this.#bytes.length, this.#length));
      bytes.set(this.#bytes);
      this.#bytes = bytes;
      this.#view = new DataView(bytes.buffer);
    }
    return at;
  }

  u8(value: number): void {
    const at = this.#room(1);
    this.#bytes[at] = value;
  }

  u32(value: number): void {
    const at = this.#room(4);
    this.#view.setUint32(at, value);
  }

  /** An integer from 0 to 2^48. */
  integer(value: number): void {
    invariant(Number.isInteger(value) && value >= 0 && value <= INTEGER_MAX, "an integer fits");
    this.u32(Math.floor(value / 2 ** 32));
    this.u32(value % 2 ** 32);
  }

  flag(value: boolean): void {
    this.u8(Number(value));
  }

  bytes(value: Uint8Array): void {
    this.u32(value.length);
    this.rest(value);
  }

  /** Without its length: the last of a message. */
  rest(value: Uint8Array): void {
    const at = this.#room(value.length);
    this.#bytes.set(value, at);
  }

  text(value: string): void {
    this.bytes(encoder.encode(value));
  }

  list<T>(items: readonly T[], write: (item: T) => void): void {
    this.u32(items.length);
    for (const item of items) write(item);
  }

  /** What was written; the writer is not used any more. */
  finish(): Uint8Array {
    return this.#bytes.subarray(0, this.#length);
  }
}

/** Reads what a `WireWriter` wrote; every length is bounded by the caller. */
export class WireReader {
  readonly #bytes: Uint8Array;
  readonly #view: DataView;
  #at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  #take(length: number): number {
    const at = this.#at;
    if (length > this.#bytes.length - at) throw new WireError("it ends too early");
    this.#at = at + length;
    return at;
  }

  u8(): number {
    return this.#bytes[this.#take(1)];
  }

  u32(): number {
    return this.#view.getUint32(this.#take(4));
  }

  integer(): number {
    const value = this.u32() * 2 ** 32 + this.u32();
    if (value > INTEGER_MAX) throw new WireError("an integer is too large");
    return value;
  }

  flag(): boolean {
    const value = this.u8();
    if (value > 1) throw new WireError("a flag is neither 0 nor 1");
    return value === 1;
  }

  /** A copy, so that what is kept of a frame does not keep the frame. */
  bytes(lengthMax: number): Uint8Array {
    const length = this.u32();
    if (length > lengthMax) throw new WireError(`${length} bytes are too many`);
    const at = this.#take(length);
    return this.#bytes.slice(at, at + length);
  }

  rest(lengthMax: number): Uint8Array {
    const length = this.#bytes.length - this.#at;
    if (length > lengthMax) throw new WireError(`${length} bytes are too many`);
    const at = this.#take(length);
    return this.#bytes.slice(at);
  }

  text(bytesMax: number): string {
    try {
      return decoder.decode(this.bytes(bytesMax));
    } catch (cause) {
      if (cause instanceof WireError) throw cause;
      throw new WireError("a text is no UTF-8", { cause });
    }
  }

  list<T>(countMax: number, read: () => T): T[] {
    const count = this.u32();
    if (count > countMax) throw new WireError(`${count} items are too many`);
    const items: T[] = [];
    for (let i = 0; i < count; i++) items.push(read());
    return items;
  }

  /** @throws {WireError} Unless all was read. */
  end(): void {
    if (this.#at !== this.#bytes.length) throw new WireError("it has more than it should");
  }
}
