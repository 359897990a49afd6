/** Some thousand entries side by side, column by column, as the file has them. */
import { OUTCOME_NAMES } from "../logqueue/mod.ts";
import { DICTIONARIES, type DictionaryName } from "./dictionary.ts";

/** An entry's number is its time in milliseconds, times this, and its place within that time. */
export const IDS_PER_MS = 1_024;
/** Entries of one segment; their texts' places in it are numbers of 16 bits. */
export const SEGMENT_ENTRIES = 2_048;
/** From its first entry's time to its last one's: 32 bits of milliseconds. */
const SPAN_IDS = 2 ** 32 * IDS_PER_MS;
const DURATION_US_MAX = 2 ** 32 - 1;

/** The head of a segment's texts, in words: its outcomes as bits, then how many texts of each kind. */
const HEAD_BYTES = 32;
/** Bytes of an entry in each column, in their order: time, duration, number, texts, outcome. */
const TIME_BYTES = 4;
const DURATION_BYTES = 4;
const PLACE_BYTES = 2;
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

/** What the file has of a segment but for its columns. */
export interface SegmentHead {
  /** Numbers of its first and last entry. */
  readonly first: number;
  readonly last: number;
  readonly count: number;
  readonly texts: Uint8Array;
}

export interface SegmentRow extends SegmentHead {
  readonly columns: Uint8Array;
}

/** Puts entries side by side, in the order of their numbers. */
export class SegmentWriter {
  readonly #ids = new Float64Array(SEGMENT_ENTRIES);
  readonly #durations = new Uint32Array(SEGMENT_ENTRIES);
  readonly #outcomes = new Uint8Array(SEGMENT_ENTRIES);
  /** Of each dictionary: the place of an entry's text among those of the segment. */
  readonly #places = DICTIONARIES.map(() => new Uint16Array(SEGMENT_ENTRIES));
  readonly #placeOf = DICTIONARIES.map(() => new Map<number, number>());
  /** Where the bytes of each segment are put together. */
  readonly #texts = new ArrayBuffer(HEAD_BYTES + 8 * DICTIONARIES.length * SEGMENT_ENTRIES);
  readonly #columns = new ArrayBuffer(SEGMENT_ENTRIES * ENTRY_BYTES);
  #count = 0;
  #mask = 0;

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
      const places = this.#placeOf[i];
      let place = places.get(numbers[i]);
      if (place === undefined) places.set(numbers[i], place = places.size);
      this.#places[i][at] = place;
    }
  }

  /** The segment of what was added since the last time; its bytes are written over by the next one. */
  take(): SegmentRow {
    const count = this.#count;
    const sizes = this.#placeOf.map(({ size }) => size);
    const textsBytes = HEAD_BYTES + 8 * sizes.reduce((sum, size) => sum + size, 0);
    const texts = this.#texts;
    new Uint32Array(texts, 0, HEAD_BYTES / 4).fill(0).set([this.#mask, ...sizes]);
    let at = HEAD_BYTES;
    for (const [i, places] of this.#placeOf.entries()) {
      const list = new Float64Array(texts, at, sizes[i]);
      let place = 0;
      for (const number of places.keys()) list[place++] = number;
      at += list.byteLength;
    }
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
    this.clear();
    return {
      first,
      last,
      count,
      texts: new Uint8Array(texts, 0, textsBytes),
      columns: new Uint8Array(columns, 0, count * ENTRY_BYTES),
    };
  }

  /** Forgets what was added since the last time. */
  clear(): void {
    this.#count = this.#mask = 0;
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
  constructor({ first, count, texts }: SegmentHead, bytes: Uint8Array) {
    if (bytes.length !== count * ENTRY_BYTES) throw new DamagedSegment("its columns are cut off");
    this.count = count;
    const { times, durations, subs, places, outcomes } = views(bytes.slice().buffer, count);
    const firstMs = Math.floor(first / IDS_PER_MS);
    this.ids = new Float64Array(count);
    for (let i = 0; i < count; i++) this.ids[i] = (firstMs + times[i]) * IDS_PER_MS + subs[i];
    this.durations = durations;
    this.outcomes = outcomes;
    this.#places = places;
    const { numbers } = readTexts(texts);
    const isKnown = isBelow(outcomes, OUTCOME_NAMES.length) &&
      DICTIONARIES.every((name, i) => isBelow(places[i], numbers[name].length));
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
 * The bits of the outcomes of a segment, and the numbers of its texts.
 *
 * @throws {DamagedSegment}
 */
export function readTexts(
  texts: Uint8Array,
): { readonly outcomes: number; readonly numbers: Readonly<Record<DictionaryName, Float64Array>> } {
  const { buffer } = texts.slice();
  if (buffer.byteLength < HEAD_BYTES) throw new DamagedSegment("its texts are cut off");
  const [outcomes, ...sizes] = new Uint32Array(buffer, 0, 1 + DICTIONARIES.length);
  const count = sizes.reduce((sum, size) => sum + size, 0);
  if (buffer.byteLength !== HEAD_BYTES + 8 * count) {
    throw new DamagedSegment("its texts are not as many as it says");
  }
  let at = HEAD_BYTES;
  const lists = DICTIONARIES.map((name, i) => {
    const list = new Float64Array(buffer, at, sizes[i]);
    at += list.byteLength;
    return [name, list] as const;
  });
  return {
    outcomes,
    numbers: Object.fromEntries(lists) as Record<DictionaryName, Float64Array>,
  };
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
