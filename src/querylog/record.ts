/**
 * Reads records of the queue, for who has no use for SQLite. Scope: none. RFC 1035. @module
 */
import { formatIp } from "../addr/mod.ts";
import {
  formatRdata,
  HEADER_BYTES,
  Qtype,
  qtypeName,
  RCODE_MASK,
  rcodeName,
  readNameText,
  RecordView,
  Section,
  SectionWalk,
  skipQuestion,
  Walk,
} from "../dns/mod.ts";
import {
  LOG_MESSAGE_BYTES_MAX,
  OUTCOME_NAMES,
  RecordAt,
  RecordFlag,
  RecordLength,
  TEXT_SEPARATOR,
} from "../logqueue/mod.ts";
import { ByteTexts, type KeptText, newText, NO_TEXT } from "./byte_texts.ts";
import { clientText, emptyEntry, type Fillable, kindText, type TakenEntry } from "./entry.ts";
import { anonymize } from "./filter.ts";

/** Most records of a response that an entry shows, and most characters of one. */
const ANSWERS_MAX = 16;
const ANSWER_LENGTH_MAX = 255;
/** Most characters of why an answer is not secure. */
const REASON_LENGTH_MAX = 255;
const TWO_TO_32 = 2 ** 32;
const ADDRESS_AT = RecordAt.Address * 4;
const MESSAGE_AT = RecordAt.End * 4;
const QUESTION_AT = MESSAGE_AT + HEADER_BYTES;
/** Type and class behind a question's name. */
const QUESTION_TAIL_BYTES = 4;
/** A byte of a name from which on it is a pointer to the rest of it; where type and RDATA are behind it. */
const POINTER = 0xc0;
const TYPE_AT = 2;
const RDATA_AT = 12;
const IPV4_BYTES = 4;
const IPV6_BYTES = 16;
/** Answers of more addresses are made anew each time. */
const KEY_ADDRESSES_MAX = 7;
/** Names that are kept ready, and bytes of one: most are shorter. */
const NAMES_KEPT = 16_384;
const NAME_KEY_BYTES = 64;
/** The year 2248: from then on the numbers of entries are no whole numbers any more. */
const TIME_MS_END = 2 ** 43;

/** The largest record there is, in bytes. */
export const RECORD_BYTES_MAX = RecordAt.End * 4 + LOG_MESSAGE_BYTES_MAX +
  3 * RecordLength.Text + RecordLength.ClientId;

export interface RecordReaderOptions {
  /** Only the first 24 bits of IPv4 and 56 of IPv6 addresses are kept. */
  readonly anonymize: boolean;
  /** As configured, by number. */
  readonly upstreams: readonly string[];
}

/** Makes entries of the queue's records. */
export class RecordReader {
  /** Where the record to be read is copied to. */
  readonly words: Uint32Array<ArrayBuffer> = new Uint32Array(RECORD_BYTES_MAX / 4);
  readonly #bytes = new Uint8Array(this.words.buffer);
  readonly #walk = new SectionWalk();
  readonly #record = new RecordView();
  readonly #decoder = new TextDecoder();
  readonly #options: RecordReaderOptions;
  readonly #names = new ByteTexts(NAMES_KEPT, NAME_KEY_BYTES);
  readonly #clients = new ByteTexts();
  readonly #kinds = new ByteTexts();
  readonly #rules = new ByteTexts();
  readonly #answers = new ByteTexts();
  /** What the text of a client or a kind is made of, side by side. */
  readonly #key = new Uint32Array(RECORD_BYTES_MAX / 4);
  readonly #keyBytes = new Uint8Array(this.#key.buffer);

  constructor(options: RecordReaderOptions) {
    this.#options = options;
  }

