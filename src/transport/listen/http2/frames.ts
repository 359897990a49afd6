import { setU16, setU32 } from "../../../bytes/mod.ts";

/** Bytes of a frame's header (RFC 9113 §4.1). */
export const FRAME_HEADER_BYTES = 9;
/** Largest payload we take and send: what every endpoint takes (RFC 9113 §4.2). */
export const PAYLOAD_BYTES_MAX = 16_384;
/** Windows of a new connection and its streams (RFC 9113 §6.9.2). */
export const WINDOW_BYTES_DEFAULT = 65_535;
export const WINDOW_BYTES_MAX = 2 ** 31 - 1;

/** RFC 9113 §6. */
export const FrameType = {
  Data: 0,
  Headers: 1,
  Priority: 2,
  RstStream: 3,
  Settings: 4,
  PushPromise: 5,
  Ping: 6,
  Goaway: 7,
  WindowUpdate: 8,
  Continuation: 9,
} as const;

export const Flag = {
  EndStream: 0x01,
  Ack: 0x01,
  EndHeaders: 0x04,
  Padded: 0x08,
  Priority: 0x20,
} as const;

/** RFC 9113 §7. */
export const H2Error = {
  NoError: 0,
  ProtocolError: 1,
  FlowControlError: 3,
  StreamClosed: 5,
  FrameSizeError: 6,
  RefusedStream: 7,
  Cancel: 8,
  CompressionError: 9,
  EnhanceYourCalm: 11,
} as const;
export type H2Error = typeof H2Error[keyof typeof H2Error];

/** RFC 9113 §6.5.2, RFC 9218 §2.1. */
export const Setting = {
  EnablePush: 2,
  MaxConcurrentStreams: 3,
  InitialWindowSize: 4,
  MaxFrameSize: 5,
  MaxHeaderListSize: 6,
  NoRfc7540Priorities: 9,
} as const;

/** What a client says first (RFC 9113 §3.4). */
export const PREFACE: Uint8Array = new TextEncoder().encode("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");

/** Says whether what came in so far is the preface or its beginning. */
export function startsPreface(bytes: Uint8Array, start: number, end: number): boolean {
  const length = Math.min(end - start, PREFACE.length);
  for (let i = 0; i < length; i++) if (bytes[start + i] !== PREFACE[i]) return false;
  return true;
}

/** Writes a frame's header; returns where the payload goes. */
export function writeFrameHeader(
  target: Uint8Array,
  at: number,
  length: number,
  type: number,
  flags: number,
  streamId: number,
): number {
  target[at] = length >> 16;
  setU16(target, at + 1, length & 0xffff);
  target[at + 3] = type;
  target[at + 4] = flags;
  setU32(target, at + 5, streamId);
  return at + FRAME_HEADER_BYTES;
}

/** A setting and its value. */
export const SETTING_BYTES = 6;

/** A SETTINGS frame. */
export function settingsFrame(settings: readonly (readonly [number, number])[]): Uint8Array {
  const length = SETTING_BYTES * settings.length;
  const frame = new Uint8Array(FRAME_HEADER_BYTES + length);
  let at = writeFrameHeader(frame, 0, length, FrameType.Settings, 0, 0);
  for (const [setting, value] of settings) {
    setU16(frame, at, setting);
    setU32(frame, at + 2, value);
    at += SETTING_BYTES;
  }
  return frame;
}

/** Where a payload ends before its padding; -1 where that is longer than the payload. */
export function withoutPadding(
  flags: number,
  bytes: Uint8Array,
  start: number,
  end: number,
): number {
  if ((flags & Flag.Padded) === 0) return end;
  if (start === end) return -1;
  const dataEnd = end - bytes[start];
  return dataEnd < start + 1 ? -1 : dataEnd;
}

/** What is wrong with a frame by its head alone (RFC 9113 §6); it ends the connection. */
export function frameFailure(type: number, flags: number, streamId: number, size: number): H2Error {
  switch (type) {
    case FrameType.Data:
    case FrameType.Headers:
    case FrameType.Priority:
      return streamId === 0 ? H2Error.ProtocolError : H2Error.NoError;
    case FrameType.RstStream:
      if (size !== 4) return H2Error.FrameSizeError;
      return streamId === 0 ? H2Error.ProtocolError : H2Error.NoError;
    case FrameType.Settings: {
      if (streamId !== 0) return H2Error.ProtocolError;
      const isWhole = (flags & Flag.Ack) !== 0 ? size === 0 : size % SETTING_BYTES === 0;
      return isWhole ? H2Error.NoError : H2Error.FrameSizeError;
    }
    case FrameType.PushPromise:
      return H2Error.ProtocolError;
    case FrameType.Ping:
      if (streamId !== 0) return H2Error.ProtocolError;
      return size === 8 ? H2Error.NoError : H2Error.FrameSizeError;
    case FrameType.Goaway:
      if (streamId !== 0) return H2Error.ProtocolError;
      return size < 8 ? H2Error.FrameSizeError : H2Error.NoError;
    case FrameType.WindowUpdate:
      return size === 4 ? H2Error.NoError : H2Error.FrameSizeError;
    default:
      return H2Error.NoError;
  }
}

/** What is wrong with a setting (RFC 9113 §6.5.2); those that are not known are ignored. */
export function settingFailure(setting: number, value: number): H2Error {
  switch (setting) {
    case Setting.EnablePush:
      return value <= 1 ? H2Error.NoError : H2Error.ProtocolError;
    case Setting.InitialWindowSize:
      return value <= WINDOW_BYTES_MAX ? H2Error.NoError : H2Error.FlowControlError;
    case Setting.MaxFrameSize:
      // Our frames are never larger than the smallest that may be asked for.
      return value >= PAYLOAD_BYTES_MAX && value < 2 ** 24
        ? H2Error.NoError
        : H2Error.ProtocolError;
    default:
      return H2Error.NoError;
  }
}
