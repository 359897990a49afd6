/** Bodies in JSON as bytes: shared by all who read the same, compressed, and sent piece by piece. */
import { promisify } from "node:util";
import { gzip } from "node:zlib";

/** Most of an answer that waits in a socket for its client. */
export const PIECE_BYTES = 64 * 1024;

/** Shorter bodies go in one packet as they are. */
export const GZIP_BYTES_MIN = 1_400;
/** Most of the gain for half of the work. */
const GZIP_LEVEL = 4;

const encoder = new TextEncoder();
const compress = promisify(gzip);

export function jsonBytes(value: unknown): Uint8Array<ArrayBuffer> {
  return encoder.encode(JSON.stringify(value));
}

/**
 * The bytes of answers, each for as long as what it was made of is there: many readers of a large
 * collection, slow ones too, share one copy, and those of a former state go with their readers.
 */
export class SharedBodies {
  readonly #bodies = new WeakMap<object, Bodies>();

  of(madeOf: object, make: () => Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> {
    return this.#bodiesOf(madeOf, make).plain;
  }

  /** The same, compressed: once, however many ask for it at one time. */
  gzippedOf(
    madeOf: object,
    make: () => Uint8Array<ArrayBuffer>,
  ): Promise<Uint8Array<ArrayBuffer>> {
    const bodies = this.#bodiesOf(madeOf, make);
    return bodies.gzipped ??= gzipped(bodies.plain);
  }

  #bodiesOf(madeOf: object, make: () => Uint8Array<ArrayBuffer>): Bodies {
    let bodies = this.#bodies.get(madeOf);
    if (bodies === undefined) this.#bodies.set(madeOf, bodies = { plain: make(), gzipped: null });
    return bodies;
  }
}

interface Bodies {
  readonly plain: Uint8Array<ArrayBuffer>;
  gzipped: Promise<Uint8Array<ArrayBuffer>> | null;
}

/** Compresses in another thread. */
export async function gzipped(bytes: Uint8Array<ArrayBuffer>): Promise<Uint8Array<ArrayBuffer>> {
  return Uint8Array.from(await compress(bytes, { level: GZIP_LEVEL }));
}

/** Says whether a client takes gzip (RFC 9110 §12.5.3): its name, with no weight of 0. */
export function takesGzip(acceptEncoding: string | null): boolean {
  return (acceptEncoding ?? "").split(",").some((coding) => {
    const [name, ...parameters] = coding.split(";").map((part) => part.trim().toLowerCase());
    return name === "gzip" && !parameters.some((weight) => /^q=0(\.0*)?$/.test(weight));
  });
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
