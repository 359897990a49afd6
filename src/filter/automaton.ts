import { Code, CODES, type CodeSet, setOf } from "./name_codes.ts";
import type { Rule, SkipReason } from "./parse_rule.ts";
import { type ParsedRegex, parseRegex, type RegexNode } from "./regex.ts";

/**
 * A compiled expression: words of 16 bits. How many classes of codes there are, the state behind the
 * start of a name, the class of each code, and the rows of the table: for each class the next state.
 * A state is `State.None`, `State.Found` or where its row starts, counted from `ROWS_AT` less
 * `FIRST_ROW`. It takes a step a byte, whatever the expression.
 */
export type Automaton = Uint16Array;

export const State = { None: 0, Found: 1 } as const;
export const FIRST_ROW = 2;
export const Word = { Classes: 0, Start: 1, ClassOf: 2 } as const;
export const ROWS_AT = Word.ClassOf + CODES;

/** Words of a table. */
const TABLE_MAX = 8_192;
/** Words of sets of positions that are put together for it; a new set costs more than a sum. */
const WORK_MAX = 1_000_000;
const STEP_WORK = 8;

export type CompiledRegex =
  | { readonly automaton: Automaton; readonly problem: null }
  | {
    /** It grows too large, or it finds nothing in any name. */
    readonly problem: "regex" | "regex_size" | "url";
  };

type ReadRegex = Extract<ParsedRegex, { readonly problem: null }>;

/** What a part of an expression is to its neighbours: positions in it. */
interface Part {
  readonly isNullable: boolean;
  readonly first: Positions;
  readonly last: Positions;
}

type Positions = Uint32Array;

/** The positions of an expression, one for each character that it is written out to. */
class Linear {
  readonly sets: CodeSet[] = [];
  readonly follow: Positions[] = [];
  readonly #words: number;

  constructor(positions: number) {
    this.#words = (positions + 31) >>> 5;
  }

  none(): Positions {
    return new Uint32Array(this.#words);
  }

  add(node: RegexNode): Part {
    switch (node.kind) {
      case "set":
        return this.#addSet(node.set);
      case "all":
        return node.nodes.reduce(
          (part, next) => this.#join(part, this.add(next)),
          this.#empty(),
        );
      case "any":
        return node.nodes.map((part) => this.add(part)).reduce((a, b) => ({
          isNullable: a.isNullable || b.isNullable,
          first: union(a.first, b.first),
          last: union(a.last, b.last),
        }));
      case "repeat":
        return this.#addRepeat(node.node, node.min, node.max);
    }
  }

  #empty(): Part {
    return { isNullable: true, first: this.none(), last: this.none() };
  }

  #addSet(set: CodeSet): Part {
    const position = this.sets.push(set) - 1;
    this.follow.push(this.none());
    const itself = this.none();
    itself[position >>> 5] = 1 << (position & 31);
    return { isNullable: false, first: itself, last: itself };
  }

  #join(a: Part, b: Part): Part {
    this.#lead(a.last, b.first);
    return {
      isNullable: a.isNullable && b.isNullable,
      first: a.isNullable ? union(a.first, b.first) : a.first,
      last: b.isNullable ? union(a.last, b.last) : b.last,
    };
  }

  #addRepeat(node: RegexNode, min: number, max: number): Part {
    if (max === Infinity) {
      const before = this.#copies(node, min - 1);
      const part = this.add(node);
      this.#lead(part.last, part.first);
      return this.#join(before, { ...part, isNullable: part.isNullable || min === 0 });
    }
    // Of the copies that may be left out each is inside the one before: few lead to few.
    let rest = this.#empty();
    const before = this.#copies(node, min);
    for (let i = min; i < max; i++) {
      rest = { ...this.#join(this.add(node), rest), isNullable: true };
    }
    return this.#join(before, rest);
  }

  #copies(node: RegexNode, count: number): Part {
    let part = this.#empty();
    for (let i = 0; i < count; i++) part = this.#join(part, this.add(node));
    return part;
  }

  /** Lets positions be followed by others. */
  #lead(from: Positions, to: Positions): void {
    eachPosition(from, (position) => include(this.follow[position], to));
  }
}

function union(a: Positions, b: Positions): Positions {
  const both = a.slice();
  include(both, b);
  return both;
}

/** Adds positions to others. */
function include(to: Positions, more: Positions): void {
  for (let i = 0; i < to.length; i++) to[i] |= more[i];
}

function eachPosition(positions: Positions, visit: (position: number) => void): void {
  for (let i = 0; i < positions.length; i++) {
    for (let word = positions[i]; word !== 0; word &= word - 1) {
      visit(32 * i + 31 - Math.clz32(word & -word));
    }
  }
}

/** Makes an automaton that finds the expression anywhere in a name. */
export function compileRegex({ node, positions }: ReadRegex): CompiledRegex {
  const linear = new Linear(positions);
  const whole = linear.add(node);
  if (hasMarkTwice(linear)) return { problem: "regex" };
  if (whole.isNullable) return { automaton: everyName(), problem: null };
  return new Determiner(linear, whole).run();
}