  /** The entry that `words` has, in `entry`; `null` where that is none that can be read. */
  read(entry: Fillable<TakenEntry> = emptyEntry()): Fillable<TakenEntry> | null {
    const { words } = this;
    const lengths = words[RecordAt.Lengths];
    const more = words[RecordAt.MoreLengths];
    const messageEnd = MESSAGE_AT + (lengths & 0xffff);
    const groupAt = MESSAGE_AT + padded(lengths & 0xffff);
    const ruleAt = groupAt + padded(lengths >>> 16);
    const idAt = ruleAt + padded(more & 0xffff);
    const reasonAt = idAt + padded(more >>> 16);
    const questionEnd = skipQuestion(this.#bytes, QUESTION_AT, messageEnd);
    const what = words[RecordAt.What];
    const outcome = what & 0xff;
    const timeMs = words[RecordAt.TimeHigh] * TWO_TO_32 + words[RecordAt.TimeLow];
    if (questionEnd < 0 || outcome >= OUTCOME_NAMES.length || timeMs >= TIME_MS_END) return null;
    const name = this.#name(questionEnd - QUESTION_TAIL_BYTES, messageEnd);
    if (name === null) return null;
    const flags = (what >>> 16) & 0xff;
    entry.isLogged = (flags & RecordFlag.NotLogged) === 0;
    entry.isCounted = (flags & RecordFlag.NotCounted) === 0;
    entry.record = null;
    entry.timeMs = timeMs;
    entry.durationUs = words[RecordAt.Duration];
    entry.outcome = outcome;
    const client = this.#client(what >>> 24, groupAt, lengths >>> 16, idAt, more >>> 16);
    const kind = this.#kind(questionEnd - QUESTION_TAIL_BYTES, reasonAt);
    const rule = (more & 0xffff) === 0 ? NO_TEXT : this.#rule(ruleAt, more & 0xffff);
    const answers = this.#answersOf(questionEnd, messageEnd);
    const { texts } = entry;
    entry.name = (texts[0] = name).text;
    entry.client = (texts[1] = client).text;
    entry.kind = (texts[2] = kind).text;
    entry.rule = (texts[3] = rule).text;
    entry.answers = (texts[4] = answers).text;
    return entry;
  }

  /** In lower case; `null` for what is no name. */
  #name(end: number, messageEnd: number): KeptText | null {
    const bytes = this.#bytes;
    // One that ends elsewhere (RFC 1035 §4.1.4) is not told by its own bytes.
    const isWhole = bytes[end - 1] === 0 && bytes[end - 2] < POINTER;
    const length = end - QUESTION_AT;
    const known = isWhole ? this.#names.find(this.words, QUESTION_AT / 4, length) : null;
    if (known !== null) return known;
    const text = readNameText(bytes.subarray(MESSAGE_AT, messageEnd), HEADER_BYTES);
    if (text === null) return null;
    const name = text.toLowerCase();
    return isWhole ? this.#names.keep(this.words, QUESTION_AT / 4, length, name) : newText(name);
  }

