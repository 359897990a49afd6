import assert from "node:assert/strict";
import { parsePrefix } from "../addr/mod.ts";
import { findWebhookUrlProblem, networkCheck } from "./mod.ts";

const none = { permissions: "none" } as const;
const HOME = ["192.168.0.0/16", "100.64.0.0/10", "fc00::/7"];

/** What becomes of an address by TLS, and by plain http. */
const ROWS: readonly (readonly [string, string, string])[] = [
  ["192.0.2.1", "sent", "use https"],
  ["2001:db8::1", "sent", "use https"],
  ["192.168.1.5", "sent", "sent"],
  ["fd12::5", "sent", "sent"],
  ["::ffff:192.168.1.5", "sent", "sent"],
  ["10.0.0.1", "refused", "refused"],
  ["127.0.0.1", "refused", "refused"],
  ["127.255.0.1", "refused", "refused"],
  ["::1", "refused", "refused"],
  ["::", "refused", "refused"],
  ["0.0.0.0", "refused", "refused"],
  ["::ffff:127.0.0.1", "refused", "refused"],
  ["::7f00:1", "refused", "refused"],
  ["64:ff9b::7f00:1", "refused", "refused"],
  ["64:ff9b:1::1", "refused", "refused"],
  ["2002:7f00:1::1", "refused", "refused"],
  ["2002:c0a8:105::1", "sent", "sent"],
  ["169.254.1.1", "refused", "refused"],
  ["fe80::1", "refused", "refused"],
  ["169.254.169.254", "refused", "refused"],
  ["100.100.100.200", "refused", "refused"],
  ["168.63.129.16", "refused", "refused"],
  ["fd00:ec2::254", "refused", "refused"],
  ["64:ff9b::a9fe:a9fe", "refused", "refused"],
  ["224.0.0.1", "refused", "refused"],
  ["255.255.255.255", "refused", "refused"],
  ["ff02::1", "refused", "refused"],
  ["example.com", "refused", "refused"],
];

function outcome(why: string | null): string {
  return why === null ? "sent" : /use https$/.test(why) ? "use https" : "refused";
}

Deno.test(
  "networkCheck() lets the Internet through, and of the rest what is named",
  none,
  async (t) => {
    const check = networkCheck(HOME.map((text) => parsePrefix(text)!));
    for (const [address, secure, plain] of ROWS) {
      await t.step(address, () => {
        assert.equal(outcome(check(address, true)), secure);
        assert.equal(outcome(check(address, false)), plain);
      });
    }
  },
);

Deno.test(
  "networkCheck() lets through what a setting names, a cloud's own address by itself",
  none,
  () => {
    const of = (...texts: string[]) => networkCheck(texts.map((text) => parsePrefix(text)!));
    assert.equal(of("127.0.0.0/8")("127.0.0.1", false), null);
    assert.equal(of("::1")("::1", false), null);
    assert.notEqual(of("169.254.0.0/16")("169.254.169.254", false), null);
    assert.equal(of("169.254.169.254")("169.254.169.254", false), null);
    assert.equal(of()("192.0.2.1", true), null);
    assert.notEqual(of()("192.168.1.5", true), null);
  },
);

Deno.test(
  "findWebhookUrlProblem() takes http and https, and nothing with a name in it",
  none,
  () => {
    for (const url of ["http://a.example/x?y", "https://[2001:db8::1]:8443/"]) {
      assert.equal(findWebhookUrlProblem(url), null, url);
    }
    for (
      const url of ["ftp://a.example/", "a.example", "https://u:p@a.example/", "https://a/#b", ""]
    ) {
      assert.notEqual(findWebhookUrlProblem(url), null, url);
    }
  },
);
