// Goal: rules that are patched together from change to change decide as if all were compiled anew.
// Method: many changes by chance, each held against a compilation of its own.

import assert from "node:assert/strict";
import { question } from "../../tests/filter_reference.ts";
import { Prng, seedFromEnv } from "../../tests/prng.ts";
import { formatIp, parseIp } from "../addr/mod.ts";
import { Qtype } from "../dns/mod.ts";
import { compile, NO_RULE } from "../filter/mod.ts";
import type { Envelope, RuleSpec } from "../model/mod.ts";
import { type CustomRules, CustomRulesCompiler, RECENT_LIMIT, RECENT_MAX } from "./custom_rules.ts";
import { baseOf, customRulesOf, type FakePolicy, policyState } from "./fakes.ts";
import {
  type Base,
  Decision,
  explain,
  OverlayCompiler,
  type PolicyState,
  Snapshot,
} from "./mod.ts";

const none = { permissions: "none" } as const;
const SEED = 77;
const TIME = "2026-01-01T00:00:00.000Z";
type Rules = Map<string, Envelope<RuleSpec>>;

function rule(n: number, text: string, enabled = true): Envelope<RuleSpec> {
  const unlimited = { expires_at: null, groups: [], clients: [] };
  const spec = { rule: text, enabled, comment: "", managed_by: "api", ...unlimited };
  return { id: `ru_${n}`, revision: 1, created_at: TIME, updated_at: TIME, spec };
}

function limited(text: string): Envelope<RuleSpec> {
  const { spec, ...envelope } = rule(0, text);
  return { ...envelope, id: "ru_limited", spec: { ...spec, expires_at: TIME } };
}

/** So many rules that a change of one is a level of its own; none is about a name that is asked. */
function filler(count = 2 * RECENT_MAX): Rules {
  return new Map(
    Array.from({ length: count }, (_, n) => [`fill_${n}`, rule(n, `||fill${n}.example^`)]),
  );
}

function settle(compiler: CustomRulesCompiler, rules: Rules, base: Base): number {
  const settling = compiler.begin(rules, base);
  const compiled = compile(settling.input);
  return compiler.settle(settling, compiled.rules, compiled.stats);
}

class Bench {
  readonly #state: PolicyState;
  readonly base: Base;
  readonly #overlays = new OverlayCompiler(SEED);
  readonly #decision = new Decision();

  constructor(fake: FakePolicy) {
    this.#state = policyState(fake);
    this.base = baseOf(fake, SEED);
  }

