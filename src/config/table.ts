import { formatKeyPath, type KeyPath, quote, type Severity } from "./problem.ts";
import { suggest } from "./suggest.ts";

/** Takes a problem where it is found. */
export type Report = (path: KeyPath, message: string, severity: Severity) => void;

/** A place in the file: what is wrong there is reported there, unless it is silent. */
export class Place {
  readonly #report: Report | null;

  constructor(report: Report | null, readonly path: KeyPath) {
    this.#report = report;
  }

  get isSilent(): boolean {
    return this.#report === null;
  }

  at(step: string | number): Place {
    return new Place(this.#report, [...this.path, step]);
  }

  /** Reports a problem; `null` says to the caller that there is no value. */
  problem(message: string, severity: Severity = "error"): null {
    this.#report?.(this.path, message, severity);
    return null;
  }

  toString(): string {
    return formatKeyPath(this.path);
  }
}

/** Decodes a value of the file. `null` means that its problem is reported. */
export type Reader<T> = (value: unknown, place: Place) => T | null;

type RawTable = Readonly<Record<string, unknown>>;

/** Says whether a value of the parser is a table; dates are objects too. */
function isTable(value: unknown): value is RawTable {
  return typeof value === "object" && value !== null && !Array.isArray(value) &&
    !(value instanceof Date);
}

/** What a value is, in the words of TOML. */
export function kindOf(value: unknown): string {
  if (typeof value === "string") return "a string";
  if (typeof value === "boolean") return "a boolean";
  if (typeof value === "number") return Number.isInteger(value) ? "an integer" : "a float";
  if (Array.isArray(value)) return "an array";
  return isTable(value) ? "a table" : "a date";
}

/**
 * A table of the file. Each key is asked for by name with its default, written as the file would
 * have it; what nobody asked for is unknown.
 */
export class Table {
  readonly #value: RawTable;
  readonly #known = new Set<string>();

  constructor(value: RawTable, readonly place: Place) {
    this.#value = value;
  }

  has(key: string): boolean {
    return Object.hasOwn(this.#value, key);
  }

  /** The key's value, or that of `fallback` where the key is left out or wrong. */
  read<T>(key: string, reader: Reader<T>, fallback: unknown): T {
    const value = this.optional(key, reader);
    if (value !== null) return value;
    // A wrong value is reported already; its default must not be as well.
    const place = this.has(key) ? new Place(null, this.place.path) : this.place;
    const byDefault = reader(fallback, place.at(key));
    if (byDefault === null) throw new TypeError(`${this.place.at(key)}: the default is no value`);
    return byDefault;
  }

  /** The key's value, or `null` where the key is left out or wrong. */
  optional<T>(key: string, reader: Reader<T>): T | null {
    this.#known.add(key);
    return this.has(key) ? reader(this.#value[key], this.place.at(key)) : null;
  }

  /** The key's value, or `null` where it is wrong; leaving it out is a problem. */
  required<T>(key: string, reader: Reader<T>): T | null {
    if (!this.has(key)) this.place.at(key).problem("is missing: the table is of no use without it");
    return this.optional(key, reader);
  }

  /** The table below `key`; a table left out is an empty one. */
  table<T>(key: string, read: (table: Table) => T): T {
    const value = this.optional(key, (raw, place) => {
      if (isTable(raw)) return raw;
      if (!Array.isArray(raw)) return place.problem(`is ${kindOf(raw)}, not a table: ${hint(key)}`);
      return place.problem(`is given more than once or as an array: ${hint(key)}`);
    });
    // What is no table at all is one problem, not one for each key that it lacks.
    const isWrong = value === null && this.has(key);
    const place = isWrong ? new Place(null, this.place.path) : this.place;
    return readWhole(new Table(value ?? {}, place.at(key)), read);
  }

  /**
   * The array of tables below `key`, with holes where `read` finds one wrong: each keeps its index,
   * by which later checks name it.
   */
  tables<T>(key: string, countMax: number, read: (table: Table) => T | null): T[] {
    const values = this.optional(key, (raw, place) => {
      if (Array.isArray(raw)) return raw as unknown[];
      const header = formatKeyPath(this.place.path.concat(key));
      return place.problem(`is ${kindOf(raw)}, not an array of tables: head each [[${header}]]`);
    });
    const found: T[] = [];
    for (const [index, raw] of boundedEntries(values ?? [], countMax, this.place.at(key))) {
      const place = this.place.at(key).at(index);
      if (!isTable(raw)) {
        place.problem(`is ${kindOf(raw)}, not a table`);
        continue;
      }
      const value = readWhole(new Table(raw, place), read);
      if (value !== null) found[index] = value;
    }
    return found;
  }

  /** Reports every key that nobody asked for. */
  reportUnknown(): void {
    for (const key of Object.keys(this.#value)) {
      if (this.#known.has(key)) continue;
      const meant = suggest(key, this.#known);
      const path = formatKeyPath(this.place.path);
      const where = path === "" ? "here" : `in ${path}`;
      const known = `known ${where}: ${[...this.#known].sort().join(", ")}`;
      const kind = isTable(this.#value[key]) ? "table" : "key";
      this.place.at(key).problem(
        meant === null
          ? `is an unknown ${kind}; ${known}`
          : `is an unknown ${kind}: did you mean ${meant}?`,
      );
    }
  }
}

function hint(key: string): string {
  return `write it below one [${key}] header`;
}

/** Reads a table and reports what is left over. */
export function readWhole<T>(table: Table, read: (table: Table) => T): T {
  const value = read(table);
  table.reportUnknown();
  return value;
}

/** The entries of an array up to `countMax`; more are one problem. */
function boundedEntries(
  values: readonly unknown[],
  countMax: number,
  place: Place,
): [number, unknown][] {
  if (values.length > countMax) {
    place.problem(`has ${values.length} entries, more than ${countMax}: take some away`);
  }
  return [...values.slice(0, countMax).entries()];
}

/**
 * An array whose elements `reader` decodes, without those it finds wrong. Equal elements, told by
 * `identify`, are a problem: one of them is usually a slip.
 */
export function arrayOf<T>(
  reader: Reader<T>,
  countMax: number,
  identify?: (value: T) => string,
): Reader<T[]> {
  return (value, place) => {
    if (!Array.isArray(value)) {
      return place.problem(`is ${kindOf(value)}, not an array: put it in [brackets]`);
    }
    const found: T[] = [];
    const seen = new Map<string, number>();
    for (const [index, raw] of boundedEntries(value, countMax, place)) {
      const element = reader(raw, place.at(index));
      if (element === null) continue;
      found.push(element);
      const identity = identify?.(element);
      if (identity === undefined) continue;
      const first = seen.get(identity);
      if (first === undefined) seen.set(identity, index);
      else {place.at(index).problem(
          `repeats ${quote(identity)} of ${place.at(first)}: take one away`,
        );}
    }
    return found;
  };
}
