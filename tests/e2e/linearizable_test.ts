import assert from "node:assert/strict";
import { type Change, findFault } from "./linearizable.ts";

const alone = { permissions: "none" } as const;
const FIRST = { revision: 1, value: "first" };

/** `calledAt answeredAt ifMatch value -> outcome`, where `-` is never. */
function changes(...lines: string[]): Change[] {
  return lines.map((line) => {
    const [calledAt, answeredAt, ifMatch, value, , outcome] = line.split(" ");
    return {
      calledAt: Number(calledAt),
      answeredAt: answeredAt === "-" ? Infinity : Number(answeredAt),
      ifMatch: Number(ifMatch),
      value,
      outcome: outcome === "mismatch" || outcome === "unknown"
        ? { kind: outcome }
        : { kind: "done", revision: Number(outcome) },
    };
  });
}

Deno.test("findFault() finds none where there is an order", alone, async (t) => {
  const rows: readonly (readonly [string, readonly string[], string])[] = [
    ["nothing", [], "1 first"],
    ["one after another", ["1 2 1 a -> 2", "3 4 2 b -> 3"], "3 b"],
    ["two at a time, one of which came too late", ["1 9 1 a -> 2", "2 8 1 b -> mismatch"], "2 a"],
    ["the later call came first", ["1 9 2 b -> 3", "2 8 1 a -> 2"], "3 b"],
    ["one that was never answered came about", ["1 - 1 a -> unknown", "2 3 2 b -> 3"], "3 b"],
    ["one that was never answered did not", ["1 - 1 a -> unknown", "2 3 1 b -> 2"], "2 b"],
    ["one that came about long after", ["1 - 2 b -> unknown", "2 3 1 a -> 2"], "3 b"],
  ];
  for (const [name, lines, end] of rows) {
    const [revision, value] = end.split(" ");
    await t.step(name, () => {
      const last = { revision: Number(revision), value };
      assert.equal(findFault(changes(...lines), FIRST, last), null);
    });
  }
});

Deno.test("findFault() finds what can't have happened", alone, async (t) => {
  const rows: readonly (readonly [string, readonly string[], string])[] = [
    ["an answered change is lost", ["1 2 1 a -> 2"], "1 first"],
    ["two changes of one revision", ["1 2 1 a -> 2", "3 4 1 b -> 2"], "2 b"],
    ["a refusal that nothing explains", ["1 2 1 a -> mismatch"], "1 first"],
    ["a refusal before what explains it", ["1 2 1 a -> mismatch", "3 4 1 b -> 2"], "2 b"],
    ["a refused change came about", ["1 2 1 a -> 2", "3 4 1 b -> mismatch"], "3 b"],
    ["one came about twice", ["1 - 1 a -> unknown", "2 3 2 b -> 3"], "4 a"],
    ["a revision that went back", ["1 2 1 a -> 1"], "1 a"],
  ];
  for (const [name, lines, end] of rows) {
    const [revision, value] = end.split(" ");
    await t.step(name, () => {
      const last = { revision: Number(revision), value };
      assert.match(findFault(changes(...lines), FIRST, last) ?? "", /^no order/);
    });
  }
});
