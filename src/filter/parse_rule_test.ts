import assert from "node:assert/strict";
import { LINE_LENGTH_MAX, type ParsedRule, parseRule, SKIP_REASONS } from "./parse_rule.ts";
import { unsupportedCount } from "./parse_rule.ts";

const VERBS = {
  name: "block",
  rewrite: "answer",
  hosts_address: "answer",
  address: "block",
} as const;

/** A parsed line on one line: what it does, or why it does nothing. */
function show(parsed: ParsedRule): string {
  if (parsed.kind === "skipped") return `skipped: ${parsed.reason} at ${parsed.column}`;
  const rules = parsed.rules.map((rule) => {
    const verb = rule.badfilter ? "disable" : rule.exception ? "allow" : VERBS[rule.kind];
    const behind = rule.important ? ", important" : "";
    const value = rule.kind === "name" ? "" : ` ${rule.kind} ${rule.value.join(".")}`;
    return `${verb} ${rule.form} ${rule.name}${value}${behind}`;
  });
  return rules.join("; ") + (parsed.leftOut === null ? "" : `; left out: ${parsed.leftOut}`);
}

const REWRITES = [
  ["||ads.example^$dnsrewrite=192.0.2.1", "answer domain ads.example rewrite 192.0.2.1"],
  ["||ads.example$dnsrewrite=192.0.2.1", "answer domain ads.example rewrite 192.0.2.1"],
  ["||ads.example^|$dnsrewrite=192.0.2.1", "answer domain ads.example rewrite 192.0.2.1"],
  ["|ads.example^$dnsrewrite=0.0.0.0", "answer exact ads.example rewrite 0.0.0.0"],
  ["*.ads.example$dnsrewrite=127.0.0.1", "answer below ads.example rewrite 127.0.0.1"],
  ["Ads.example.$dnsrewrite=192.0.2.1 # why", "answer plain ads.example rewrite 192.0.2.1"],
  [
    "  ||müller.example^$dnsrewrite=192.0.2.1\r",
    "answer domain xn--mller-kva.example rewrite 192.0.2.1",
  ],
  [
    "||a.example^$dnsrewrite=2001:DB8::1",
    "answer domain a.example rewrite 32.1.13.184.0.0.0.0.0.0.0.0.0.0.0.1",
  ],
  [
    "||a.example^$dnsrewrite=::ffff:192.0.2.1",
    "answer domain a.example rewrite 0.0.0.0.0.0.0.0.0.0.255.255.192.0.2.1",
  ],
  ["||ads.example^$dnsrewrite=NOERROR", "answer domain ads.example rewrite 0"],
  ["||ads.example^$dnsrewrite=NXDOMAIN", "answer domain ads.example rewrite 3"],
  [
    "||ads.example^$important,dnsrewrite=REFUSED",
    "answer domain ads.example rewrite 5, important",
  ],
  [
    "||ads.example^$dnsrewrite=REFUSED,important",
    "answer domain ads.example rewrite 5, important",
  ],
  ["@@||ads.example^$dnsrewrite", "allow domain ads.example rewrite "],
  ["@@||ads.example^$dnsrewrite=", "allow domain ads.example rewrite "],
  ["@@|ads.example^$important,dnsrewrite", "allow exact ads.example rewrite , important"],
  ["@@||ads.example^$dnsrewrite=192.0.2.1", "allow domain ads.example rewrite 192.0.2.1"],
  ["@@||ads.example^$dnsrewrite=NXDOMAIN", "allow domain ads.example rewrite 3"],
  ["||ads.example^$dnsrewrite=REFUSED,badfilter", "disable domain ads.example rewrite 5"],
  ["@@||ads.example^$badfilter,dnsrewrite", "disable domain ads.example rewrite "],
] as const;

