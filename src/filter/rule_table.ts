import { invariant } from "../errors.ts";
import {
  EMPTY_TAG,
  ENTRY_WORDS,
  Flag,
  Header,
  HEADER_WORDS,
  IDENTITY_MASK,
  identityOf,
  LOAD_MAX,
  MAGIC,
  partOf,
  PRESENCE_BITS,
  scaleFor,
  SLOT_WORDS,
  tagOf,
  VERSION,
} from "./layout.ts";
import { nameEnd } from "./names.ts";

/** Words of a further rule of a name: source and flags, text offset, number of the next. */
const MORE_WORDS = 3;
/** Slots behind the last home slot, so that a search needs not wrap around. */
const SPILL_SLOTS = 64;
const GROWTH = 1.5;
const NAMES_MIN = 64;
const MORE_MIN = 64;

/** Text is kept in chunks, so that it never has to be copied to grow, and is freed by the chunk. */
const CHUNK_SHIFT = 20;
const CHUNK_BYTES = 1 << CHUNK_SHIFT;
const CHUNK_MASK = CHUNK_BYTES - 1;
/** Offsets are 31 bits. */
const CHUNKS_MAX = 2 ** 31 / CHUNK_BYTES;

const NO_TEXT: Uint8Array = new Uint8Array(0);

/** The rules that hold, as `RuleTable.finish` writes them. */
export interface FinishedTable {
  readonly snapshot: SharedArrayBuffer;
  /** Rules that a `$badfilter` turned off, by source. */
  readonly disabled: Uint32Array;
}

/**
 * The table while it is filled: slots ordered as in the finished one, text in chunks. No object is
 * made a rule. A name with several rules has `Flag.Run` in its slot, and the slot's last word is
 * the number of its newest further rule; these are linked in a ring, so that the newest one leads
 * to the first.
 */
export class RuleTable {
  #table: Int32Array<ArrayBuffer>;
  #slots: number;
  #scale: number;
  #namesMax: number;
  #names = 0;
  #more: Int32Array<ArrayBuffer> = new Int32Array(MORE_MIN * MORE_WORDS);
  #moreCount = 0;
  #chunks: Uint8Array<ArrayBuffer>[] = [];
  #chunkUsedBytes = CHUNK_BYTES;

