import { SvcError } from "../errors.ts";

/** Most that an error repeats of a key. */
const SHOWN_LENGTH_MAX = 64;
/** Objects and arrays within each other; no body of the API has more than a handful. */
const DEPTH_MAX = 64;

const [QUOTE, BACKSLASH, COMMA, COLON] = [0x22, 0x5c, 0x2c, 0x3a];
const [OPEN_OBJECT, CLOSE_OBJECT, OPEN_ARRAY, CLOSE_ARRAY] = [0x7b, 0x7d, 0x5b, 0x5d];

/**
 * Parses JSON in which no object has a key twice: whoever checked the first one would let the
 * second pass, which is what counts (RFC 8259 §4).
 *
 * @throws {SvcError} `bad_request`.
 */
export function parseStrictJson(bytes: Uint8Array): unknown {
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw noJson();
  }
  checkDepth(text); // First: a parser may run out of its stack.
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw noJson();
  }
  checkKeys(text);
  return value;
}

function noJson(): SvcError {
  return new SvcError("bad_request", "body: it is no JSON in UTF-8");
}

/** @throws {SvcError} `bad_request`. */
function checkDepth(text: string): void {
  let depth = 0;
  for (let at = 0; at < text.length; at++) {
    const char = text.charCodeAt(at);
    if (char === QUOTE) at = stringEnd(text, at);
    else if (char === OPEN_OBJECT || char === OPEN_ARRAY) depth++;
    else if (char === CLOSE_OBJECT || char === CLOSE_ARRAY) depth--;
    if (depth > DEPTH_MAX) {
      throw new SvcError("bad_request", `body: it is deeper than ${DEPTH_MAX} levels`);
    }
  }
}

/**
 * Looks through a text that is JSON.
 *
 * @throws {SvcError} `bad_request`, with the key that an object has twice.
 */
function checkKeys(text: string): void {
  /** The keys of each object that is open; `null` for an array. */
  const open: (Set<string> | null)[] = [];
  let isKey = false;
  for (let at = 0; at < text.length; at++) {
    switch (text.charCodeAt(at)) {
      case OPEN_OBJECT:
        open.push(new Set());
        isKey = true;
        break;
      case OPEN_ARRAY:
        open.push(null);
        isKey = false;
        break;
      case CLOSE_OBJECT:
      case CLOSE_ARRAY:
        open.pop();
        isKey = false;
        break;
      case COLON:
        isKey = false;
        break;
      case COMMA:
        isKey = open.at(-1) !== null;
        break;
      case QUOTE: {
        const end = stringEnd(text, at);
        if (isKey) addKey(open.at(-1)!, text.slice(at, end + 1));
        at = end;
      }
    }
  }
}

function addKey(keys: Set<string>, literal: string): void {
  // However it is written: "a" is "\u0061".
  const key = literal.includes("\\") ? JSON.parse(literal) as string : literal.slice(1, -1);
  if (keys.has(key)) {
    const isLong = literal.length > SHOWN_LENGTH_MAX;
    const shown = isLong ? `${literal.slice(0, SHOWN_LENGTH_MAX)}…` : literal;
    throw new SvcError("bad_request", `body: ${shown} is given twice`);
  }
  keys.add(key);
}

/** Where the string that begins at `at` has its closing quote; the end of a text that has none. */
function stringEnd(text: string, at: number): number {
  for (let i = at + 1; i < text.length; i++) {
    const char = text.charCodeAt(i);
    if (char === BACKSLASH) i++;
    else if (char === QUOTE) return i;
  }
  return text.length;
}