const HOSTS_ADDRESSES = [
  ["192.0.2.1 www.example", "answer hosts www.example hosts_address 192.0.2.1"],
  [
    "  192.0.2.1\tWWW.example. nas # why",
    "answer hosts www.example hosts_address 192.0.2.1; answer hosts nas hosts_address 192.0.2.1",
  ],
  [
    "2001:db8::1 www.example",
    "answer hosts www.example hosts_address 32.1.13.184.0.0.0.0.0.0.0.0.0.0.0.1",
  ],
  ["::2 www.example", "answer hosts www.example hosts_address 0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.2"],
  ["::ffff:192.0.2.1 www.example", "answer hosts www.example hosts_address 192.0.2.1"],
  ["192.0.2.1 müller.example", "answer hosts xn--mller-kva.example hosts_address 192.0.2.1"],
  [
    "192.0.2.1 localhost www.example",
    "answer hosts www.example hosts_address 192.0.2.1; left out: local_name",
  ],
] as const;

const ADDRESSES = [
  ["|10.*", "block exact  address 10"],
  ["|192.168.*", "block exact  address 192.168"],
  ["|192.0.2.*", "block exact  address 192.0.2"],
  ["|192.0.2.7", "block exact  address 192.0.2.7"],
  ["|192.0.2.7^", "block exact  address 192.0.2.7"],
  ["|192.0.2.7^|", "block exact  address 192.0.2.7"],
  ["||192.0.2.7^", "block domain  address 192.0.2.7"],
  ["192.0.2.7", "block plain  address 192.0.2.7"],
  ["  192.0.2.7  # why", "block plain  address 192.0.2.7"],
  ["|::ffff:192.0.2.7", "block exact  address 192.0.2.7"],
  ["|2001:db8::1", "block exact  address 32.1.13.184.0.0.0.0.0.0.0.0.0.0.0.1"],
  ["|2001:DB8::1^", "block exact  address 32.1.13.184.0.0.0.0.0.0.0.0.0.0.0.1"],
  ["2001:db8::1", "block plain  address 32.1.13.184.0.0.0.0.0.0.0.0.0.0.0.1"],
  ["@@|10.*", "allow exact  address 10"],
  ["|10.*$important", "block exact  address 10, important"],
  ["@@|10.*$important", "allow exact  address 10, important"],
  ["|10.*$badfilter", "disable exact  address 10"],
  ["@@|192.0.2.7^$badfilter", "disable exact  address 192.0.2.7"],
] as const;

const PATTERNS = [
  // Wildcards within names.
  ["||ads*.example^", "block pattern ||ads*.example^"],
  ["||*-ads.example^", "block pattern -ads.example^"],
  ["*-ads.example", "block pattern -ads.example"],
  ["ads.*", "block pattern ads."],
  ["|a*b.Example^", "block pattern |a*b.example^"],
  ["||ads**.example^", "block pattern ||ads*.example^"],
  ["||ads.example*", "block pattern ||ads.example"],
  ["@@||ads*.example^$important", "allow pattern ||ads*.example^, important"],
  ["||ads*.example^$badfilter", "disable pattern ||ads*.example^"],
  [
    "||ads*.example^$dnsrewrite=192.0.2.1",
    "answer pattern ||ads*.example^ rewrite 192.0.2.1",
  ],
  ["||*^", "block pattern ^"],
  ["***", "block pattern *"],
  // Open beginnings and ends.
  ["|piwik.", "block pattern |piwik."],
  ["||load.gtm.", "block pattern ||load.gtm."],
  ["||dyndns-", "block pattern ||dyndns-"],
  ["|ads.example", "block pattern |ads.example"],
  ["ads.example^", "block pattern ads.example^"],
  [".ads.example", "block pattern .ads.example"],
  ["-ads.", "block pattern -ads."],
  ["-468x60-", "block pattern -468x60-"],
  ["-ads.web.", "block pattern -ads.web."],
  ["-ads.example", "block pattern -ads.example"],
  ["ads.web-", "block pattern ads.web-"],
  ["||104.154.", "block pattern ||104.154."],
  ["://beacons*.example^", "block pattern |beacons*.example^"],
  ["://ads.", "block pattern |ads."],
  // A name in another guise.
  [".ads.example^", "block below ads.example"],
  ["||*.ads.example^", "block below ads.example"],
  ["|*.ads.example^", "block below ads.example"],
  ["://*.ads.example^", "block below ads.example"],
  ["://ads.example^", "block exact ads.example"],
  ["http://ads.example^", "block exact ads.example"],
  ["|ads.example|", "block exact ads.example"],
  ["||ads.example/", "block domain ads.example"],
  ["||ads.example/*", "block domain ads.example"],
  ["||ads.example^*", "block domain ads.example"],
  ["|192.0.2.7|", "block exact  address 192.0.2.7"],
  // Regular expressions.
  ["/^ads[0-9]+\\./", "block regex /^ads[0-9]+\\./"],
  ["@@/ads/$important", "allow regex /ads/, important"],
  ["/ads$/", "block regex /ads$/"],
  ["/a|b/$dnsrewrite=NXDOMAIN", "answer regex /a|b/ rewrite 3"],
  // What covers no name, or too many.
  ["a*", "skipped: broad at 0"],
  ["|a", "skipped: broad at 0"],
  ["||.ads*.example^", "skipped: bad_name at 0"],
  ["||ads..*.example^", "skipped: bad_name at 0"],
  ["||ads*.^", "skipped: bad_name at 0"],
  ["||müller*.example^", "skipped: bad_name at 0"],
  [`||a*${"b".repeat(255)}`, "skipped: bad_name at 0"],
  ["||ads.example^*x", "skipped: url at 0"],
  ["||ads*.example/path", "skipped: url at 0"],
  ["||ads*.example^$third-party", "skipped: unknown_modifier at 15"],
  ["/ads/$third-party", "skipped: unknown_modifier at 5"],
  ["/(?=ads)/", "skipped: regex at 0"],
  ["@@/(ads/", "skipped: regex at 2"],
  ["/a{400}b{400}/", "skipped: regex_size at 0"],
  [`/${"a".repeat(701)}/`, "skipped: regex_size at 0"],
] as const;

