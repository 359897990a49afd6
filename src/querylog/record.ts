/**
 * Reads records of the queue, for who has no use for SQLite. Scope: none. RFC 1035. @module
 */
import { formatIp } from "../addr/mod.ts";
import {
  formatRdata,
  HEADER_BYTES,
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
} from "../logqueue/mod.ts";
import { clientText, kindText, type TakenEntry } from "./entry.ts";
import { anonymize } from "./filter.ts";

/** Most records of a response that an entry shows, and most characters of one. */
const ANSWERS_MAX = 16;
const ANSWER_LENGTH_MAX = 255;
/** Most characters of why an answer is not secure. */
const REASON_LENGTH_MAX = 255;
const TWO_TO_32 = 2 ** 32;
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

  constructor(options: RecordReaderOptions) {
    this.#options = options;
  }

  /** The entry that `words` has; `null` where that is none that can be read. */
  read(): TakenEntry | null {
    const { words } = this;
    const lengths = words[RecordAt.Lengths];
    const more = words[RecordAt.MoreLengths];
    const messageAt = RecordAt.End * 4;
    const groupAt = messageAt + padded(lengths & 0xffff);
    const ruleAt = groupAt + padded(lengths >>> 16);
    const idAt = ruleAt + padded(more & 0xffff);
    const reasonAt = idAt + padded(more >>> 16);
    const message = this.#bytes.subarray(messageAt, messageAt + (lengths & 0xffff));
    const name = readNameText(message, HEADER_BYTES);
    const questionEnd = skipQuestion(message, HEADER_BYTES, message.length);
    if (name === null || questionEnd < 0) return null;
    const qtype = (message[questionEnd - 4] << 8) | message[questionEnd - 3];
    const rcode = message[3] & RCODE_MASK;
    const what = words[RecordAt.What];
    const flags = (what >>> 16) & 0xff;
    const [group, clientName] = this.#pair(groupAt, lengths >>> 16);
    const outcome = what & 0xff;
    const timeMs = words[RecordAt.TimeHigh] * TWO_TO_32 + words[RecordAt.TimeLow];
    if (outcome >= OUTCOME_NAMES.length || timeMs >= TIME_MS_END) return null;
    const isCounted = (flags & RecordFlag.NotCounted) === 0;
    return {
      isLogged: (flags & RecordFlag.NotLogged) === 0,
      isCounted,
      record: null,
      timeMs,
      durationUs: words[RecordAt.Duration],
      outcome,
      name: name.toLowerCase(),
      client: clientText(
        this.#address(what >>> 24),
        this.#text(idAt, more >>> 16),
        group,
        clientName,
      ),
      kind: kindText(
        qtypeName(qtype),
        rcodeName(rcode),
        (what >>> 8) & 0xff,
        (flags & RecordFlag.Cached) !== 0,
        (flags >> RecordFlag.DnssecShift) & 3,
        this.#options.upstreams[words[RecordAt.Upstream] - 1] ?? "",
        this.#text(reasonAt, words[RecordAt.Reason]).slice(0, REASON_LENGTH_MAX),
        isCounted,
      ),
      rule: this.#text(ruleAt, more & 0xffff),
      answers: this.#answers(message),
    };
  }

  #address(lengthBytes: number): string {
    if (lengthBytes === 0) return "";
    const at = RecordAt.Address * 4;
    if (this.#options.anonymize) anonymize(this.#bytes, at, lengthBytes);
    return formatIp(this.#bytes, at, lengthBytes);
  }

  #text(at: number, lengthBytes: number): string {
    return lengthBytes === 0
      ? ""
      : this.#decoder.decode(this.#bytes.subarray(at, at + lengthBytes));
  }

  /** What stands before and behind the first separator. */
  #pair(at: number, lengthBytes: number): [string, string] {
    const text = this.#text(at, lengthBytes);
    const split = text.indexOf("\t");
    return split < 0 ? [text, ""] : [text.slice(0, split), text.slice(split + 1)];
  }

  /** The records of the answer section, as far as the copy of the response goes. */
  #answers(message: Uint8Array): string {
    const walk = this.#walk;
    const record = this.#record;
    const answers: string[] = [];
    if ((message[6] | message[7]) === 0 || !walk.start(message, message.length)) return "";
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
