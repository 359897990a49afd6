import assert from "node:assert/strict";
import { formatIp } from "../addr/mod.ts";
import { HashedName, parseName } from "../dns/mod.ts";
import { compile, NO_RULE } from "../filter/mod.ts";
import { InvariantError } from "../errors.ts";
import { DEFAULT_SETTINGS, type Settings } from "../model/mod.ts";
import { BlockForm, Snapshot, type SnapshotData } from "./mod.ts";

const none = { permissions: "none" } as const;
const SEED = 5;

function data(lists: readonly string[], settings: Partial<Settings> = {}): SnapshotData {
  const sources = lists.map((text) => ({ bytes: new TextEncoder().encode(text) }));
  return {
    generation: 3,
    rules: compile({ seed: SEED, sources }).snapshot,
    sources: lists.map((_, i) => ({ id: `li_${i}`, name: `list ${i}` })),
    settings: { ...DEFAULT_SETTINGS, ...settings },
  };
}

/** The deciding rule in words, or "" where none blocks. */
function decided(snapshot: Snapshot, text: string): string {
  const name = new HashedName();
  const wire = parseName(text);
  assert.ok(wire !== null);
  name.read(wire, 0, wire.length, SEED);
  const rule = snapshot.match(wire, name);
  if (rule === NO_RULE) return "";
  const { rule: ruleText, list } = snapshot.decidedBy(rule);
  const shown = `${ruleText} (${list})`;
  assert.equal(new TextDecoder().decode(snapshot.blockedText(rule)), shown);
  assert.equal(snapshot.blockedText(rule), snapshot.blockedText(rule), "made once");
  return shown;
}

Deno.test("Snapshot.match() blocks by every source, and knows who decided", none, () => {
  const lists = [
    "||ads.example^\n",
    "@@||good.ads.example^\n",
    "||bad.good.ads.example^$important\n",
  ];
  const snapshot = new Snapshot(data(lists));
  assert.equal(snapshot.generation, 3);
  const rows = [
    ["ads.example", "||ads.example^ (list 0)"],
    ["www.ads.example", "||ads.example^ (list 0)"],
    ["good.ads.example", ""],
    ["bad.good.ads.example", "||bad.good.ads.example^$important (list 2)"],
    ["example", ""],
  ] as const;
  for (const [name, want] of rows) assert.equal(decided(snapshot, name), want, name);
});

Deno.test("Snapshot.match() reaches sources beyond the first 32", none, () => {
  const lists = Array.from({ length: 70 }, (_, i) => `||n${i}.example^\n`);
  const snapshot = new Snapshot(data(lists));
  for (let i = 0; i < 70; i++) {
    assert.equal(decided(snapshot, `n${i}.example`), `||n${i}.example^ (list ${i})`);
  }
});

Deno.test("Snapshot blocks nothing without rules or protection", none, () => {
  const whole = data(["||ads.example^\n"]);
  assert.equal(decided(new Snapshot({ ...whole, rules: null }), "ads.example"), "");
  const settings = { ...DEFAULT_SETTINGS, protection: false };
  assert.equal(decided(new Snapshot({ ...whole, settings }), "ads.example"), "");
  assert.equal(decided(new Snapshot({ ...whole, sources: [] }), "ads.example"), "");
  assert.throws(() => new Snapshot({ ...whole, rules: null }).decidedBy(0), InvariantError);
  assert.throws(
    () => new Snapshot({ ...whole, rules: new SharedArrayBuffer(4_096) }),
    InvariantError,
    "rules of another version",
  );
});

Deno.test("Snapshot takes the form of blocked answers from the settings", none, () => {
  const custom = { blocking_ipv4: "192.0.2.7", blocking_ipv6: "2001:db8::7" };
  const rows: readonly (readonly [Partial<Settings>, BlockForm, string, string])[] = [
    [{}, BlockForm.Address, "0.0.0.0", "::"],
    [{ block_response: "null_ip", ...custom }, BlockForm.Address, "0.0.0.0", "::"],
    [{ block_response: "nxdomain" }, BlockForm.NxDomain, "0.0.0.0", "::"],
    [{ block_response: "refused" }, BlockForm.Refused, "0.0.0.0", "::"],
    [{ block_response: "custom_ip", ...custom }, BlockForm.Address, "192.0.2.7", "2001:db8::7"],
    [{ block_response: "custom_ip" }, BlockForm.Address, "0.0.0.0", "::"],
    [
      { block_response: "custom_ip", blocking_ipv6: "2001:db8::7" },
      BlockForm.Address,
      "0.0.0.0",
      "2001:db8::7",
    ],
  ];
  for (const [settings, form, ipv4, ipv6] of rows) {
    const snapshot = new Snapshot(data([""], { ...settings, block_ttl: 77 }));
    const { blockForm, blockTtl, blockIpv4, blockIpv6 } = snapshot;
    assert.deepEqual([blockForm, blockTtl], [form, 77]);
    assert.deepEqual([formatIp(blockIpv4), formatIp(blockIpv6)], [ipv4, ipv6]);
    assert.deepEqual([blockIpv4.length, blockIpv6.length], [4, 16]);
  }
});

Deno.test("Snapshot keeps few texts ready, and gives every one", none, () => {
  const count = 5_000; // More than are kept.
  const lines = Array.from({ length: count }, (_, i) => `||n${i}.example^`);
  const snapshot = new Snapshot(data([lines.join("\n")]));
  for (let round = 0; round < 2; round++) {
    for (let i = 0; i < count; i += 7) {
      assert.equal(decided(snapshot, `n${i}.example`), `||n${i}.example^ (list 0)`);
    }
  }
  for (let i = 0; i < count; i++) assert.notEqual(decided(snapshot, `n${i}.example`), "");
});
