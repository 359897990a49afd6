import { ANY, Code, type CodeSet, NOTHING, setOf, setOfText } from "./name_codes.ts";

/**
 * What a regular expression says. Repetitions are as they are written; `^` and `$` are sets like
 * others, of the marks around a name.
 */
export type RegexNode =
  | { readonly kind: "set"; readonly set: CodeSet }
  | { readonly kind: "all" | "any"; readonly nodes: readonly RegexNode[] }
  | {
    readonly kind: "repeat";
    readonly node: RegexNode;
    readonly min: number;
    readonly max: number;
  };

export type ParsedRegex =
  | {
    readonly node: RegexNode;
    /** How many characters it is written out to. */
    readonly positions: number;
    readonly problem: null;
  }
  | { readonly problem: "regex" | "regex_size" };

/** Characters of an expression, of those that it is written out to, and groups in one another. */
export const REGEX_LENGTH_MAX = 700;
export const POSITIONS_MAX = 512;
const DEPTH_MAX = 32;

/** Says how many characters an expression is written out to. */
function positionsOf(node: RegexNode): number {
  switch (node.kind) {
    case "set":
      return 1;
    case "repeat":
      return positionsOf(node.node) * Math.max(1, node.max === Infinity ? node.min : node.max);
    default:
      return node.nodes.reduce((sum, part) => sum + positionsOf(part), 0);
  }
}

/**
 * Parses what stands between the slashes of a rule. Read are the parts of JavaScript's syntax that an
 * automaton decides: no references to groups, no look to either side but `^` and `$`.
 */
export function parseRegex(source: string): ParsedRegex {
  if (source.length > REGEX_LENGTH_MAX) return { problem: "regex_size" };
  const node = new Parser(source).parse();
  if (node === null) return { problem: "regex" };
  const positions = positionsOf(node);
  return positions > POSITIONS_MAX ? { problem: "regex_size" } : { node, positions, problem: null };
}

const DIGITS = setOfText("0123456789");
const LETTERS = setOfText("abcdefghijklmnopqrstuvwxyz");
const WORDS = LETTERS | DIGITS | setOf(Code.Underscore);

/** Classes by the letter behind a backslash; the upper case one is what is not in the class. */
const CLASSES: Readonly<Record<string, CodeSet>> = {
  d: DIGITS,
  D: ANY & ~DIGITS,
  w: WORDS,
  W: ANY & ~WORDS,
  s: NOTHING,
  S: ANY,
};

/** Classes by their name in brackets, as other resolvers' expressions have them. */
const NAMED: ReadonlyMap<string, CodeSet> = new Map([
  ["alnum", LETTERS | DIGITS],
  ["alpha", LETTERS],
  ["blank", NOTHING],
  ["digit", DIGITS],
  ["lower", LETTERS],
  ["punct", setOfText("-._")],
  ["space", NOTHING],
  ["upper", LETTERS],
  ["word", WORDS],
  ["xdigit", setOfText("0123456789abcdef")],
]);

const NAMED_CLASS = /\[:([a-z]+):\]/y;
const COUNTED = /\{([0-9]{1,4})(?:(,)([0-9]{1,4})?)?\}/y;
const HEX = /x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})/y;
const ASCII_MAX = 0x7f;
const GROUP = /\?(?::|P?<[a-z]\w*>)/iy;
const FLAGS = /^\(\?i\)/;
/** Control characters by the letter behind a backslash: none is in a name. */
const CONTROLS = /^[tnrfv0]$/;
const ALPHANUMERIC = /^[a-z0-9]$/i;
const ASCII = /^[\x20-\x7e]*$/;

const MARKS: Readonly<Record<string, CodeSet>> = {
  "^": setOf(Code.Start),
  "$": setOf(Code.End),
};

/** What stands in an expression has no name in it: the whole is refused. */
class Refused extends Error {}

class Parser {
  readonly #source: string;
  #at = 0;
  #depth = 0;

  constructor(source: string) {
    // Names have no case.
    this.#source = source.replace(FLAGS, "");
  }

