import assert from "node:assert/strict";
import { findRegexProblem } from "./automaton.ts";
import { Prng, seedFromEnv } from "../../tests/prng.ts";
import { question, sourceBits } from "../../tests/filter_reference.ts";
import { compile, type CompileResult, type SourceStats } from "./compile.ts";
import { Matcher, NO_RULE } from "./matcher.ts";
import { Form, formFlags } from "./layout.ts";
import { NameReader } from "./names.ts";
import { Added, RuleTable, VALUES_MAX } from "./rule_table.ts";
import { LINE_LENGTH_MAX, parseRule, type Rule, SKIP_REASONS } from "./parse_rule.ts";

const SEED = 0xfeed_5eed;
const encode = (text: string) => new TextEncoder().encode(text);

function compileTexts(...texts: string[]): CompileResult {
  return compile({ seed: SEED, sources: texts.map((text) => ({ bytes: encode(text) })) });
}

/** The texts of the rules that cover a name, in the order of `matchAll`. */
function textsFor(rules: SharedArrayBuffer, name: string): string[] {
  const matcher = new Matcher(rules);
  const { packet, hashed } = question(name, matcher.seed);
  const all = sourceBits(Array(matcher.sources).keys(), matcher.sources);
  const hits = matcher.matchAll(packet, hashed);
  return hits.filter(({ ref }) => matcher.badfilterOf(ref, all) === NO_RULE).map((hit) =>
    `${matcher.source(hit.ref)}: ${matcher.ruleText(hit.ref)}`
  );
}

/** The counts of a source that are not zero. */
function counts(stats: SourceStats): Record<string, number> {
  const all = { ...stats, ...stats.skipped, skipped: 0 };
  return Object.fromEntries(Object.entries(all).filter(([, count]) => count !== 0));
}

Deno.test("compile() counts what became of each line", { permissions: "none" }, () => {
  const list = [
    "\ufeff! A list, with a byte order mark and line ends of both kinds",
    "[Adblock Plus 2.0]\r",
    "",
    "||ads.example^\r",
    "||Ads.example",
    "ads.example",
    "0.0.0.0 ads.example",
    "0.0.0.0 localhost a.example # why",
    "127.0.0.1 b.example",
    "@@|c.example^$important",
    "||off.example^$badfilter",
    "||off.example^$badfilter",
    "||off.example^",
    "||x*.example^",
    "||X*.example^",
    "/^x[0-9]/",
    "/^(?=x)/",
    "x*",
    "||x.example^$third-party",
    "192.0.2.1 x.example",
    "192.0.2.1 X.example",
    "192.0.2.2 x.example",
    "||x.example^$dnsrewrite=192.0.2.1",
    "||x.example^$dnsrewrite=::1",
    "||X.example^$dnsrewrite=::1",
    "||x.example^$dnsrewrite=A;B",
    "|10.*",
    "|10.1*",
    "x.example##.banner",
    `x.example ${"#".repeat(LINE_LENGTH_MAX)}`,
    "no line end behind this one",
  ].join("\n");
  const { stats } = compileTexts(list, "");
  assert.deepEqual(counts(stats[0]), {
    rules: 13,
    duplicates: 5,
    badfilters: 1,
    disabled: 1,
    comment: 2,
    blank: 1,
    local_name: 1,
    regex: 1,
    broad: 1,
    unknown_modifier: 1,
    rewrite: 1,
    address_rule: 1,
    cosmetic: 1,
    too_long: 1,
    bad_address: 1,
  });
  assert.deepEqual(counts(stats[1]), {});
});

