/** Some thousand entries side by side, column by column, as the file has them. */
import { OUTCOME_NAMES } from "../logqueue/mod.ts";
import { HASH_FACTOR } from "./byte_texts.ts";
import { DICTIONARIES, type DictionaryName } from "./dictionary.ts";

/** An entry's number is its time in milliseconds, times this, and its place within that time. */
export const IDS_PER_MS = 1_024;
/** Entries of one segment; their texts' places in it are numbers of 16 bits. */
export const SEGMENT_ENTRIES = 2_048;
/** From its first entry's time to its last one's: 32 bits of milliseconds. */
const SPAN_IDS = 2 ** 32 * IDS_PER_MS;
const DURATION_US_MAX = 2 ** 32 - 1;

/** Bytes of an entry in each column, in their order: time, duration, number, texts, outcome. */
const TIME_BYTES = 4;
const DURATION_BYTES = 4;
const PLACE_BYTES = 2;
/** Bytes of a text's number in a list. */
const NARROW_BYTES = 4;
const WIDE_BYTES = 8;
const NARROW_MAX = 2 ** 32 - 1;
const ENTRY_BYTES = TIME_BYTES + DURATION_BYTES + PLACE_BYTES * (1 + DICTIONARIES.length) + 1;

/** A segment whose bytes do not fit each other: the file is damaged. */
export class DamagedSegment extends Error {}

/** An entry as it is written: its texts are numbers, one of each dictionary, 0 for none. */
export interface SegmentEntry {
  readonly id: number;
  readonly durationUs: number;
  readonly outcome: number;
  readonly numbers: ArrayLike<number>;
}

/** What the file has of a segment beside its lists and columns. */
export interface SegmentHead {
  /** Numbers of its first and last entry. */
  readonly first: number;
  readonly last: number;
  readonly count: number;
  /** Those that its entries have, as bits. */
  readonly outcomes: number;
  /** Bytes of a number in its lists: 4, or 8 where one needs more than 32 bits. */
  readonly width: number;
}

export interface SegmentRow extends SegmentHead {
  /** Of each dictionary the numbers of the texts that its entries have. */
  readonly lists: readonly Uint8Array[];
  readonly columns: Uint8Array;
}

/** Numbers of texts. */
export type Numbers = Uint32Array | Float64Array;
export type Lists = Readonly<Record<DictionaryName, Numbers>>;

/** Slots of a table of places, a power of two. */
const PLACE_SLOTS = 2 * SEGMENT_ENTRIES;
const HASH_SHIFT = 32 - Math.log2(PLACE_SLOTS);

/** Numbers of texts in the order that they came first, and the place of each. Leaves no garbage. */
class Places {
  readonly #list = new Float64Array(SEGMENT_ENTRIES);
  /** Open addressing: places behind each other; a slot is one's while it has the present round. */
  readonly #slots = new Uint16Array(PLACE_SLOTS);
  readonly #rounds = new Uint32Array(PLACE_SLOTS);
  #round = 1;
  #size = 0;

  /** The numbers, by their places. */
  get list(): Float64Array {
    return this.#list.subarray(0, this.#size);
  }

