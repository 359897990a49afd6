import assert from "node:assert/strict";
import { Qtype } from "../dns/mod.ts";
import { type FakePolicy, policyData } from "./fakes.ts";
import { explain, Snapshot } from "./mod.ts";

const none = { permissions: "none" } as const;

const POLICY: FakePolicy = {
  lists: {
    ads: "||ads.example^\n||example^\n",
    more: "||ads.example^\n||good.example^$important\n",
    unused: "@@||ads.example^\n",
    "service:video": "||video.example^\n",
  },
  rules: ["@@||fine.ads.example^", "||example^$badfilter"],
  records: [
    "nas.example A 192.0.2.9",
    "nas.example AAAA 2001:db8::9",
    "www.example CNAME nas.example",
  ],
  groups: {
    default: { lists: ["ads", "more"] },
    kids: { lists: ["ads"], services: ["video"] },
    free: { filtering: false, lists: ["ads"] },
  },
  clients: {
    tablet: { addresses: ["192.0.2.0/24"], ids: ["tab"], group: "kids" },
    server: { addresses: ["2001:db8::1"], group: "free" },
  },
};

const LOCAL = "a local record answers before the filter";
const NOT_USED = "the group does not use this list now";
const ROWS = [
  ["ads.example", null, "nobody in default: blocked by ||ads.example^ of li_ads", [
    "||ads.example^ of ads: decides",
    `@@||ads.example^ of unused: ${NOT_USED}`,
    "||ads.example^ of more: another rule of the same rank comes first",
    "||example^ of ads: a custom $badfilter turns it off",
  ]],
  [
    "fine.ads.example",
    "198.51.100.1",
    "nobody in default: forwarded by @@||fine.ads.example^ of rules",
    [
      "@@||fine.ads.example^ of custom rules: decides",
      `@@||ads.example^ of unused: ${NOT_USED}`,
      "||ads.example^ of ads: an exception outranks a block",
      "||ads.example^ of more: an exception outranks a block",
      "||example^ of ads: a custom $badfilter turns it off",
    ],
  ],
  ["video.example", "TAB", "tablet in kids: blocked by ||video.example^ of service:video", [
    "||video.example^ of service:video: decides",
    "||example^ of ads: a custom $badfilter turns it off",
  ]],
  ["video.example", "unknown", "nobody in default: forwarded", [
    "||video.example^ of service:video: the group does not use this service now",
    "||example^ of ads: a custom $badfilter turns it off",
  ]],
  ["ads.example", "2001:db8::1", "server in free: forwarded", [
    `@@||ads.example^ of unused: ${NOT_USED}`,
    "||ads.example^ of ads: queries of this client are not filtered now",
    `||ads.example^ of more: ${NOT_USED}`,
    "||example^ of ads: queries of this client are not filtered now",
  ]],
  ["nas.example", "::ffff:192.0.2.1", "tablet in kids: local 192.0.2.9", [
    `||example^ of ads: ${LOCAL}`,
  ]],
  ["www.example", null, "nobody in default: local nas.example", [`||example^ of ads: ${LOCAL}`]],
  ["health.svc.test", null, "nobody in default: local", []],
  ["good.example", null, "nobody in default: blocked by ||good.example^$important of li_more", [
    "||good.example^$important of more: decides",
    "||example^ of ads: a custom $badfilter turns it off",
  ]],
  ["other.test", null, "nobody in default: forwarded", []],
] as const;

Deno.test("explain() says who asks, what decides, and why the others do not", none, async (t) => {
  const snapshot = new Snapshot(policyData(POLICY, 8), 0);
  for (const [name, client, want, matches] of ROWS) {
    await t.step(`${name} for ${client}`, () => {
      const told = explain(snapshot, name, Qtype.A, client);
      assert.ok(told !== null);
      const by = told.rule === null ? "" : ` by ${told.rule} of ${told.list}`;
      const records = told.records.map((text) => ` ${text}`).join();
      const who = `${told.client?.name ?? "nobody"} in ${told.group.name}`;
      assert.equal(`${who}: ${told.outcome}${by}${records}`, want);
      assert.deepEqual(
        told.matches.map(({ rule, list_name, lost }) =>
          `${rule} of ${list_name}: ${lost ?? "decides"}`
        ),
        matches,
      );
      for (const { rule, effect } of told.matches) {
        assert.equal(effect, rule.startsWith("@@") ? "allow" : "block");
      }
    });
  }
  assert.equal(explain(snapshot, "no name", Qtype.A, null), null);
});