Deno.test("compile() keeps what each rule looks like", { permissions: "none" }, async (t) => {
  const rows = [
    ["ads.example", "ads.example", ["0: ads.example"]],
    ["||ads.example^", "ads.example", ["0: ||ads.example^"]],
    ["||ads.example", "ads.example", ["0: ||ads.example"]],
    ["@@||ads.example^", "x.ads.example", ["0: @@||ads.example^"]],
    ["|Ads.example^", "ads.example", ["0: |Ads.example^"]],
    ["*.ads.example", "x.ads.example", ["0: *.ads.example"]],
    ["||müller.example^", "xn--mller-kva.example", ["0: ||müller.example^"]],
    ["0.0.0.0\tads.example # why", "ads.example", ["0: 0.0.0.0 ads.example"]],
    ["127.0.0.1 ads.example", "ads.example", ["0: 127.0.0.1 ads.example"]],
    ["0.0.0.0 ADS.example # why", "ads.example", ["0: 0.0.0.0 ADS.example"]],
    ["0.0.0.0\tADS.example", "ads.example", ["0: 0.0.0.0 ADS.example"]],
    ["@@||ADS.example^ # why", "ads.example", ["0: @@||ADS.example^"]],
    ["  Ads.Example\t# why", "ads.example", ["0: Ads.Example"]],
    [":: a.example ads.example", "ads.example", ["0: :: ads.example"]],
    ["::1 ads.example", "ads.example", ["0: ::1 ads.example"]],
    ["127.0.1.1  a.example ADS.example", "ads.example", ["0: 127.0.1.1 ADS.example"]],
    ["||ads*.example^", "ads1.example", ["0: ||ads*.example^"]],
    ["@@||Ads*.example^$important", "ads1.example", ["0: @@||Ads*.example^$important"]],
    ["*-ads.example # why", "x-ads.example", ["0: *-ads.example"]],
    [".ads.example^", "x.ads.example", ["0: .ads.example^"]],
    ["/^Ads\\D/$important", "adsx.example", ["0: /^Ads\\D/$important"]],
    [`/^(${"b".repeat(400)}|ads)/`, "adsx.example", [`0: /^(${"b".repeat(400)}|ads)/`]],
    ["ads*$dnsrewrite=::1", "ads.example", ["0: ads*$dnsrewrite=::1"]],
    ["||ads.example^$important", "ads.example", ["0: ||ads.example^$important"]],
    ["@@ads.example$important", "ads.example", ["0: @@ads.example$important"]],
    ["192.0.2.1  ads.example # why", "ads.example", ["0: 192.0.2.1 ads.example"]],
    ["2001:db8::1 ads.example", "ads.example", ["0: 2001:db8::1 ads.example"]],
    ["2001:DB8::1 Ads.example", "ads.example", ["0: 2001:DB8::1 Ads.example"]],
    ["*.ads.example$dnsrewrite=::1", "x.ads.example", ["0: *.ads.example$dnsrewrite=::1"]],
    ...["=192.0.2.1", "=NXDOMAIN", "=NOERROR", "=REFUSED", "=2001:DB8::1"].map((value) =>
      [`||ads.example^$dnsrewrite${value}`, "ads.example", [
        `0: ||ads.example^$dnsrewrite${value}`,
      ]] as const
    ),
    ["@@|ads.example^$important,dnsrewrite", "ads.example", [
      "0: @@|ads.example^$important,dnsrewrite",
    ]],
    ["@@ads.example$dnsrewrite=,important", "ads.example", [
      "0: @@ads.example$dnsrewrite=,important",
    ]],
    ["ads.example\n192.0.2.1 ads.example\n192.0.2.2 Ads.example\nAds.example", "ads.example", [
      "0: ads.example",
      "0: 192.0.2.1 ads.example",
      "0: 192.0.2.2 Ads.example",
    ]],
    ["||ads.example$important\n||Ads.example^\n@@|ads.example^", "ads.example", [
      "0: ||ads.example$important",
      "0: @@|ads.example^",
      "0: ||Ads.example^",
    ]],
  ] as const;
  for (const [list, name, want] of rows) {
    await t.step(list, () => assert.deepEqual(textsFor(compileTexts(list).rules, name), want));
  }
});

