import { getU32, setU32 } from "../../bytes/mod.ts";
import { FRAME_BYTES_MAX } from "../ports.ts";

/** What a message is. */
export const MessageType = {
  /** Who speaks, in JSON: the first message of each side, and again when it has changed. */
  Greeting: 1,
  /** Why the one who connected is not welcome, before the connection ends. */
  Refusal: 2,
  /** The handler's. */
  Frame: 3,
  /** Keeps a quiet connection alive. */
  Ping: 4,
  /** Says that what was sent is being read. */
  Pong: 5,
  /** A question and its answer, which have a connection of their own. */
  Question: 6,
  Answer: 7,
} as const;
export type MessageType = typeof MessageType[keyof typeof MessageType];

/** Longest message of each type, without its header. A type that is not here ends a connection. */
export const MESSAGE_BYTES_MAX: Readonly<Partial<Record<number, number>>> = {
  [MessageType.Greeting]: 2_048,
  [MessageType.Refusal]: 64,
  [MessageType.Frame]: FRAME_BYTES_MAX,
  [MessageType.Ping]: 0,
  [MessageType.Pong]: 0,
  [MessageType.Question]: 1_024,
  [MessageType.Answer]: FRAME_BYTES_MAX,
};

/** The length of what follows the header, 32 bits, and the type. */
export const HEADER_BYTES = 5;
/** First space for a message that comes in parts. */
const PART_BYTES_MIN = 1_024;

/** A whole message in a buffer of its own. */
export function writeMessage(type: MessageType, payload: Uint8Array): Uint8Array {
  const message = new Uint8Array(HEADER_BYTES + payload.length);
  setU32(message, 0, payload.length);
  message[4] = type;
  message.set(payload, HEADER_BYTES);
  return message;
}

/** Takes a message; its payload is the taker's own. `false`: nothing more is wanted. */
export type OnMessage = (type: MessageType, payload: Uint8Array) => boolean;

/**
 * Reads messages out of a stream, in whatever parts it comes. It holds no more than has arrived,
 * twice over, whatever a header says is to come.
 */
export class MessageReader {
  readonly #onMessage: OnMessage;
  /** The types that are taken now; others end the stream. */
  readonly #takes: (type: number) => boolean;
  #part = new Uint8Array(0);
  #partLength = 0;

  constructor(takes: (type: number) => boolean, onMessage: OnMessage) {
    this.#takes = takes;
    this.#onMessage = onMessage;
  }

  /** Whether a message has begun and not ended. */
  get isInMessage(): boolean {
    return this.#partLength > 0;
  }

  /** Reads on. `false`: the stream is none of ours, or nothing more of it is wanted. */
  read(chunk: Uint8Array): boolean {
    let rest = chunk;
    while (rest.length > 0) {
      const [whole, payloadBytes] = this.#gather(rest);
      if (payloadBytes === null) return false;
      if (whole === null) return true;
      const lengthBytes = HEADER_BYTES + payloadBytes;
      const type = whole[4] as MessageType;
      // A copy: the chunk is the runtime's, which may use it again.
      const payload = whole.slice(HEADER_BYTES, lengthBytes);
      rest = whole.subarray(lengthBytes);
      if (!this.#onMessage(type, payload)) return false;
    }
    return true;
  }

  /**
   * Returns bytes that begin with a whole message, or keeps what there is and returns `null`; and
   * how long its payload is, or `null` where it may not be at all.
   */
  #gather(chunk: Uint8Array): [Uint8Array | null, number | null] {
    const begun = this.#partLength > 0;
    let bytes = chunk;
    if (begun) {
      this.#keep(chunk);
      bytes = this.#part.subarray(0, this.#partLength);
    }
    let payloadBytes = 0;
    if (bytes.length >= HEADER_BYTES) {
      payloadBytes = getU32(bytes, 0);
      const bytesMax = MESSAGE_BYTES_MAX[bytes[4]];
      if (bytesMax === undefined || payloadBytes > bytesMax || !this.#takes(bytes[4])) {
        return [null, null];
      }
      if (bytes.length >= HEADER_BYTES + payloadBytes) {
        this.#part = new Uint8Array(0);
        this.#partLength = 0;
        return [bytes, payloadBytes];
      }
    }
    if (!begun) this.#keep(chunk);
    return [null, payloadBytes];
  }

  #keep(chunk: Uint8Array): void {
    const needed = this.#partLength + chunk.length;
    if (needed > this.#part.length) {
      const grown = new Uint8Array(Math.max(needed, 2 * this.#part.length, PART_BYTES_MIN));
      grown.set(this.#part.subarray(0, this.#partLength));
      this.#part = grown;
    }
    this.#part.set(chunk, this.#partLength);
    this.#partLength = needed;
  }
}
