// Scenarios of Deckard and Unbound (.rpl): who answers what at which step, and what is to come of it.

import assert from "node:assert/strict";
import { equalNames, isAtOrBelow, parseQtype, Rcode } from "../../src/dns/mod.ts";
import { parseRecord, parseTime, type TextRecord, wireName, wordsOf } from "./records.ts";

export interface RplQuestion {
  readonly name: Uint8Array;
  readonly type: number;
}

/** A message: what a server answers, what a client asks, or what it is to get. */
export interface RplEntry {
  /** Which fields of a question have to equal the entry's, or of an answer are judged. */
  readonly match: readonly string[];
  readonly adjust: readonly string[];
  /** Flags and the response code, in capitals. */
  readonly reply: readonly string[];
  readonly question: RplQuestion | null;
  readonly answer: readonly TextRecord[];
  readonly authority: readonly TextRecord[];
  readonly additional: readonly TextRecord[];
  /** A message as it is, in hexadecimal. */
  readonly raw: string | null;
}

export interface RplRange {
  readonly from: number;
  readonly to: number;
  /** Servers it speaks for; none: all. */
  readonly addresses: readonly string[];
  readonly entries: readonly RplEntry[];
}

export interface RplStep {
  readonly id: number;
  readonly kind: string;
  readonly entry: RplEntry | null;
  /** Of TIME_PASSES. */
  readonly elapseS: number;
}

export interface Scenario {
  readonly title: string;
  /** `key: value` lines before the scenario, keys repeated as they come. */
  readonly config: readonly (readonly [key: string, value: string])[];
  readonly ranges: readonly RplRange[];
  /** In the order of their numbers. */
  readonly steps: readonly RplStep[];
}

/** Values of a key of the configuration, without their quotes. */
export function configValues({ config }: Scenario, key: string): string[] {
  return config.filter(([name]) => name === key).map(([, value]) => value);
}

/** The time that a scenario sets, in seconds since 1970, or `null`. */
export function scenarioTime(scenario: Scenario): number | null {
  const [date] = configValues(scenario, "val-override-date");
  if (date !== undefined && date !== "-1") return parseTime(date);
  const [timestamp] = configValues(scenario, "val-override-timestamp");
  return timestamp === undefined ? null : Number(timestamp);
}

/** Addresses of its servers. */
export function addressesOf(scenario: Scenario): string[] {
  const roots = configValues(scenario, "stub-addr").filter((text) => /^[\d.]+$|:/.test(text));
  return [...new Set([...roots, ...scenario.ranges.flatMap(({ addresses }) => addresses)])];
}

/** The response code of an entry's flags. */
export function rcodeOf({ reply }: RplEntry): number {
  for (const word of reply) {
    const found = Object.entries(Rcode).find(([name]) => name.toUpperCase() === word);
    if (found !== undefined) return found[1];
  }
  return Rcode.NoError;
}

/** Parses a scenario; throws where a line is not understood. */
export function parseScenario(text: string): Scenario {
  const rows = text.split(/\r?\n/);
  const end = rows.findIndex((row) => row.startsWith("CONFIG_END"));
  const config = rows.slice(0, end).flatMap(parseConfigLine);
  return new Parser(rows.slice(end + 1)).parse(config);
}

