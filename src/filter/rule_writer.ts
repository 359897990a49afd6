import {
  DROPPED,
  EMPTY_TAG,
  type FilledTable,
  MORE_WORDS,
  SLOT_WORDS,
  type TextChunks,
} from "./filled_table.ts";
import {
  BUCKET_NAMES,
  bucketHeadWords,
  COUNT_BYTES,
  ENTRY_NAME_BYTES,
  entryWords,
  Flag,
  hasExtra,
  hasTail,
  hasValue,
  Header,
  HEADER_WORDS,
  INDEX_WORDS,
  isPattern,
  Kind,
  kindOf,
  MAGIC,
  MARK_MASK,
  MARK_SHIFT,
  partOf,
  PRESENCE_MASK,
  RUN_WORDS,
  scaleFor,
  TAIL_HEAD_BYTES,
  VERSION,
} from "./layout.ts";
import { nameEnd, patternAt } from "./names.ts";
import type { PatternTable } from "./pattern_table.ts";

/** Writes the rules of a filled table, which stays as it is. */
export function writeRules(
  filled: FilledTable,
  patterns: PatternTable,
  seed: number,
  sources: number,
): SharedArrayBuffer {
  const buckets = Math.max(1, Math.ceil(filled.names / BUCKET_NAMES));
  const indexWords = buckets * INDEX_WORDS;
  const sourceWords = (sources + 31) >>> 5;
  const bucketsStart = filled.runEntries * RUN_WORDS;
  // A bucket's head is half a word a name, and up to one more.
  const headWordsMax = Math.ceil(filled.names / 2) + buckets;
  const rulesWords = bucketsStart + filled.entryWordsMax + headWordsMax;
  const indexOffset = 4 * HEADER_WORDS;
  const rulesOffset = indexOffset + 4 * indexWords;
  const sourcesOffset = rulesOffset + 4 * rulesWords;
  const patternsOffset = sourcesOffset + 4 * sourceWords;
  const textOffset = patternsOffset + (patterns.size === 0 ? 0 : 4 * patterns.sections().end);
  const memory = new SharedArrayBuffer(textOffset + filled.tailBytesMax);
  const header = new Uint32Array(memory, 0, HEADER_WORDS);
  header[Header.Magic] = MAGIC;
  header[Header.Version] = VERSION;
  header[Header.Seed] = seed;
  header[Header.Sources] = sources;
  header[Header.Names] = filled.names;
  header[Header.Rules] = filled.rules;
  header[Header.Buckets] = buckets;
  header[Header.IndexOffset] = indexOffset;
  header[Header.RulesOffset] = rulesOffset;
  header[Header.RulesWords] = rulesWords;
  header[Header.BucketsStart] = bucketsStart;
  header[Header.SourcesOffset] = sourcesOffset;
  header[Header.TextOffset] = textOffset;
  const writer = new RuleWriter(filled, patterns, {
    index: new Int32Array(memory, indexOffset, indexWords),
    rules: new Int32Array(memory, rulesOffset, rulesWords),
    ruleBytes: new Uint8Array(memory, rulesOffset, 4 * rulesWords),
    addressSources: new Uint32Array(memory, sourcesOffset, sourceWords),
    text: new Uint8Array(memory, textOffset, filled.tailBytesMax),
  });
  writer.write();
  header[Header.AddressLengths] = writer.addressLengths;
  if (patterns.size > 0) patterns.write(memory, patternsOffset);
  return memory;
}

/** Calls `visit` with each rule of the slot at `word`: its source and flags, and its text offset. */
function eachRule(
  { table, more }: FilledTable,
  word: number,
  visit: (meta: number, offset: number) => void,
): void {
  if ((table[word + 1] & Flag.Run) === 0) {
    visit(table[word + 1], table[word + 2]);
    return;
  }
  const last = table[word + 2];
  let at = last;
  do {
    at = more[at * MORE_WORDS + 2];
    const meta = more[at * MORE_WORDS];
    if (meta !== DROPPED) visit(meta, more[at * MORE_WORDS + 1]);
  } while (at !== last);
}

/** Where the name of the slot at `word` is in the text. */
function nameOffset({ table, more }: FilledTable, word: number): number {
  const isRun = (table[word + 1] & Flag.Run) !== 0;
  return isRun ? more[table[word + 2] * MORE_WORDS + 1] : table[word + 2];
}

function isFree(table: Int32Array, word: number): boolean {
  return table[word] === EMPTY_TAG || table[word + 1] === DROPPED;
}

/** What stands behind the name of a rule: its value and its odd text, as far as it has them. */
function tailOf(text: TextChunks, meta: number, offset: number): Uint8Array {
  const chunk = text.chunkOf(offset);
  const start = nameEnd(chunk, text.startOf(offset));
  let end = start;
  if (hasValue(meta)) end += 1 + chunk[end];
  if ((meta & Flag.Odd) !== 0) end += 2 + ((chunk[end] << 8) | chunk[end + 1]);
  return chunk.subarray(start, end);
}

/** The sections of compiled rules but for their header. */
interface Sections {
  readonly index: Int32Array;
  /** Runs and entries, as words and as bytes. */
  readonly rules: Int32Array;
  readonly ruleBytes: Uint8Array;
  readonly addressSources: Uint32Array;
  readonly text: Uint8Array;
}

