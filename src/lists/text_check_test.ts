import assert from "node:assert/strict";
import { messageOf } from "../errors.ts";
import { RuleCount } from "./rule_count.ts";
import { TextCheck } from "./text_check.ts";

const encoder = new TextEncoder();

function verdict(content: string | Uint8Array, pieceBytes = Infinity): string {
  const bytes = typeof content === "string" ? encoder.encode(content) : content;
  const check = new TextCheck();
  try {
    const step = Math.min(pieceBytes, Math.max(bytes.length, 1));
    for (let i = 0; i < bytes.length; i += step) check.add(bytes.subarray(i, i + step));
    check.finish();
  } catch (error) {
    return messageOf(error);
  }
  assert.equal(check.sizeBytes, bytes.length);
  return TEXT;
}

const TEXT = "it is text";
const PAGE = "it is an HTML page, not a list";
const BINARY = "it is binary, not text";
const UTF_16 = "it is in UTF-16: save it as UTF-8";
const RULES = "||ads.example^\n".repeat(10_000);

const CASES: readonly (readonly [string, string | Uint8Array, string])[] = [
  ["one rule", "||ads.example^\n", TEXT],
  ["no line end at the end", "ads.example\ntracker.example", TEXT],
  ["CRLF", "! list\r\nads.example\r\n", TEXT],
  ["a rule behind a byte order mark", "\ufeffads.example\n", TEXT],
  ["a hosts line of IPv6", "::1 localhost\n", TEXT],
  ["an IDN", "\u00fcber.example\n", TEXT],
  ["a line of 64 KiB and more", "a".repeat(70_000) + "\n", TEXT],
  ["a comment in Latin-1", bytesOf("# caf\xe9\n" + RULES), TEXT],
  ["a character cut at the end of the head", "a".repeat(65_535) + "\u00fc\n", TEXT],
  ["markup in a rule", "example.org##<html>\nads.example", TEXT],
  ["nothing", "", TEXT],
  ["comments", "! a\n# b\n[Adblock Plus 2.0]\n", TEXT],
  ["a page", "<!DOCTYPE html><p>", PAGE],
  ["a page behind blanks and a byte order mark", "\ufeff \r\n<HTML lang=en>", PAGE],
  ["a page without a head's start", "<head><title>404", PAGE],
  ["a page from its middle on", '<div class="portal">sign in</div>', PAGE],
  ["a page behind a comment", "<!-- ads.example -->", PAGE],
  ["a page that leads elsewhere", "<script>location='/'</script>", PAGE],
  ["XHTML", '<?xml version="1.0"?>', PAGE],
  ["a zero byte", "ads.example\n\0", BINARY],
  ["UTF-16", bytesOf("\xff\xfea\0d\0s\0"), UTF_16],
  ["UTF-16, the other way round", bytesOf("\xfe\xff\0a\0d\0s"), UTF_16],
  ["gzip", bytesOf("\x1f\x8b\x08\x01\x02\x03\x04\x05\x06"), BINARY],
  ["control characters", "ads.example\n\x01\x02", BINARY],
  ["bytes that are no UTF-8", bytesOf("\xe9\xe8\xe7\xe6 ads.example\n"), BINARY],
];

function bytesOf(binary: string): Uint8Array {
  return Uint8Array.from(binary, (c) => c.charCodeAt(0));
}

Deno.test("TextCheck tells text from what is none", { permissions: "none" }, async (t) => {
  for (const [name, content, want] of CASES) {
    await t.step(name, () => {
      assert.equal(verdict(content), want);
      for (const pieceBytes of [1, 7, 4096]) assert.equal(verdict(content, pieceBytes), want);
    });
  }
});

const SHARED_LISTS = new URL("../../../shared/lists/", import.meta.url);
const NO_SHARED_LISTS = await Deno.stat(SHARED_LISTS).then(() => false, () => true);
if (NO_SHARED_LISTS) console.warn("skipped: the tests on real lists need ../shared/lists");

Deno.test("TextCheck and RuleCount take real lists", {
  ignore: NO_SHARED_LISTS,
  permissions: { read: [SHARED_LISTS] },
}, async (t) => {
  for await (const { name } of Deno.readDir(SHARED_LISTS)) {
    if (!name.endsWith(".gz")) continue;
    await t.step(name, async () => {
      using file = await Deno.open(new URL(name, SHARED_LISTS));
      const [check, rules] = [new TextCheck(), new RuleCount()];
      const text = file.readable.pipeThrough(new DecompressionStream("gzip"));
      for await (const chunk of text) {
        check.add(chunk);
        rules.add(chunk);
      }
      check.finish();
      assert.equal(rules.refusal(false), null);
      assert.ok(check.sizeBytes > 10_000);
    });
  }
});
