import type { DatabaseSync } from "node:sqlite";
import { OUTCOME_NAMES, TEXT_SEPARATOR } from "../logqueue/mod.ts";
import type { DictionaryName } from "./dictionary.ts";
import type { LogFilter } from "./entry.ts";
import { clientStart, foldedName, kindPattern, subjectTest } from "./filter.ts";
import type { Columns } from "./segment.ts";
import type { EntryReader, Part } from "./segments.ts";

/** Names that are looked up before entries are; more of them are everywhere in the log. */
const NAMES_MAX = 50_000;
/** Shorter texts have no three letters to be found by. */
const TRIGRAM_LENGTH = 3;

/** Says whether a text's number is one of those that are wanted. */
type NumberTest = (number: number) => boolean;

/** Says whether the entry at a place passes. */
export type EntryTest = (index: number) => boolean;

/** What a filter asks for, by the numbers of texts. */
export class Wanted {
  readonly #outcomes: number;
  readonly #tests: readonly (readonly [DictionaryName, NumberTest])[];

  /** `outcomes` are bits; of the tests the cheapest comes first. */
  constructor(outcomes: number, tests: readonly (readonly [DictionaryName, NumberTest])[]) {
    this.#outcomes = outcomes;
    this.#tests = tests;
  }

  /** What passes of a part of the log; `null`: nothing, which needs no look at its entries. */
  in(part: Part): ((columns: Columns) => EntryTest) | null {
    if ((part.outcomes & this.#outcomes) === 0) return null;
    const passing: [DictionaryName, Uint8Array][] = [];
    for (const [name, test] of this.#tests) {
      const list = part.list(name);
      const passes = new Uint8Array(list.length);
      for (let i = 0; i < list.length; i++) if (test(list[i])) passes[i] = 1;
      if (!passes.includes(1)) return null;
      passing.push([name, passes]);
    }
    return (columns) => {
      const tests = passing.map(([name, passes]) => [columns.places(name), passes] as const);
      return (index) => {
        if ((this.#outcomes >> columns.outcomes[index] & 1) === 0) return false;
        for (const [places, passes] of tests) if (passes[places[index]] === 0) return false;
        return true;
      };
    };
  }
}

/** Finds the numbers of the texts that filters ask for. */
export class Conditions {
  readonly #db: DatabaseSync;
  readonly #reader: EntryReader;
  readonly #isAnonymized: boolean;

  /** `isAnonymized` says that the log has but the start of each address. */
  constructor(db: DatabaseSync, reader: EntryReader, isAnonymized: boolean) {
    this.#db = db;
    this.#reader = reader;
    this.#isAnonymized = isAnonymized;
  }

  /** What a filter asks for; `null` where nothing can pass it. */
  of(filter: LogFilter): Wanted | null {
    // No text of the log has it, and SQL ends there.
    if (Object.values(filter).some((value) => typeof value === "string" && value.includes("\0"))) {
      return null;
    }
    const { outcomes = OUTCOME_NAMES, list } = filter;
    const numbers: [DictionaryName, Iterable<number>][] = [];
    const kind = kindPattern(filter);
    if (kind !== null) {
      numbers.push(["kinds", this.#numbers("SELECT id FROM kinds WHERE text GLOB ?", kind)]);
    }
    const clients = this.#clients(filter);
    if (clients !== null) numbers.push(["clients", clients]);
    if (list !== undefined) {
      const start = list + TEXT_SEPARATOR;
      const sql = "SELECT id FROM rules WHERE text >= ? AND text < ?";
      numbers.push(["rules", this.#numbers(sql, start, `${start}\u{10ffff}`)]);
    }
    const tests: [DictionaryName, NumberTest][] = [];
    for (const [name, wanted] of numbers) {
      const set = new Set(wanted);
      if (set.size === 0) return null;
      tests.push([name, (number) => set.has(number)]);
    }
    if (filter.name !== undefined) {
      const test = this.#nameTest(foldedName(filter.name));
      if (test === null) return null;
      tests.push(["names", test]);
    }
    const bits = outcomes.reduce((mask, name) => mask | 1 << OUTCOME_NAMES.indexOf(name), 0);
    return new Wanted(bits, tests);
  }

  #numbers(sql: string, ...values: (string | number)[]): number[] {
    return this.#db.prepare(sql).all(...values).map(({ id }) => Number(id));
  }

  /** The numbers of the clients that are asked for; `null`: all are. */
  #clients({ client, clients, group }: LogFilter): number[] | null {
    const one = subjectTest(
      { ...(client !== undefined && { clients: [client] }), ...(group !== undefined && { group }) },
      this.#isAnonymized,
    );
    const some = subjectTest({ ...(clients !== undefined && { clients }) }, this.#isAnonymized);
    if (one === null && some === null) return null;
    const start = client === undefined ? null : clientStart(client, this.#isAnonymized);
    // Behind every text that starts so: a tab is followed by no higher byte than these.
    const rows = start === null
      ? this.#db.prepare("SELECT id, text FROM clients").all()
      : this.#db.prepare("SELECT id, text FROM clients WHERE text >= ? AND text < ?")
        .all(start, `${start}\u{10ffff}`);
    return rows.filter(({ text }) =>
      (one === null || one(String(text))) && (some === null || some(String(text)))
    ).map(({ id }) => Number(id));
  }

  /** Says which names have a text; `null` where there are none. */
  #nameTest(text: string): NumberTest | null {
    const found = text.length >= TRIGRAM_LENGTH
      ? this.#numbers(
        "SELECT rowid AS id FROM names_text WHERE names_text MATCH ? LIMIT ?",
        `"${text.replaceAll('"', '""')}"`,
        NAMES_MAX,
      )
      : this.#numbers("SELECT id FROM names WHERE instr(text, ?) LIMIT ?", text, NAMES_MAX);
    if (found.length === 0) return null;
    const known = new Map(found.map((number) => [number, true]));
    if (found.length < NAMES_MAX) return (number) => known.has(number);
    return (number) => {
      let passes = known.get(number);
      if (passes === undefined) {
        known.set(number, passes = this.#reader.text("names", number).includes(text));
      }
      return passes;
    };
  }
}
