/** A message of DNS over QUIC as it stands on its stream: its length, the message, the end. */
import { getU16, setU16 } from "../bytes/mod.ts";

/** Why a connection is closed (RFC 9250 §4.3). */
export const DoqError = {
  NoError: 0x0,
  ProtocolError: 0x2,
  ExcessiveLoad: 0x4,
} as const;
export type DoqError = typeof DoqError[keyof typeof DoqError];

/** Bytes of the length before a message (RFC 9250 §4.2). */
export const LENGTH_BYTES = 2;
/** Room for a message, which nearly all fit; for a longer one it doubles. */
export const ROOM_BYTES = 512;
/** Reads into a buffer of ours: the runtime's own would be 64 KiB, twice a query. */
export const INTO_ROOM = { mode: "byob" } as const;
/** Reads until the room is full: as a rule, data and end come in one. */
const FULL_ROOM = { min: ROOM_BYTES };

/** Who keeps account of a stream that is being read. */
export interface ReadAccount {
  /** Something was read, or the end. */
  onRead(): void;
  /** The room is this large now, by so many bytes larger. */
  onGrown(roomBytes: number, byBytes: number): void;
}

export function newRoom(): Uint8Array<ArrayBuffer> {
  return new Uint8Array(ROOM_BYTES);
}

/**
 * Reads the one message of a stream, and at most a room more of it. It begins `LENGTH_BYTES` behind
 * the start of its buffer. `null`: the other side broke the rules, or the stream was let go of
 * meanwhile.
 *
 * @throws If the other side has reset the stream, or has gone.
 */
export async function readMessage(
  reader: ReadableStreamBYOBReader,
  empty: Uint8Array<ArrayBuffer>,
  account: ReadAccount,
): Promise<Uint8Array<ArrayBuffer> | null> {
  let { value, done } = await reader.read(empty, FULL_ROOM);
  if (value === undefined) return null;
  account.onRead();
  let room = new Uint8Array(value.buffer);
  let { length } = value;
  while (!done) {
    const whole = LENGTH_BYTES + getU16(room, 0);
    // More than one message, or more than one can have.
    if (length > whole) return null;
    // As far as it has come; one byte more shows that something stands behind it.
    const larger = new Uint8Array(Math.min(2 * room.length, whole + 1));
    account.onGrown(larger.length, larger.length - room.length);
    larger.set(room);
    const min = larger.length - length;
    ({ value, done } = await reader.read(larger.subarray(length), { min }));
    if (value === undefined) return null;
    account.onRead();
    room = new Uint8Array(value.buffer);
    length += value.length;
  }
  // The end came before the message was whole, or before there was one, or something is behind it.
  if (length < LENGTH_BYTES || length !== LENGTH_BYTES + getU16(room, 0)) return null;
  return room.subarray(LENGTH_BYTES, length);
}

/** Writes a message behind its length into a room of that size. */
export function writeFrame(room: Uint8Array, message: Uint8Array): void {
  setU16(room, 0, message.length);
  room.set(message, LENGTH_BYTES);
}
