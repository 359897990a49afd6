import assert from "node:assert/strict";
import { KeyLines } from "./key_lines.ts";
import type { KeyPath } from "./problem.ts";

const none = { permissions: "none" } as const;

const TEXT = `# [no]
top = 1 # [neither]
[a]
x.y . "z w" = 2
list = [ # first
  "one", 'two',
  """three
  [a]
""",
  { k = 1, "deep" = [1,
    2] },
]
[[b]]
k = """a\\"""
[c]
"""""
[[b]]
[[b.inner]]
k = 'it\\'
[[b.inner]]
"\\u00e9\\t" = 1979-05-27 07:32:00 # a date with a space
[b.table]
'lit.eral' = '''
# no comment ' nor end
'''
inf = -inf
[ d . "e" ]
f = 1`;

const ROWS: readonly (readonly [KeyPath, number])[] = [
  [["top"], 2],
  [["a"], 3],
  [["a", "x"], 4],
  [["a", "x", "y", "z w"], 4],
  [["a", "list"], 5],
  [["a", "list", 0], 6],
  [["a", "list", 1], 6],
  [["a", "list", 2], 7],
  [["a", "list", 3], 10],
  [["a", "list", 3, "k"], 10],
  [["a", "list", 3, "deep", 0], 10],
  [["a", "list", 3, "deep", 1], 11],
  [["a", "missing"], 3],
  [["b"], 13],
  [["b", 0], 13],
  [["b", 0, "k"], 14],
  [["b", 1], 17],
  [["b", 1, "k"], 17],
  [["b", 1, "inner", 0, "k"], 19],
  [["b", 1, "inner", 1], 20],
  [["b", 1, "inner", 1, "é\t"], 21],
  [["b", 1, "table", "lit.eral"], 23],
  [["b", 1, "table", "inf"], 26],
  [["d"], 27],
  [["d", "e", "f"], 28],
  [["c"], 1],
];

Deno.test("lineOf() finds a key or what is nearest around it", none, async (t) => {
  for (const [path, line] of ROWS) {
    await t.step(`${JSON.stringify(path)} is on line ${line}`, () => {
      assert.equal(new KeyLines(TEXT).lineOf(path), line);
    });
  }
});

Deno.test("lineOf() ends for texts that are no TOML", none, async (t) => {
  const texts = [
    "",
    "[",
    "[[",
    "a",
    "a =",
    "= 1",
    "]",
    '"',
    "'''",
    "a = [",
    "a = {",
    "a = [}",
    "\\",
  ];
  texts.push(
    "a = {]",
    "a = [1 2]",
    "a = {b}",
    '"\\',
    "[".repeat(100_000),
    "a = " + "[".repeat(100),
  );
  for (const text of texts) {
    await t.step(JSON.stringify(text.slice(0, 20)), () => {
      const line = new KeyLines(text).lineOf(["a", "b"]);
      assert.equal(line, 1);
    });
  }
});
