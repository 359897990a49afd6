// Goal: a rule with an end, or for some groups and clients, holds for them and until then, to the
// millisecond, without a new snapshot; who has none of them pays nothing. Method: a clock that the
// test sets, and every client asked.
import assert from "node:assert/strict";
import { parseIp } from "../addr/mod.ts";
import { HashedName, parseName, Qtype } from "../dns/mod.ts";
import { baseOf, customRulesOf, type FakePolicy, policyData, policyState } from "./fakes.ts";
import { Decision, explain, REEVALUATE_MS, Ruling, Snapshot } from "./mod.ts";
import { OverlayCompiler } from "./overlay.ts";

const none = { permissions: "none" } as const;
const SEED = 21;
const END = "2026-01-02T03:04:05.678Z";
const END_MS = Date.parse(END);
const LATER = "2026-01-02T03:04:06.000Z";
const RULINGS = ["none", "block", "allow", "answer"] as const;

const ADDRESSES = { unknown: "192.0.2.99", tv: "192.0.2.1", tablet: "192.0.2.2", pc: "192.0.2.3" };
type Who = keyof typeof ADDRESSES;
const CLIENTS: NonNullable<FakePolicy["clients"]> = {
  tv: { addresses: [ADDRESSES.tv], group: "kids" },
  tablet: { addresses: [ADDRESSES.tablet], group: "kids" },
  pc: { addresses: [ADDRESSES.pc] },
};
const KIDS = { kids: { lists: ["ads"], services: ["chat"] } };
const LISTS = { ads: "||ads.test^\n", "service:chat": "||chat.test^\n" };

function ask(snapshot: Snapshot, who: Who, name: string): string {
  const ip = parseIp(ADDRESSES[who])!;
  const wire = parseName(name)!;
  const hashed = new HashedName();
  hashed.read(wire, 0, wire.length, SEED);
  const group = snapshot.groupOf(snapshot.clientAt(ip, 0, ip.length));
  const ruling = snapshot.decide(wire, hashed, group, new Decision());
  const explained = explain(snapshot, name, Qtype.A, ADDRESSES[who]);
  const isBlocked = explained?.outcome === "blocked";
  assert.equal(isBlocked, ruling === Ruling.Block, "the explanation says the same");
  return RULINGS[ruling];
}

/** What each client is told about a name. */
function all(snapshot: Snapshot, name: string): string {
  return (Object.keys(ADDRESSES) as Who[]).map((who) => ask(snapshot, who, name)).join(" ");
}

function policy(fake: FakePolicy): FakePolicy {
  return { lists: LISTS, groups: KIDS, clients: CLIENTS, ...fake };
}

Deno.test("a rule holds until its end, to the millisecond, on the snapshot as it is", none, () => {
  const fake = policy({ rules: [`@@||ads.test^ until ${END}`, `||x.test^ until ${LATER}`] });
  const snapshot = new Snapshot(policyData(fake, SEED), END_MS - 1_000);
  assert.equal(snapshot.evaluate(END_MS - 1_000), END_MS, "it looks again at the end");
  assert.equal(all(snapshot, "ads.test"), "allow allow allow allow");
  snapshot.evaluate(END_MS - 1);
  assert.equal(all(snapshot, "ads.test"), "allow allow allow allow");
  assert.equal(snapshot.evaluate(END_MS), Date.parse(LATER));
  assert.equal(all(snapshot, "ads.test"), "block block block block");
  assert.equal(all(snapshot, "x.test"), "block block block block");
  assert.equal(snapshot.evaluate(Date.parse(LATER)), Infinity);
  assert.equal(all(snapshot, "x.test"), "none none none none");
  snapshot.evaluate(END_MS - 1); // The clock was set back.
  assert.equal(all(snapshot, "ads.test"), "allow allow allow allow");
  assert.equal(snapshot.evaluate(END_MS - 3_600_000), END_MS - 3_600_000 + REEVALUATE_MS);
});