  of(number: number): number {
    let slot = Math.imul(number, HASH_FACTOR) >>> HASH_SHIFT;
    for (; this.#rounds[slot] === this.#round; slot = (slot + 1) & (PLACE_SLOTS - 1)) {
      const place = this.#slots[slot];
      if (this.#list[place] === number) return place;
    }
    this.#rounds[slot] = this.#round;
    this.#slots[slot] = this.#size;
    this.#list[this.#size] = number;
    return this.#size++;
  }

  clear(): void {
    this.#size = 0;
    this.#round = (this.#round + 1) >>> 0;
    // Rounds begin anew after 2^32 segments.
    if (this.#round === 0) this.#rounds.fill(this.#round++);
  }
}

/** Puts entries side by side, in the order of their numbers. */
export class SegmentWriter {
  readonly #ids = new Float64Array(SEGMENT_ENTRIES);
  readonly #durations = new Uint32Array(SEGMENT_ENTRIES);
  readonly #outcomes = new Uint8Array(SEGMENT_ENTRIES);
  /** Of each dictionary: the place of an entry's text among those of the segment. */
  readonly #places = DICTIONARIES.map(() => new Uint16Array(SEGMENT_ENTRIES));
  readonly #placeOf = DICTIONARIES.map(() => new Places());
  /** Where the bytes of each segment are put together. */
  readonly #lists = DICTIONARIES.map(() => new ArrayBuffer(WIDE_BYTES * SEGMENT_ENTRIES));
  readonly #columns = new ArrayBuffer(SEGMENT_ENTRIES * ENTRY_BYTES);
  #count = 0;
  #mask = 0;
  #isWide = false;

  get count(): number {
    return this.#count;
  }

  /** Says whether an entry of this number finds room in it. */
  takes(id: number): boolean {
    return this.#count === 0 ||
      this.#count < SEGMENT_ENTRIES && id - this.#ids[0] < SPAN_IDS - IDS_PER_MS;
  }

  /** Adds an entry; `numbers` are those of its texts, as `SegmentEntry` has them. */
  add(id: number, durationUs: number, outcome: number, numbers: ArrayLike<number>): void {
    const at = this.#count++;
    this.#ids[at] = id;
    this.#durations[at] = Math.min(durationUs, DURATION_US_MAX);
    this.#outcomes[at] = outcome;
    this.#mask |= 1 << outcome;
    for (let i = 0; i < DICTIONARIES.length; i++) {
      this.#isWide ||= numbers[i] > NARROW_MAX;
      this.#places[i][at] = this.#placeOf[i].of(numbers[i]);
    }
  }

  /** The segment of what was added since the last time; its bytes are written over by the next one. */
  take(): SegmentRow {
    const count = this.#count;
    const width = this.#isWide ? WIDE_BYTES : NARROW_BYTES;
    const lists = this.#placeOf.map(({ list: numbers }, i) => {
      const list = numbersIn(this.#lists[i], numbers.length, width);
      list.set(numbers);
      return new Uint8Array(list.buffer, 0, list.byteLength);
    });
    const first = this.#ids[0];
    const last = this.#ids[count - 1];
    const columns = this.#columns;
    const { times, durations, subs, places, outcomes } = views(columns, count);
    const firstMs = Math.floor(first / IDS_PER_MS);
    for (let i = 0; i < count; i++) {
      const ms = Math.floor(this.#ids[i] / IDS_PER_MS);
      times[i] = ms - firstMs;
      subs[i] = this.#ids[i] - ms * IDS_PER_MS;
    }
    durations.set(this.#durations.subarray(0, count));
    for (const [i, column] of this.#places.entries()) places[i].set(column.subarray(0, count));
    outcomes.set(this.#outcomes.subarray(0, count));
    const outcomeBits = this.#mask;
    this.clear();
    return {
      ...{ first, last, count, outcomes: outcomeBits, width, lists },
      columns: new Uint8Array(columns, 0, count * ENTRY_BYTES),
    };
  }

  /** Forgets what was added since the last time. */
  clear(): void {
    this.#count = this.#mask = 0;
    this.#isWide = false;
    for (const places of this.#placeOf) places.clear();
  }
}

/** Entries of a segment, the oldest first. */
export class Columns {
  readonly count: number;
  readonly ids: Float64Array;
  readonly durations: Uint32Array;
  readonly outcomes: Uint8Array;
  readonly #places: readonly Uint16Array[];

  /** @throws {DamagedSegment} */
  constructor({ first, count }: SegmentHead, bytes: Uint8Array, lists: Lists) {
    if (bytes.length !== count * ENTRY_BYTES) throw new DamagedSegment("its columns are cut off");
    this.count = count;
    const { times, durations, subs, places, outcomes } = views(bytes.slice().buffer, count);
    const firstMs = Math.floor(first / IDS_PER_MS);
    this.ids = new Float64Array(count);
    for (let i = 0; i < count; i++) this.ids[i] = (firstMs + times[i]) * IDS_PER_MS + subs[i];
    this.durations = durations;
    this.outcomes = outcomes;
    this.#places = places;
    const isKnown = isBelow(outcomes, OUTCOME_NAMES.length) &&
      DICTIONARIES.every((name, i) => isBelow(places[i], lists[name].length));
    if (!isKnown) throw new DamagedSegment("an entry has a text or an outcome that there is not");
  }

  /** For each entry the place of its text in the segment's list of them. */
  places(name: DictionaryName): Uint16Array {
    return this.#places[DICTIONARIES.indexOf(name)];
  }

  /** The first entry with this number or a later one; `count` where there is none. */
  indexOf(id: number): number {
    let [low, high] = [0, this.count];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.ids[middle] < id) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

/**
 * The numbers in a list.
 *
 * @throws {DamagedSegment}
 */
export function readList({ width }: SegmentHead, bytes: Uint8Array): Numbers {
  const isFit = (width === NARROW_BYTES || width === WIDE_BYTES) && bytes.length % width === 0;
  if (!isFit) throw new DamagedSegment("a list of its texts is cut off");
  return numbersIn(bytes.slice().buffer, bytes.length / width, width);
}

function numbersIn(buffer: ArrayBuffer, count: number, width: number): Numbers {
  return width === WIDE_BYTES
    ? new Float64Array(buffer, 0, count)
    : new Uint32Array(buffer, 0, count);
}

/** The columns within a segment's bytes: the widest first, so that each is aligned. */
function views(buffer: ArrayBuffer, count: number) {
  const times = new Uint32Array(buffer, 0, count);
  const durations = new Uint32Array(buffer, TIME_BYTES * count, count);
  let at = (TIME_BYTES + DURATION_BYTES) * count;
  const [subs, ...places] = Array.from({ length: 1 + DICTIONARIES.length }, () => {
    const column = new Uint16Array(buffer, at, count);
    at += column.byteLength;
    return column;
  });
  return { times, durations, subs, places, outcomes: new Uint8Array(buffer, at, count) };
}

function isBelow(column: Uint8Array | Uint16Array, limit: number): boolean {
  for (let i = 0; i < column.length; i++) if (column[i] >= limit) return false;
  return true;
}
