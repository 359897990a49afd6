// Goal: answers get the verdict that Deckard's and Unbound's scenarios name. Method: each scenario's
// servers are asked in this process, by a small iterative resolver without a cache, under the
// scenario's clock and trust anchors; what the validator says is held against code and AD.

import assert from "node:assert/strict";
import {
  parseTrustAnchors,
  Security,
  TrustAnchors,
  Validator,
  type Verdict,
} from "../../src/dnssec/mod.ts";
import { FakePorts } from "../../src/dnssec/fakes.ts";
import { formatName, qtypeName, Rcode, rcodeName } from "../../src/dns/mod.ts";
import { Iterator } from "./iterate.ts";
import {
  configValues,
  parseScenario,
  rcodeOf,
  type RplEntry,
  type RplQuestion,
  type Scenario,
  scenarioTime,
} from "./rpl.ts";
import { wireName } from "./records.ts";

const SCENARIOS = new URL("../../../shared/scenarios/", import.meta.url);
const ABSENT = await Deno.stat(SCENARIOS).then(() => false, () => true);
if (ABSENT) console.warn("skipped: replaying resolutions needs ../shared/scenarios");
const OPTIONS = { ignore: ABSENT, permissions: { read: [SCENARIOS] } };

const DSA = "signed by DSA, which nobody checks any more (RFC 8624 §3.1), and so unsigned";
const STRIPPED =
  "an anchored zone whose keys are denied without proof is bogus, not unsigned: the zone " +
  "above it, which is not secure, could else take it away (RFC 4035 §5)";
/** Scenarios that come out differently here, and why. */
const DIFFERENT: Readonly<Record<string, string>> = {
  "deckard/val_anchor_nx_nosig.rpl": STRIPPED,
  "unbound/val_anchor_nx_nosig.rpl": STRIPPED,
  "unbound/stop_nxdomain.rpl": "what is below a name that was denied needs a cache",
  "unbound/val_nodata_hasdata.rpl": DSA,
  "unbound/val_nodata_zonecut.rpl": DSA,
  "unbound/val_nodatawc_badce.rpl": DSA,
  "unbound/val_nodatawc_nodeny.rpl": DSA,
  "unbound/val_nsec3_nodatawccname.rpl": DSA,
};

interface Indexed {
  readonly file: string;
  readonly set: "deckard" | "unbound";
  readonly all_agree: boolean;
}

/** A scenario with anchors and a time, or `null`. */
function readScenario({ set, file }: Indexed): Scenario | null {
  const text = Deno.readTextFileSync(new URL(`${set}/${file}`, SCENARIOS));
  if (!/^\s*trust-anchor:/m.test(text)) return null;
  const scenario = parseScenario(text);
  return scenarioTime(scenario) === null ? null : scenario;
}

/** What a step's answer says: `SERVFAIL`, or the code, with AD where it counts. */
function wantOf({ reply }: RplEntry, code: number): string {
  if (code === Rcode.ServFail) return "SERVFAIL";
  return reply.includes("AD") ? `${rcodeName(code)} AD` : rcodeName(code);
}

Deno.test("Validator comes to the verdicts of the scenarios", OPTIONS, async (t) => {
  const index = JSON.parse(Deno.readTextFileSync(new URL("index.json", SCENARIOS)));
  let judged = 0;
  for (const indexed of index.scenarios as Indexed[]) {
    const scenario = readScenario(indexed);
    if (scenario === null) continue;
    const name = `${indexed.set}/${indexed.file}`;
    const why = DIFFERENT[name];
    judged++;
    await t.step({
      name: why === undefined ? `${name}: ${scenario.title}` : `${name}: ${why}`,
      fn: async () => {
        const problems = await replay(scenario);
        if (why === undefined) assert.deepEqual(problems, []);
        else assert.notDeepEqual(problems, [], "it agrees after all");
      },
    });
  }
  assert(judged > 50);
});

/** What came out differently. */
async function replay(scenario: Scenario): Promise<string[]> {
  const iterator = new Iterator(scenario);
  const anchorText = configValues(scenario, "trust-anchor").join("\n");
  const { anchors, problems } = parseTrustAnchors(anchorText);
  assert.deepEqual(problems, []);
  const negative = configValues(scenario, "domain-insecure").map(wireName);
  const ports = new FakePorts(iterator.lookUp);
  const validator = new Validator(ports, new TrustAnchors(anchors, negative));
  let nowS = scenarioTime(scenario)!;
  let asked: { readonly question: RplQuestion; readonly got: Answered } | null = null;
  const different: string[] = [];
  for (const { id, kind, entry, elapseS } of scenario.steps) {
    if (kind === "TIME_PASSES") nowS += elapseS;
    if (kind === "QUERY") {
      iterator.step = id;
      const question = entry!.question!;
      // With CD, nothing is validated.
      const isChecked = !entry!.reply.includes("CD");
      const wantsAd = entry!.reply.includes("DO") || entry!.reply.includes("AD");
      asked = isChecked
        ? { question, got: await answer(validator, iterator, question, nowS, wantsAd) }
        : null;
    }
    if (kind !== "CHECK_ANSWER" || asked === null) continue;
    const want = wantOf(entry!, rcodeOf(entry!));
    const { question, got } = asked;
    if (got.text === want) continue;
    const place = `${formatName(question.name)} ${qtypeName(question.type)}`;
    different.push(`step ${id}, ${place}: ${got.text} in place of ${want}: ${got.reason}`);
  }
  return different;
}

interface Answered {
  readonly text: string;
  readonly reason: string;
}

async function answer(
  validator: Validator,
  iterator: Iterator,
  question: RplQuestion,
  nowS: number,
  wantsAd: boolean,
): Promise<Answered> {
  let verdict: Verdict | null = null;
  // What is not to be believed is asked for once more, elsewhere.
  for (let attempt = 0; attempt < 2; attempt++) {
    const response = await iterator.resolve(question, attempt);
    if (response === null) continue;
    verdict = await validator.validate(question, response, nowS);
    if (verdict.finding.security < Security.Indeterminate) break;
  }
  if (verdict === null) return { text: "SERVFAIL", reason: "no answer" };
  const { finding: { security, reason }, rcode } = verdict;
  if (security >= Security.Indeterminate) return { text: "SERVFAIL", reason };
  const ad = wantsAd && security === Security.Secure ? " AD" : "";
  return { text: rcodeName(rcode) + ad, reason };
}
