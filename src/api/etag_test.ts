import assert from "node:assert/strict";
import { SvcError } from "../errors.ts";
import { formatEtag, parseIfMatch } from "./etag.ts";

const CASES: readonly (readonly [string | null, number | null | "bad"])[] = [
  [null, null],
  ["*", null],
  ["3", 3],
  ['"3"', 3],
  [" 3 ", 3],
  ["0", 0],
  ["999999999999999", 999_999_999_999_999],
  ["9999999999999999", "bad"],
  ["", "bad"],
  ["three", "bad"],
  ['"3', "bad"],
  ["-3", "bad"],
  ["3.0", "bad"],
  ['W/"3"', "bad"],
  ['"3", "4"', "bad"],
];

Deno.test("parseIfMatch() reads a revision or refuses", { permissions: "none" }, async (t) => {
  for (const [header, want] of CASES) {
    await t.step(String(header), () => {
      if (want !== "bad") return assert.equal(parseIfMatch(header), want);
      assert.throws(
        () => parseIfMatch(header),
        (error) => error instanceof SvcError && error.code === "bad_request",
      );
    });
  }
  assert.equal(parseIfMatch(formatEtag(12)), 12);
});
