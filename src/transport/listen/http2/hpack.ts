import { readHuffman } from "./huffman.ts";
import { FieldName, readFieldName, STATIC_TABLE, type TableEntry } from "./static_table.ts";

/** Bytes of the dynamic table; what a client assumes until it is told otherwise (RFC 9113 §6.5.2). */
export const TABLE_BYTES_MAX = 4_096;
/** What a field counts beside its bytes (RFC 7541 §4.1). */
const FIELD_OVERHEAD_BYTES = 32;
const ENTRIES_MAX = TABLE_BYTES_MAX / FIELD_OVERHEAD_BYTES;
/** Largest header block, and so the largest string that is decoded. */
export const BLOCK_BYTES_MAX = 16 * 1024;
/** A Huffman code is 5 bits at least: name and value of one field grow to this. */
const SCRATCH_BYTES = BLOCK_BYTES_MAX * 8 / 5 + 1;
/** Continuation bytes of an integer: no number of a block of that size needs more. */
const INTEGER_BYTES_MAX = 4;

/** What reading a header block came to. */
export const Hpack = { Ok: 0, Malformed: -1 } as const;

/** One field, as long as the call lasts. */
export class HeaderField {
  name: FieldName = FieldName.Other;
  /** Name and value meet RFC 9113 §8.2.1. */
  valid = true;
  nameBytes: Uint8Array = NO_BYTES;
  nameStart = 0;
  nameEnd = 0;
  value: Uint8Array = NO_BYTES;
  valueStart = 0;
  valueEnd = 0;
  /** The value's bytes are a table's and never change. */
  kept = false;
}

export interface FieldSink {
  onField(field: HeaderField): void;
}

const NO_BYTES = new Uint8Array(0);
/** Strings out of Huffman codes. One for all decoders: it is read before the next field. */
const scratch = new Uint8Array(SCRATCH_BYTES);
const field = new HeaderField();

/** Reads the header blocks of one connection (RFC 7541). */
export class HpackDecoder {
  /** Newest at `#first`; a ring, so that nothing moves when one is added. */
  readonly #entries: (TableEntry | null)[] = [];
  #first = 0;
  #count = 0;
  #usedBytes = 0;
  #limitBytes = TABLE_BYTES_MAX;
  #bytes: Uint8Array = NO_BYTES;
  #at = 0;
  #end = 0;
  /** Where the string just read stands, and where the next one may go in `scratch`. */
  #string: Uint8Array = NO_BYTES;
  #stringStart = 0;
  #stringEnd = 0;
  #scratchAt = 0;

