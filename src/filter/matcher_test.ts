import assert from "node:assert/strict";
import {
  question,
  randomPattern,
  referenceHits,
  referenceRank,
  type ReferenceRule,
  ruleLine,
  sourceBits,
} from "../../tests/filter_reference.ts";
import { Prng, seedFromEnv } from "../../tests/prng.ts";
import { compile } from "./compile.ts";
import { InvariantError } from "../errors.ts";
import { Flag, Header, HEADER_WORDS } from "./layout.ts";
import { Matcher, NO_RULE, ruleText } from "./matcher.ts";
import { parseRule } from "./parse_rule.ts";

const SEED = 0xfeed_5eed;

/** A matcher over sources that are each the lines of one text. */
function matcherOf(texts: readonly string[], seed = SEED): Matcher {
  const sources = texts.map((text) => ({ bytes: new TextEncoder().encode(text) }));
  return new Matcher(compile({ seed, sources }).rules);
}

/** The text of the rule that decides about a name, or `null`. */
function decide(matcher: Matcher, name: string, sources: readonly number[]): string | null {
  const { packet, hashed } = question(name, matcher.seed);
  const ref = matcher.match(packet, hashed, sourceBits(sources, matcher.sources));
  return ref === NO_RULE ? null : matcher.ruleText(ref);
}

const FORMS: [rule: string, covered: string[], not: string[]][] = [
  ["||ads.example^", ["ads.example", "x.ads.example", "y.x.ADS.example"], [
    "xads.example",
    "example",
    "ads.example.test",
  ]],
  ["|ads.example^", ["ads.example", "Ads.Example"], ["x.ads.example", "xads.example", "example"]],
  ["ads.example", ["ads.example"], ["x.ads.example", "example"]],
  ["*.ads.example", ["x.ads.example", "y.x.ads.example"], ["ads.example", "xads.example"]],
  ["0.0.0.0 ads.example", ["ads.example"], ["x.ads.example"]],
  ["||example^", ["example", "ads.example"], ["example.test"]],
];

Deno.test("Matcher.match() covers what each form says", { permissions: "none" }, async (t) => {
  for (const [rule, covered, not] of FORMS) {
    await t.step(rule, () => {
      const matcher = matcherOf([rule]);
      for (const name of covered) assert.equal(decide(matcher, name, [0]), rule, name);
      for (const name of not) assert.equal(decide(matcher, name, [0]), null, name);
    });
  }
});

Deno.test("Matcher.match() lets the highest rank decide", { permissions: "none" }, async (t) => {
  const [block, exception] = ["||ads.example^", "@@||ads.example^"];
  const [blockFirst, exceptionFirst] = ["||ads.example^$important", "@@||ads.example^$important"];
  const rows: [rules: string[], want: string][] = [
    [[block, exception], exception],
    [[block, exception, blockFirst], blockFirst],
    [[block, exception, blockFirst, exceptionFirst], exceptionFirst],
    [["||x.ads.example^", exception], exception],
    [["@@||x.ads.example^", blockFirst], blockFirst],
    // Within a rank: the rule about the longest name.
    [["||example^", "||x.ads.example^", block], "||x.ads.example^"],
  ];
  for (const [rules, want] of rows) {
    await t.step(rules.join("  "), () => {
      for (const order of [rules, rules.toReversed()]) {
        const one = matcherOf([order.join("\n")]);
        assert.equal(decide(one, "x.ads.example", [0]), want);
        const many = matcherOf(order);
        assert.equal(decide(many, "x.ads.example", order.map((_, source) => source)), want);
      }
    });
  }
});

Deno.test("Matcher.match() asks the group's sources only", { permissions: "none" }, () => {
  const texts = Array.from({ length: 70 }, (_, i) => i % 3 === 0 ? "ads.example" : `n${i}.example`);
  texts[69] = "@@ads.example";
  const matcher = matcherOf(texts);
  assert.equal(decide(matcher, "ads.example", []), null);
  assert.equal(decide(matcher, "ads.example", [1, 2, 32, 64]), null);
  for (const source of [0, 3, 33, 63, 66]) {
    const { packet, hashed } = question("ads.example", SEED);
    const ref = matcher.match(packet, hashed, sourceBits([source], 70));
    assert.equal(matcher.source(ref), source);
    assert.equal(matcher.isBlock(ref), true);
    assert.equal(matcher.flags(ref) & Flag.Exception, 0);
    assert.equal(ruleText(matcher.memory, ref), "ads.example");
  }
  assert.equal(decide(matcher, "ads.example", [0, 3, 69]), "@@ads.example");
});

