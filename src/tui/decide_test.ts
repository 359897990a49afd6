import assert from "node:assert/strict";
import { SvcError } from "../errors.ts";
import { endOf, reachesOf, secondsUntilMorning } from "./decide.ts";
import { parseFilter } from "./log_feed.ts";

const none = { permissions: "none" } as const;

Deno.test("reachesOf() goes up to a domain below the top, and no further", none, () => {
  const labels = (name: string) => reachesOf(name).map(({ label }) => label);
  assert.deepEqual(labels("a.b.example"), [
    "a.b.example",
    "a.b.example and below",
    "b.example and below",
  ]);
  assert.deepEqual(labels("example"), ["example", "example and below"]);
});

Deno.test("endOf() and secondsUntilMorning() go by the clock on the wall", none, () => {
  const now = new Date(2026, 0, 2, 23, 30);
  assert.equal(endOf("for ever", now), null);
  assert.equal(endOf("1 hour", now), new Date(2026, 0, 3, 0, 30).toISOString());
  assert.equal(endOf("today", now), new Date(2026, 0, 3).toISOString());
  assert.equal(secondsUntilMorning(now), 6.5 * 3_600);
});

Deno.test("parseFilter() takes words of a name and fields with a value", none, () => {
  assert.deepEqual(parseFilter(" outcome:blocked  client:2001:db8::1 ads "), {
    outcome: "blocked",
    client: "2001:db8::1",
    name: "ads",
  });
  assert.deepEqual(parseFilter(""), {});
  assert.throws(
    () => parseFilter("colour:red"),
    (error) => error instanceof SvcError && /^colour: is no field: use one of/.test(error.message),
  );
});