  parse(): RegexNode | null {
    // A name is ASCII, and so is what an expression can say about it.
    if (!ASCII.test(this.#source)) return null;
    try {
      const node = this.#alternatives();
      return this.#at === this.#source.length ? node : null;
    } catch (error) {
      if (error instanceof Refused) return null;
      throw error;
    }
  }

  #alternatives(): RegexNode {
    const nodes = [this.#sequence()];
    while (this.#takes("|")) nodes.push(this.#sequence());
    return nodes.length === 1 ? nodes[0] : { kind: "any", nodes };
  }

  #sequence(): RegexNode {
    const nodes: RegexNode[] = [];
    for (;;) {
      const next = this.#source[this.#at];
      if (next === undefined || next === "|" || next === ")") break;
      nodes.push(this.#repeated());
    }
    return nodes.length === 1 ? nodes[0] : { kind: "all", nodes };
  }

  #repeated(): RegexNode {
    const mark = MARKS[this.#source[this.#at]];
    const node = this.#one();
    const count = this.#count();
    if (count === null) return node;
    if (mark !== undefined) throw new Refused();
    this.#takes("?"); // Which of several matches it is makes no difference.
    const [min, max] = count;
    if (max < min) throw new Refused();
    if (/^[*+?]/.test(this.#source.slice(this.#at)) || this.#count() !== null) throw new Refused();
    return { kind: "repeat", node, min, max };
  }

  #count(): readonly [min: number, max: number] | null {
    if (this.#takes("*")) return [0, Infinity];
    if (this.#takes("+")) return [1, Infinity];
    if (this.#takes("?")) return [0, 1];
    const counted = this.#match(COUNTED);
    if (counted === null) return null;
    const min = Number(counted[1]);
    if (counted[2] === undefined) return [min, min];
    return [min, counted[3] === undefined ? Infinity : Number(counted[3])];
  }

  #one(): RegexNode {
    const c = this.#source[this.#at++];
    switch (c) {
      case "(":
        return this.#group();
      case "[":
        return { kind: "set", set: this.#class() };
      case ".":
        return { kind: "set", set: ANY };
      case "\\":
        return { kind: "set", set: this.#escape() };
      case "*":
      case "+":
      case "?":
        throw new Refused();
      default:
        return { kind: "set", set: MARKS[c] ?? setOfText(c) };
    }
  }

  #group(): RegexNode {
    if (this.#source[this.#at] === "?" && this.#match(GROUP) === null) throw new Refused();
    if (++this.#depth > DEPTH_MAX) throw new Refused();
    const node = this.#alternatives();
    if (!this.#takes(")")) throw new Refused();
    this.#depth--;
    return node;
  }

  /** What a backslash before `#at` begins. */
  #escape(): CodeSet {
    const c = this.#source[this.#at];
    const hex = this.#match(HEX);
    if (hex !== null) return setOfText(String.fromCharCode(parseInt(hex[1] ?? hex[2], 16)));
    this.#at++;
    if (c === undefined) throw new Refused();
    const known = CLASSES[c];
    if (known !== undefined) return known;
    if (CONTROLS.test(c)) return NOTHING;
    // Borders of words, references to groups, and what has a meaning elsewhere.
    if (ALPHANUMERIC.test(c)) throw new Refused();
    return setOfText(c);
  }

  /** What an opening bracket before `#at` begins. */
  #class(): CodeSet {
    const isOpposite = this.#takes("^");
    let set = NOTHING;
    if (this.#source[this.#at] === "]") throw new Refused(); // Here the first, there no member.
    while (!this.#takes("]")) {
      const named = this.#match(NAMED_CLASS);
      if (named !== null) {
        const members = NAMED.get(named[1]);
        if (members === undefined) throw new Refused();
        set |= members;
        continue;
      }
      const [first, low] = this.#member();
      set |= first;
      if (this.#source[this.#at] !== "-" || this.#source[this.#at + 1] === "]") continue;
      this.#at++;
      const [last, high] = this.#member();
      set |= last;
      if (low === null || high === null) { // `\w-.` is no range: the hyphen is a member.
        set |= setOf(Code.Hyphen);
        continue;
      }
      if (high < low) throw new Refused();
      const end = Math.min(high, ASCII_MAX);
      for (let unit = low; unit <= end; unit++) set |= setOfText(String.fromCharCode(unit));
    }
    return isOpposite ? ANY & ~set : set;
  }

  /** A member of a class; the character that it is, or `null` for several. */
  #member(): readonly [set: CodeSet, unit: number | null] {
    const from = this.#at;
    const c = this.#source[this.#at++];
    if (c === undefined) throw new Refused();
    if (c !== "\\") return [setOfText(c), c.charCodeAt(0)];
    const set = this.#escape();
    const written = this.#source.slice(from + 1, this.#at);
    if (CLASSES[written] !== undefined) return [set, null];
    if (CONTROLS.test(written)) return [set, 0];
    return [set, written.length === 1 ? written.charCodeAt(0) : parseInt(written.slice(1), 16)];
  }

  #takes(c: string): boolean {
    if (this.#source[this.#at] !== c) return false;
    this.#at++;
    return true;
  }

  #match(sticky: RegExp): RegExpExecArray | null {
    sticky.lastIndex = this.#at;
    const found = sticky.exec(this.#source);
    if (found !== null) this.#at = sticky.lastIndex;
    return found;
  }
}
