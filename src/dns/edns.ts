/** EDNS: the OPT record and its options (RFC 6891), extended errors (8914), padding (7830, 8467). */
import { getU16, setU16 } from "../bytes/mod.ts";
import { invariant } from "../errors.ts";
import { DO_BIT, EdnsOption, Qtype } from "./numbers.ts";
import { readRecord, RecordView } from "./record.ts";

/** Bytes of an OPT record without options. */
export const OPT_BYTES = 11;
/** Bytes before the data of an option: code and length. */
export const OPTION_HEADER_BYTES = 4;
/** Block size of padded queries, in bytes (RFC 8467 §4.1). */
export const QUERY_BLOCK_BYTES = 128;
/** Block size of padded responses, in bytes (RFC 8467 §4.1). */
export const RESPONSE_BLOCK_BYTES = 468;
/** Where RDLENGTH stands in an OPT record. */
const RDLENGTH_OFFSET = 9;
/** Bytes of an extended error before its text: the code. */
const EDE_CODE_BYTES = 2;

/** What looking for an OPT record came to. */
export const OptRead = { None: 0, Found: 1, Malformed: 2 } as const;
export type OptRead = typeof OptRead[keyof typeof OptRead];

/** What an OPT record says beside its options. */
export interface OptFields {
  /** Bytes over UDP that its sender takes; below 512 means 512 (RFC 6891 §6.2.5). */
  payload: number;
  /** The upper eight bits of the response code. */
  extendedRcode: number;
  version: number;
  /** DO: the sender wants DNSSEC's records (RFC 3225 §3). */
  dnssecOk: boolean;
}

/** An OPT record of a packet; made once and filled again for each. */
export class OptView implements OptFields {
  payload = 0;
  extendedRcode = 0;
  version = 0;
  dnssecOk = false;
  optionsOffset = 0;
  optionsEnd = 0;
}

/** Scratch of `readOpt`, which runs to its end before anything else can use it. */
const record = new RecordView();
const option = { code: 0, dataOffset: 0, dataLength: 0 };

/**
 * Looks for OPT among the `count` records from `offset`, those of the additional section. More
 * than one, another owner than the root, options that don't fill the RDATA, or a record that is
 * cut off at `end` make it malformed (RFC 6891 §6.1.1, §6.1.2).
 */
export function readOpt(
  packet: Uint8Array,
  offset: number,
  end: number,
  count: number,
  view: OptView,
): OptRead {
  let at = offset;
  let found = false;
  for (let i = 0; i < count; i++) {
    at = readRecord(packet, at, end, record);
    if (at < 0) return OptRead.Malformed;
    if (record.type !== Qtype.OPT) continue;
    if (found || !readOptRecord(packet, record, view)) return OptRead.Malformed;
    found = true;
  }
  return found ? OptRead.Found : OptRead.None;
}

/** Reads one OPT record that `readRecord` found; `false` if its owner or options are malformed. */
export function readOptRecord(packet: Uint8Array, opt: RecordView, view: OptView): boolean {
  if (packet[opt.ownerOffset] !== 0) return false;
  let at = opt.rdataOffset;
  while (at < opt.end) {
    at = readOption(packet, at, opt.end, option);
    if (at < 0) return false;
  }
  view.payload = opt.cls;
  view.extendedRcode = opt.ttl >>> 24;
  view.version = (opt.ttl >>> 16) & 0xff;
  view.dnssecOk = (opt.ttl & DO_BIT) !== 0;
  view.optionsOffset = opt.rdataOffset;
  view.optionsEnd = opt.end;
  return true;
}

/** An option of an OPT record; filled again for one after the other. */
export class OptionView {
  code = 0;
  dataOffset = 0;
  dataLength = 0;
}

/** Reads the option at `offset`; returns where the next starts, or -1 if it is cut off at `end`. */
export function readOption(
  packet: Uint8Array,
  offset: number,
  end: number,
  view: OptionView,
): number {
  const dataOffset = offset + OPTION_HEADER_BYTES;
  if (dataOffset > end) return -1;
  const dataLength = getU16(packet, offset + 2);
  if (dataOffset + dataLength > end) return -1;
  view.code = getU16(packet, offset);
  view.dataOffset = dataOffset;
  view.dataLength = dataLength;
  return dataOffset + dataLength;
}

/** Finds the first option with `code` and fills `view`; `false` if there is none. */
export function findOption(
  packet: Uint8Array,
  opt: OptView,
  code: number,
  view: OptionView,
): boolean {
  let at = opt.optionsOffset;
  while (at >= 0 && at < opt.optionsEnd) {
    at = readOption(packet, at, opt.optionsEnd, view);
    if (at >= 0 && view.code === code) return true;
  }
  return false;
}

