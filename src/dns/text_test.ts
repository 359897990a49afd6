import assert from "node:assert/strict";
import { formatCharString, tokenize, unescape } from "./text.ts";

const none = { permissions: "none" } as const;

Deno.test("tokenize() splits at blanks and keeps quotes together", none, () => {
  const rows: [text: string, want: string[] | null][] = [
    ["", []],
    ["  a\tb\n c ", ["a", "b", "c"]],
    ['a ; comment ) " \n b', ["a", "b"]],
    ["a;b", ["a"]],
    ["(a b)(c)", ["a", "b", "c"]],
    ['k="a b;(c)" d', ["k=a b;(c)", "d"]],
    ['""', [""]],
    ['a\\ b \\" \\;', ["a\\ b", '\\"', "\\;"]],
    ['"a', null],
    ["a\\", null],
  ];
  for (const [text, want] of rows) assert.deepEqual(tokenize(text), want, text);
});

Deno.test("unescape() resolves escapes and refuses broken ones", none, () => {
  const rows: [text: string, want: string | null][] = [
    ["", ""],
    ["a b", "a b"],
    ['\\097\\\\\\"', 'a\\"'],
    ["\\255", "\xff"],
    ["\\256", null],
    ["\\1", null],
    ["\\12x", null],
    ["\\", null],
    ["ä", "ä"], // A byte of Latin-1.
    ["€", null],
    ["\\€", null],
  ];
  for (const [text, want] of rows) {
    const bytes = unescape(text);
    assert.equal(bytes === null ? null : String.fromCharCode(...bytes), want, text);
  }
});

Deno.test("formatCharString() and unescape() agree for every byte", none, () => {
  const all = Uint8Array.from({ length: 256 }, (_, i) => i);
  const text = formatCharString(all, 0, 256);
  assert.match(text, /^"[ -~]*"$/);
  assert.deepEqual(unescape(text.slice(1, -1)), all);
  assert.equal(formatCharString(all, 0x41, 3), '"ABC"');
});
