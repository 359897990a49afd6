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
    engines: [
      "@@||www.bing.com^",
      "||bing.com^",
      "||duckduckgo.com^",
      "||ecosia.org^$dnsrewrite=192.0.2.1",
    ].join("\n"),
    "service:video": "||video.example^\n",
    answers: [
      "192.0.2.1 host.test",
      "2001:db8::1 host.test",
      "192.0.2.2 host.test",
      "192.0.2.3 taken.test",
      "||taken.test^",
      "||go.test^$dnsrewrite=192.0.2.4",
      "||go.test^",
      "||code.test^$dnsrewrite=192.0.2.4",
      "@@||not.test^$dnsrewrite=192.0.2.5",
      "|10.*",
      "@@|10.0.0.1",
    ].join("\n"),
    patterns: "||ad*.pattern.test^\n/^ad[0-9]+\\.p/\n||ads2.pattern.test^\n|far.\n",
  },
  rules: [
    "@@||fine.ads.example^",
    "||example^$badfilter",
    "|go.test^$dnsrewrite=192.0.2.6",
    "|code.test^$dnsrewrite=NXDOMAIN",
    "||not.test^$dnsrewrite=192.0.2.5",
    "|10.0.0.2$important",
    "@@-3.pattern.",
    "||far*$dnsrewrite=192.0.2.8",
    "/^AD9/$badfilter",
  ],
  records: [
    "nas.example A 192.0.2.9",
    "nas.example AAAA 2001:db8::9",
    "www.example CNAME nas.example",
  ],
  groups: {
    default: { lists: ["ads", "more", "answers", "patterns"] },
    kids: { lists: ["ads"], services: ["video"] },
    free: { filtering: false, lists: ["ads"] },
    safe: { safeSearch: true, lists: ["engines"] },
  },
  clients: {
    tablet: { addresses: ["192.0.2.0/24"], ids: ["tab"], group: "kids" },
    child: { ids: ["child"], group: "safe" },
    server: { addresses: ["2001:db8::1"], group: "free" },
  },
};

