import { FOLD, type HashedName } from "../dns/mod.ts";
import { FIRST_ROW, ROWS_AT, State, Word } from "./automaton.ts";
import { ENTRY_NAME_BYTES, Header, HEADER_WORDS } from "./layout.ts";
import { CODE_BITS, GRAM_MASK, SHORT_MARK, SHORT_MASK } from "./literals.ts";
import { Code, CODE_OF } from "./name_codes.ts";
import { GRAM_FACTOR, GRAM_WORDS, NO_AUTOMATON, PATTERN_WORDS } from "./pattern_table.ts";

/** Longest text of a name. */
const NAME_LENGTH_MAX = 255;
/** So many patterns are tried on a name: no list that means well has as many about one. */
export const TRIES_MAX = 512;
const [DOT, STAR, CARET, BAR] = [0x2e, 0x2a, 0x5e, 0x7c];
/** What is of this module the compiler knows for good; what is imported it reads anew for each byte. */
const DOT_CODE: number = Code.Dot;
const END_CODE: number = Code.End;
const CODES: Uint8Array = CODE_OF;
const FACTOR: number = GRAM_FACTOR;
const BITS: number = CODE_BITS;

/** Finds the patterns that cover a name; made once for compiled rules that have any. */
export class PatternMatcher {
  /** Entries of the patterns found by the last `find`. */
  readonly found: Int32Array;
  readonly #bytes: Uint8Array;
  readonly #rulesAt: number;
  readonly #patterns: Int32Array;
  readonly #filter: Int32Array;
  readonly #filterShift: number;
  readonly #grams: Int32Array;
  readonly #gramShift: number;
  readonly #slotMask: number;
  readonly #hasShortGrams: boolean;
  readonly #lists: Int32Array;
  readonly #automata: Uint16Array;
  /** Grams of the name that the filter lets pass. */
  readonly #met = new Int32Array(NAME_LENGTH_MAX + 1);
  /** In which call a pattern was tried last: a name can hold a gram several times. */
  readonly #triedIn: Uint32Array;
  #call = 0;
  #count = 0;
  #tries = 0;
  /** The name as text, in lower case, once a pattern is tried on it. */
  readonly #text = new Uint8Array(NAME_LENGTH_MAX);
  #textLength = -1;

