// Goal: the answers of an independent engine hold for single rules. Method: each case of filter.json
// is a policy and a query; what the resolver does with an upstream's response is done here in short.

import assert from "node:assert/strict";
import { formatIp, parseIp } from "../addr/mod.ts";
import { HashedName, parseName, Qtype, Rcode } from "../dns/mod.ts";
import { NO_RULE, parseRule } from "../filter/mod.ts";
import { type FakePolicy, policyData } from "./fakes.ts";
import { Decision, DEFAULT_GROUP, NO_RCODE, Ruling, Snapshot } from "./mod.ts";

const VECTORS = new URL("../../../shared/vectors/filter.json", import.meta.url);
const ABSENT = await Deno.stat(VECTORS).then(() => false, () => true);
if (ABSENT) console.warn("skipped: the filter's vectors need ../shared/vectors");
const OPTIONS = { ignore: ABSENT, permissions: { read: [VECTORS] } };
const SEED = 0x5eed;

interface Case {
  readonly id: string;
  readonly rules?: readonly string[];
  readonly lists?: readonly (readonly string[])[];
  readonly query: { readonly name: string; readonly type: string };
  readonly expect: {
    readonly outcome: "pass" | "blocked" | "answer" | "rcode";
    readonly answer?: readonly string[];
    readonly rcode?: string;
    readonly rule?: string;
    readonly rule_any_of_kind?: string;
  };
  /** Owner name, type and value of each record of the upstream's response. */
  readonly upstream?: readonly (readonly [string, string, string])[];
  readonly settings?: { readonly protection?: boolean };
  /** What of a `silent` case is the other engine's own is no fault of ours. */
  readonly status: "firm" | "spec-wins" | "silent";
}

/** Cases that are not firm, where the specification's `decisions.md` says otherwise. */
const DECIDED_OTHERWISE = new Map([
  ["m011", "regular expressions are rules"],
  ...["m176", "m178", "m179", "m180"].map((id) =>
    [id, "wildcards inside names are rules"] as const
  ),
  ["m140", "names of the host itself in hosts lines are left alone"],
]);

const RCODES: Record<number, string> = {
  [Rcode.NoError]: "NOERROR",
  [Rcode.NXDomain]: "NXDOMAIN",
  [Rcode.Refused]: "REFUSED",
};

function policyOf({ rules = [], lists = [], settings = {} }: Case): FakePolicy {
  const { protection = true } = settings;
  return {
    lists: Object.fromEntries(lists.map((lines, i) => [`list ${i}`, lines.join("\n")])),
    rules,
    settings: { protection },
  };
}

interface Answer {
  readonly outcome: string;
  readonly answer?: readonly string[];
  readonly rcode?: string;
  readonly ref: number;
}

/** What comes of a query, the upstream's response included. */
function ask(snapshot: Snapshot, { query, upstream = [] }: Case): Answer {
  const qtype = Qtype[query.type as keyof typeof Qtype];
  const decision = new Decision();
  const hashed = new HashedName();
  const read = (text: string) => {
    const wire = parseName(text)!;
    hashed.read(wire, 0, wire.length, SEED);
    return wire;
  };
  const ruling = snapshot.decide(read(query.name), hashed, DEFAULT_GROUP, decision);
  const ref = decision.rule;
  if (ruling === Ruling.Block) return { outcome: "blocked", ref };
  if (ruling === Ruling.Answer) {
    if (decision.rcode > Rcode.NoError) {
      return { outcome: "rcode", rcode: RCODES[decision.rcode], ref };
    }
    assert([NO_RCODE, Rcode.NoError].includes(decision.rcode));
    const answer = Array.from({ length: decision.count(qtype) }, (_, i) => {
      const bytes = new Uint8Array(qtype === Qtype.A ? 4 : 16);
      decision.copyAddress(qtype, i, bytes, 0);
      return formatIp(bytes);
    });
    return { outcome: "answer", answer, ref };
  }
  if (ruling === Ruling.Allow) return { outcome: "pass", ref };
  for (const [, type, value] of upstream) {
    const ip = type === "CNAME" ? null : parseIp(value)!;
    const blocking = ip === null
      ? snapshot.match(read(value), hashed, DEFAULT_GROUP)
      : snapshot.matchAddress(ip, 0, ip.length, DEFAULT_GROUP);
    if (blocking !== NO_RULE) return { outcome: "blocked", ref: blocking };
  }
  return { outcome: "pass", ref };
}

function rankOf(line: string): number {
  const parsed = parseRule(line);
  assert(parsed.kind === "rules", line);
  return (parsed.rules[0].important ? 2 : 0) + (parsed.rules[0].exception ? 1 : 0);
}

Deno.test("Snapshot gives the answers of filter.json", OPTIONS, async (t) => {
  const cases: Case[] = JSON.parse(await Deno.readTextFile(VECTORS)).cases;
  assert(cases.length > 250, `only ${cases.length} cases`);
  let same = 0;
  for (const test of cases) {
    const snapshot = new Snapshot(policyData(policyOf(test), SEED), 0);
    const { ref, ...got } = ask(snapshot, test);
    const { outcome, answer, rcode, rule, rule_any_of_kind: kind } = test.expect;
    const want = {
      outcome,
      ...(outcome === "answer" && { answer }),
      ...(outcome === "rcode" && { rcode }),
    };
    const otherwise = DECIDED_OTHERWISE.get(test.id);
    if (otherwise !== undefined) {
      assert.notEqual(test.status, "firm");
      assert.notDeepEqual(got, want, `${test.id} is no longer decided otherwise`);
      console.log(`${test.id} is answered otherwise: ${otherwise}`);
      continue;
    }
    await t.step(test.id, () => {
      assert.deepEqual(got, want, JSON.stringify(test));
      const told = ref === NO_RULE ? null : snapshot.decidedBy(ref).rule;
      if (rule !== undefined) assert.equal(told, rule);
      if (kind !== undefined) assert.equal(told === null ? -1 : rankOf(told), rankOf(kind));
    });
    same++;
  }
  assert.equal(same, cases.length - DECIDED_OTHERWISE.size);
});