  /** `namesExpected` names fit without growing. */
  constructor(namesExpected: number) {
    this.#namesMax = Math.max(NAMES_MIN, namesExpected);
    const homeSlots = Math.ceil(this.#namesMax / LOAD_MAX);
    this.#scale = scaleFor(homeSlots);
    this.#slots = homeSlots + SPILL_SLOTS;
    this.#table = emptyTable(this.#slots);
  }

  /**
   * Adds a rule about the name in `wire`. `odd` is what the rule looks like where `Flag.Odd` is
   * set. Returns `false` for a rule that the source already has.
   */
  add(
    wire: Uint8Array,
    lengthBytes: number,
    hash: number,
    source: number,
    flags: number,
    odd: Uint8Array = NO_TEXT,
  ): boolean {
    const tag = tagOf(hash);
    const table = this.#table;
    let word = partOf(tag, this.#scale) * SLOT_WORDS;
    while (table[word] < tag) word += SLOT_WORDS;
    for (let at = word; table[at] === tag; at += SLOT_WORDS) {
      if (this.#holdsName(at, wire, lengthBytes)) return this.#addToName(at, source, flags, odd);
    }
    if (this.#names === this.#namesMax || !this.#makeRoom(word)) {
      this.#grow();
      return this.add(wire, lengthBytes, hash, source, flags, odd);
    }
    table[word] = tag;
    table[word + 1] = (source << 16) | flags;
    table[word + 2] = this.#putText(wire, lengthBytes, odd);
    this.#names++;
    return true;
  }

  /** Moves the slots from `word` to the next free one up; `false` where none is left. */
  #makeRoom(word: number): boolean {
    const table = this.#table;
    let end = word;
    while (table[end] !== EMPTY_TAG) end += SLOT_WORDS;
    // The last slot stays free: it ends every search.
    if (end >= (this.#slots - 1) * SLOT_WORDS) return false;
    for (let i = end + SLOT_WORDS - 1; i >= word + SLOT_WORDS; i--) {
      table[i] = table[i - SLOT_WORDS];
    }
    return true;
  }

  #grow(): void {
    const old = this.#table;
    this.#namesMax = Math.ceil(this.#namesMax * GROWTH);
    const homeSlots = Math.ceil(this.#namesMax / LOAD_MAX);
    this.#scale = scaleFor(homeSlots);
    this.#slots = spread(old, homeSlots, () => {}) + SPILL_SLOTS;
    const table = emptyTable(this.#slots);
    spread(old, homeSlots, (from, slot) => {
      const to = slot * SLOT_WORDS;
      table[to] = old[from];
      table[to + 1] = old[from + 1];
      table[to + 2] = old[from + 2];
    });
    this.#table = table;
    old.buffer.transfer(0);
  }

  /** The text offset of the slot at `word`: of its rule, or of its newest one. */
  #textOffset(word: number): number {
    const last = this.#table[word + 2];
    return (this.#table[word + 1] & Flag.Run) !== 0 ? this.#more[last * MORE_WORDS + 1] : last;
  }

  #holdsName(word: number, wire: Uint8Array, lengthBytes: number): boolean {
    const offset = this.#textOffset(word);
    const chunk = this.#chunks[offset >>> CHUNK_SHIFT];
    const start = offset & CHUNK_MASK;
    for (let i = 0; i < lengthBytes; i++) if (chunk[start + i] !== wire[i]) return false;
    return true;
  }

  /** Adds a rule to a name that has one; texts the name already has are used again. */
  #addToName(word: number, source: number, flags: number, odd: Uint8Array): boolean {
    const table = this.#table;
    const meta = (source << 16) | flags;
    const nameOffset = this.#textOffset(word);
    let offset = (flags & Flag.Odd) === 0 ? nameOffset : -1;
    if ((table[word + 1] & Flag.Run) === 0) {
      if (isDuplicate(table[word + 1], meta)) return false;
      if (this.#isSame(table[word + 1], table[word + 2], flags, odd)) offset = table[word + 2];
      const first = this.#putMore(table[word + 1], table[word + 2], this.#moreCount);
      table[word + 1] = Flag.Run;
      table[word + 2] = first;
    } else {
      const more = this.#more;
      const last = table[word + 2];
      let at = last;
      do {
        const entry = at * MORE_WORDS;
        if (isDuplicate(more[entry], meta)) return false;
        if (this.#isSame(more[entry], more[entry + 1], flags, odd)) offset = more[entry + 1];
        at = more[entry + 2];
      } while (at !== last);
    }
    if (offset < 0) {
      const chunk = this.#chunks[nameOffset >>> CHUNK_SHIFT];
      const start = nameOffset & CHUNK_MASK;
      const end = nameEnd(chunk, start);
      offset = this.#putText(chunk.subarray(start, end), end - start, odd);
    }
    const last = table[word + 2] * MORE_WORDS;
    const added = this.#putMore(meta, offset, this.#more[last + 2]);
    this.#more[last + 2] = added;
    table[word + 2] = added;
    return true;
  }

  /** Says whether a rule of the same name looks the same, whichever source it is of. */
  #isSame(meta: number, offset: number, flags: number, odd: Uint8Array): boolean {
    if ((meta & 0xffff) !== flags) return false;
    if ((flags & Flag.Odd) === 0) return true;
    const chunk = this.#chunks[offset >>> CHUNK_SHIFT];
    const at = nameEnd(chunk, offset & CHUNK_MASK);
    if (((chunk[at] << 8) | chunk[at + 1]) !== odd.length) return false;
    for (let i = 0; i < odd.length; i++) if (chunk[at + 2 + i] !== odd[i]) return false;
    return true;
  }

  #putMore(meta: number, offset: number, next: number): number {
    const at = this.#moreCount++;
    if ((at + 1) * MORE_WORDS > this.#more.length) {
      const old = this.#more;
      this.#more = new Int32Array(Math.ceil(at * GROWTH) * MORE_WORDS);
      this.#more.set(old);
      old.buffer.transfer(0);
    }
    const word = at * MORE_WORDS;
    this.#more[word] = meta;
    this.#more[word + 1] = offset;
    this.#more[word + 2] = next;
    return at;
  }

  #putText(wire: Uint8Array, lengthBytes: number, odd: Uint8Array): number {
    const total = lengthBytes + (odd.length > 0 ? 2 + odd.length : 0);
    if (this.#chunkUsedBytes + total > CHUNK_BYTES) {
      invariant(this.#chunks.length < CHUNKS_MAX, "the text of all rules is under 2 GiB");
      this.#chunks.push(new Uint8Array(CHUNK_BYTES));
      this.#chunkUsedBytes = 0;
    }
    const last = this.#chunks.length - 1;
    const chunk = this.#chunks[last];
    const start = this.#chunkUsedBytes;
    let at = start;
    for (let i = 0; i < lengthBytes; i++) chunk[at++] = wire[i];
    if (odd.length > 0) {
      chunk[at++] = odd.length >>> 8;
      chunk[at++] = odd.length;
      chunk.set(odd, at);
    }
    this.#chunkUsedBytes = start + total;
    return (last << CHUNK_SHIFT) | start;
  }

  /** Writes the snapshot and frees the table, which can't be used after. */
  finish(seed: number, sources: number): FinishedTable {
    const disabled = new Uint32Array(sources);
    const { names, rules, runEntries } = this.#applyBadfilters(disabled);
    const homeSlots = Math.max(1, Math.ceil(names / LOAD_MAX));
    const slots = spread(this.#table, homeSlots, () => {}) + 1;
    const presenceWords = Math.ceil(Math.max(1, names) * PRESENCE_BITS / 32);
    const rulesWords = slots * SLOT_WORDS + runEntries * ENTRY_WORDS;
    const textBytes = this.#chunks.length === 0
      ? 0
      : (this.#chunks.length - 1) * CHUNK_BYTES + this.#chunkUsedBytes;
    const presenceOffset = 4 * HEADER_WORDS;
    const rulesOffset = presenceOffset + 4 * presenceWords;
    const textOffset = rulesOffset + 4 * rulesWords;
    const snapshot = new SharedArrayBuffer(textOffset + textBytes);
    const header = new Uint32Array(snapshot, 0, HEADER_WORDS);
    header[Header.Magic] = MAGIC;
    header[Header.Version] = VERSION;
    header[Header.Seed] = seed;
    header[Header.Sources] = sources;
    header[Header.Names] = names;
    header[Header.Rules] = rules;
    header[Header.HomeSlots] = homeSlots;
    header[Header.PresenceOffset] = presenceOffset;
    header[Header.PresenceWords] = presenceWords;
    header[Header.RulesOffset] = rulesOffset;
    header[Header.RulesWords] = rulesWords;
    header[Header.TextOffset] = textOffset;
    header[Header.TextBytes] = textBytes;
    this.#moveText(new Uint8Array(snapshot, textOffset, textBytes));
    this.#writePresence(new Int32Array(snapshot, presenceOffset, presenceWords));
    this.#writeRules(new Int32Array(snapshot, rulesOffset, rulesWords), slots, homeSlots);
    this.#table.buffer.transfer(0);
    this.#more.buffer.transfer(0);
    return { snapshot, disabled };
  }

  /** Frees each chunk as it is copied, so that the text is never there twice. */
  #moveText(text: Uint8Array): void {
    for (let i = 0; i < this.#chunks.length; i++) {
      const chunk = this.#chunks[i];
      const start = i << CHUNK_SHIFT;
      text.set(chunk.subarray(0, Math.min(CHUNK_BYTES, text.length - start)), start);
      chunk.buffer.transfer(0);
    }
    this.#chunks = [];
  }

  #writePresence(presence: Int32Array): void {
    const table = this.#table;
    const scale = scaleFor(32 * presence.length);
    for (let word = 0; word < table.length; word += SLOT_WORDS) {
      if (table[word] === EMPTY_TAG || table[word + 1] === DROPPED) continue;
      const bit = partOf(table[word], scale);
      presence[bit >>> 5] |= 1 << (bit & 31);
    }
  }

  #writeRules(rules: Int32Array, slots: number, homeSlots: number): void {
    const table = this.#table;
    const more = this.#more;
    for (let slot = 0; slot < slots; slot++) rules[slot * SLOT_WORDS] = EMPTY_TAG;
    let entry = slots * SLOT_WORDS;
    spread(table, homeSlots, (word, slot) => {
      const to = slot * SLOT_WORDS;
      rules[to] = table[word];
      rules[to + 1] = table[word + 1];
      rules[to + 2] = table[word + 2];
      if ((table[word + 1] & Flag.Run) === 0) return;
      rules[to + 2] = entry;
      const last = table[word + 2];
      let at = last;
      do {
        at = more[at * MORE_WORDS + 2];
        if (more[at * MORE_WORDS] === DROPPED) continue;
        rules[entry] = more[at * MORE_WORDS];
        rules[entry + 1] = more[at * MORE_WORDS + 1];
        entry += ENTRY_WORDS;
      } while (at !== last);
      rules[entry - ENTRY_WORDS] |= Flag.Last;
    });
  }

  /**
   * Drops the `$badfilter` rules and what they turn off, from whichever source. Counts what is
   * left; a run of one rule becomes a plain slot again.
   */
  #applyBadfilters(disabled: Uint32Array): { names: number; rules: number; runEntries: number } {
    const table = this.#table;
    const more = this.#more;
    const turnedOff = new Uint8Array(IDENTITY_MASK + 1);
    let [names, rules, runEntries] = [0, 0, 0];
    for (let word = 0; word < table.length; word += SLOT_WORDS) {
      if (table[word] === EMPTY_TAG) continue;
      if ((table[word + 1] & Flag.Run) === 0) {
        if ((table[word + 1] & Flag.Badfilter) !== 0) {
          table[word + 1] = DROPPED;
          continue;
        }
        names++;
        rules++;
        continue;
      }
      const last = table[word + 2];
      let at = last;
      let found = false;
      do {
        const meta = more[at * MORE_WORDS];
        if ((meta & Flag.Badfilter) !== 0) {
          turnedOff[identityOf(meta)] = 1;
          found = true;
        }
        at = more[at * MORE_WORDS + 2];
      } while (at !== last);

      let kept = 0;
      let keptAt = 0;
      do {
        const entry = at * MORE_WORDS;
        const meta = more[entry];
        if (found && turnedOff[identityOf(meta)] === 1) {
          if ((meta & Flag.Badfilter) === 0) disabled[meta >>> 16]++;
          more[entry] = DROPPED;
        } else {
          kept++;
          keptAt = entry;
        }
        at = more[entry + 2];
      } while (at !== last);
      if (found) turnedOff.fill(0);
      rules += kept;
      if (kept > 0) names++;
      if (kept > 1) runEntries += kept;
      else {
        table[word + 1] = kept === 0 ? DROPPED : more[keptAt];
        table[word + 2] = more[keptAt + 1];
      }
    }
    return { names, rules, runEntries };
  }
}

/** The first word of a rule that does not hold; a rule's is never zero, as it covers something. */
const DROPPED = 0;

/** Says whether two rules of a name do the same for the same source, however they are spelled. */
function isDuplicate(a: number, b: number): boolean {
  return ((a ^ b) & ~Flag.Odd) === 0;
}

function emptyTable(slots: number): Int32Array<ArrayBuffer> {
  const table = new Int32Array(slots * SLOT_WORDS);
  for (let word = 0; word < table.length; word += SLOT_WORDS) table[word] = EMPTY_TAG;
  return table;
}

/**
 * Calls `place` with each rule's word in `table` and its slot in a table of `homeSlots`, in order:
 * its home or, where that is taken, the next slot. Returns how many slots this takes, one for every
 * home at least.
 */
function spread(
  table: Int32Array,
  homeSlots: number,
  place: (word: number, slot: number) => void,
): number {
  const scale = scaleFor(homeSlots);
  let next = 0;
  for (let word = 0; word < table.length; word += SLOT_WORDS) {
    const tag = table[word];
    if (tag === EMPTY_TAG || table[word + 1] === DROPPED) continue;
    const slot = Math.max(next, partOf(tag, scale));
    place(word, slot);
    next = slot + 1;
  }
  return Math.max(next, homeSlots);
}
