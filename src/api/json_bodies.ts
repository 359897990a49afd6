/** Bodies in JSON as bytes: shared by all who read the same, and sent piece by piece. */

/** Most of an answer that waits in a socket for its client. */
export const PIECE_BYTES = 64 * 1024;

const encoder = new TextEncoder();

export function jsonBytes(value: unknown): Uint8Array<ArrayBuffer> {
  return encoder.encode(JSON.stringify(value));
}

/**
 * The bytes of answers, each for as long as what it was made of is there: many readers of a large
 * collection, slow ones too, share one copy, and those of a former state go with their readers.
 */
export class SharedBodies {
  readonly #bodies = new WeakMap<object, Uint8Array<ArrayBuffer>>();

  of(madeOf: object, make: () => Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> {
    let bytes = this.#bodies.get(madeOf);
    if (bytes === undefined) this.#bodies.set(madeOf, bytes = make());
    return bytes;
  }
}

/** Hands bytes on without a copy, a piece for each that is asked for. */
export function streamOfBytes(
  bytes: Uint8Array<ArrayBuffer>,
): ReadableStream<Uint8Array<ArrayBuffer>> {
  let at = 0;
  return new ReadableStream({
    pull(controller) {
      controller.enqueue(bytes.subarray(at, at += PIECE_BYTES));
      if (at >= bytes.length) controller.close();
    },
  }, { highWaterMark: 0 });
}
