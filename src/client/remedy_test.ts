import assert from "node:assert/strict";
import { type Decided, ELSEWHERE, remedyFor, ruleText } from "./remedy.ts";

const none = { permissions: "none" } as const;

Deno.test("remedyFor() knows what no rule lifts", none, async (t) => {
  const rows: readonly (readonly [string, string | null, string | null, string])[] = [
    ["blocked", "||ads.example^", "rules", "exception "],
    ["blocked", "||ads.example^$important", "rules", "exception $important"],
    ["rewritten", "||ads.example^$dnsrewrite=1.2.3.4", "rules", "exception $dnsrewrite"],
    ["blocked", "||tiktok.example^", "service:tiktok", "service tiktok"],
    ["blocked", "the Internet is off", "off", "elsewhere the Internet being off"],
    ["safe_search", null, null, "elsewhere safe search"],
    ["local", null, null, "elsewhere a local record"],
    ["refused", null, null, "elsewhere who may ask"],
  ];
  for (const [outcome, rule, list, want] of rows) {
    await t.step(`${outcome} ${list} ${rule}`, () => {
      const remedy = remedyFor({ outcome, rule, list } as Decided);
      const said = remedy.kind === "elsewhere"
        ? ELSEWHERE[remedy.what].split(":")[0]
        : Object.values(remedy)[1];
      assert.equal(`${remedy.kind} ${said}`, want);
    });
  }
});

Deno.test("ruleText() says what was asked for", none, () => {
  const name = { name: "ads.example", isBelow: false };
  const below = { name: "ads.example", isBelow: true };
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