Deno.test("Matcher.match() compares names, not hashes alone", { permissions: "none" }, () => {
  const matcher = matcherOf(["ads.example\n||below.example^"]);
  const bits = sourceBits([0], 1);
  const target = question("ads.example", SEED);
  const other = question("abc.example", SEED);
  other.hashed.hashes[0] = target.hashed.hashes[0];
  assert.equal(matcher.match(other.packet, other.hashed, bits), NO_RULE);
  // A dot inside a label is no label boundary.
  const glued = question("ads_example", SEED);
  glued.packet[4] = 0x2e;
  glued.hashed.hashes[0] = target.hashed.hashes[0];
  assert.equal(matcher.match(glued.packet, glued.hashed, bits), NO_RULE);
});

Deno.test("Matcher refuses memory that compile() did not write", { permissions: "none" }, () => {
  const { memory } = matcherOf(["ads.example"]);
  new Uint32Array(memory, 0, HEADER_WORDS)[Header.Version]++;
  assert.throws(() => new Matcher(memory), InvariantError);
});

const LABELS = ["ads", "b", "www", "x-1", "_y"];
const [ROUNDS, NAMES_A_ROUND, SOURCES] = [400, 40, 40];

function randomName(prng: Prng): string {
  const labels = Array.from({ length: prng.int(5) }, () => prng.pick(LABELS));
  return [...labels, prng.pick(["test", "example"])].join(".");
}

function randomRule(prng: Prng): ReferenceRule {
  const form = prng.pick(["plain", "domain", "domain", "exact", "below", "hosts"] as const);
  return {
    ...(prng.chance(0.2) ? randomPattern(prng) : { form, name: randomName(prng) }),
    source: prng.int(SOURCES),
    exception: form !== "hosts" && prng.chance(0.3),
    important: form !== "hosts" && prng.chance(0.3),
    badfilter: form !== "hosts" && prng.chance(0.15),
  };
}

Deno.test("Matcher agrees with the reference", { permissions: "none" }, () => {
  const prng = new Prng(seedFromEnv());
  const verdicts = [0, 0, 0, 0, 0];
  for (let round = 0; round < ROUNDS; round++) {
    const rules = Array.from({ length: 1 + prng.int(120) }, () => randomRule(prng));
    const texts = Array.from(
      { length: SOURCES },
      (_, source) => rules.filter((rule) => rule.source === source).map(ruleLine).join("\n"),
    );
    const matcher = matcherOf(texts, prng.next());
    for (let i = 0; i < NAMES_A_ROUND; i++) {
      const name = randomName(prng);
      const share = prng.pick([0.1, 0.5, 1]);
      const active = new Set([...texts.keys()].filter(() => prng.chance(share)));
      const bits = sourceBits(active, SOURCES);
      const { packet, hashed } = question(name, matcher.seed);
      const want = referenceHits(rules, active, name);
      const message = `${name} of ${[...active]}, seed ${prng.seed}, round ${round}`;

      const ref = matcher.match(packet, hashed, bits);
      verdicts[1 + referenceRank(want)]++;
      assert.equal(ref === NO_RULE ? -1 : matcher.rank(ref), referenceRank(want), message);
      const all = matcher.matchAll(packet, hashed).filter(({ ref }) =>
        active.has(matcher.source(ref)) && matcher.badfilterOf(ref, bits) === NO_RULE
      );
      assert.equal(ref === NO_RULE ? undefined : ref, all[0]?.ref, message);
      const shown = all.map((hit) => `${matcher.source(hit.ref)}: ${matcher.ruleText(hit.ref)}`);
      // A source's second rule of the same text is left out.
      const wanted = new Set(want.map((rule) => `${rule.source}: ${ruleLine(rule)}`));
      assert.deepEqual(shown.toSorted(), [...wanted].toSorted(), message);
    }
  }
  // Every verdict was met often enough to say something.
  assert(verdicts.every((count) => count > 200), verdicts.join());
});