/** An extended error; its text is for people and may be empty. */
export interface ExtendedError {
  readonly code: number;
  readonly text: string;
}

/** The code of the first extended error of an OPT record, or -1. */
export function readEdeCode(packet: Uint8Array, opt: OptView): number {
  if (!findOption(packet, opt, EdnsOption.Ede, option)) return -1;
  return option.dataLength < EDE_CODE_BYTES ? -1 : getU16(packet, option.dataOffset);
}

/** Reads the data of an extended error option, or returns `null` when it has no code. */
export function readEde(packet: Uint8Array, option: OptionView): ExtendedError | null {
  if (option.dataLength < EDE_CODE_BYTES) return null;
  const { dataOffset, dataLength } = option;
  const bytes = packet.subarray(dataOffset + EDE_CODE_BYTES, dataOffset + dataLength);
  // Some senders end the text with a zero byte, as the drafts had it (RFC 8914 §2).
  const text = new TextDecoder().decode(bytes).replace(/\0+$/, "");
  return { code: getU16(packet, dataOffset), text };
}

/**
 * Writes an OPT record without options and returns where they go, or -1 when it does not fit
 * before `limit`. `closeOpt` counts the options in.
 */
export function writeOpt(
  target: Uint8Array,
  offset: number,
  limit: number,
  fields: OptFields,
): number {
  if (offset + OPT_BYTES > limit) return -1;
  target[offset] = 0;
  setU16(target, offset + 1, Qtype.OPT);
  setU16(target, offset + 3, fields.payload);
  target[offset + 5] = fields.extendedRcode;
  target[offset + 6] = fields.version;
  setU16(target, offset + 7, fields.dnssecOk ? DO_BIT : 0);
  setU16(target, offset + RDLENGTH_OFFSET, 0);
  return offset + OPT_BYTES;
}

/** Ends the OPT record at `optOffset`, whose options end at `end`. */
export function closeOpt(target: Uint8Array, optOffset: number, end: number): void {
  setU16(target, optOffset + RDLENGTH_OFFSET, end - optOffset - OPT_BYTES);
}

/** Writes an option; returns the offset behind it, or -1 when it does not fit before `limit`. */
export function writeOption(
  target: Uint8Array,
  offset: number,
  limit: number,
  code: number,
  data: Uint8Array,
): number {
  const at = writeOptionHeader(target, offset, limit, code, data.length);
  for (let i = 0; at >= 0 && i < data.length; i++) target[at + i] = data[i];
  return at < 0 ? -1 : at + data.length;
}

/** Writes an extended error with UTF-8 `text`; returns as `writeOption` does. */
export function writeEde(
  target: Uint8Array,
  offset: number,
  limit: number,
  code: number,
  text: Uint8Array,
): number {
  const length = EDE_CODE_BYTES + text.length;
  const at = writeOptionHeader(target, offset, limit, EdnsOption.Ede, length);
  if (at < 0) return -1;
  setU16(target, at, code);
  for (let i = 0; i < text.length; i++) target[at + EDE_CODE_BYTES + i] = text[i];
  return at + length;
}

/** Writes a Padding option of `length` zero bytes (RFC 7830 §3); returns as `writeOption` does. */
export function writePadding(
  target: Uint8Array,
  offset: number,
  limit: number,
  length: number,
): number {
  const at = writeOptionHeader(target, offset, limit, EdnsOption.Padding, length);
  if (at < 0) return -1;
  target.fill(0, at, at + length);
  return at + length;
}

function writeOptionHeader(
  target: Uint8Array,
  offset: number,
  limit: number,
  code: number,
  length: number,
): number {
  const at = offset + OPTION_HEADER_BYTES;
  if (at + length > limit) return -1;
  setU16(target, offset, code);
  setU16(target, offset + 2, length);
  return at;
}

/**
 * Returns the length of a padded message, so that an observer of DoT, DoH or DoQ learns its size
 * to the nearest block only. `lengthBytes` counts the whole message with the 4-byte header of an
 * empty Padding option (RFC 7830 §3); `limitBytes` is what the transport takes.
 *
 * @throws {InvariantError} If the message is over the limit before it is padded.
 */
export function paddedLength(lengthBytes: number, blockBytes: number, limitBytes: number): number {
  invariant(lengthBytes <= limitBytes, "message fits before it is padded");
  return Math.min(Math.ceil(lengthBytes / blockBytes) * blockBytes, limitBytes);
}