function parseConfigLine(row: string): [string, string][] {
  const line = row.replace(/^\s*[;#].*$/, "");
  const found = /^\s*([\w-]+):\s*(?:(["'])(.*?)\2|([^;#]+))/.exec(line);
  return found === null ? [] : [[found[1], found[3] ?? found[4].trim()]];
}

class Parser {
  readonly #rows: readonly string[];
  #at = 0;

  constructor(rows: readonly string[]) {
    this.#rows = rows;
  }

  parse(config: Scenario["config"]): Scenario {
    const ranges: RplRange[] = [];
    const steps: RplStep[] = [];
    let title = "";
    for (let words = this.#next(); words !== null; words = this.#next()) {
      const [word, ...rest] = words;
      if (word === "SCENARIO_BEGIN") title = rest.join(" ");
      else if (word === "RANGE_BEGIN") ranges.push(this.#range(rest));
      else if (word === "STEP") steps.push(this.#step(rest));
      else if (word === "SCENARIO_END") break;
      else if (word !== "ENTRY_END") assert.fail(`line of a scenario: ${words.join(" ")}`);
    }
    return { title, config, ranges, steps: steps.sort((a, b) => a.id - b.id) };
  }

  /** The next line with words, or `null`. */
  #next(): string[] | null {
    while (this.#at < this.#rows.length) {
      const words = wordsOf(this.#rows[this.#at++]);
      if (words.length > 0) return words;
    }
    return null;
  }

  #range([from, to]: readonly string[]): RplRange {
    const addresses: string[] = [];
    const entries: RplEntry[] = [];
    for (
      let words = this.#next();
      words !== null && words[0] !== "RANGE_END";
      words = this.#next()
    ) {
      if (words[0] === "ADDRESS") addresses.push(words[1]);
      else if (words[0] === "ENTRY_BEGIN") entries.push(this.#entry());
      else assert.fail(`line of a range: ${words.join(" ")}`);
    }
    return { from: Number(from), to: Number(to), addresses, entries };
  }

  #step([id, kind, ...rest]: readonly string[]): RplStep {
    const hasEntry = kind === "QUERY" || kind === "CHECK_ANSWER" || kind === "REPLY";
    let entry: RplEntry | null = null;
    if (hasEntry) {
      const words = this.#next();
      assert.equal(words?.[0], "ENTRY_BEGIN");
      entry = this.#entry();
    }
    const elapse = rest.indexOf("ELAPSE");
    return { id: Number(id), kind, entry, elapseS: elapse < 0 ? 0 : Number(rest[elapse + 1]) };
  }

  #entry(): RplEntry {
    const lists: Record<string, string[]> = { MATCH: [], ADJUST: [], REPLY: [] };
    const sections: Record<string, TextRecord[]> = { ANSWER: [], AUTHORITY: [], ADDITIONAL: [] };
    let question: RplQuestion | null = null;
    let raw: string | null = null;
    let section = "";
    for (
      let words = this.#next();
      words !== null && words[0] !== "ENTRY_END";
      words = this.#next()
    ) {
      const [word, ...rest] = words;
      if (Object.hasOwn(lists, word)) lists[word].push(...rest);
      else if (word === "SECTION") section = rest[0];
      else if (word === "RAW") section = "RAW";
      else if (word === "MANDATORY") continue;
      else if (section === "RAW") raw = words.join("");
      else if (section === "QUESTION") question = parseQuestion(words);
      else sections[section].push(parseRecord(words.join(" ")));
    }
    return {
      match: lists.MATCH.map((word) => word.toLowerCase()),
      adjust: lists.ADJUST.map((word) => word.toLowerCase()),
      reply: lists.REPLY.map((word) => word.toUpperCase()),
      question,
      answer: sections.ANSWER,
      authority: sections.AUTHORITY,
      additional: sections.ADDITIONAL,
      raw,
    };
  }
}

function parseQuestion(words: readonly string[]): RplQuestion {
  const type = parseQtype(words[words.length - 1]);
  assert(type !== null, words.join(" "));
  return { name: wireName(words[0]), type };
}

/** What the server at an address answers at a step, or `null` for SERVFAIL. */
export function findEntry(
  { ranges }: Scenario,
  step: number,
  address: string,
  question: RplQuestion,
): RplEntry | null {
  const range = ranges.find(({ from, to, addresses }) =>
    from <= step && step <= to && (addresses.length === 0 || addresses.includes(address))
  );
  return range?.entries.find((entry) => matches(entry, question)) ?? null;
}

function matches({ match, question }: RplEntry, asked: RplQuestion): boolean {
  if (question === null) return match.every((field) => field === "opcode");
  const { name, type } = question;
  return match.every((field) => {
    switch (field) {
      case "qname":
      case "question":
        return equalNames(name, 0, asked.name, 0) && (field === "qname" || type === asked.type);
      case "subdomain":
        return isAtOrBelow(asked.name, 0, name, 0);
      case "qtype":
        return type === asked.type;
      default:
        return true;
    }
  });
}
