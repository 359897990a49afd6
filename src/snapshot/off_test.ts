// Goal: a group or a client without Internet gets nothing but local records, whatever is filtered, by its
// schedule and until a pause ends. Method: a clock that the test sets, and every client asked.
import assert from "node:assert/strict";
import { parseIp } from "../addr/mod.ts";
import { HashedName, parseName, Qtype } from "../dns/mod.ts";
import { type FakePolicy, policyData } from "./fakes.ts";
import { Decision, explain, OFF, OFF_RULE, Ruling, Snapshot } from "./mod.ts";

const none = { permissions: "none" } as const;
const SEED = 22;
/** A Friday in Berlin, half an hour before bedtime. */
const EVENING_MS = Date.parse("2026-01-02T20:30:00+01:00");
const BEDTIME = "2026-01-02T20:00:00.000Z";
const BEDTIME_MS = Date.parse(BEDTIME);
const MORNING_MS = Date.parse("2026-01-03T06:30:00+01:00");

const ADDRESSES = { unknown: "192.0.2.99", tv: "192.0.2.1", tablet: "192.0.2.2", pc: "192.0.2.3" };
type Who = keyof typeof ADDRESSES;
const CLIENTS: NonNullable<FakePolicy["clients"]> = {
  tv: { addresses: [ADDRESSES.tv], group: "kids" },
  tablet: { addresses: [ADDRESSES.tablet], group: "kids" },
  pc: { addresses: [ADDRESSES.pc] },
};
const DAYS = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"] as const;
const SCHEDULES: NonNullable<FakePolicy["schedules"]> = {
  bedtime: {
    time_zone: "Europe/Berlin",
    windows: [{ days: [...DAYS], start: "21:00", end: "06:30" }],
  },
};

function snapshotOf(fake: FakePolicy): Snapshot {
  const policy = { groups: { kids: {} }, clients: CLIENTS, schedules: SCHEDULES, ...fake };
  return new Snapshot(policyData(policy, SEED), EVENING_MS);
}

/** Who gets no answer for a name, in the order of `ADDRESSES`. */
function off(snapshot: Snapshot, nowMs: number, name = "www.example"): string {
  snapshot.evaluate(nowMs);
  return (Object.keys(ADDRESSES) as Who[]).filter((who) => {
    const ip = parseIp(ADDRESSES[who])!;
    const wire = parseName(name)!;
    const hashed = new HashedName();
    hashed.read(wire, 0, wire.length, SEED);
    const group = snapshot.groupOf(snapshot.clientAt(ip, 0, ip.length));
    const decision = new Decision();
    const isOff = snapshot.decide(wire, hashed, group, decision) === Ruling.Block;
    assert.equal(isOff, decision.rule === OFF_RULE);
    const explained = explain(snapshot, name, Qtype.A, ADDRESSES[who])!;
    assert.deepEqual(
      [explained.outcome, explained.rule, explained.list],
      isOff ? ["blocked", OFF.rule, "off"] : ["forwarded", null, null],
    );
    return isOff;
  }).join(" ");
}

Deno.test(
  "who is blocked has no Internet, by schedule and until a pause is over",
  none,
  async (t) => {
    const kids = (off: string) => ({ groups: { kids: { off } } });
    const tv = (off: string) => ({ clients: { ...CLIENTS, tv: { ...CLIENTS.tv, off } } });
    const rows: readonly (readonly [string, FakePolicy, string, string, string])[] = [
      ["a group", kids(""), "tv tablet", "tv tablet", "tv tablet"],
      ["a group by schedule", kids("bedtime"), "", "tv tablet", ""],
      ["a group that has more time", kids(`bedtime until ${BEDTIME}`), "", "tv tablet", ""],
      ["a group that is paused", kids(` until ${BEDTIME}`), "", "tv tablet", "tv tablet"],
      ["a client", tv(""), "tv", "tv", "tv"],
      ["a client by schedule", tv("bedtime"), "", "tv", ""],
      ["both", { ...kids("bedtime"), ...tv("") }, "tv", "tv tablet", "tv"],
      [
        "those not known",
        { groups: { default: { off: "" }, kids: {} } },
        "unknown pc",
        "unknown pc",
        "unknown pc",
      ],
      ["without its schedule", kids("gone"), "", "", ""],
    ];
    for (const [name, fake, evening, night, morning] of rows) {
      await t.step(name, () => {
        const snapshot = snapshotOf(fake);
        const at = [EVENING_MS, BEDTIME_MS, MORNING_MS];
        assert.deepEqual(at.map((ms) => off(snapshot, ms)), [evening, night, morning]);
        assert.equal(off(snapshot, BEDTIME_MS - 1), evening, "the clock was set back");
      });
    }
  },
);

Deno.test("no pause of the filter, and no rule, gives the Internet back", none, async (t) => {
  const groups = { kids: { off: "" } };
  const rows: readonly (readonly [string, FakePolicy])[] = [
    ["protection off", { settings: { protection: false } }],
    ["all paused", { pausedUntilMs: EVENING_MS + 1_000 }],
    ["the group paused", {
      groups: { kids: { off: "", pausedUntil: "2030-01-01T00:00:00.000Z" } },
    }],
    ["the group not filtered", { groups: { kids: { off: "", filtering: false } } }],
    ["an exception", { rules: ["@@||www.example^$important"] }],
    ["a rewrite", { rules: ["||www.example^$dnsrewrite=192.0.2.7 for kids"] }],
  ];
  for (const [name, fake] of rows) {
    await t.step(name, () => {
      const snapshot = snapshotOf({ groups, ...fake });
      const wire = parseName("www.example")!;
      const hashed = new HashedName();
      hashed.read(wire, 0, wire.length, SEED);
      const ip = parseIp(ADDRESSES.tv)!;
      const group = snapshot.groupOf(snapshot.clientAt(ip, 0, ip.length));
      const decision = new Decision();
      assert.equal(snapshot.decide(wire, hashed, group, decision), Ruling.Block);
      assert.deepEqual(snapshot.decidedBy(decision.rule), OFF);
      const text = new TextDecoder().decode(snapshot.blockedText(decision.rule));
      assert.equal(text, "the Internet is off (Internet off)");
    });
  }
});

Deno.test("local records are answered all the same", none, () => {
  const snapshot = snapshotOf({
    groups: { kids: { off: "" } },
    records: ["nas.example A 192.0.2.3"],
  });
  const { outcome, records } = explain(snapshot, "nas.example", Qtype.A, ADDRESSES.tv)!;
  assert.deepEqual([outcome, records], ["local", ["192.0.2.3"]]);
});