  withRules(rules: Rules): PolicyState {
    return { ...this.#state, collections: { ...this.#state.collections, rules } };
  }

  snapshot(rules: Rules, custom: CustomRules): Snapshot {
    const overlay = this.#overlays.compile(this.withRules(rules), this.base, custom);
    return new Snapshot({ generation: 1, rules: this.base.rules, overlay, pausedUntilMs: 0 }, 0);
  }

  /** What comes of a name or an address in a group. */
  tell(snapshot: Snapshot, asked: string, group: number): string {
    const ip = parseIp(asked);
    if (ip !== null) {
      const blocking = snapshot.matchAddress(ip, 0, ip.length, group);
      return `${asked} in ${group}: ${blocking !== NO_RULE} ${snapshot.mentionsAddress(ip, 0, 4)}`;
    }
    const { packet, hashed } = question(asked, SEED);
    const decision = this.#decision;
    const ruling = snapshot.decide(packet, hashed, group, decision);
    const addresses = [Qtype.A, Qtype.AAAA].flatMap((qtype) =>
      Array.from({ length: decision.count(qtype) }, (_, i) => {
        const bytes = new Uint8Array(qtype === Qtype.A ? 4 : 16);
        decision.copyAddress(qtype, i, bytes, 0);
        return formatIp(bytes);
      })
    );
    const code = decision.rcode < 0 ? "" : "a code";
    const target = snapshot.match(packet, hashed, group) !== NO_RULE;
    return `${asked} in ${group}: ${ruling} ${code} ${addresses.toSorted()} ${target}`;
  }
}

const LISTS: FakePolicy = {
  lists: {
    a: "||a.example^\n@@||b.a.example^\n||c.example^$important\n|10.*\n",
    off: [
      "||b.example^$badfilter",
      "@@||a.example^$badfilter",
      "|10.0.0.1$badfilter",
      "||a.example^$dnsrewrite=192.0.2.1,badfilter",
      "192.0.2.9 d.example",
    ].join("\n"),
    "service:s": "||s.example^\n",
  },
  groups: { default: { lists: ["a"], services: ["s"] }, both: { lists: ["a", "off"] }, bare: {} },
};
const GROUPS = [0, 1, 2];
const NAMES = ["a.example", "b.a.example", "b.example", "c.example", "x.c.example", "d.example"]
  .concat(["s.example", "e.example", "10.0.0.1", "10.1.2.3", "2001:db8::1", "192.0.2.1"]);

function randomText(prng: Prng): string {
  const name = prng.pick(["a.example", "b.a.example", "b.example", "c.example", "d.example"]);
  const modifiers = [
    ...prng.chance(0.3) ? ["important"] : [],
    ...prng.chance(0.25) ? ["badfilter"] : [],
  ];
  if (prng.chance(0.1)) return `192.0.2.${prng.int(3)} ${name} e.example`;
  if (prng.chance(0.1)) return `0.0.0.0 ${name} e.example`;
  const exception = prng.chance(0.4) ? "@@" : "";
  if (prng.chance(0.2)) {
    modifiers.push(`dnsrewrite=${prng.pick(["192.0.2.1", "192.0.2.2", "::1"])}`);
  } else if (prng.chance(0.05)) modifiers.push("dnsrewrite=NXDOMAIN");
  const pattern = prng.chance(0.15) && modifiers.every((one) => !one.startsWith("dns"))
    ? prng.pick(["|10.*", "|10.0.0.1", "|2001:db8::1"])
    : prng.pick([`||${name}^`, `||${name.toUpperCase()}^|`, `|${name}^`, `*.${name}`, name]);
  const behind = modifiers.length === 0 ? "" : `$${modifiers.join(",")}`;
  return exception + pattern + behind;
}

const [ROUNDS, STEPS] = [12, 60];

Deno.test("CustomRulesCompiler patches to what a compilation of all would be", none, () => {
  const prng = new Prng(seedFromEnv());
  const bench = new Bench(LISTS);
  const met = { patched: 0, anew: 0, twoLevels: 0, limited: 0 };
  for (let round = 0; round < ROUNDS; round++) {
    const compiler = new CustomRulesCompiler(SEED);
    let rules = filler();
    for (let n = 0; n < 8; n++) rules.set(`ru_${n}`, rule(n, randomText(prng)));
    // Half of the time beside a level of rules with an end.
    if (round % 2 === 1) rules.set("ru_limited", limited("||limited.example^"));
    settle(compiler, rules, bench.base);
    for (let step = 0; step < STEPS; step++) {
      rules = new Map(rules);
      for (let changes = 1 + prng.int(2); changes > 0; changes--) {
        const n = prng.int(16);
        if (prng.chance(0.3)) rules.delete(`ru_${n}`);
        else rules.set(`ru_${n}`, rule(n, randomText(prng), prng.chance(0.9)));
      }
      const where = `seed ${prng.seed}, round ${round}, step ${step}`;
      let custom = compiler.current(rules, bench.base);
      if (custom !== null) met.patched++;
      else {
        met.anew++;
        settle(compiler, rules, bench.base);
        custom = compiler.current(rules, bench.base);
        assert.ok(custom !== null, where);
      }
      if (custom.levels.length === 2) met.twoLevels++;
      if (custom.levels.length === 2 && rules.has("ru_limited")) met.limited++;
      const got = bench.snapshot(rules, custom);
      const fresh = customRulesOf(bench.withRules(rules), bench.base, SEED);
      const want = bench.snapshot(rules, fresh);
      for (const group of GROUPS) {
        for (const asked of NAMES) {
          const message = `${
            [...rules.values()].slice(-16).map(({ spec }) => spec.rule)
          }, ${where}`;
          assert.equal(bench.tell(got, asked, group), bench.tell(want, asked, group), message);
        }
      }
    }
  }
  // That all are compiled anew is rare, and has a test of its own.
  assert.ok(met.patched > 500 && met.twoLevels > 200 && met.limited > 100, JSON.stringify(met));
});

Deno.test("CustomRulesCompiler compiles what changed, and keeps the rest", none, () => {
  const { base } = new Bench({});
  const compiler = new CustomRulesCompiler(SEED);
  const rules = filler(20_000);
  assert.ok(compiler.current(rules, base) === null, "nothing is compiled yet");
  assert.equal(settle(compiler, rules, base), 0);
  const first = compiler.current(rules, base)!;
  assert.equal(first.levels.length, 1);
  assert.ok(compiler.current(new Map(rules), base) === first, "the same rules");
  const more = new Map(rules).set("ru_1", rule(1, "||new.example^"));
  more.delete("fill_7");
  const second = compiler.current(more, base)!;
  assert.ok(second.levels[0] === first.levels[0], "the same memory");
  assert.ok(second.levels[1].byteLength < 1_024, `${second.levels[1].byteLength} bytes`);
  assert.equal(second.parts.settledOff.length, 1);
  assert.equal(compiler.isDue, false);
});

Deno.test("CustomRulesCompiler bounds what it patches", none, () => {
  const { base } = new Bench({});
  const compiler = new CustomRulesCompiler(SEED);
  const rules = filler(RECENT_LIMIT);
  settle(compiler, rules, base);
  const add = (count: number) => {
    const more = new Map(rules);
    for (let n = 0; n < count; n++) more.set(`ru_${n}`, rule(n, `||new${n}.example^`));
    return compiler.current(more, base);
  };
  assert.ok(add(RECENT_MAX) !== null);
  assert.equal(compiler.isDue, false);
  assert.ok(add(RECENT_MAX + 1) !== null);
  assert.equal(compiler.isDue, true);
  assert.ok(add(RECENT_LIMIT) !== null);
  assert.ok(add(RECENT_LIMIT + 1) === null, "all are compiled anew");
  assert.ok(compiler.current(rules, baseOf({ lists: { a: "||a.example^" } }, SEED)) === null);
  // A line of many names counts as many rules.
  const names = Array.from({ length: 400 }, (_, n) => `n${n}.example`).join(" ");
  const long = new Map(rules).set("ru_1", rule(1, `0.0.0.0 ${names}`));
  for (let n = 2; n < 14; n++) long.set(`ru_${n}`, rule(n, `0.0.0.0 ${names}`));
  assert.ok(compiler.current(long, base) !== null);
  assert.equal(compiler.isDue, true);
  // Few rules are compiled as fast as what changed of them.
  const few = filler(RECENT_MAX - 1);
  settle(compiler, few, base);
  assert.ok(compiler.current(new Map(few).set("ru_1", rule(1, "||a.example^")), base) === null);
});

Deno.test("CustomRulesCompiler leaves a rule in force while another says the same", none, () => {
  const bench = new Bench({});
  const compiler = new CustomRulesCompiler(SEED);
  const rules = filler();
  rules.set("ru_1", rule(1, "||a.example^")).set("ru_2", rule(2, "||A.example^|"));
  settle(compiler, rules, bench.base);
  const now = new Map(rules);
  now.delete("ru_1");
  assert.ok(compiler.current(now, bench.base) === null);
  settle(compiler, now, bench.base);
  const told = explain(
    bench.snapshot(now, compiler.current(now, bench.base)!),
    "a.example",
    1,
    null,
  );
  assert.deepEqual([told?.outcome, told?.rule], ["blocked", "||A.example^|"]);
  assert.equal(told?.matches.length, 1);
});

Deno.test("explain() says which list's $badfilter turns a rule off, and for whom", none, () => {
  const fake: FakePolicy = {
    lists: { ads: "||a.example^\n", off: "||a.example^$badfilter\n@@||b.example^$badfilter\n" },
    rules: ["@@||b.example^", "||b.example^"],
    groups: { default: { lists: ["ads"] }, both: { lists: ["ads", "off"] } },
    clients: { one: { addresses: ["192.0.2.1"], group: "both" } },
  };
  const bench = new Bench(fake);
  const state = policyState(fake);
  const overlay = new OverlayCompiler(SEED).compile(
    state,
    bench.base,
    customRulesOf(state, bench.base, SEED),
  );
  const data = { generation: 1, rules: bench.base.rules, overlay, pausedUntilMs: 0 };
  const snapshot = new Snapshot(data, 0);
  const told = (name: string, client: string | null) => {
    const { outcome, matches } = explain(snapshot, name, Qtype.A, client)!;
    return [outcome, ...matches.map(({ rule, lost }) => `${rule}: ${lost}`)];
  };
  assert.deepEqual(told("a.example", null), ["blocked", "||a.example^: null"]);
  assert.deepEqual(told("a.example", "192.0.2.1"), [
    "forwarded",
    "||a.example^: a $badfilter of off turns it off",
  ]);
  assert.deepEqual(told("b.example", null), [
    "forwarded",
    "@@||b.example^: null",
    "||b.example^: an exception outranks a block",
  ]);
  assert.deepEqual(told("b.example", "192.0.2.1"), [
    "blocked",
    "||b.example^: null",
    "@@||b.example^: a $badfilter of off turns it off",
  ]);
  assert.ok(
    snapshot.mentions(question("a.example", SEED).packet, question("a.example", SEED).hashed),
  );
});