  /** Fields in the dynamic table, and their size (RFC 7541 §4.1). */
  get tableSize(): { readonly entries: number; readonly bytes: number } {
    return { entries: this.#count, bytes: this.#usedBytes };
  }

  /**
   * Reads a whole header block of at most `BLOCK_BYTES_MAX`. What is malformed leaves the table of
   * no use, so the connection has to end (RFC 9113 §4.3).
   */
  read(bytes: Uint8Array, start: number, end: number, sink: FieldSink): number {
    this.#bytes = bytes;
    this.#at = start;
    this.#end = end;
    let mayResize = true;
    while (this.#at < end) {
      const first = bytes[this.#at];
      if ((first & 0x80) !== 0) {
        const entry = this.#entry(this.#integer(7));
        if (entry === null) return Hpack.Malformed;
        show(entry);
        sink.onField(field);
      } else if ((first & 0xe0) === 0x20) {
        // A new size of the table comes before every field (RFC 7541 §4.2).
        const size = this.#integer(5);
        if (!mayResize || size < 0 || size > TABLE_BYTES_MAX) return Hpack.Malformed;
        this.#limitBytes = size;
        this.#evict(0);
        continue;
      } else {
        const isKept = (first & 0xc0) === 0x40;
        if (!this.#literal(isKept)) return Hpack.Malformed;
        sink.onField(field);
      }
      mayResize = false;
    }
    return Hpack.Ok;
  }

  /** Reads a field that is spelled out, its value at least, into `field`. */
  #literal(isKept: boolean): boolean {
    const index = this.#integer(isKept ? 6 : 4);
    if (index < 0) return false;
    this.#scratchAt = 0;
    let named: TableEntry | null = null;
    if (index > 0) {
      named = this.#entry(index);
      if (named === null) return false;
      show(named);
    } else {
      if (!this.#readString()) return false;
      field.nameBytes = this.#string;
      field.nameStart = this.#stringStart;
      field.nameEnd = this.#stringEnd;
      field.valid = isNameValid(this.#string, this.#stringStart, this.#stringEnd);
      field.name = readFieldName(this.#string, this.#stringStart, this.#stringEnd);
    }
    const nameValid = named === null ? field.valid : named.nameValid;
    if (!this.#readString()) return false;
    const valueValid = isValueValid(this.#string, this.#stringStart, this.#stringEnd);
    field.value = this.#string;
    field.valueStart = this.#stringStart;
    field.valueEnd = this.#stringEnd;
    field.valid = nameValid && valueValid;
    field.kept = false;
    if (isKept) this.#keep(named, nameValid, valueValid);
    return true;
  }

  /** Puts `field` into the table (RFC 7541 §4.4). */
  #keep(named: TableEntry | null, nameValid: boolean, valueValid: boolean): void {
    const { nameStart, nameEnd, valueStart, valueEnd } = field;
    const size = nameEnd - nameStart + valueEnd - valueStart + FIELD_OVERHEAD_BYTES;
    this.#evict(size);
    if (size > this.#limitBytes) return;
    const entry: TableEntry = {
      name: field.name,
      nameValid,
      valueValid,
      nameBytes: named === null ? field.nameBytes.slice(nameStart, nameEnd) : named.nameBytes,
      value: field.value.slice(valueStart, valueEnd),
    };
    this.#first = (this.#first + ENTRIES_MAX - 1) % ENTRIES_MAX;
    this.#entries[this.#first] = entry;
    this.#count++;
    this.#usedBytes += size;
    show(entry);
  }

  /** Makes room for `size` bytes, or as much as there is. */
  #evict(size: number): void {
    while (this.#count > 0 && this.#usedBytes + size > this.#limitBytes) {
      const last = (this.#first + this.#count - 1) % ENTRIES_MAX;
      const { nameBytes, value } = this.#entries[last]!;
      this.#usedBytes -= nameBytes.length + value.length + FIELD_OVERHEAD_BYTES;
      this.#entries[last] = null;
      this.#count--;
    }
  }

  #entry(index: number): TableEntry | null {
    if (index <= 0) return null;
    if (index <= STATIC_TABLE.length) return STATIC_TABLE[index - 1];
    const place = index - STATIC_TABLE.length - 1;
    return place < this.#count ? this.#entries[(this.#first + place) % ENTRIES_MAX] : null;
  }

  /** An integer behind a prefix of `bits` bits (RFC 7541 §5.1), or -1. */
  #integer(bits: number): number {
    const bytes = this.#bytes;
    const mask = (1 << bits) - 1;
    let value = bytes[this.#at++] & mask;
    if (value < mask) return value;
    for (let i = 0; i < INTEGER_BYTES_MAX && this.#at < this.#end; i++) {
      const byte = bytes[this.#at++];
      value += (byte & 0x7f) << (7 * i);
      if ((byte & 0x80) === 0) return value;
    }
    return -1;
  }

  #readString(): boolean {
    if (this.#at >= this.#end) return false;
    const isHuffman = (this.#bytes[this.#at] & 0x80) !== 0;
    const length = this.#integer(7);
    const start = this.#at;
    const end = start + length;
    if (length < 0 || end > this.#end) return false;
    this.#at = end;
    if (!isHuffman) {
      this.#string = this.#bytes;
      this.#stringStart = start;
      this.#stringEnd = end;
      return true;
    }
    const decodedEnd = readHuffman(this.#bytes, start, end, scratch, this.#scratchAt);
    if (decodedEnd < 0) return false;
    this.#string = scratch;
    this.#stringStart = this.#scratchAt;
    this.#stringEnd = this.#scratchAt = decodedEnd;
    return true;
  }
}

/** Has `field` show a field of a table. */
function show(entry: TableEntry): void {
  field.name = entry.name;
  field.valid = entry.nameValid && entry.valueValid;
  field.nameBytes = entry.nameBytes;
  field.nameStart = 0;
  field.nameEnd = entry.nameBytes.length;
  field.value = entry.value;
  field.valueStart = 0;
  field.valueEnd = entry.value.length;
  field.kept = true;
}

const [SPACE, TAB, DELETE, COLON] = [0x20, 0x09, 0x7f, 0x3a];
const [UPPER_A, UPPER_Z] = [0x41, 0x5a];

/** Lower case, nothing that can't be seen, and a colon only in front (RFC 9113 §8.2.1). */
function isNameValid(bytes: Uint8Array, start: number, end: number): boolean {
  for (let i = start; i < end; i++) {
    const byte = bytes[i];
    if (byte <= SPACE || byte >= DELETE || (byte >= UPPER_A && byte <= UPPER_Z)) return false;
    if (byte === COLON && i > start) return false;
  }
  return end > start;
}

/** No NUL, no line ends, no white space at either end (RFC 9113 §8.2.1). */
function isValueValid(bytes: Uint8Array, start: number, end: number): boolean {
  if (start === end) return true;
  for (let i = start; i < end; i++) {
    const byte = bytes[i];
    if (byte === 0 || byte === 0x0a || byte === 0x0d) return false;
  }
  const [first, last] = [bytes[start], bytes[end - 1]];
  return first !== SPACE && first !== TAB && last !== SPACE && last !== TAB;
}