Deno.test("compile() lets $badfilter disable one rule of any source", {
  permissions: "none",
}, async (t) => {
  const rows: [disable: string, left: string[]][] = [
    ["||ads.example^$badfilter", ["|ads.example^", "ads.example", "||ads.example^$important"]],
    ["||ads.example^|$badfilter", ["|ads.example^", "ads.example", "||ads.example^$important"]],
    ["||ADS.example$badfilter", ["|ads.example^", "ads.example", "||ads.example^$important"]],
    ["|ads.example^$badfilter", ["||ads.example^", "ads.example", "||ads.example^$important"]],
    ["ads.example$badfilter", ["||ads.example^", "|ads.example^", "||ads.example^$important"]],
    ["||ads.example^$badfilter,important", ["||ads.example^", "|ads.example^", "ads.example"]],
    ["||ads.example^$important,badfilter", ["||ads.example^", "|ads.example^", "ads.example"]],
    ["@@||ads.example^$badfilter", [
      "||ads.example^",
      "|ads.example^",
      "ads.example",
      "||ads.example^$important",
    ]],
  ];
  const list = "||ads.example^\n|ads.example^\nads.example\n||ads.example^$important\n";
  for (const [disable, left] of rows) {
    await t.step(disable, () => {
      for (const sources of [[disable, list], [list, disable], [list + disable]]) {
        const { rules } = compileTexts(...sources);
        const found = textsFor(rules, "ads.example").map((text) => text.slice(3));
        assert.deepEqual(found.toSorted(), left.toSorted());
      }
    });
  }
});

Deno.test("compile() stores the text of a name once", { permissions: "none" }, () => {
  const names = Array.from({ length: 1_000 }, (_, i) => `name-${i}.some.longer.domain.example`);
  const plain = names.join("\n");
  const odd = names.map((name) => `||${name}`).join("\n");
  const bytes = (...texts: string[]) => compileTexts(...texts).rules.byteLength;
  const perEntryBytes = 8;
  const perRunBytes = 4;
  assert.equal(
    bytes(plain, plain) - bytes(plain),
    1_000 * (perRunBytes + 2 * perEntryBytes),
  );
  assert.equal(bytes(plain, plain, plain) - bytes(plain, plain), 1_000 * perEntryBytes);
  assert.equal(bytes(odd, odd, odd) - bytes(odd, odd), 1_000 * perEntryBytes);
  assert.equal(bytes(plain, plain + "\n" + plain), bytes(plain, plain));
});

Deno.test("compile() bounds the addresses of one name, and counts the others", {
  permissions: "none",
}, () => {
  const [kept, more] = [VALUES_MAX, 500];
  const lines = Array.from(
    { length: kept + more },
    (_, i) => `10.1.${i >> 8}.${i & 255} a.example`,
  );
  const { rules, stats } = compileTexts([...lines, "||a.example^", lines[0]].join("\n"));
  assert.deepEqual(counts(stats[0]), { rules: kept + 1, duplicates: 1, too_many: more });
  assert.equal(textsFor(rules, "a.example").length, kept + 1);
});

Deno.test("compile() grows where a line has many names", { permissions: "none" }, () => {
  const names = Array.from({ length: 3_000 }, (_, i) => `n${i}.example`);
  const lines = [];
  for (let i = 0; i < names.length; i += 100) {
    lines.push(`0.0.0.0 ${names.slice(i, i + 100).join(" ")}`);
  }
  const { rules, stats } = compileTexts(lines.join("\n"));
  assert.equal(stats[0].rules, names.length);
  for (const name of names) {
    assert.deepEqual(textsFor(rules, name), [`0: 0.0.0.0 ${name}`]);
  }
});

Deno.test("compile() takes text in shared memory", { permissions: "none" }, () => {
  const text = encode("ads.example\n||Müller.example^\n");
  const bytes = new Uint8Array(new SharedArrayBuffer(text.length));
  bytes.set(text);
  const { rules } = compile({ seed: SEED, sources: [{ bytes }] });
  assert.deepEqual(textsFor(rules, "ads.example"), ["0: ads.example"]);
  assert.deepEqual(textsFor(rules, "xn--mller-kva.example"), ["0: ||Müller.example^"]);
});

Deno.test("compile() of nothing matches nothing", { permissions: "none" }, () => {
  for (const texts of [[], [""], ["! nothing"], ["||a.example^$badfilter"]]) {
    assert.deepEqual(textsFor(compileTexts(...texts).rules, "a.example"), []);
  }
});

