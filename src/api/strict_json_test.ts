import assert from "node:assert/strict";
import { SvcError } from "../errors.ts";
import { parseStrictJson } from "./strict_json.ts";

const none = { permissions: "none" } as const;
const parse = (text: string) => parseStrictJson(new TextEncoder().encode(text));

const GOOD = [
  ...["null", "1", '""', "[]", "{}", '"{\\"a\\":1,\\"a\\":2}"', '[{"a":1},{"a":1}]'],
  ...['{"a":{"a":{"a":1}},"b":["a","a"]}', '{"a":"b","b":"a"}', '{"a":"x","A":"x"}', '{"":1}'],
  ...[' { "a" : [ 1 , { "a" : "," } ] , "b" : ":" } ', '{"\\\\":1,"\\"":2}', '{"__proto__":1}'],
];

/** Each with what its refusal says. */
const BAD: readonly (readonly [string, RegExp])[] = [
  ["{", /no JSON/],
  ["", /no JSON/],
  ['{"a":1,}', /no JSON/],
  ['{"a":1,"a":1', /no JSON/],
  ['{"a', /no JSON/],
  ['{"a":1,"a":2}', /"a" is given twice/],
  ['{"a":1,"\\u0061":2}', /"\\u0061" is given twice/],
  ['{"é":1,"\\u00e9":2}', /is given twice/],
  ['[[{"x":{"b":[],"c":{},"b":0}}]]', /"b" is given twice/],
  ['{"a":{"b":1},"c":[{"d":1}],"a":0}', /"a" is given twice/],
  ['{"":1,"":1}', /"" is given twice/],
  ['{"a\\"":1,"a\\u0022":1}', /is given twice/],
  ['{"__proto__":1,"__proto__":1}', /is given twice/],
  ["[".repeat(65) + "]".repeat(65), /deeper than 64/],
  ["[".repeat(500_000), /deeper than 64/],
  ['{"a":'.repeat(100_000), /deeper than 64/],
];

Deno.test("parseStrictJson() reads JSON as JSON.parse() does", none, () => {
  for (const text of GOOD) assert.deepEqual(parse(text), JSON.parse(text), text);
  const deep = "[".repeat(64) + "]".repeat(64);
  assert.deepEqual(parse(deep), JSON.parse(deep));
});

Deno.test("parseStrictJson() refuses what is no JSON, too deep, or has a key twice", none, () => {
  for (const [text, want] of BAD) {
    assert.throws(() => parse(text), (error) => {
      assert(error instanceof SvcError && error.code === "bad_request", String(error));
      assert.match(error.message, want, text.slice(0, 80));
      return true;
    });
  }
  assert.throws(() => parseStrictJson(Uint8Array.of(0x22, 0xff, 0x22)), /no JSON in UTF-8/);
});
