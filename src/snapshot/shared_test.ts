import assert from "node:assert/strict";
import { packTexts, share, unpackText } from "./shared.ts";

const none = { permissions: "none" } as const;

Deno.test("share() puts arrays of any length into one memory, each at a word", none, () => {
  const given = {
    words: Int32Array.of(1, -2, 3),
    none: new Int32Array(0),
    bytes: Uint8Array.of(1, 2, 3, 4, 5),
    more: Int32Array.of(7),
    nothing: new Uint8Array(0),
  };
  const { memory, parts } = share(given);
  assert.equal(memory.byteLength, 12 + 8 + 4);
  for (const [name, part] of Object.entries(parts)) assert.equal(part.buffer, memory, name);
  assert.deepEqual(Object.values(parts).map((part) => [...part]), [
    [1, -2, 3],
    [],
    [1, 2, 3, 4, 5],
    [7],
    [],
  ]);
});

Deno.test("packTexts() and unpackText() keep every text", none, () => {
  const rows = [
    [],
    ["", "a", ""],
    ["Küche", "厨房", "kitchen", "🏠"],
    ["\ud83c", "\udfe0", "x"], // Halves of one character, in two texts.
  ];
  for (const texts of rows) {
    const packed = packTexts(texts);
    assert.deepEqual(
      texts.map((_, i) => unpackText(packed, i)),
      texts.map((text) => text.toWellFormed()),
    );
  }
});
