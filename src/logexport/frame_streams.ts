/**
 * Frame Streams, as fstrm writes them: frames of data behind their length, and control frames behind
 * a length of 0. The writer says READY and hears ACCEPT, then says START; in the end STOP, and hears
 * FINISH.
 */
import { concat, getU32, setU32 } from "../bytes/mod.ts";
import { SvcError } from "../errors.ts";
import type { Connection } from "./dial.ts";
import type { Session } from "./sender.ts";

const CONTENT_TYPE = new TextEncoder().encode("protobuf:dnstap.Dnstap");
const Control = { Accept: 1, Start: 2, Stop: 3, Ready: 4, Finish: 5 } as const;
const FIELD_CONTENT_TYPE = 1;
const WORD_BYTES = 4;
/** Longest control frame (fstrm: FSTRM_CONTROL_FRAME_LENGTH_MAX). */
const CONTROL_BYTES_MAX = 512;
/** How long a receiver has to take the handshake, a batch, and the farewell. */
export const FRAME_STREAM_LIMITS = { handshakeMs: 10_000, batchMs: 10_000, farewellMs: 2_000 };
export type FrameStreamLimits = typeof FRAME_STREAM_LIMITS;

/** Waits for `work`, for `ms` at most; then the connection is closed, which ends the work. */
async function within<T>(connection: Connection, ms: number, what: string, work: Promise<T>) {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => {
    late.reject(new SvcError("unavailable", `${what} took longer than ${ms} ms`));
    connection.close();
  }, ms);
  work.catch(() => {}); // It may fail once it was given up.
  try {
    return await Promise.race([work, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}

/**
 * Begins a stream of dnstap on a connection, which is closed where that can't be.
 *
 * @throws {SvcError} `unavailable`, with what the receiver did.
 */
export async function openFrameStream(
  connection: Connection,
  limits: FrameStreamLimits = FRAME_STREAM_LIMITS,
): Promise<Session<Uint8Array>> {
  try {
    const input = new ControlReader(connection);
    const shake = async () => {
      await writeAll(connection, controlFrame(Control.Ready, true));
      const accept = await input.next();
      if (accept.type !== Control.Accept) throw strange("no ACCEPT comes behind READY");
      if (!accept.contentTypes.some((type) => type === decode(CONTENT_TYPE))) {
        throw strange(`it takes no ${decode(CONTENT_TYPE)}`);
      }
      await writeAll(connection, controlFrame(Control.Start, true));
    };
    await within(connection, limits.handshakeMs, "the handshake", shake());
    return sessionOf(connection, input, limits);
  } catch (error) {
    connection.close();
    throw error;
  }
}

function sessionOf(
  connection: Connection,
  input: ControlReader,
  limits: FrameStreamLimits,
): Session<Uint8Array> {
  // Nothing is to come but FINISH: whatever ends this ends the stream.
  const ended = input.next().then(() => {}, () => {});
  return {
    ended,
    send: async (frames) => {
      const parts = frames.flatMap((frame) => [word(frame.length), frame]);
      const written = writeAll(connection, concat(...parts));
      await within(connection, limits.batchMs, "a batch", written);
    },
    close: async () => {
      const farewell = async () => {
        await writeAll(connection, controlFrame(Control.Stop, false));
        await ended;
      };
      await within(connection, limits.farewellMs, "the farewell", farewell()).catch(() => {});
      connection.close();
    },
  };
}

interface ControlFrame {
  readonly type: number;
  readonly contentTypes: readonly string[];
}

/** Reads control frames, and nothing else. */
class ControlReader {
  readonly #connection: Connection;
  #kept: Uint8Array = new Uint8Array(0);

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  /** @throws {SvcError} `unavailable`, for what is no control frame, and at the end. */
  async next(): Promise<ControlFrame> {
    const head = await this.#take(2 * WORD_BYTES);
    const length = getU32(head, WORD_BYTES);
    if (getU32(head, 0) !== 0 || length < WORD_BYTES || length > CONTROL_BYTES_MAX) {
      throw strange("what it says is no control frame");
    }
    return readControl(await this.#take(length));
  }

  async #take(bytes: number): Promise<Uint8Array> {
    const chunk = new Uint8Array(CONTROL_BYTES_MAX);
    while (this.#kept.length < bytes) {
      const read = await this.#connection.read(chunk);
      if (read === null) throw strange("it closed the connection");
      this.#kept = concat(this.#kept, chunk.subarray(0, read));
    }
    const taken = this.#kept.slice(0, bytes);
    this.#kept = this.#kept.slice(bytes);
    return taken;
  }
}

function readControl(frame: Uint8Array): ControlFrame {
  const contentTypes: string[] = [];
  for (let at = WORD_BYTES; at < frame.length;) {
    const [field, length] = at + 2 * WORD_BYTES > frame.length
      ? [0, 0]
      : [getU32(frame, at), getU32(frame, at + WORD_BYTES)];
    at += 2 * WORD_BYTES;
    if (field !== FIELD_CONTENT_TYPE || at + length > frame.length) {
      throw strange("a control frame of it is malformed");
    }
    contentTypes.push(decode(frame.subarray(at, at + length)));
    at += length;
  }
  return { type: getU32(frame, 0), contentTypes };
}

function controlFrame(type: number, hasContentType: boolean): Uint8Array {
  const field = [word(FIELD_CONTENT_TYPE), word(CONTENT_TYPE.length), CONTENT_TYPE];
  const frame = concat(word(type), ...hasContentType ? field : []);
  return concat(word(0), word(frame.length), frame);
}

function word(value: number): Uint8Array {
  const bytes = new Uint8Array(WORD_BYTES);
  setU32(bytes, 0, value);
  return bytes;
}

async function writeAll(connection: Connection, bytes: Uint8Array): Promise<void> {
  for (let at = 0; at < bytes.length;) at += await connection.write(bytes.subarray(at));
}

function decode(bytes: Uint8Array): string {
  return new TextDecoder().decode(bytes);
}

function strange(what: string): SvcError {
  return new SvcError("unavailable", `the receiver is none of dnstap: ${what}`);
}