  #client(
    addressBytes: number,
    groupAt: number,
    groupBytes: number,
    idAt: number,
    idBytes: number,
  ): KeptText {
    const key = this.#key;
    key[0] = addressBytes | (idBytes << 8) | (groupBytes << 16);
    let length = this.#toKey(1, ADDRESS_AT, addressBytes);
    length = this.#toKey(length, idAt, idBytes);
    length = this.#toKey(length, groupAt, groupBytes);
    // An address that is not to be kept is cleared in the record as well, which others may get.
    if (this.#options.anonymize && addressBytes > 0) {
      anonymize(this.#bytes, ADDRESS_AT, addressBytes);
    }
    const known = this.#clients.find(key, 0, length * 4);
    if (known !== null) return known;
    const [group, ...name] = this.#decode(groupAt, groupBytes).split(TEXT_SEPARATOR);
    const text = clientText(
      addressBytes === 0 ? "" : formatIp(this.#bytes, ADDRESS_AT, addressBytes),
      this.#decode(idAt, idBytes),
      group,
      name.join(TEXT_SEPARATOR),
    );
    return this.#clients.keep(key, 0, length * 4, text);
  }

  /** What is behind the question's name at `typeAt` says the type. */
  #kind(typeAt: number, reasonAt: number): KeptText {
    const { words } = this;
    const key = this.#key;
    const bytes = this.#bytes;
    const what = words[RecordAt.What];
    const protocol = (what >>> 8) & 0xff;
    const flags = (what >>> 16) & 0xff;
    const upstream = words[RecordAt.Upstream];
    const type = (bytes[typeAt] << 8) | bytes[typeAt + 1];
    const rcode = bytes[MESSAGE_AT + 3] & RCODE_MASK;
    const reasonBytes = Math.min(words[RecordAt.Reason], RecordLength.Text);
    key[0] = type | (rcode << 16) | (protocol << 24);
    key[1] = upstream;
    key[2] = flags | (reasonBytes << 8);
    const length = this.#toKey(3, reasonAt, reasonBytes);
    const known = this.#kinds.find(key, 0, length * 4);
    if (known !== null) return known;
    const text = kindText(
      qtypeName(type),
      rcodeName(rcode),
      protocol,
      (flags & RecordFlag.Cached) !== 0,
      (flags >> RecordFlag.DnssecShift) & 3,
      this.#options.upstreams[upstream - 1] ?? "",
      this.#decode(reasonAt, reasonBytes).slice(0, REASON_LENGTH_MAX),
      (flags & RecordFlag.NotCounted) === 0,
    );
    return this.#kinds.keep(key, 0, length * 4, text);
  }

  /** Puts bytes of the record, from a whole word on, behind what the key has; returns its words. */
  #toKey(length: number, at: number, lengthBytes: number): number {
    const words = padded(lengthBytes) / 4;
    for (let i = 0; i < words; i++) this.#key[length + i] = this.words[at / 4 + i];
    return length + words;
  }

  #rule(at: number, lengthBytes: number): KeptText {
    return this.#rules.find(this.words, at / 4, lengthBytes) ??
      this.#rules.keep(this.words, at / 4, lengthBytes, this.#decode(at, lengthBytes));
  }

  #decode(at: number, lengthBytes: number): string {
    return lengthBytes === 0
      ? ""
      : this.#decoder.decode(this.#bytes.subarray(at, at + lengthBytes));
  }

  /** The records of the answer section, as far as the copy of the response goes. */
  #answersOf(from: number, end: number): KeptText {
    const bytes = this.#bytes;
    if ((bytes[MESSAGE_AT + 6] | bytes[MESSAGE_AT + 7]) === 0) return NO_TEXT;
    const length = this.#addressesToKey(from, end);
    const known = this.#answers.find(this.#key, 0, length);
    if (known !== null) return known;
    const text = this.#formatAnswers(bytes.subarray(MESSAGE_AT, end));
    return this.#answers.keep(this.#key, 0, length, text);
  }

  /**
   * Puts the addresses of answers that are nothing else into the key: their TTL is another each time.
   * Returns its bytes; 0 for other answers.
   */
  #addressesToKey(from: number, end: number): number {
    const bytes = this.#bytes;
    const key = this.#keyBytes;
    const count = (bytes[MESSAGE_AT + 6] << 8) | bytes[MESSAGE_AT + 7];
    if (count > KEY_ADDRESSES_MAX) return 0;
    let [at, length] = [from, 0];
    for (let i = 0; i < count; i++) {
      const type = (bytes[at + TYPE_AT] << 8) | bytes[at + TYPE_AT + 1];
      const size = type === Qtype.A ? IPV4_BYTES : type === Qtype.AAAA ? IPV6_BYTES : 0;
      const rdata = at + RDATA_AT;
      const isAddress = bytes[at] >= POINTER && size > 0 && rdata + size <= end &&
        bytes[rdata - 2] === 0 && bytes[rdata - 1] === size;
      if (!isAddress) return 0;
      key[length++] = size;
      for (let k = 0; k < size; k++) key[length++] = bytes[rdata + k];
      at = rdata + size;
    }
    return length;
  }

  #formatAnswers(message: Uint8Array): string {
    const walk = this.#walk;
    const record = this.#record;
    const answers: string[] = [];
    if (!walk.start(message, message.length)) return "";
    while (
      answers.length < ANSWERS_MAX && walk.next(record) === Walk.Record &&
      walk.section === Section.Answer
    ) {
      const { type, rdataOffset, rdataLength } = record;
      const text = formatRdata(message, type, rdataOffset, rdataLength);
      answers.push(text.slice(0, ANSWER_LENGTH_MAX));
    }
    return answers.join("\n");
  }
}

function padded(lengthBytes: number): number {
  return (lengthBytes + 3) & ~3;
}
