import assert from "node:assert/strict";
import { allowingText } from "./allowing.ts";
import { compile } from "./mod.ts";
import { LINE_LENGTH_MAX, unsupportedCount } from "./parse_rule.ts";

const none = { permissions: "none" } as const;

function allowing(text: string): string {
  return new TextDecoder().decode(allowingText(new TextEncoder().encode(text)));
}

Deno.test("allowingText() makes an exception of each rule that blocks", none, async (t) => {
  const rows: readonly (readonly [string, string])[] = [
    ["good.example", "@@good.example\n"],
    ["||good.example^", "@@||good.example^\n"],
    ["|good.example^$important\r\n", "@@|good.example^$important\n"],
    ["*.good.example", "@@*.good.example\n"],
    ["0.0.0.0 a.example b.example # both", "@@|a.example^\n@@|b.example^\n"],
    ["192.0.2.1 nas.example", "@@|nas.example^\n"],
    ["|192.0.2.*", "@@|192.0.2.*\n"],
    ["/^ad[0-9]/", "@@/^ad[0-9]/\n"],
    ["||ads*.example^", "@@||ads*.example^\n"],
    ["@@||good.example^", "@@||good.example^\n"],
    ["||good.example^$dnsrewrite=192.0.2.1", "\n"],
    ["||good.example^$badfilter", "||good.example^$badfilter\n"],
    ["! a comment\n\n# another", "! a comment\n\n# another\n"],
    ["||x.example^$client=tv", "||x.example^$client=tv\n"],
    ["\ufeffgood.example", "@@good.example\n"],
    ["", ""],
  ];
  for (const [text, want] of rows) {
    await t.step(JSON.stringify(text), () => assert.equal(allowing(text), want));
  }
});

Deno.test("compile() counts a list that allows as it counts one that blocks", none, () => {
  const text = "! title\n||a.example^\n0.0.0.0 b.example c.example\nd.example\n||x^$script\n";
  const bytes = new TextEncoder().encode(text.repeat(300)); // More than it was given room for.
  const [blocks, allows] =
    compile({ seed: 1, sources: [{ bytes }, { bytes, allows: true }] }).stats;
  assert.deepEqual([allows.rules, blocks.rules], [4, 4]);
  assert.equal(unsupportedCount(allows.skipped), unsupportedCount(blocks.skipped));
});

Deno.test("allowingText() keeps of a line what shows that it is too long", none, () => {
  const bytes = new TextEncoder().encode(`${"é".repeat(50 * LINE_LENGTH_MAX)}\n||b.example^\n`);
  assert.ok(allowingText(bytes).length < 2 * LINE_LENGTH_MAX);
  const [{ rules, skipped }] = compile({ seed: 1, sources: [{ bytes, allows: true }] }).stats;
  assert.deepEqual([rules, skipped.too_long], [1, 1]);
});
