import assert from "node:assert/strict";
import { Prng, seedFromEnv } from "../../tests/prng.ts";
import { ByteTexts } from "./byte_texts.ts";

const none = { permissions: "none" } as const;

Deno.test("ByteTexts finds the text of these bytes, whatever lies behind them", none, () => {
  const prng = new Prng(seedFromEnv());
  const texts = new ByteTexts(8, 12);
  const words = new Uint32Array(8);
  const bytes = new Uint8Array(words.buffer);
  let found = 0;
  for (let i = 0; i < 20_000; i++) {
    bytes.set(prng.bytes(bytes.length));
    const at = prng.int(3);
    // Few different ones, of which many begin alike.
    const length = prng.int(15);
    bytes.fill(0, at * 4, at * 4 + length);
    if (length > 0) bytes[at * 4 + prng.int(length)] = prng.int(2);
    const text = bytes.slice(at * 4, at * 4 + length).join(" ");
    const known = texts.find(words, at, length);
    if (known !== null) found++;
    assert.ok(known === null || known.text === text, `${known?.text} for ${text}`);
    const kept = texts.keep(words, at, length, text);
    assert.equal(kept.text, text);
    const isShort = length > 0 && length <= 12;
    assert.equal(texts.find(words, at, length)?.text, isShort ? text : undefined);
  }
  assert.ok(found > 1_000, `${found} were found`);
});

Deno.test("ByteTexts keeps of those that share their places the one used last", none, () => {
  const texts = new ByteTexts(4, 4);
  const has = (number: number) => texts.find(Uint32Array.of(number), 0, 4) !== null;
  const keep = (number: number) => texts.keep(Uint32Array.of(number), 0, 4, `${number}`);
  for (const number of [1, 2, 3, 4]) keep(number);
  for (let i = 5; i < 50; i++) {
    assert.ok(has(1));
    keep(i);
    assert.ok(has(i) && has(1), "what is used stays");
  }
  assert.equal([2, 3, 4].filter(has).length, 2, "and so does what was not in the way");
});
