/** Extended errors (RFC 8914) as they are relayed and kept: options of OPT, one behind the other. */
import { getU16, setU16 } from "../bytes/mod.ts";
import { Ede, EdnsOption, OPTION_HEADER_BYTES } from "../dns/mod.ts";

/** Most bytes of the extended errors of one response; what has no room is left out. */
export const ERRORS_BYTES_MAX = 512;
/** Most bytes of the text of one, which is cut behind a whole character. */
export const ERROR_TEXT_BYTES_MAX = 256;
/** In place of the code of an extended error: the text is options as they are kept. */
export const RELAYED = -2;
/** In place of the code: none but what is kept with the message. */
export const NO_ERROR = -1;

const CODE_BYTES = 2;
const encoder = new TextEncoder();

/** The extended errors of one response. Made once and filled again for each. */
export class ExtendedErrors {
  readonly bytes: Uint8Array<ArrayBuffer> = new Uint8Array(ERRORS_BYTES_MAX);
  length = 0;

  clear(): void {
    this.length = 0;
  }

  /** Adds the option whose data stands at `from`; one without a code is none. */
  add(packet: Uint8Array, from: number, lengthBytes: number): void {
    if (lengthBytes < CODE_BYTES) return;
    const most = CODE_BYTES + ERROR_TEXT_BYTES_MAX;
    const kept = lengthBytes <= most ? lengthBytes : wholeCharacters(packet, from, most);
    const { bytes, length: at } = this;
    if (at + OPTION_HEADER_BYTES + kept > bytes.length) return;
    setU16(bytes, at, EdnsOption.Ede);
    setU16(bytes, at + 2, kept);
    const to = at + OPTION_HEADER_BYTES;
    for (let i = 0; i < kept; i++) bytes[to + i] = packet[from + i];
    this.length = to + kept;
  }

  /** Says whether a code from `first` to `last` is among them. */
  has(first: number, last: number): boolean {
    for (let at = 0; at < this.length; at = optionEnd(this.bytes, at)) {
      const code = getU16(this.bytes, at + OPTION_HEADER_BYTES);
      if (code >= first && code <= last) return true;
    }
    return false;
  }

  /** The options, good until the next change. */
  view(): Uint8Array {
    return this.bytes.subarray(0, this.length);
  }

  /** A copy of the options. */
  copy(): Uint8Array {
    return this.bytes.slice(0, this.length);
  }
}

/** What of some kept options is not about validation, which is ours to speak of. */
export function withoutDnssecErrors(options: Uint8Array): Uint8Array {
  const errors = new ExtendedErrors();
  for (let at = 0; at < options.length; at = optionEnd(options, at)) {
    const code = getU16(options, at + OPTION_HEADER_BYTES);
    const isOurs = code === Ede.UnsupportedDnskeyAlgorithm ||
      code === Ede.UnsupportedDsDigestType ||
      code === Ede.UnsupportedNsec3Iterations ||
      (code >= Ede.DnssecIndeterminate && code <= Ede.NsecMissing);
    if (isOurs) continue;
    errors.add(options, at + OPTION_HEADER_BYTES, getU16(options, at + 2));
  }
  return errors.view();
}

/** One extended error of ours, as it is kept. */
export function ownError(code: number, text: string): Uint8Array {
  const bytes = encoder.encode(text);
  const data = new Uint8Array(CODE_BYTES + bytes.length);
  setU16(data, 0, code);
  data.set(bytes, CODE_BYTES);
  const errors = new ExtendedErrors();
  errors.add(data, 0, data.length);
  return errors.copy();
}

/**
 * Copies the options that fit into `room` bytes at `to`, without its text one that does not fit with
 * it; returns where they end.
 */
export function writeErrors(
  options: Uint8Array,
  target: Uint8Array,
  to: number,
  room: number,
): number {
  let end = to;
  for (let at = 0; at < options.length;) {
    const next = optionEnd(options, at);
    const left = room - (end - to);
    const isCut = next - at > left;
    const kept = isCut ? OPTION_HEADER_BYTES + CODE_BYTES : next - at;
    if (kept <= left) {
      for (let i = 0; i < kept; i++) target[end + i] = options[at + i];
      if (isCut) setU16(target, end + 2, CODE_BYTES);
      end += kept;
    }
    at = next;
  }
  return end;
}

function optionEnd(options: Uint8Array, at: number): number {
  return at + OPTION_HEADER_BYTES + getU16(options, at + 2);
}

/** The most bytes up to `most` that end behind a character of UTF-8. */
function wholeCharacters(bytes: Uint8Array, from: number, most: number): number {
  let length = most;
  while (length > CODE_BYTES && (bytes[from + length] & 0xc0) === 0x80) length--;
  return length;
}