const A63 = "a".repeat(63);
const NAME_253 = `${A63}.${A63}.${A63}.${"b".repeat(61)}`;

const CASES = [
  // Names and below.
  ["||ads.example^", "block domain ads.example"],
  ["||ads.example", "block domain ads.example"],
  ["||Ads.EXAMPLE^", "block domain ads.example"],
  ["||ads.example.^", "block domain ads.example"],
  ["  ||ads.example^ \t\r", "block domain ads.example"],
  ["||ads^", "block domain ads"],
  ["||_dmarc.ads-1.example^", "block domain _dmarc.ads-1.example"],
  ["||-a^", "block domain -a"],
  ["@@||Ads.example^", "allow domain ads.example"],
  ["||ads.example^$important", "block domain ads.example, important"],
  ["@@||ads.example$important", "allow domain ads.example, important"],
  ["||ads.example^ # why", "block domain ads.example"],
  ["||ads.example^|", "block domain ads.example"],
  ["@@||ads.example^|", "allow domain ads.example"],
  ["@@||ads.example^|$important", "allow domain ads.example, important"],
  ["||ads.example^|$important,badfilter", "disable domain ads.example, important"],
  ["|ads.example^|", "block exact ads.example"],
  ["*.ads.example^|", "block below ads.example"],
  ["||ads.example^| # why", "block domain ads.example"],
  ["ads.example^|", "block pattern ads.example^"],
  ["||ads.example|", "block domain ads.example"],
  ["||ads.example^||", "skipped: bad_name at 0"],
  ["||ads.example|^", "skipped: bad_name at 0"],
  ["||^|", "skipped: bad_name at 0"],
  // Exact names.
  ["ads.example", "block plain ads.example"],
  ["ads.example.", "block plain ads.example"],
  ["ADS.example # why", "block plain ads.example"],
  ["@@ads.example$important", "allow plain ads.example, important"],
  ["ads", "block plain ads"],
  ["|ads.example^", "block exact ads.example"],
  ["@@|ads.example^", "allow exact ads.example"],
  // Names below.
  ["*.ads.example", "block below ads.example"],
  ["*.ads.example^$important", "block below ads.example, important"],
  // Internationalised names.
  ["müller.example", "block plain xn--mller-kva.example"],
  ["||MÜLLER.example^", "block domain xn--mller-kva.example"],
  ["||例え.テスト^", "block domain xn--r8jz45g.xn--zckzah"],
  ["||xn--mller-kva.example^", "block domain xn--mller-kva.example"],
  ["a／b.example", "skipped: bad_name at 0"],
  ["\ufffd.example", "skipped: bad_name at 0"],
  ["\ud800.example", "skipped: bad_name at 0"],
  [`${"ü".repeat(254)}.example`, "skipped: bad_name at 0"],
  // $badfilter.
  ["||ads.example^$badfilter", "disable domain ads.example"],
  ["||ads.example^$important,badfilter", "disable domain ads.example, important"],
  ["||ads.example^$badfilter,important", "disable domain ads.example, important"],
  // Hosts lines.
  ["0.0.0.0 ads.example", "block hosts ads.example"],
  ["127.0.0.1\tads.example\t# why", "block hosts ads.example"],
  ["0.0.0.0 ads.example#why b.example", "block hosts ads.example"],
  ["127.0.1.1 a.example b", "block hosts a.example; block hosts b"],
  [":: ads.example", "block hosts ads.example"],
  ["::1  ads.example  #[other.example]", "block hosts ads.example"],
  ["::ffff:127.0.0.1 ads.example", "block hosts ads.example"],
  [
    "0.0.0.0 A.example. b..example c.example",
    "block hosts a.example; block hosts c.example; left out: bad_name",
  ],
  ["127.0.0.1 localhost ads.example", "block hosts ads.example; left out: local_name"],
  ["127.0.0.1 localhost.localdomain", "skipped: local_name at 10"],
  ["::1 localhost ip6-localhost ip6-loopback", "skipped: local_name at 4"],
  ["255.255.255.255 broadcasthost", "skipped: local_name at 16"],
  ["192.0.2.1 localhost", "skipped: local_name at 10"],
  ["0.0.0.0 0.0.0.0", "skipped: local_name at 8"],
  ["0.0.0.0 tab..example", "skipped: bad_name at 8"],
  ["999.1.1.1 www.example", "skipped: bad_address at 0"],
  ["fe80::1%lo0 localhost", "skipped: bad_address at 0"],
  ["a.example b.example", "skipped: bad_address at 0"],
  // What is no rule.
  ["", "skipped: blank at 0"],
  [" \t\r", "skipped: blank at 0"],
  ["! ads.example", "skipped: comment at 0"],
  ["  # ads.example", "skipped: comment at 2"],
  ["##.banner", "skipped: comment at 0"],
  ["[Adblock Plus 2.0]", "skipped: comment at 0"],
  ["ads.example##.banner", "skipped: cosmetic at 11"],
  ["ads.example#@#.banner", "skipped: cosmetic at 11"],
  ["||ads.example## :has-text(x)", "skipped: cosmetic at 13"],
  ["ads.example#why", "skipped: bad_name at 0"],
  ["/sub.", "skipped: url at 0"],
  ["_banner.", "skipped: url at 0"],
  ["_728x90_", "skipped: url at 0"],
  ["://ads.example", "skipped: url at 0"],
  ["||ads.example/path", "skipped: url at 0"],
  ["||ads.example:8080^", "skipped: url at 0"],
  ["https://ads.example/", "skipped: url at 0"],
  ["|10.1*", "skipped: address_rule at 0"],
  ["|10.", "skipped: address_rule at 0"],
  ["|10", "skipped: address_rule at 0"],
  ["|10.*^", "skipped: address_rule at 0"],
  ["|10.*.*", "skipped: address_rule at 0"],
  ["|256.*", "skipped: address_rule at 0"],
  ["|010.*", "skipped: address_rule at 0"],
  ["|1.2.3.4.*", "skipped: address_rule at 0"],
  ["@@|2001:db8:*", "skipped: address_rule at 2"],
  ["|2001:db8::*", "skipped: address_rule at 0"],
  ["*.192.0.2.1", "skipped: address_rule at 0"],
  ["192.0.2.1^", "skipped: address_rule at 0"],
  ["10.*", "skipped: address_rule at 0"],
  ["||10.*", "skipped: address_rule at 0"],
  ["|192.0.2.7^$third-party", "skipped: unknown_modifier at 11"],
  ["|192.0.2.7^$dnsrewrite=1.2.3.4", "skipped: rewrite at 11"],
  ["||ads.example^$third-party", "skipped: unknown_modifier at 14"],
  ["||ads.example^$dnstype=A,important", "skipped: unknown_modifier at 14"],
  ["||ads.example^$IMPORTANT", "skipped: unknown_modifier at 14"],
  ["||ads.example^$", "skipped: unknown_modifier at 14"],
  ...[
    "", // Without a value only an exception says something.
    "=",
    "=SERVFAIL",
    "=FORMERR",
    "=nxdomain",
    "=BADKEYWORD",
    "=NXDOMAIN;;",
    "=NOERROR;A;192.0.2.1",
    "=NOERROR;CNAME;safe.example",
    "=safe.example",
    "=A:NOERROR:192.0.2.1",
    "=192.0.2",
    "=192.0.2.1/24",
    "=192.0.2.256",
    "=2001:db8:::1",
    "=2001:db8::1%eth0",
    "=192.0.2.1,dnsrewrite=192.0.2.2",
  ].map((value) => [`||ads.example^$dnsrewrite${value}`, "skipped: rewrite at 14"] as const),
  ["||ads.example^$dnsrewrites=192.0.2.1", "skipped: unknown_modifier at 14"],
  ["||ads.example^$dnstype=A,dnsrewrite=192.0.2.1", "skipped: unknown_modifier at 14"],
  ["@@||ads.example^$dnsrewrite=NOERROR;A;192.0.2.1", "skipped: rewrite at 16"],
  ["||a..example^", "skipped: bad_name at 0"],
  ["||..^", "skipped: bad_name at 0"],
  ["||^", "skipped: bad_name at 0"],
  ["||", "skipped: bad_name at 0"],
  ["@@", "skipped: bad_name at 2"],
  ["*", "skipped: broad at 0"],
  ["1.2.3", "skipped: bad_name at 0"],
  ["ads.123", "skipped: bad_name at 0"],
  ["<!DOCTYPE html>", "skipped: bad_address at 0"],
  ["ads\0.example", "skipped: bad_name at 0"],
  ["a.example\nb.example", "skipped: bad_name at 0"],
  // Lengths.
  [NAME_253, `block plain ${NAME_253}`],
  [`${NAME_253}b`, "skipped: bad_name at 0"],
  [`||${A63}a.example^`, "skipped: bad_name at 0"],
  ["a".repeat(LINE_LENGTH_MAX), "skipped: bad_name at 0"],
  ["a".repeat(LINE_LENGTH_MAX + 1), `skipped: too_long at ${LINE_LENGTH_MAX}`],
] as const;

