/**
 * Reads and writes DNS messages in wire format. What a query passes reads in place: packets go in,
 * numbers come out, -1 stands for a broken packet, nothing is thrown and nothing left to collect.
 * `decodeMessage`, `formatRdata` and `encodeQuery` are the comfortable way, for logs, the API and
 * tests. Offsets count from the start of the message, which is where pointers count from.
 * Scope: none. RFC 1035, 3597, 4034, 4343, 5155, 6891, 7830, 8467, 8914, 9267, 9460. @module
 */
export * from "./numbers.ts";
export {
  countLabels,
  equalNames,
  expandName,
  formatName,
  isAtOrBelow,
  LABEL_BYTES_MAX,
  NAME_BYTES_MAX,
  nameKey,
  parseName,
  readNameText,
  skipName,
  skipPlainName,
} from "./name.ts";
export { finishHash, FOLD, HashedName, hashLabel, LABELS_MAX } from "./name_hash.ts";
export {
  readRecord,
  RECORD_FIXED_BYTES,
  RecordView,
  Section,
  SectionWalk,
  skipQuestion,
  Walk,
} from "./record.ts";
export {
  closeOpt,
  type ExtendedError,
  findOption,
  OPT_BYTES,
  type OptFields,
  OPTION_HEADER_BYTES,
  OptionView,
  OptRead,
  OptView,
  paddedLength,
  QUERY_BLOCK_BYTES,
  readEde,
  readEdeCode,
  readOpt,
  readOption,
  readOptRecord,
  RESPONSE_BLOCK_BYTES,
  writeEde,
  writeOpt,
  writeOption,
  writePadding,
} from "./edns.ts";
export {
  checkSvcb,
  formatSvcb,
  parseSvcb,
  readSvcParam,
  skipSvcbTarget,
  SvcParam,
  SvcParamView,
} from "./svcb.ts";
export { checkRdata, copyRdata } from "./rdata.ts";
export { parseRdata } from "./parse_rdata.ts";
export { formatRdata } from "./presentation.ts";
export {
  type DecodedOpt,
  type DecodedRecord,
  decodeMessage,
  type EdnsOptionData,
  encodeQuery,
  type Message,
  MessageWriter,
  type QueryOptions,
  type Question,
} from "./message.ts";
