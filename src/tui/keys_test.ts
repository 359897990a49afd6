import assert from "node:assert/strict";
import { KeyReader } from "./keys.ts";

const none = { permissions: "none" } as const;
const bytes = (text: string) => new TextEncoder().encode(text);

Deno.test("KeyReader.read() tells keys from what a terminal sends", none, async (t) => {
  const rows: readonly (readonly [string, readonly string[]])[] = [
    ["ab 1", ["a", "b", " ", "1"]],
    ["\x1b[A\x1bOB\x1b[6~\x1b[1~", ["up", "down", "pagedown", "home"]],
    ["\r\t\x7f\x03\x1a", ["enter", "tab", "backspace", "ctrl+c", "ctrl+z"]],
    ["é東", ["é", "東"]],
    ["\x1b[1;5A\x1b[99;7Rx", ["x"]],
    ["\x1b\x1b[A", ["escape", "up"]],
    ["\x1bx", ["escape", "x"]],
  ];
  for (const [text, want] of rows) {
    await t.step(JSON.stringify(text), () => {
      assert.deepEqual(new KeyReader().read(bytes(text)).map(({ name }) => name), want);
    });
  }
  await t.step("in pieces of any size", () => {
    const reader = new KeyReader();
    const all = bytes("é\x1b[5~東\x1b[Z");
    const names = Array.from(all, (_, i) => reader.read(all.subarray(i, i + 1))).flat()
      .map(({ name }) => name);
    assert.deepEqual(names, ["é", "pageup", "東", "shift+tab"]);
  });
});

Deno.test("KeyReader.flush() makes ESC a key when nothing follows", none, () => {
  const reader = new KeyReader();
  assert.deepEqual([reader.read(bytes("\x1b")), reader.isWaiting], [[], true]);
  assert.deepEqual(reader.flush().map(({ name }) => name), ["escape"]);
  assert.deepEqual([reader.flush(), reader.isWaiting], [[], false]);
});

Deno.test("KeyReader.read() waits for no sequence without an end", none, () => {
  const reader = new KeyReader();
  const keys = reader.read(bytes(`\x1b[${"1".repeat(200)}`));
  assert.equal(keys[0].name, "escape");
  assert.equal(reader.isWaiting, false);
});

Deno.test("KeyReader marks what was pasted", none, () => {
  const keys = new KeyReader().read(bytes("a\x1b[200~q\rP\x1b[201~b"));
  assert.deepEqual(
    keys.map(({ name, isPasted }) => (isPasted ? `(${name})` : name)),
    ["a", "(q)", "(enter)", "(P)", "b"],
  );
});