  constructor(memory: SharedArrayBuffer) {
    const header = new Uint32Array(memory, 0, HEADER_WORDS);
    const patterns = header[Header.Patterns];
    const filterBits = header[Header.FilterBits];
    const slotBits = header[Header.SlotBits];
    const listsAt = header[Header.ListsOffset];
    const automataAt = header[Header.AutomataOffset];
    this.#bytes = new Uint8Array(memory);
    this.#rulesAt = header[Header.RulesOffset];
    this.#patterns = new Int32Array(
      memory,
      header[Header.PatternsOffset],
      patterns * PATTERN_WORDS,
    );
    this.#filter = new Int32Array(memory, header[Header.FilterOffset], 2 ** filterBits / 32);
    this.#filterShift = 32 - filterBits;
    this.#grams = new Int32Array(memory, header[Header.GramsOffset], GRAM_WORDS * 2 ** slotBits);
    this.#gramShift = 32 - slotBits;
    this.#slotMask = 2 ** slotBits - 1;
    this.#hasShortGrams = header[Header.HasShortGrams] === 1;
    this.#lists = new Int32Array(memory, listsAt, (automataAt - listsAt) / 4);
    this.#automata = new Uint16Array(
      memory,
      automataAt,
      (header[Header.TextOffset] - automataAt) / 2,
    );
    this.#triedIn = new Uint32Array(patterns);
    this.found = new Int32Array(patterns);
  }

  /** Finds the patterns that cover the name; returns how many are in `found`. Leaves no garbage. */
  find(packet: Uint8Array, name: HashedName): number {
    this.#begin();
    if (this.#lists[0] > 0) this.#tryAll(0, packet, name);
    this.#tryGrams(packet, name, GRAM_MASK, 0);
    if (this.#hasShortGrams) this.#tryGrams(packet, name, SHORT_MASK, SHORT_MARK);
    return this.#count;
  }

  /** Tries the patterns that the name's grams under a mask lead to. */
  #tryGrams(packet: Uint8Array, name: HashedName, mask: number, mark: number): void {
    const filter = this.#filter;
    const shift = this.#filterShift;
    const met = this.#met;
    const { count, offsets } = name;
    const end = offsets[count];
    // Where the next label begins: there stands its length, and for a gram a label's beginning.
    let label = offsets[0];
    let gram = 0;
    let meets = 0;
    for (let at = label; at <= end; at++) {
      const byte = packet[at];
      let code = CODES[byte];
      if (at === label) {
        code = at === end ? END_CODE : DOT_CODE;
        label = at + byte + 1;
      }
      gram = ((gram << BITS) | code) & mask;
      const key = gram | mark;
      const bit = Math.imul(key, FACTOR) >>> shift;
      if (((filter[bit >>> 5] >>> (bit & 31)) & 1) !== 0) met[meets++] = key;
    }
    for (let i = 0; i < meets; i++) this.#follow(met[i], packet, name);
  }

  #begin(): void {
    this.#count = 0;
    this.#tries = 0;
    this.#textLength = -1;
    this.#call = (this.#call + 1) >>> 0;
    if (this.#call === 0) { // Numbers of calls come round.
      this.#triedIn.fill(0);
      this.#call = 1;
    }
  }

  /** Tries the patterns that a gram leads to. */
  #follow(gram: number, packet: Uint8Array, name: HashedName): void {
    const grams = this.#grams;
    let slot = Math.imul(gram, GRAM_FACTOR) >>> this.#gramShift;
    for (;; slot = (slot + 1) & this.#slotMask) {
      const known = grams[slot * GRAM_WORDS];
      if (known === 0) return;
      if (known === gram) break;
    }
    this.#tryAll(grams[slot * GRAM_WORDS + 1], packet, name);
  }

  #tryAll(list: number, packet: Uint8Array, name: HashedName): void {
    const lists = this.#lists;
    const end = list + 1 + lists[list];
    for (let i = list + 1; i < end; i++) {
      const pattern = lists[i];
      if (this.#triedIn[pattern] === this.#call) continue;
      if (this.#tries === TRIES_MAX) return;
      this.#tries++;
      this.#triedIn[pattern] = this.#call;
      if (this.#textLength < 0) this.#readText(packet, name);
      if (this.#covers(pattern)) {
        this.found[this.#count++] = this.#patterns[pattern * PATTERN_WORDS];
      }
    }
  }

  #readText(packet: Uint8Array, { count, offsets }: HashedName): void {
    const text = this.#text;
    let to = 0;
    for (let k = 0; k < count; k++) {
      if (k > 0) text[to++] = DOT;
      const end = offsets[k + 1];
      for (let at = offsets[k] + 1; at < end; at++) text[to++] = FOLD[packet[at]];
    }
    this.#textLength = to;
  }

  #covers(pattern: number): boolean {
    const automaton = this.#patterns[pattern * PATTERN_WORDS + 1];
    if (automaton !== NO_AUTOMATON) return this.#runs(automaton);
    const entry = this.#patterns[pattern * PATTERN_WORDS];
    const at = this.#rulesAt + 4 * entry + ENTRY_NAME_BYTES;
    return this.#isCovered(at + 1, at + 1 + this.#bytes[at]);
  }

  /** Says whether an automaton finds a match in the name. */
  #runs(at: number): boolean {
    const automata = this.#automata;
    const text = this.#text;
    const length = this.#textLength;
    const classes = at + Word.ClassOf;
    const rows = at + ROWS_AT - FIRST_ROW;
    let state = automata[at + Word.Start];
    for (let i = 0; i < length && state > State.Found; i++) {
      state = automata[rows + state + automata[classes + CODE_OF[text[i]]]];
    }
    if (state > State.Found) state = automata[rows + state + automata[classes + Code.End]];
    return state === State.Found;
  }

  /** Says whether the pattern whose text stands there covers the name; see `patternText`. */
  #isCovered(start: number, end: number): boolean {
    const bytes = this.#bytes;
    const text = this.#text;
    const isClosed = bytes[end - 1] === CARET;
    const stop = isClosed ? end - 1 : end;
    if (bytes[start] !== BAR) return this.#isCoveredFrom(start, stop, isClosed, 0, true);
    if (bytes[start + 1] !== BAR) return this.#isCoveredFrom(start + 1, stop, isClosed, 0, false);
    for (let i = 0; i < this.#textLength; i++) {
      const isLabel = i === 0 || text[i - 1] === DOT;
      if (isLabel && this.#isCoveredFrom(start + 2, stop, isClosed, i, false)) return true;
    }
    return false;
  }

  /** The same of what stands between a pattern's marks, from a byte of the name on. */
  #isCoveredFrom(
    start: number,
    stop: number,
    isClosed: boolean,
    from: number,
    isOpen: boolean,
  ): boolean {
    const bytes = this.#bytes;
    const text = this.#text;
    const length = this.#textLength;
    // What stands behind the last star, and where in the name it is tried.
    let star = isOpen ? start : -1;
    let retry = from;
    let i = start;
    let at = from;
    for (;;) {
      if (i === stop) {
        if (!isClosed || at === length) return true;
      } else if (bytes[i] === STAR) {
        star = ++i;
        retry = at;
        continue;
      } else if (at === length) return false; // Further on there is less left yet.
      else if (bytes[i] === text[at]) {
        i++;
        at++;
        continue;
      }
      if (star < 0 || retry === length) return false;
      i = star;
      at = ++retry;
    }
  }
}