Deno.test("compile() needs a text no longer once it is read", { permissions: "none" }, () => {
  const texts = ["||ads.example^\n||tracker.example^$important\n", "0.0.0.0 ads.example\n"];
  const sourcesOf = () => texts.map((text) => ({ bytes: new TextEncoder().encode(text) }));
  const kept = compile({ seed: SEED, sources: sourcesOf() });
  const sources = sourcesOf();
  const order: number[] = [];
  const freed = compile({
    seed: SEED,
    sources,
    onRead: (source) => {
      order.push(source);
      sources[source].bytes.buffer.transfer(0);
    },
  });
  assert.deepEqual(order, [0, 1]);
  assert.deepEqual(new Uint8Array(freed.rules), new Uint8Array(kept.rules));
  assert.deepEqual(freed.stats, kept.stats);
});

const ROUNDS = 20_000;
const PIECES = [
  ..." \t\r#!|^$*.@/:-_[]~,\0\ufeff\u00a0é",
  "||",
  "@@",
  "*.",
  "0.0.0.0 ",
  "127.0.0.1\t",
  ":: ",
  "::1 ",
  "192.0.2.1 ",
  "0.0.0.0",
  "^|",
  "$important",
  "$badfilter",
  ",badfilter",
  "$dnsrewrite=",
  " # why",
  "##.x",
  "localhost",
  "localhost.localdomain",
  "ads",
  "Ads.example",
  "ads.example",
  "a.b.example",
  "-",
  "*",
  "/",
  "[a-z]+",
  "müller.example",
  ".123",
  "a".repeat(64),
] as const;

function randomLine(prng: Prng): string {
  let line = prng.chance(0.1) ? " " : "";
  if (prng.chance(0.6)) line += prng.pick(["||", "@@||", "|", "*.", "0.0.0.0 ", "127.0.0.1  "]);
  if (prng.chance(0.8)) {
    line += prng.pick(["ads.example", "A.b.example", "b", "x_1.example", "-a.example"]);
  }
  if (prng.chance(0.4)) line += "^";
  if (prng.chance(0.2)) line += prng.pick(["$important", "$badfilter", " # why", "\t#", "\r", " "]);
  const more = prng.chance(0.5) ? 0 : prng.int(4);
  for (let i = 0; i < more; i++) {
    const at = prng.int(line.length + 1);
    line = line.slice(0, at) + prng.pick(PIECES) + line.slice(at);
  }
  return line;
}

Deno.test("compile() and parseRule() read a line alike", { permissions: "none" }, () => {
  const prng = new Prng(seedFromEnv());
  const read = { rules: 0, skipped: 0 };
  for (let round = 0; round < ROUNDS; round++) {
    const line = randomLine(prng);
    const message = `${JSON.stringify(line)}, seed ${prng.seed}`;
    const parsed = parseRule(line);
    const lineEnd = prng.pick(["", "\n", "\r\n"]);
    const { rules, stats } = compileTexts(line + lineEnd);
    const got = counts(stats[0]);
    if (parsed.kind === "skipped") {
      read.skipped++;
      const nothing = line + lineEnd === "" || line + lineEnd === "\ufeff";
      assert.deepEqual(got, nothing ? {} : { [parsed.reason]: 1 }, message);
      continue;
    }
    read.rules++;
    const made = (got.rules ?? 0) + (got.badfilters ?? 0) + (got.duplicates ?? 0);
    // What is read may be too large, or find no name.
    const left = parsed.rules.flatMap((rule) => rule.badfilter ? [] : findRegexProblem(rule) ?? []);
    assert.equal(made, parsed.rules.length - left.length, message);
    for (const reason of left) assert.equal(got[reason], left.length, message);
    assert.equal(
      parsed.leftOut === null ? 0 : got[parsed.leftOut],
      parsed.leftOut === null ? 0 : 1,
    );
    for (const rule of parsed.rules) {
      if (rule.badfilter) continue;
      if (rule.kind === "address") continue; // These have no name to ask for,
      if (rule.form === "pattern" || rule.form === "regex") continue; // and these any.
      const asked = rule.form === "below" ? `x.${rule.name}` : rule.name;
      // A name twice on a line is kept as it stands there first.
      const first: Rule = parsed.rules.find((other) => other.name === rule.name) ?? rule;
      assert(textsFor(rules, asked).includes(`0: ${first.text}`), message);
    }
  }
  assert(read.rules > ROUNDS / 5 && read.skipped > ROUNDS / 5, JSON.stringify(read));
});

