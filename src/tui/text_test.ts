import assert from "node:assert/strict";
import { countDown, glyphsOf, sparkline, tailOf, visible } from "./text.ts";

const none = { permissions: "none" } as const;

Deno.test("visible() leaves nothing that a terminal acts on", none, async (t) => {
  const rows: readonly (readonly [string, string, string, string])[] = [
    ["plain", "ads.example", "ads.example", "ads.example"],
    ["ESC", "\x1b[31mred", "\\027[31mred", "\\027[31mred"],
    ["a tab and a line's end", "a\tb\n", "a\\009b\\010", "a\\009b\\010"],
    ["C1", "a\x9b31m", "a\\15531m", "a\\15531m"],
    ["an override of direction", "a\u202eb\u2066c", "a�b�c", "a?b?c"],
    ["a joiner and a soft hyphen", "a\u200db\u00adc", "a�b�c", "a?b?c"],
    ["half a character", "a\ud800b", "a�b", "a?b"],
    ["a filler", "a\u3164b", "a�b", "a?b"],
    ["many marks", `e${"\u0301\u0316".repeat(9)}`, "é\u0316\u0301", "?"],
    ["a mark on nothing", "\u0301a", "a", "a"],
    ["a variation", "☎\ufe0f", "☎", "?"],
    ["a wide name", "東京", "東京", "??"],
  ];
  for (const [name, text, unicode, ascii] of rows) {
    await t.step(name, () => {
      const shown = visible(text);
      assert.equal(visible(text, false), ascii);
      if (name === "many marks") assert.ok([...shown].length <= 3, shown);
      else assert.equal(shown, unicode);
      assert.doesNotMatch(shown, /\p{Cc}|\p{Cf}/u);
    });
  }
});

Deno.test("glyphsOf() tells how wide each is", none, () => {
  const widths = (text: string) => glyphsOf(text, true).map(({ width }) => width);
  assert.deepEqual(widths("aé東ｱＡ😀한ー"), [1, 1, 2, 1, 2, 2, 2, 2]);
});

Deno.test("tailOf() is what fits of the end, by columns", none, () => {
  assert.equal(tailOf("ads.example", 20, true), "ads.example");
  assert.equal(tailOf("ads.example", 4, true), "mple");
  assert.equal(tailOf("a東京", 4, true), "東京");
  assert.equal(tailOf("a東京", 3, true), "京");
  assert.equal(tailOf("a東京", 3, false), "a??");
  assert.equal(tailOf("", 3, true), "");
});

Deno.test("sparkline() shows all that is not 0", none, () => {
  assert.equal(sparkline([0, 1, 400, 800], 10, true), " ▁▄█");
  assert.equal(sparkline([0, 1, 800], 2, false), ".@");
  assert.equal(sparkline([], 5, true), "");
});

Deno.test("countDown() shows a second that has begun", none, () => {
  assert.deepEqual([1, 61_000, 3_600_000, -5].map(countDown), ["0:01", "1:01", "1:00:00", "0:00"]);
});
