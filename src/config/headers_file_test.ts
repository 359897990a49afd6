import assert from "node:assert/strict";
import { parseHeaders } from "./mod.ts";

const none = { permissions: "none" } as const;

Deno.test("parseHeaders() reads headers, comments and blank lines", none, () => {
  const text = "# of the collector\r\nAuthorization: Bearer a:b\r\n\r\n  x-scope-orgid :home\n";
  assert.deepEqual(parseHeaders(text), {
    kind: "headers",
    headers: { authorization: "Bearer a:b", "x-scope-orgid": "home" },
  });
  assert.deepEqual(parseHeaders("\uFEFF"), { kind: "headers", headers: {} });
});

Deno.test("parseHeaders() names the line that is none, and no value", none, () => {
  const rows: readonly (readonly [text: string, line: number, message: RegExp])[] = [
    ["Bearer s3cret", 1, /is no header/],
    ["\n: s3cret", 2, /is no header/],
    ["a b: s3cret", 1, /is no header/],
    ["Host: s3cret", 1, /host is set by the service/],
    ["content-length: 3", 1, /content-length is set by the service/],
    ["x: s3cret\nX: s3cret", 2, /x is there twice/],
    ["x:", 1, /x has a value that is not ASCII text/],
    ["x: s3cret\x01", 1, /not ASCII/],
    ["x: s3crét", 1, /not ASCII/],
    [`x: ${"s3cret".repeat(2_000)}`, 1, /longer than 8192/],
    [Array.from({ length: 40 }, (_, i) => `x${i}: s3cret`).join("\n"), 33, /more than the 32/],
  ];
  for (const [text, line, message] of rows) {
    const parsed = parseHeaders(text);
    assert.ok(parsed.kind === "problem", text);
    assert.equal(parsed.line, line);
    assert.match(parsed.message, message);
    assert.doesNotMatch(parsed.message, /s3cr/);
  }
});