Deno.test("a rule holds for its groups and clients, either of them", none, async (t) => {
  const rows: readonly (readonly [readonly string[], string, string])[] = [
    [["||x.test^"], "x.test", "block block block block"],
    [["||x.test^ for kids"], "x.test", "none block block none"],
    [["||x.test^ for @tv"], "x.test", "none block none none"],
    [["||x.test^ for @tv @pc"], "x.test", "none block none block"],
    [["||x.test^ for default"], "x.test", "block none none block"],
    [["||x.test^ for kids @pc"], "x.test", "none block block block"],
    [["@@||ads.test^ for @tv"], "ads.test", "block allow block block"],
    [["||x.test^ for @tv", "@@||x.test^ for kids"], "x.test", "none allow allow none"],
    [["||x.test^$important for @tv", "@@||x.test^"], "x.test", "allow block allow allow"],
    [["||x.test^ for kids", "||x.test^$badfilter"], "x.test", "none none none none"],
    [["@@||chat.test^ for @tv"], "chat.test", "none block block none"],
    [[`||x.test^ for @tv until ${END}`, "||x.test^ for @pc"], "x.test", "none block none block"],
  ];
  for (const [rules, name, want] of rows) {
    await t.step(rules.join(", "), () => {
      const snapshot = new Snapshot(policyData(policy({ rules }), SEED), END_MS - 5);
      assert.equal(all(snapshot, name), want);
    });
  }
});

Deno.test("group, client and blocked service are paused until their time", none, async (t) => {
  const rows: readonly (readonly [Partial<FakePolicy>, string, string, string])[] = [
    [
      { groups: { kids: { ...KIDS.kids, pausedUntil: END } } },
      "ads.test",
      "block none none block",
      "block block block block",
    ],
    [
      { clients: { ...CLIENTS, tv: { ...CLIENTS.tv, pausedUntil: END } } },
      "ads.test",
      "block none block block",
      "block block block block",
    ],
    [
      { groups: { kids: { services: [`chat until ${END}`] } } },
      "chat.test",
      "none none none none",
      "none block block none",
    ],
    [
      { groups: { kids: { filtering: false, pausedUntil: END } } },
      "ads.test",
      "block none none block",
      "block none none block",
    ],
    [
      { clients: { ...CLIENTS, tv: { ...CLIENTS.tv, pausedUntil: "2020-01-01T00:00:00.000Z" } } },
      "ads.test",
      "block block block block",
      "block block block block",
    ],
  ];
  for (const [fake, name, before, after] of rows) {
    await t.step(JSON.stringify(fake), () => {
      const snapshot = new Snapshot(policyData(policy(fake), SEED), END_MS - 1);
      assert.equal(all(snapshot, name), before);
      snapshot.evaluate(END_MS);
      assert.equal(all(snapshot, name), after);
    });
  }
});

Deno.test("a client in a group of its own is said to be in the group it is in", none, () => {
  const fake = policy({ rules: ["||x.test^ for @tv"] });
  const snapshot = new Snapshot(policyData(fake, SEED), 0);
  const { group, client, list } = explain(snapshot, "x.test", Qtype.A, ADDRESSES.tv)!;
  assert.deepEqual([group.id, group.name, client?.name, list], ["gr_kids", "kids", "tv", "rules"]);
  const of = explain(snapshot, "x.test", Qtype.A, ADDRESSES.pc)!;
  assert.match(of.matches[0].lost ?? "", /^it is not for this client/);
});

Deno.test("without a limited rule there is no level, group or time for one", none, () => {
  const { overlay } = policyData(policy({ rules: ["||x.test^"] }), SEED);
  assert.deepEqual([overlay.limited, overlay.limitedSources, overlay.times], [null, 0, []]);
  assert.equal(overlay.groups.parts.groupFlags.length, 2);
});

Deno.test("OverlayCompiler makes groups anew only where a limit or a pause changed", none, () => {
  const compiler = new OverlayCompiler(SEED);
  const made = (fake: FakePolicy) => {
    const state = policyState(fake);
    const base = baseOf(fake, SEED);
    return { state, base, custom: customRulesOf(state, base, SEED) };
  };
  const { state, base, custom } = made(policy({ rules: ["||x.test^ for @tv"] }));
  const first = compiler.compile(state, base, custom);
  assert.equal(first.groups.parts.groupFlags.length, 3);
  const clients = new Map(state.collections.clients);
  const pc = clients.get("cl_pc")!;
  clients.set("cl_pc", { ...pc, spec: { ...pc.spec, name: "other" } });
  const named = { ...state, collections: { ...state.collections, clients } };
  const second = compiler.compile(named, base, custom);
  assert.equal(second.groups, first.groups);
  assert.equal(second.limited, first.limited);
  const paused = new Map(clients).set("cl_pc", { ...pc, spec: { ...pc.spec, paused_until: END } });
  const third = compiler.compile(
    { ...state, collections: { ...state.collections, clients: paused } },
    base,
    custom,
  );
  assert.equal(third.groups.parts.groupFlags.length, 4);
  assert.equal(third.limited, first.limited);
});
