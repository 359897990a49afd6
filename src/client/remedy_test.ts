import assert from "node:assert/strict";
import { type Decided, remedyFor } from "./remedy.ts";

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
      const { kind, ...rest } = remedy;
      assert.equal(`${kind} ${Object.values(rest)[0].split(":")[0]}`, want);
    });
  }
});
