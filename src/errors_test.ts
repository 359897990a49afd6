import assert from "node:assert/strict";
import { invariant, InvariantError, messageOf, SvcError } from "./errors.ts";

const none = { permissions: "none" } as const;

Deno.test("SvcError keeps its code and its cause", none, () => {
  const cause = new Error("disk full");
  const error = new SvcError("unavailable", "store: cannot write", { cause });
  assert.ok(error instanceof Error);
  assert.deepEqual([error.name, error.code, error.message], [
    "SvcError",
    "unavailable",
    "store: cannot write",
  ]);
  assert.equal(error.cause, cause);
});

Deno.test("invariant() throws unless its condition holds", none, () => {
  invariant(true, "nothing to say");
  assert.throws(
    () => invariant(1 > 2, "one is more"),
    (error) => error instanceof InvariantError && error.message === "does not hold: one is more",
  );
  assert.equal(new InvariantError("x") instanceof SvcError, false);
});

Deno.test("messageOf() takes anything thrown", none, () => {
  const rows: [unknown, string][] = [
    [new Error("a"), "a"],
    [new SvcError("invalid", "b"), "b"],
    ["c", "c"],
    [undefined, "undefined"],
    [null, "null"],
    [7, "7"],
  ];
  for (const [thrown, want] of rows) assert.equal(messageOf(thrown), want);
});
