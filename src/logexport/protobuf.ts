/** As much of protobuf's wire format as a message of numbers, bytes and text takes. */

const WIRE = { Varint: 0, Bytes: 2, Fixed32: 5 } as const;
const LOW_BITS = 0x7f;
const MORE = 0x80;
const TWO_TO_7 = 128;

/** Writes the fields of one message, in whatever order they come. */
export class ProtobufWriter {
  #bytes: Uint8Array<ArrayBuffer>;
  #length = 0;

  constructor(bytesAtFirst = 256) {
    this.#bytes = new Uint8Array(bytesAtFirst);
  }

  /** What was written; good until the next field. */
  get bytes(): Uint8Array<ArrayBuffer> {
    return this.#bytes.subarray(0, this.#length);
  }

  /** A whole number from 0 to 2^53 - 1: `uint64`, `uint32`, `enum` and `bool`. */
  integer(field: number, value: number): void {
    this.#tag(field, WIRE.Varint);
    this.#varint(value);
  }

  /** A number of 32 bits. */
  fixed32(field: number, value: number): void {
    this.#tag(field, WIRE.Fixed32);
    this.#room(4);
    for (let shift = 0; shift < 32; shift += 8) this.#bytes[this.#length++] = value >>> shift;
  }

  /** `bytes`, or a message within this one. */
  raw(field: number, value: Uint8Array): void {
    this.#tag(field, WIRE.Bytes);
    this.#varint(value.length);
    this.#room(value.length);
    this.#bytes.set(value, this.#length);
    this.#length += value.length;
  }

  text(field: number, value: string): void {
    this.raw(field, new TextEncoder().encode(value));
  }

  #tag(field: number, wire: number): void {
    this.#varint(field * 8 + wire);
  }

  #varint(value: number): void {
    this.#room(10);
    while (value >= TWO_TO_7) {
      this.#bytes[this.#length++] = (value % TWO_TO_7 & LOW_BITS) | MORE;
      value = Math.floor(value / TWO_TO_7);
    }
    this.#bytes[this.#length++] = value;
  }

  #room(bytes: number): void {
    if (this.#length + bytes <= this.#bytes.length) return;
    const larger = new Uint8Array(2 * (this.#length + bytes));
    larger.set(this.bytes);
    this.#bytes = larger;
  }
}