const LOCAL = "a local record answers before the filter";
const NOT_USED = "the group does not use this list now";
const ROWS = [
  [
    "ads1.pattern.test",
    null,
    "nobody in default: blocked by ||ad*.pattern.test^ of li_patterns 0.0.0.0",
    ["||ad*.pattern.test^ of patterns: decides"],
  ],
  [
    "ad1.pattern.test",
    "192.0.2.1",
    "tablet in kids: forwarded",
    [
      `||ad*.pattern.test^ of patterns: ${NOT_USED}`,
      `/^ad[0-9]+\\.p/ of patterns: ${NOT_USED}`,
    ],
  ],
  [
    "www.ads2.pattern.test",
    null,
    "nobody in default: blocked by ||ads2.pattern.test^ of li_patterns 0.0.0.0",
    [
      "||ads2.pattern.test^ of patterns: decides",
      "||ad*.pattern.test^ of patterns: a rule of the same rank is about the name, not a pattern",
    ],
  ],
  [
    "ad-3.pattern.test",
    null,
    "nobody in default: forwarded by @@-3.pattern. of rules",
    [
      "@@-3.pattern. of custom rules: decides",
      "||ad*.pattern.test^ of patterns: an exception outranks a block",
    ],
  ],
  [
    "far.example.net",
    null,
    "nobody in default: rewritten by ||far*$dnsrewrite=192.0.2.8 of rules 192.0.2.8",
    [
      "||far*$dnsrewrite=192.0.2.8 of custom rules: decides",
      "|far. of patterns: a rewrite comes before every other rule",
    ],
  ],
  ["ads.example", null, "nobody in default: blocked by ||ads.example^ of li_ads 0.0.0.0", [
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
  ["video.example", "TAB", "tablet in kids: blocked by ||video.example^ of service:video 0.0.0.0", [
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
  ["www.example", null, "nobody in default: local nas.example, 192.0.2.9", [
    `||example^ of ads: ${LOCAL}`,
  ]],
  ["health.svc.test", null, "nobody in default: local", []],
  [
    "good.example",
    null,
    "nobody in default: blocked by ||good.example^$important of li_more 0.0.0.0",
    [
      "||good.example^$important of more: decides",
      "||example^ of ads: a custom $badfilter turns it off",
    ],
  ],
  ["other.test", null, "nobody in default: forwarded", []],
  ["pixabay.com", "child", "child in safe: safe_search safesearch.pixabay.com", []],
  ["ya.ru", "child", "child in safe: safe_search 213.180.193.56", []],
  ["ya.ru", null, "nobody in default: forwarded", []],
  ["www.bing.com", "child", "child in safe: safe_search strict.bing.com", [
    "@@||www.bing.com^ of engines: safe search answers what is let through",
    "||bing.com^ of engines: an exception outranks a block",
  ]],
  ["duckduckgo.com", "child", "child in safe: blocked by ||duckduckgo.com^ of li_engines 0.0.0.0", [
    "||duckduckgo.com^ of engines: decides",
  ]],
  [
    "www.ecosia.org",
    "child",
    "child in safe: rewritten by ||ecosia.org^$dnsrewrite=192.0.2.1 of li_engines 192.0.2.1",
    ["||ecosia.org^$dnsrewrite=192.0.2.1 of engines: decides"],
  ],
  [
    "host.test",
    null,
    "nobody in default: rewritten by 192.0.2.1 host.test of li_answers " +
    "192.0.2.1, 192.0.2.2",
    [
      "192.0.2.1 host.test of answers: decides",
      "2001:db8::1 host.test of answers: decides",
      "192.0.2.2 host.test of answers: decides",
    ],
  ],
  ["host.test", "tab", "tablet in kids: forwarded", [
    `192.0.2.1 host.test of answers: ${NOT_USED}`,
    `2001:db8::1 host.test of answers: ${NOT_USED}`,
    `192.0.2.2 host.test of answers: ${NOT_USED}`,
  ]],
  ["taken.test", null, "nobody in default: blocked by ||taken.test^ of li_answers 0.0.0.0", [
    "||taken.test^ of answers: decides",
    "192.0.2.3 taken.test of answers: a block outranks addresses of hosts lines",
  ]],
  [
    "go.test",
    null,
    "nobody in default: rewritten by |go.test^$dnsrewrite=192.0.2.6 of rules " +
    "192.0.2.6, 192.0.2.4",
    [
      "|go.test^$dnsrewrite=192.0.2.6 of custom rules: decides",
      "||go.test^$dnsrewrite=192.0.2.4 of answers: decides",
      "||go.test^ of answers: a rewrite comes before every other rule",
    ],
  ],
  [
    "code.test",
    null,
    "nobody in default: rewritten by |code.test^$dnsrewrite=NXDOMAIN of rules " +
    "NXDOMAIN",
    [
      "|code.test^$dnsrewrite=NXDOMAIN of custom rules: decides",
      "||code.test^$dnsrewrite=192.0.2.4 of answers: a response code outranks addresses, and the " +
      "first one others",
    ],
  ],
  ["not.test", null, "nobody in default: forwarded", [
    "@@||not.test^$dnsrewrite=192.0.2.5 of answers: it is about rewrites only",
    "||not.test^$dnsrewrite=192.0.2.5 of custom rules: an exception to rewrites disables it",
  ]],
  ["10.1.2.3", null, "nobody in default: blocked by |10.* of li_answers 0.0.0.0", [
    "|10.* of answers: decides",
  ]],
  ["10.0.0.1", null, "nobody in default: forwarded by @@|10.0.0.1 of li_answers", [
    "@@|10.0.0.1 of answers: decides",
    "|10.* of answers: an exception outranks a block",
  ]],
  ["10.0.0.2", "2001:db8::1", "server in free: forwarded", [
    "|10.0.0.2$important of custom rules: queries of this client are not filtered now",
    `|10.* of answers: ${NOT_USED}`,
  ]],
  ["::ffff:10.0.0.2", "tab", "tablet in kids: blocked by |10.0.0.2$important of rules 0.0.0.0", [
    "|10.0.0.2$important of custom rules: decides",
    `|10.* of answers: ${NOT_USED}`,
  ]],
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
        const answers = /dnsrewrite|^[0-9a-f.:]+ /.test(rule);
        assert.equal(effect, rule.startsWith("@@") ? "allow" : answers ? "answer" : "block");
      }
    });
  }
  assert.equal(explain(snapshot, "no name", Qtype.A, null), null);
});