class RuleWriter {
  addressLengths = 0;
  readonly #filled: FilledTable;
  readonly #patterns: PatternTable;
  readonly #to: Sections;
  /** Where the next bucket, the next rule of a run and the next tail go. */
  #end: number;
  #run = 0;
  #textBytes = 0;
  /** Where the tails of the name's rules are, by their offsets in the filled table. */
  readonly #tails = new Map<number, number>();

  constructor(filled: FilledTable, patterns: PatternTable, to: Sections) {
    this.#filled = filled;
    this.#patterns = patterns;
    this.#to = to;
    this.#end = filled.runEntries * RUN_WORDS;
  }

  write(): void {
    const filled = this.#filled;
    const { table } = filled;
    const { index } = this.#to;
    const scale = scaleFor(index.length / INDEX_WORDS);
    const words: number[] = [];
    // Slots stand in the order of their tags, and so of their buckets.
    for (let word = 0; word < table.length;) {
      if (isFree(table, word)) {
        word += SLOT_WORDS;
        continue;
      }
      const bucket = partOf(table[word], scale);
      words.length = 0;
      let presence = 0;
      for (; word < table.length; word += SLOT_WORDS) {
        if (isFree(table, word)) continue;
        const tag = table[word];
        if (partOf(tag, scale) !== bucket) break;
        presence |= 1 << (tag & PRESENCE_MASK);
        words.push(word);
      }
      index[bucket * INDEX_WORDS] = this.#end;
      index[bucket * INDEX_WORDS + 1] = presence;
      this.#writeBucket(words);
    }
  }

  /** Writes the names of the slots at `words`. */
  #writeBucket(words: readonly number[]): void {
    const { ruleBytes } = this.#to;
    const { table } = this.#filled;
    const count = words.length;
    const head = 4 * this.#end;
    ruleBytes[head] = count >>> 8;
    ruleBytes[head + 1] = count;
    let before = this.#end;
    this.#end += bucketHeadWords(count);
    for (let i = 0; i < count; i++) {
      const mark = head + COUNT_BYTES + i;
      const entry = this.#end + (hasExtra(table[words[i] + 1]) ? 1 : 0);
      ruleBytes[mark] = (table[words[i]] >>> MARK_SHIFT) & MARK_MASK;
      ruleBytes[mark + count] = entry - before;
      this.#end = entry + this.#writeEntry(words[i], entry);
      before = entry;
    }
  }

  /** Writes the name of the slot at `word` and its rules; returns the words of its entry. */
  #writeEntry(word: number, entry: number): number {
    const { rules, ruleBytes } = this.#to;
    const { table, text } = this.#filled;
    const meta = table[word + 1];
    const offset = nameOffset(this.#filled, word);
    const chunk = text.chunkOf(offset);
    const start = text.startOf(offset);
    const nameBytes = nameEnd(chunk, start) - start;
    rules[entry] = meta;
    const at = 4 * entry + ENTRY_NAME_BYTES;
    for (let i = 0; i < nameBytes; i++) ruleBytes[at + i] = chunk[start + i];
    this.#tails.clear();
    if (isPattern(this.#firstOf(word))) this.#patterns.place(patternAt(chunk, start), entry);
    if ((meta & Flag.Run) === 0) {
      if (hasTail(meta)) rules[entry - 1] = this.#writeTail(meta, offset, entry);
      this.#noteAddress(meta, nameBytes);
    } else {
      rules[entry - 1] = this.#run;
      eachRule(this.#filled, word, (meta, offset) => {
        rules[this.#run] = meta;
        rules[this.#run + 1] = hasTail(meta) ? this.#writeTail(meta, offset, entry) : entry;
        this.#run += RUN_WORDS;
        this.#noteAddress(meta, nameBytes);
      });
      rules[this.#run - RUN_WORDS] |= Flag.Last;
    }
    return entryWords(nameBytes);
  }

  /** Source and flags of one of the rules of the slot at `word`. */
  #firstOf(word: number): number {
    const { table, more } = this.#filled;
    return (table[word + 1] & Flag.Run) === 0
      ? table[word + 1]
      : more[table[word + 2] * MORE_WORDS];
  }

  /** Writes a tail behind the number of its entry; one that is there already is used again. */
  #writeTail(meta: number, offset: number, entry: number): number {
    const known = this.#tails.get(offset);
    if (known !== undefined) return known;
    const { text } = this.#to;
    const to = this.#textBytes;
    text[to] = entry >>> 24;
    text[to + 1] = entry >>> 16;
    text[to + 2] = entry >>> 8;
    text[to + 3] = entry;
    const tail = tailOf(this.#filled.text, meta, offset);
    text.set(tail, to + TAIL_HEAD_BYTES);
    this.#textBytes += TAIL_HEAD_BYTES + tail.length;
    this.#tails.set(offset, to);
    return to;
  }

  #noteAddress(meta: number, nameBytes: number): void {
    if (kindOf(meta) !== Kind.Address || (meta & Flag.Badfilter) !== 0) return;
    const source = meta >>> 16;
    this.#to.addressSources[source >>> 5] |= 1 << (source & 31);
    // A length, a mark, two digits an octet and the root's zero.
    this.addressLengths |= 1 << ((nameBytes - 3) / 2);
  }
}
