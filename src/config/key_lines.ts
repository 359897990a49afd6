import type { KeyPath } from "./problem.ts";

/** Deepest nesting of arrays and inline tables that a file may have; the service needs three. */
export const DEPTH_MAX = 16;

/**
 * Tells on which line of a TOML text a key stands. It expects text that a TOML parser has accepted,
 * so it checks nothing; for any other text it ends as well and knows fewer keys. TOML 1.0.0.
 */
export class KeyLines {
  readonly #text: string;
  readonly #lines = new Map<string, number>();
  /** Tables counted so far of each array of tables. */
  readonly #counts = new Map<string, number>();
  #offset = 0;
  #line = 1;
  #scanned = false;

  constructor(text: string) {
    this.#text = text;
  }

  /** The line of the key at `path`, or of the nearest table or array around it; 1 if there is none. */
  lineOf(path: KeyPath): number {
    // Only a file with problems pays for the scan.
    if (!this.#scanned) this.#scan();
    for (let length = path.length; length > 0; length--) {
      const line = this.#lines.get(JSON.stringify(path.slice(0, length)));
      if (line !== undefined) return line;
    }
    return 1;
  }

  #scan(): void {
    this.#scanned = true;
    let table: KeyPath = [];
    for (;;) {
      this.#skipBlank(true);
      if (this.#offset >= this.#text.length) return;
      const start = this.#offset;
      if (this.#text[this.#offset] === "[") table = this.#scanHeader();
      else this.#scanPair(table, 0);
      if (this.#offset === start) this.#advance(); // Nothing readable: go on behind it.
    }
  }

  /** Reads `[a.b]` or `[[a.b]]`; returns the path of the table that it opens. */
  #scanHeader(): KeyPath {
    const line = this.#line;
    this.#advance();
    const isArray = this.#text[this.#offset] === "[";
    if (isArray) this.#advance();
    const keys = this.#scanKeys();
    const path: (string | number)[] = [];
    for (let i = 0; i < keys.length; i++) {
      path.push(keys[i]);
      const id = JSON.stringify(path);
      const isLast = i === keys.length - 1;
      if (isLast && isArray) {
        const count = this.#counts.get(id) ?? 0;
        this.#counts.set(id, count + 1);
        this.#record(path, line);
        path.push(count);
      } else {
        const count = this.#counts.get(id);
        if (count !== undefined) path.push(count - 1);
      }
      this.#record(path, line);
    }
    while (this.#text[this.#offset] === "]") this.#advance();
    return path;
  }

  /** Reads `a.b = value` below `table`. */
  #scanPair(table: KeyPath, depth: number): void {
    const line = this.#line;
    const path = [...table];
    for (const key of this.#scanKeys()) {
      path.push(key);
      this.#record(path, line);
    }
    if (this.#text[this.#offset] !== "=") return;
    this.#advance();
    this.#scanValue(path, depth);
  }

  /** Reads a dotted key, whose parts may be bare or quoted, up to what follows it. */
  #scanKeys(): string[] {
    const keys: string[] = [];
    for (;;) {
      this.#skipBlank(false);
      const c = this.#text[this.#offset];
      if (c === '"' || c === "'") keys.push(this.#scanString());
      else {
        const start = this.#offset;
        while (/[A-Za-z0-9_-]/.test(this.#text[this.#offset] ?? "")) this.#offset++;
        if (this.#offset === start) return keys;
        keys.push(this.#text.slice(start, this.#offset));
      }
      this.#skipBlank(false);
      if (this.#text[this.#offset] !== ".") return keys;
      this.#advance();
    }
  }

  #scanValue(path: KeyPath, depth: number): void {
    this.#skipBlank(false);
    const c = this.#text[this.#offset];
    if (c === '"' || c === "'") this.#scanString();
    else if (depth < DEPTH_MAX && c === "[") this.#scanArray(path, depth + 1);
    else if (depth < DEPTH_MAX && c === "{") this.#scanInlineTable(path, depth + 1);
    else this.#skipTo(/[,\]}#\n]/g);
  }

  #scanArray(path: KeyPath, depth: number): void {
    this.#advance();
    for (let index = 0;; index++) {
      this.#skipBlank(true);
      if (this.#offset >= this.#text.length || this.#text[this.#offset] === "]") break;
      const start = this.#offset;
      this.#record([...path, index], this.#line);
      this.#scanValue([...path, index], depth);
      this.#skipBlank(true);
      if (this.#text[this.#offset] === ",") this.#advance();
      else if (this.#offset === start) return;
    }
    this.#advance();
  }

  #scanInlineTable(path: KeyPath, depth: number): void {
    this.#advance();
    for (;;) {
      this.#skipBlank(true);
      if (this.#offset >= this.#text.length || this.#text[this.#offset] === "}") break;
      const start = this.#offset;
      this.#scanPair(path, depth);
      this.#skipBlank(true);
      if (this.#text[this.#offset] === ",") this.#advance();
      else if (this.#offset === start) return;
    }
    this.#advance();
  }

  /** Reads a string of any of the four forms and returns what it says. */
  #scanString(): string {
    const mark = this.#text[this.#offset];
    const isMultiline = this.#text.startsWith(mark.repeat(3), this.#offset);
    const end = isMultiline ? mark.repeat(3) : mark;
    this.#moveTo(this.#offset + end.length);
    const start = this.#offset;
    let at = start;
    while (at < this.#text.length && !this.#text.startsWith(end, at)) {
      if (mark === '"' && this.#text[at] === "\\") at++;
      at++;
    }
    const raw = this.#text.slice(start, at);
    at += end.length;
    // A string may end in quotes of its own: `"""a"""""` says `a""`.
    while (isMultiline && this.#text[at] === mark) at++;
    this.#moveTo(at);
    return mark === '"' && !isMultiline ? unescape(raw) : raw;
  }

  #record(path: KeyPath, line: number): void {
    const id = JSON.stringify(path);
    if (!this.#lines.has(id)) this.#lines.set(id, line);
  }

  /** Skips spaces and, between statements, comments and line ends. */
  #skipBlank(withLineEnds: boolean): void {
    for (; this.#offset < this.#text.length; this.#advance()) {
      const c = this.#text[this.#offset];
      if (withLineEnds && c === "#") this.#skipTo(/\n/g);
      else if (c !== " " && c !== "\t" && c !== "\r" && c !== "\ufeff") {
        if (!withLineEnds || c !== "\n") return;
      }
    }
  }

  #skipTo(pattern: RegExp): void {
    pattern.lastIndex = this.#offset;
    this.#offset = pattern.exec(this.#text)?.index ?? this.#text.length;
  }

  #advance(): void {
    if (this.#text[this.#offset] === "\n") this.#line++;
    this.#offset++;
  }

  #moveTo(offset: number): void {
    while (this.#offset < offset && this.#offset < this.#text.length) this.#advance();
  }
}

const ESCAPES: Readonly<Record<string, string>> = {
  b: "\b",
  t: "\t",
  n: "\n",
  f: "\f",
  r: "\r",
  e: "\x1b",
};

/** What a quoted key says (TOML 1.0.0, "String"). */
function unescape(raw: string): string {
  return raw.replace(
    /\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|x([0-9a-fA-F]{2})|(.))/g,
    (whole, short, long, byte, letter) => {
      if (letter !== undefined) return ESCAPES[letter] ?? letter;
      const code = parseInt(short ?? long ?? byte, 16);
      return code <= 0x10ffff ? String.fromCodePoint(code) : whole;
    },
  );
}