Deno.test("compile() takes any bytes", { permissions: "none" }, async (t) => {
  const count = (bytes: Uint8Array) => {
    const [stats] = compile({ seed: SEED, sources: [{ bytes }] }).stats;
    return counts(stats);
  };
  await t.step("a line of 64 KiB", () => {
    assert.deepEqual(count(encode("a".repeat(65_536))), { too_long: 1 });
    assert.deepEqual(count(encode(`||${"a.".repeat(32_768)}\nads.example`)), {
      too_long: 1,
      rules: 1,
    });
    assert.deepEqual(count(encode(`!${" ".repeat(65_536)}`)), { too_long: 1 });
  });
  await t.step("the longest line", () => {
    const line = `ads.example${" ".repeat(LINE_LENGTH_MAX - 11)}`;
    assert.deepEqual(count(encode(line)), { rules: 1 });
    assert.deepEqual(count(encode(line + "\n")), { rules: 1 });
    assert.deepEqual(count(encode(line + " ")), { too_long: 1 });
  });
  await t.step("NULs and invalid UTF-8", () => {
    assert.deepEqual(count(new Uint8Array(100)), { bad_name: 1 });
    assert.deepEqual(count(new Uint8Array([0x61, 0xff, 0x2e, 0x62, 0x0a, 0xc3])), { bad_name: 2 });
  });
  await t.step("chance", () => {
    const prng = new Prng(seedFromEnv());
    for (let round = 0; round < 300; round++) {
      const bytes = prng.bytes(prng.int(3_000));
      for (let i = 0; i < bytes.length; i++) if (prng.chance(0.05)) bytes[i] = 0x0a;
      const got = count(bytes);
      const lines = SKIP_REASONS.reduce((sum, reason) => sum + (got[reason] ?? 0), 0);
      const rules = (got.rules ?? 0) + (got.duplicates ?? 0);
      const ends = bytes.reduce((sum, byte) => sum + (byte === 0x0a ? 1 : 0), 0);
      assert(lines + rules >= ends, `seed ${prng.seed}`);
    }
  });
});

Deno.test(
  "compile() hands the badfilters of every source on, as written",
  { permissions: "none" },
  () => {
    const texts = [
      "||a.example^$badfilter\n||b.example^\n",
      "  @@||c.example^$important,badfilter # why\n",
    ];
    const sources = texts.map((text) => ({ bytes: new TextEncoder().encode(text) }));
    assert.deepEqual(compile({ seed: 1, sources }).badfilters, [
      { source: 0, text: "||a.example^$badfilter" },
      { source: 1, text: "@@||c.example^$important,badfilter" },
    ]);
  },
);

Deno.test("RuleTable makes room for names, not for as many lines as a text may hold", {
  permissions: "none",
}, () => {
  assert.doesNotThrow(() => new RuleTable(Number.MAX_SAFE_INTEGER));
});

Deno.test("RuleTable takes so many names, and any number of rules about them", {
  permissions: "none",
}, () => {
  const table = new RuleTable(1, 4);
  const name = new NameReader();
  const add = (text: string, source = 0) => {
    name.read(encode(text), 0, text.length);
    return table.add(name.wire, name.lengthBytes, name.hash(SEED), source, formFlags(Form.Plain));
  };
  const { Yes, Full, Duplicate } = Added;
  const added = ["a.example", "b.example", "c.example", "a.example"].map((text) => add(text));
  assert.deepEqual(added, [Yes, Yes, Full, Duplicate]);
  assert.equal(add("a.example", 1), Yes);
  assert.equal(add("d.example", 1), Yes, "one source leaves room for others");
  assert.deepEqual(["e.example", "f.example"].map((text) => add(text, 2)), [Yes, Full]);
});