const MATCHES = 200_000;
/** Anything made by each match would be several times this. */
const GARBAGE_BYTES_MAX = 8 * MATCHES;

Deno.test("Matcher.match() leaves no garbage", { permissions: "none" }, () => {
  const matcher = matcherOf([
    "||ads.example^\nn.example\n@@||ok.ads.example^",
    "||ads.example^$important",
  ]);
  const bits = sourceBits([0, 1], 2);
  const questions = ["www.ads.example", "a.ok.ads.example", "n.example", "a.b.c.d.test"].map((n) =>
    question(n, SEED)
  );
  const run = () => {
    let hits = 0;
    for (let i = 0; i < MATCHES; i++) {
      const { packet, hashed } = questions[i & 3];
      if (matcher.match(packet, hashed, bits) !== NO_RULE) hits++;
    }
    return hits;
  };
  run(); // Until it is compiled for speed.
  // A collection in between would show less, so the largest of some runs counts.
  let grownBytes = 0;
  for (let i = 0; i < 3; i++) {
    const beforeBytes = Deno.memoryUsage().heapUsed;
    assert.equal(run(), MATCHES * 3 / 4);
    grownBytes = Math.max(grownBytes, Deno.memoryUsage().heapUsed - beforeBytes);
  }
  assert(grownBytes < GARBAGE_BYTES_MAX, `${grownBytes} bytes`);
});

Deno.test("Matcher.match() leaves out rules that are turned off", { permissions: "none" }, () => {
  const lines = [
    "||ads.example^",
    "|ads.example^",
    "@@||x.ads.example^",
    "||y.ads.example^$important",
  ];
  const matcher = matcherOf([lines.join("\n"), "||ads.example^\n0.0.0.0 y.ads.example"]);
  const rows = [
    ["||ads.example^", 2],
    ["|ads.example^", 1],
    ["ads.example", 0],
    ["@@||ads.example^", 0],
    ["@@||x.ads.example^", 1],
    ["||y.ads.example^", 0],
    ["||y.ads.example^$important", 1],
    ["0.0.0.0 y.ads.example", 1],
    ["127.0.0.1 y.ads.example", 0],
    ["||other.example^", 0],
  ] as const;
  for (const [text, count] of rows) {
    const parsed = parseRule(text);
    assert.ok(parsed.kind === "rules");
    const refs = parsed.rules.flatMap((rule) => matcher.turnedOffBy(rule));
    assert.equal(refs.length, count, text);
    for (const ref of refs) assert.equal(matcher.ruleText(ref), text);
  }
  const all = (...texts: string[]) =>
    Int32Array.from(texts.flatMap((text) => {
      const parsed = parseRule(text);
      return parsed.kind === "rules"
        ? parsed.rules.flatMap((rule) => matcher.turnedOffBy(rule))
        : [];
    })).sort();
  const decideWithout = (name: string, turnedOff: Int32Array) => {
    const { packet, hashed } = question(name, matcher.seed);
    const ref = matcher.match(packet, hashed, sourceBits([0, 1], 2), turnedOff);
    return ref === NO_RULE ? null : `${matcher.ruleText(ref)} of ${matcher.nameLengthBytes(ref)}`;
  };
  const [domain, exact] = ["||ads.example^", "|ads.example^"];
  assert.equal(decideWithout("ads.example", all(domain)), `${exact} of 13`);
  assert.equal(decideWithout("ads.example", all(exact)), `${domain} of 13`);
  assert.equal(decideWithout("ads.example", all(domain, exact)), null);
  assert.equal(decideWithout("x.ads.example", all("@@||x.ads.example^")), `${domain} of 13`);
  const without = all("||y.ads.example^$important");
  assert.equal(decideWithout("y.ads.example", without), "0.0.0.0 y.ads.example of 15");
});