Deno.test("explain() tells what becomes of the target of a CNAME record", none, () => {
  const far = Array.from({ length: 9 }, (_, i) => `far${i}.lan CNAME far${i + 1}.lan`);
  const policy: FakePolicy = {
    lists: { ads: "||ads.example^\n||free.lan^\n", safe: "" },
    rules: ["||rewritten.example^$dnsrewrite=192.0.2.7", "@@||fine.ads.example^"],
    records: [
      "free.lan CNAME www.example",
      "ads.lan CNAME x.ads.example",
      "fine.lan CNAME fine.ads.example",
      "twice.lan CNAME ads.lan",
      "rewritten.lan CNAME rewritten.example",
      "own.lan CNAME health.svc.test",
      "search.lan CNAME pixabay.com",
      "nas.lan A 192.0.2.9",
      "here.lan CNAME nas.lan",
      "circle.lan CNAME elcric.lan",
      "elcric.lan CNAME circle.lan",
      ...far,
      "far9.lan A 192.0.2.9",
    ],
    groups: {
      default: { lists: ["ads"] },
      safe: { safeSearch: true, lists: ["safe"] },
      off: { off: "" },
    },
    clients: {
      child: { ids: ["child"], group: "safe" },
      late: { ids: ["late"], group: "off" },
    },
  };
  const snapshot = new Snapshot(policyData(policy, 8), 0);
  const CASES = [
    ["free.lan", "A", null, "forwarded: www.example (www.example)"],
    ["free.lan", "CNAME", null, "local: www.example (itself)"],
    ["ads.lan", "A", null, "blocked by ||ads.example^: x.ads.example, 0.0.0.0 (x.ads.example)"],
    ["ads.lan", "A", "child", "forwarded: x.ads.example (x.ads.example)"],
    [
      "fine.lan",
      "A",
      null,
      "forwarded by @@||fine.ads.example^: fine.ads.example (fine.ads.example)",
    ],
    [
      "twice.lan",
      "AAAA",
      null,
      "blocked by ||ads.example^: ads.lan, x.ads.example, :: (x.ads.example)",
    ],
    [
      "rewritten.lan",
      "A",
      null,
      "rewritten by ||rewritten.example^$dnsrewrite=192.0.2.7: rewritten.example, 192.0.2.7 " +
      "(rewritten.example)",
    ],
    ["own.lan", "A", null, "local: health.svc.test (health.svc.test)"],
    ["search.lan", "A", "child", "safe_search: pixabay.com, safesearch.pixabay.com (pixabay.com)"],
    ["here.lan", "A", null, "local: nas.lan, 192.0.2.9 (nas.lan)"],
    ["free.lan", "A", "late", "blocked by the Internet is off: www.example, 0.0.0.0 (www.example)"],
    ["here.lan", "A", "late", "local: nas.lan, 192.0.2.9 (nas.lan)"],
    ["far1.lan", "A", null, /^local: .*far9\.lan, 192\.0\.2\.9 \(far9\.lan\)$/],
    ["far0.lan", "A", null, /^failed: .*far8\.lan, SERVFAIL \(far8\.lan\)$/],
    ["circle.lan", "A", null, /^failed: .*, SERVFAIL \(circle\.lan\)$/],
  ] as const;
  for (const [name, type, client, want] of CASES) {
    const told = explain(snapshot, name, Qtype[type], client)!;
    const by = told.rule === null ? "" : ` by ${told.rule}`;
    const text = `${told.outcome}${by}: ${told.records.join(", ")} (${told.target ?? "itself"})`;
    if (typeof want === "string") assert.equal(text, want);
    else assert.match(text, want);
  }
  // Rules about the name itself hold for nobody: its record comes before them.
  const { matches } = explain(snapshot, "free.lan", Qtype.A, null)!;
  assert.deepEqual(matches.map(({ rule, lost }) => [rule, lost]), [["||free.lan^", LOCAL]]);
});

Deno.test("explain() finds a client by the ID of its resource", none, () => {
  const snapshot = new Snapshot(policyData(POLICY, 8), 0);
  const byClientId = explain(snapshot, "ads.example", Qtype.A, "child");
  assert.equal(byClientId?.client?.name, "child");
  assert.deepEqual(explain(snapshot, "ads.example", Qtype.A, byClientId.client.id), byClientId);
  assert.equal(explain(snapshot, "ads.example", Qtype.A, "cl_ffffffffffffffff")?.client, null);
});

Deno.test("explain() says how a blocked name is answered", none, () => {
  const rows = [
    [{}, "A", ["0.0.0.0"]],
    [{}, "AAAA", ["::"]],
    [{}, "TXT", []],
    [{ block_response: "nxdomain" }, "TXT", ["NXDOMAIN"]],
    [{ block_response: "refused" }, "A", ["REFUSED"]],
    [{ block_response: "custom_ip", blocking_ipv4: "192.0.2.9" }, "A", ["192.0.2.9"]],
    [{ block_response: "custom_ip", blocking_ipv4: "192.0.2.9" }, "AAAA", ["::"]],
  ] as const;
  for (const [settings, type, want] of rows) {
    const snapshot = new Snapshot(policyData({ rules: ["||ads.example^"], settings }, 8), 0);
    assert.deepEqual(explain(snapshot, "ads.example", Qtype[type], null)?.records, want);
  }
  const snapshot = new Snapshot(policyData({ rules: ["|2001:db8::1"] }, 8), 0);
  assert.deepEqual(explain(snapshot, "2001:db8::1", Qtype.A, null)?.records, ["::"]);
});

Deno.test(
  "explain() tells of canary names, which only exceptions and rewrites have asked",
  none,
  () => {
    const outcome = (rules: readonly string[], name: string) => {
      const snapshot = new Snapshot(policyData({ rules }, 1), 0);
      const explanation = explain(snapshot, name, Qtype.A, null);
      return [explanation?.outcome, explanation?.rule, explanation?.matches[0]?.lost ?? null];
    };
    const canary = "the name keeps clients from going around the filter: it is answered here";
    assert.deepEqual(outcome([], "mask.icloud.com"), ["local", null, null]);
    assert.deepEqual(outcome(["||icloud.com^"], "mask-h2.icloud.com"), ["local", null, canary]);
    const allowed = outcome(["@@||icloud.com^"], "mask.icloud.com");
    assert.deepEqual(allowed, ["forwarded", "@@||icloud.com^", null]);
    const rewrite = "||use-application-dns.net^$dnsrewrite=192.0.2.1";
    assert.deepEqual(outcome([rewrite], "use-application-dns.net"), ["rewritten", rewrite, null]);
  },
);
