import assert from "node:assert/strict";
import { SvcError } from "../errors.ts";
import { formatEtag, parseIfMatch, revisionAsked } from "./etag.ts";

const none = { permissions: "none" } as const;

const CASES: readonly (readonly [string | null, readonly number[] | null | "bad"])[] = [
  [null, null],
  ["*", null],
  ["3", [3]],
  ['"3"', [3]],
  [" 3 ", [3]],
  ["0", [0]],
  ["999999999999999", [999_999_999_999_999]],
  ["9999999999999999", "bad"],
  ['"9999999999999999"', []],
  ["", "bad"],
  ["three", "bad"],
  ['"three"', []],
  ['""', []],
  ['"3', "bad"],
  ['"3" "4"', "bad"],
  ['"3"4', "bad"],
  ["3, 4", "bad"],
  ['*, "3"', "bad"],
  [",", "bad"],
  ["-3", "bad"],
  ["3.0", "bad"],
  ['W/"3"', []],
  ['w/"3"', "bad"],
  ["W/3", "bad"],
  ['"3", "4"', [3, 4]],
  ['"3","4" ,W/"5", , "6",', [3, 4, 6]],
];

Deno.test("parseIfMatch() reads what may match, or refuses", none, async (t) => {
  for (const [header, want] of CASES) {
    await t.step(String(header), () => {
      if (want !== "bad") return assert.deepEqual(parseIfMatch(header), want);
      assert.throws(
        () => parseIfMatch(header),
        (error) => error instanceof SvcError && error.code === "bad_request",
      );
    });
  }
  assert.deepEqual(parseIfMatch(formatEtag(12)), [12]);
});

Deno.test("revisionAsked() is the one that is there, where several are asked for", none, () => {
  const rows = [
    [null, 3, null],
    [[7], 3, 7],
    [[7], undefined, 7],
    [[3, 7], 7, 7],
    [[3, 7], 5, 3],
    [[3, 7], undefined, null],
    [[], undefined, null],
  ] as const;
  for (const [asked, current, want] of rows) {
    assert.equal(revisionAsked(asked, () => current), want);
  }
  assert.throws(
    () => revisionAsked([], () => 3),
    (error) => error instanceof SvcError && error.code === "revision_mismatch",
  );
});
