import assert from "node:assert/strict";
import { RuleCount, RULES_ENOUGH } from "./rule_count.ts";

const encoder = new TextEncoder();

/** What is said of a text from a server, and of the same in a file of the user's own. */
function refusals(text: string, pieceBytes: number): [string | null, string | null] {
  const both = [false, true].map((isOwn) => {
    const [count, bytes] = [new RuleCount(), encoder.encode(text)];
    for (let at = 0; at < bytes.length; at += pieceBytes) {
      count.add(bytes.subarray(at, at + pieceBytes));
    }
    return count.refusal(isOwn);
  });
  return [both[0], both[1]];
}

const EMPTY = "no rules in it: it is empty";
const NONE = "no rules in it";
const others = (count: number) => `no rules in it that can be read, but ${count} other lines`;
const prose = (words: number, rules: number) =>
  `it is prose, not a list: ${words} lines of words and ${rules} rules`;

/** A text, and what is said of it from a server; then, if another, of a file of one's own. */
const CASES: readonly (readonly [string, string, string | null, (string | null)?])[] = [
  ["a name", "ads.example", null],
  ["a name behind a byte order mark and blanks", "\ufeff \t\r\n ads.example\r\n", null],
  ["exceptions alone", "@@||good.example^\n@@good.example\n", null],
  ["a $badfilter", "||ads.example^$badfilter", null],
  ["a rule about addresses", "|10.*", null],
  ["a rewrite", "||www.example^$dnsrewrite=192.0.2.1", null],
  ["a hosts line with a lone label", "0.0.0.0 wpad", null],
  ["a hosts line without a comment's mark around", "0.0.0.0 ads.example ads2.example # x", null],
  ["a top-level domain", "||zip^", null],
  ["nothing", "", EMPTY],
  ["blank lines", " \r\n\n", NONE],
  ["comments", "! a\n# b\n[Adblock Plus 2.0]", NONE],
  ["the host itself", "127.0.0.1 localhost\n::1 ip6-loopback\n", NONE],
  ["an error", "404: Not Found", others(1)],
  ["a word", "error\n", others(1), null],
  ["an IDN word", "f\u00fcnf\n", others(1), null],
  ["JSON", '{\n  "message": "Not Found",\n  "status": "404"\n}\n', others(4)],
  ["forms that are not read", "example.org##.banner\n/(?=ads)/\n", others(2)],
  ["a pattern", "||ads*.example^", null],
  ["a regular expression", "/^ads[0-9]+/", null],
  ["a word with a full stop", "Forbidden.\n", others(1), null],
  ["a line of dashes", "-----\n", others(1), null],
  ["a path", "/usr/share/\n", others(1), null],
  ["a line that is too long", "a".repeat(5_000) + ".example", others(1)],
  [
    "a message with a name in it",
    "Please sign in at\nportal.example\nThank you",
    prose(2, 1),
    null,
  ],
  ["as many words as rules", "This is a list\nads.example\n", null],
  ["many rules, more words", "a b\n".repeat(99) + "ads.example\n".repeat(RULES_ENOUGH), null],
  ["a rule behind many lines", "x##.a\n".repeat(50_000) + "ads.example", null],
];

Deno.test(
  "RuleCount tells a list from a text without a rule",
  { permissions: "none" },
  async (t) => {
    for (const [name, text, server, own = server] of CASES) {
      await t.step(name, () => {
        for (const pieceBytes of [1, 7, 65_536]) {
          assert.deepEqual(refusals(text, pieceBytes), [server, own], `pieces of ${pieceBytes}`);
        }
      });
    }
  },
);

Deno.test("RuleCount reads no more than it needs", { permissions: "none" }, () => {
  const count = new RuleCount();
  count.add(encoder.encode("ads.example\n".repeat(RULES_ENOUGH) + "no rule here\n"));
  assert.equal(count.unsupported, 0);
  const endless = new RuleCount();
  const words = encoder.encode("x##.a\n".repeat(100_000));
  for (let i = 0; i < 11; i++) endless.add(words);
  assert.equal(endless.unsupported, 1_000_000);
  assert.equal(endless.refusal(false), others(1_000_000));
});
