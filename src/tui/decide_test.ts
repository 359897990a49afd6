import assert from "node:assert/strict";
import type { QuerylogEntry } from "../api/mod.ts";
import { SvcError } from "../errors.ts";
import { endOf, reachesOf, remedyFor, ruleText, secondsUntilMorning } from "./decide.ts";
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

Deno.test("ruleText() says what was asked for", none, () => {
  const [name, below] = reachesOf("ads.example");
  const texts = [
    ruleText("block", name, ""),
    ruleText("block", below, ""),
    ruleText("allow", name, ""),
    ruleText("allow", below, "$important"),
    ruleText("allow", name, "$dnsrewrite"),
  ];
  assert.deepEqual(texts, [
    "|ads.example^",
    "||ads.example^",
    "@@|ads.example^",
    "@@||ads.example^$important",
    "@@||ads.example^$dnsrewrite",
  ]);
});

Deno.test("remedyFor() knows what no rule lifts", none, async (t) => {
  const rows: readonly (readonly [string, string | null, string | null, string])[] = [
    ["blocked", "||ads.example^", "rules", "exception "],
    ["blocked", "||ads.example^$important", "rules", "exception $important"],
    ["rewritten", "||ads.example^$dnsrewrite=1.2.3.4", "rules", "exception $dnsrewrite"],
    ["blocked", "||tiktok.example^", "service:tiktok", "service tiktok"],
    ["safe_search", null, null, "elsewhere safe search"],
    ["local", null, null, "elsewhere a local record"],
    ["refused", null, null, "elsewhere who may ask"],
  ];
  for (const [outcome, rule, list, want] of rows) {
    await t.step(`${outcome} ${list} ${rule}`, () => {
      const remedy = remedyFor({ outcome, rule, list } as QuerylogEntry);
      const { kind, ...rest } = remedy;
      assert.equal(`${kind} ${Object.values(rest)[0].split(":")[0]}`, want);
    });
  }
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