const ALL = [...CASES, ...PATTERNS, ...REWRITES, ...HOSTS_ADDRESSES, ...ADDRESSES];

Deno.test("parseRule() reads each rule form", { permissions: "none" }, async (t) => {
  for (const [line, want] of ALL) {
    const name = JSON.stringify(line).slice(0, 80);
    await t.step(name, () => assert.equal(show(parseRule(line)), want));
  }
});

Deno.test("parseRule() keeps what a rule looks like", { permissions: "none" }, () => {
  const rows = [
    [" ||Ads.example \r", ["||Ads.example"]],
    ["ads.example  # why", ["ads.example"]],
    ["127.0.1.1  A.example\tb. # why", ["127.0.1.1 A.example", "127.0.1.1 b."]],
    ["@@||müller.example^$important", ["@@||müller.example^$important"]],
    [" |a.example^$dnsrewrite=::1 # why", ["|a.example^$dnsrewrite=::1"]],
    ["2001:DB8::1  A.example\tb.", ["2001:DB8::1 A.example", "2001:DB8::1 b."]],
    ["|10.*  # why", ["|10.*"]],
  ] as const;
  for (const [line, want] of rows) {
    const parsed = parseRule(line);
    assert(parsed.kind === "rules", line);
    assert.deepEqual(parsed.rules.map((rule) => rule.text), want);
  }
});

Deno.test("unsupportedCount() counts what was meant as a rule", { permissions: "none" }, () => {
  const zero = Object.fromEntries(SKIP_REASONS.map((reason) => [reason, 0]));
  const skipped = { ...zero, blank: 1, comment: 2, local_name: 4, regex: 8, bad_name: 16 };
  assert.equal(unsupportedCount(skipped as Parameters<typeof unsupportedCount>[0]), 24);
});
