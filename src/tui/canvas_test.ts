import assert from "node:assert/strict";
import { Canvas, Style } from "./canvas.ts";

const none = { permissions: "none" } as const;
const full = { colour: true, unicode: true };
const poor = { colour: false, unicode: false };

/** A canvas of these lines. */
function canvasOf(lines: readonly string[], abilities = poor, width = 10): Canvas {
  const canvas = new Canvas(width, lines.length, abilities);
  for (const [y, line] of lines.entries()) canvas.put(0, y, line);
  return canvas;
}

Deno.test("Canvas.differenceFrom() is what differs, and nothing else", none, async (t) => {
  const before = canvasOf(["one", "two"]);
  const rows: readonly (readonly [string, readonly string[], string])[] = [
    ["nothing", ["one", "two"], ""],
    ["one cell", ["one", "tWo"], "\x1b[2;2HW"],
    ["from the first to the last", ["One!", "two"], "\x1b[1;1HOne!"],
    ["what is gone", ["on", "two"], "\x1b[1;3H "],
  ];
  for (const [name, lines, want] of rows) {
    await t.step(name, () => assert.equal(canvasOf(lines).differenceFrom(before), want));
  }
  await t.step("all of it, on a screen of another size or of none", () => {
    for (const old of [null, canvasOf(["one", "two"], poor, 11)]) {
      const text = canvasOf(["ab"], poor, 2).differenceFrom(old);
      assert.equal(text, "\x1b[m\x1b[2J\x1b[1;1Hab");
    }
  });
});

Deno.test("Canvas.differenceFrom() names the column behind every character of doubt", none, () => {
  const text = canvasOf(["a東b"], { ...poor, unicode: true }, 4)
    .differenceFrom(canvasOf(["a"], { ...poor, unicode: true }, 4));
  assert.equal(text, "\x1b[1;1Ha  \x1b[1;2H東\x1b[1;4Hb");
});

Deno.test("Canvas.put() keeps within its columns and cuts no character in two", none, () => {
  const canvas = new Canvas(6, 3, full);
  canvas.put(0, 0, "東京都庁");
  canvas.put(1, 1, "東");
  canvas.put(2, 1, "x");
  canvas.put(4, 2, "abcdef", Style.Red, 9);
  canvas.put(0, 7, "below");
  assert.deepEqual(canvas.lines(), ["東京…", "  x", "    a…"]);
});

Deno.test("Canvas writes no colour where there is none", none, () => {
  const picture = (abilities: typeof full) => {
    const canvas = new Canvas(3, 1, abilities);
    canvas.put(0, 0, "abc", Style.Red);
    return canvas.differenceFrom(new Canvas(3, 1, abilities));
  };
  assert.equal(picture(full), "\x1b[1;1H\x1b[;31mabc\x1b[m");
  assert.equal(picture(poor), "\x1b[1;1Habc");
});

Deno.test("Canvas lets nothing out that was put on it to act", none, () => {
  const canvas = new Canvas(20, 1, full);
  canvas.put(0, 0, "a\x1b[2J\u202e\x9b\x07\r\n");
  const text = canvas.differenceFrom(new Canvas(20, 1, full));
  // deno-lint-ignore no-control-regex -- that is what is looked for
  assert.doesNotMatch(text.replace(/\x1b\[(?:\d+;\d+H|;?\d*m)/g, ""), /[\p{Cc}\p{Cf}]/u);
  assert.match(text, /a\\027\[2J/);
});
