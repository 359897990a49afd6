// Goal: the verdicts of an independent engine hold for whole lists; `src/snapshot/vectors_test.ts`
// holds those for single rules.

import assert from "node:assert/strict";
import { gunzipSync } from "node:zlib";
import { question, sourceBits } from "../../tests/filter_reference.ts";
import { compile } from "./compile.ts";
import { Matcher, NO_RULE } from "./matcher.ts";
import { parseRule, unsupportedCount } from "./parse_rule.ts";

const SHARED = new URL("../../../shared/", import.meta.url);
const ABSENT = await Deno.stat(new URL("vectors/filter-lists.json", SHARED)).then(
  () => false,
  () => true,
);
if (ABSENT) {
  console.warn("skipped: the filter's vectors need ../shared/vectors and ../shared/lists");
}
const OPTIONS = { ignore: ABSENT, permissions: { read: [SHARED] } };
const SEED = 0x5eed;

function rankOf(line: string): number {
  const parsed = parseRule(line);
  assert(parsed.kind === "rules", line);
  return (parsed.rules[0].important ? 2 : 0) + (parsed.rules[0].exception ? 1 : 0);
}

/** The deciding rule's reference and the verdict on a name, with all sources active. */
function ask(matcher: Matcher, name: string): [ref: number, outcome: "pass" | "blocked"] {
  const { packet, hashed } = question(name, SEED);
  const all = sourceBits(Array(matcher.sources).keys(), matcher.sources);
  const ref = matcher.match(packet, hashed, all);
  return [ref, ref !== NO_RULE && matcher.isBlock(ref) ? "blocked" : "pass"];
}

interface ListVectors {
  /** Lines in none of the rule forms; not counted for lists of plain names. */
  readonly unsupported_lines?: number;
  readonly queries: readonly {
    readonly name: string;
    readonly outcome: "pass" | "blocked";
    readonly rule?: string;
  }[];
}

Deno.test("Matcher gives the verdicts of filter-lists.json", OPTIONS, async (t) => {
  const text = await Deno.readTextFile(new URL("vectors/filter-lists.json", SHARED));
  const lists: Record<string, ListVectors> = JSON.parse(text).lists;
  for (const [path, vectors] of Object.entries(lists)) {
    await t.step(path, async () => {
      const url = new URL(path.replace(/^shared\//, ""), SHARED);
      const bytes = new Uint8Array(gunzipSync(await Deno.readFile(url)));
      const { rules, stats } = compile({ seed: SEED, sources: [{ bytes }] });
      // It reads each line that the other engine does; `||name` and rules about addresses make the
      // rest.
      assert(unsupportedCount(stats[0].skipped) <= (vectors.unsupported_lines ?? 0));
      const matcher = new Matcher(rules);
      for (const query of vectors.queries) {
        const [ref, outcome] = ask(matcher, query.name);
        assert.equal(outcome, query.outcome, JSON.stringify(query));
        if (query.rule !== undefined) {
          assert.equal(matcher.rank(ref), rankOf(query.rule), JSON.stringify(query));
        }
      }
    });
  }
});

Deno.test("compile() reads every real list", OPTIONS, async (t) => {
  for await (const { name } of Deno.readDir(new URL("lists/", SHARED))) {
    if (!name.endsWith(".gz")) continue;
    await t.step(name, async () => {
      const bytes = new Uint8Array(
        gunzipSync(await Deno.readFile(new URL(`lists/${name}`, SHARED))),
      );
      const { rules, stats } = compile({ seed: SEED, sources: [{ bytes }] });
      assert(stats[0].rules > 1_000, JSON.stringify(stats[0]));
      assert(rules.byteLength <= 50 * stats[0].rules, `${rules.byteLength} bytes`);
    });
  }
});

Deno.test("Matcher lets names through that a real list excepts with ^|", OPTIONS, async () => {
  const file = new URL("lists/adguard-sdn-2019.adguard.gz", SHARED);
  const bytes = new Uint8Array(gunzipSync(await Deno.readFile(file)));
  const matcher = new Matcher(compile({ seed: SEED, sources: [{ bytes }] }).rules);
  const lines = new TextDecoder().decode(bytes).split(/\r?\n/);
  const names = lines.flatMap((line) => /^@@\|\|([^*^|]+)\^\|$/.exec(line)?.[1] ?? []);
  assert(names.length > 10, `only ${names.length} exceptions`);
  for (const name of names) {
    const [ref, outcome] = ask(matcher, name);
    assert.equal(outcome, "pass", name);
    assert(ref !== NO_RULE, name);
  }
});
