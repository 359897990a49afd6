// Goal: recursion answers as Deckard's and Unbound's scenarios say. Method: the scenario's servers stand
// behind the resolver's own ports, in this process, with its clock and trust anchors; what MATCH names
// of an expected answer is judged: the response code, AD, the set of answer records.

import assert from "node:assert/strict";
import { decodeHex } from "../../src/bytes/mod.ts";
import { decodeMessage, formatName, type Message, qtypeName } from "../../src/dns/mod.ts";
import { parseTrustAnchors, TrustAnchors } from "../../src/dnssec/mod.ts";
import { RecursorBench } from "../../src/resolver/recursive/fakes.ts";
import { RebindingProtection } from "../../src/resolver/mod.ts";
import { checkingAtOnce } from "../../src/resolver/validate/fakes.ts";
import type { Validation } from "../../src/resolver/validate/mod.ts";
import { answerOf, differenceOf, minimises } from "./played.ts";
import { wireName } from "./records.ts";
import { configValues, parseScenario, type RplEntry, type Scenario, scenarioTime } from "./rpl.ts";

const SCENARIOS = new URL("../../../shared/scenarios/", import.meta.url);
const ABSENT = await Deno.stat(SCENARIOS).then(() => false, () => true);
if (ABSENT) console.warn("skipped: replaying recursion needs ../shared/scenarios");
const OPTIONS = { ignore: ABSENT, permissions: { read: [SCENARIOS] } };
/** Time that passes between two looks at what is validated beside. */
const STEP_MS = 10;
const ANSWER_MS_MAX = 6_000;

/** Servers of scenarios are on loopback addresses, which are never asked: they are elsewhere here. */
const LOOPBACK = [/\b127\.0\.0\.(?=\d)/g, "198.51.100."] as const;

const DSA = "signed by DSA, which nobody checks any more (RFC 8624 §3.1), and so unsigned";
const ASIDE = "a signature in another section than what it signs is left out";
const STRIPPED =
  "an anchored zone whose keys are denied without proof is bogus, not unsigned: the zone " +
  "above it, which is not secure, could else take it away (RFC 4035 §5)";
/** Scenarios that come out differently here, and why. */
const DIFFERENT: Readonly<Record<string, string>> = {
  "deckard/iter_cycle_noh.rpl":
    "glue of names that are not below the zone that tells it is not used",
  "deckard/iter_minim_a.rpl":
    "its servers know questions for NS alone: A is what is asked (RFC 9156 §2.1)",
  "deckard/val_anchor_nx_nosig.rpl": STRIPPED,
  "unbound/iter_dname_insec.rpl":
    "aliases in a circle are signalled as an error (RFC 1034 §3.6.2), not an answer",
  "unbound/val_anchor_nx_nosig.rpl": STRIPPED,
  "unbound/val_nodata_hasdata.rpl": DSA,
  "unbound/val_nodata_zonecut.rpl": DSA,
  "unbound/val_nodatawc_badce.rpl": DSA,
  "unbound/val_nodatawc_nodeny.rpl": DSA,
  "unbound/val_nsec3_nodatawccname.rpl": DSA,
  "unbound/val_ta_algo_dnskey.rpl": ASIDE,
  "unbound/val_ta_algo_missing_dp.rpl": ASIDE,
};

interface Indexed {
  readonly file: string;
  readonly set: "deckard" | "unbound";
  readonly mode: "recursion" | "forward";
  readonly all_agree: boolean;
}

function judgeOf(scenario: Scenario): ((bench: RecursorBench) => Validation) | undefined {
  const text = configValues(scenario, "trust-anchor").join("\n");
  if (text === "") return undefined;
  const { anchors, problems } = parseTrustAnchors(text);
  assert.deepEqual(problems, []);
  const negative = configValues(scenario, "domain-insecure").map(wireName);
  return (bench) => checkingAtOnce(bench, new TrustAnchors(anchors, negative));
}

/** What came out differently. */
async function replay(scenario: Scenario): Promise<string[]> {
  let step = 0;
  const roots = configValues(scenario, "stub-addr").filter((text) => /^[\d.]+$|:/.test(text));
  const dnssecOk = configValues(scenario, "trust-anchor").length > 0;
  const bench = new RecursorBench({
    anyServer: (query) => answerOf(scenario, step, query),
    hintsText: roots.map((ip) => `k.root-servers.net ${ip.includes(":") ? "AAAA" : "A"} ${ip}`)
      .join("\n"),
    dnssecOk,
    judge: (made) => judgeOf(scenario)?.(made) ?? null,
    qnameMinimisation: minimises(scenario),
    rebinding: configValues(scenario, "private-address").length > 0
      ? new RebindingProtection(configValues(scenario, "private-domain").map(wireName))
      : null,
    startSeconds: scenarioTime(scenario) ?? 1_500_000_000,
  });
  const different: string[] = [];
  let got: { readonly entry: RplEntry; readonly message: Message } | null = null;
  for (const { id, kind, entry, elapseS } of scenario.steps) {
    step = id;
    if (kind === "TIME_PASSES") bench.advance(elapseS * 1_000);
    if (kind === "QUERY" && entry!.raw !== null) bench.takeRaw(decodeHex(entry!.raw)!);
    else if (kind === "QUERY") got = { entry: entry!, message: await ask(bench, entry!) };
    if (kind !== "CHECK_ANSWER" || got === null) continue;
    const problem = differenceOf(got.entry, got.message, entry!, dnssecOk);
    if (problem === null) continue;
    const { name, type } = got.entry.question!;
    different.push(`step ${id}, ${formatName(name)} ${qtypeName(type)}: ${problem}`);
    if (Deno.args.includes("--trace")) different.push(...bench.log);
  }
  return different;
}

async function ask(bench: RecursorBench, { question, reply }: RplEntry): Promise<Message> {
  const has = (flag: string) => reply.includes(flag);
  const options = { rd: has("RD"), ad: has("AD"), cd: has("CD") };
  const edns = has("DO") ? { edns: { dnssecOk: true } } : {};
  const { name, type } = question!;
  const client = bench.ask(formatName(name), type, { ...options, ...edns });
  const isDone = () => client.answers.length > 0;
  for (let ms = 0; ms < ANSWER_MS_MAX && !isDone(); ms += STEP_MS) {
    bench.run(isDone, STEP_MS);
    await new Promise((resolve) => setTimeout(resolve)); // What is validated goes on.
  }
  const message = decodeMessage(client.packets[0]);
  assert(message !== null);
  return message;
}

Deno.test("Recursor answers as the scenarios say", OPTIONS, async (t) => {
  const index = JSON.parse(Deno.readTextFileSync(new URL("index.json", SCENARIOS)));
  for (const { set, file, mode, all_agree } of index.scenarios as Indexed[]) {
    if (mode !== "recursion") continue;
    const text = Deno.readTextFileSync(new URL(`${set}/${file}`, SCENARIOS));
    const scenario = parseScenario(text.replaceAll(...LOOPBACK));
    const name = `${set}/${file}`;
    const why = DIFFERENT[name];
    await t.step({
      name: `${all_agree ? "" : "(they differ) "}${name}: ${why ?? scenario.title}`,
      fn: async () => {
        const problems = await replay(scenario);
        assert(why === undefined || !all_agree, "all resolvers agree on it");
        if (why === undefined) assert.deepEqual(problems, []);
        else assert.notDeepEqual(problems, [], "it agrees after all");
      },
    });
  }
});