/**
 * Says what keeps a rule that `parseRule` reads from being compiled: an expression of it may grow too
 * large, or find no name.
 */
export function findRegexProblem({ form, name }: Rule): SkipReason | null {
  if (form !== "regex") return null;
  const parsed = parseRegex(name.slice(1, -1));
  return parsed.problem ?? compileRegex(parsed).problem;
}

/** A mark says where a match is and is no character: of `^^` the second would find none. */
function hasMarkTwice({ sets, follow }: Linear): boolean {
  return [setOf(Code.Start), setOf(Code.End)].some((mark) => {
    const marks = new Set(sets.flatMap((set, position) => set === mark ? [position] : []));
    let found = false;
    for (const from of marks) eachPosition(follow[from], (to) => found ||= marks.has(to));
    return found;
  });
}

function everyName(): Automaton {
  const automaton = new Uint16Array(ROWS_AT);
  automaton[Word.Start] = State.Found;
  return automaton;
}

/** Makes one state of each set of positions that a name can lead to. */
class Determiner {
  readonly #linear: Linear;
  readonly #whole: Part;
  /** Positions of each class of codes that are told apart. */
  readonly #classes: Positions[] = [];
  readonly #classOf = new Uint16Array(CODES);
  readonly #states = new Map<string, number>();
  readonly #sets: Positions[] = [];
  #work = 0;

  constructor(linear: Linear, whole: Part) {
    this.#linear = linear;
    this.#whole = whole;
    const known = new Map<string, number>();
    for (let code = 0; code < CODES; code++) {
      const positions = this.#positionsOf(code);
      const key = keyOf(positions);
      const number = known.get(key) ?? this.#classes.push(positions) - 1;
      known.set(key, number);
      this.#classOf[code] = number;
    }
  }

  #positionsOf(code: number): Positions {
    const positions = this.#linear.none();
    for (const [i, set] of this.#linear.sets.entries()) {
      if ((set >> BigInt(code)) & 1n) positions[i >>> 5] |= 1 << (i & 31);
    }
    return positions;
  }

  run(): CompiledRegex {
    const classes = this.#classes.length;
    // Numbers of states, by the classes of each; the start of a name comes once, before all else.
    const first = this.#step(this.#whole.first, this.#positionsOf(Code.Start));
    const table: number[] = [];
    const start = this.#number(first);
    for (let state = 0; state < this.#sets.length; state++) {
      const next = this.#next(this.#sets[state]);
      for (const positions of this.#classes) table.push(this.#number(this.#step(next, positions)));
      if (table.length > TABLE_MAX || this.#work > WORK_MAX) return { problem: "regex_size" };
    }
    const lives = this.#livesOf(table, classes);
    const isLive = (state: number) => state === FOUND || lives[state] === 1;
    if (!isLive(start)) return { problem: "url" };
    const automaton = new Uint16Array(ROWS_AT + table.length);
    const written = (state: number) =>
      state === FOUND ? State.Found : isLive(state) ? FIRST_ROW + state * classes : State.None;
    automaton[Word.Classes] = classes;
    automaton[Word.Start] = written(start);
    automaton.set(this.#classOf, Word.ClassOf);
    for (const [i, state] of table.entries()) automaton[ROWS_AT + i] = written(state);
    return { automaton, problem: null };
  }

  /** Where a set of positions can lead: a match may begin anywhere. */
  #next(positions: Positions): Positions {
    const next = this.#whole.first.slice();
    eachPosition(positions, (position) => {
      include(next, this.#linear.follow[position]);
      this.#work += next.length;
    });
    return next;
  }

  #step(next: Positions, positions: Positions): Positions {
    this.#work += STEP_WORK * next.length;
    const met = next.slice();
    for (let i = 0; i < met.length; i++) met[i] &= positions[i];
    return met;
  }

  #number(positions: Positions): number {
    if (positions.some((word, i) => (word & this.#whole.last[i]) !== 0)) return FOUND;
    const key = keyOf(positions);
    const known = this.#states.get(key);
    if (known !== undefined) return known;
    this.#states.set(key, this.#sets.length);
    return this.#sets.push(positions) - 1;
  }

  /** Says of each state whether a match can still come of it. */
  #livesOf(table: readonly number[], classes: number): Uint8Array {
    const lives = new Uint8Array(table.length / classes);
    const before: number[][] = Array.from(lives, () => []);
    const open: number[] = [];
    for (const [i, to] of table.entries()) {
      const from = Math.floor(i / classes);
      if (to !== FOUND) before[to].push(from);
      else if (lives[from] === 0) {
        lives[from] = 1;
        open.push(from);
      }
    }
    for (let state = open.pop(); state !== undefined; state = open.pop()) {
      for (const from of before[state]) {
        if (lives[from] === 1) continue;
        lives[from] = 1;
        open.push(from);
      }
    }
    return lives;
  }
}

/** The number of the state in which a match was found. */
const FOUND = -1;

function keyOf(positions: Positions): string {
  let key = "";
  for (let i = 0; i < positions.length; i++) {
    key += String.fromCharCode(positions[i] & 0xffff, positions[i] >>> 16);
  }
  return key;
}
