import assert from "node:assert/strict";
import { editDistance, suggest } from "./suggest.ts";
import { formatDuration, formatSize, parseDuration, parseSize } from "./units.ts";

const none = { permissions: "none" } as const;

Deno.test("parseDuration() and formatDuration() agree", none, () => {
  const rows = [
    ["500ms", 500],
    ["10s", 10_000],
    ["5m", 300_000],
    ["25h", 90_000_000],
    ["7d", 604_800_000],
    ["0s", 0],
  ] as const;
  for (const [text, durationMs] of rows) {
    assert.equal(parseDuration(text), durationMs);
    assert.equal(formatDuration(durationMs), text);
  }
  assert.equal(parseDuration("24h"), parseDuration("1d"));
  for (const bad of ["", "10", "s", "1.5s", "-1s", "10 s", "1h30m", "10S", "1w", "1000000000ms"]) {
    assert.equal(parseDuration(bad), null, bad);
  }
});

Deno.test("parseSize() and formatSize() agree", none, () => {
  const rows = [
    ["512B", 512],
    ["3KiB", 3_072],
    ["32MiB", 33_554_432],
    ["16GiB", 17_179_869_184],
    ["0B", 0],
  ] as const;
  for (const [text, sizeBytes] of rows) {
    assert.equal(parseSize(text), sizeBytes);
    assert.equal(formatSize(sizeBytes), text);
  }
  for (const bad of ["", "32", "32MB", "32M", "32mib", "1.5GiB", "-1B", "1 KiB"]) {
    assert.equal(parseSize(bad), null, bad);
  }
});

Deno.test("suggest() finds the word that was meant", none, () => {
  const known = ["listen", "user", "workers", "dot", "doh", "url"];
  const rows = [
    ["listn", "listen"],
    ["lisetn", "listen"],
    ["worker", "workers"],
    ["USER", "user"],
    ["dto", "dot"],
    ["addresses", null],
    ["a", null],
    ["lstn", "listen"],
    ["lst", null],
    ["listen".repeat(100), null],
  ] as const;
  for (const [word, meant] of rows) assert.equal(suggest(word, known), meant, word);
  assert.equal(editDistance("", "abc"), 3);
  assert.equal(editDistance("abc", "abc"), 0);
  assert.equal(editDistance("ab", "ba"), 1);
});
