import assert from "node:assert/strict";
import { formatPrefix, parseIp, parsePrefix, prefixHolds } from "../addr/mod.ts";
import { BlockResponse, DEFAULT_SETTINGS, FRESH_NODE_ALLOWED } from "./mod.ts";

const none = { permissions: "none" } as const;

Deno.test("DEFAULT_SETTINGS are the documented defaults", none, () => {
  assert.deepEqual(DEFAULT_SETTINGS, {
    protection: true,
    block_response: "null_ip",
    blocking_ipv4: null,
    blocking_ipv6: null,
    block_ttl: 10,
    list_update_interval: 86_400,
    access: { allowed: FRESH_NODE_ALLOWED, disallowed: [] },
  });
  assert.deepEqual(Object.values(BlockResponse), ["null_ip", "nxdomain", "refused", "custom_ip"]);
});

Deno.test("FRESH_NODE_ALLOWED holds local networks and nothing else", none, async (t) => {
  const prefixes = FRESH_NODE_ALLOWED.map((text) => {
    const prefix = parsePrefix(text);
    assert.ok(prefix !== null, text);
    assert.equal(formatPrefix(prefix), text);
    return prefix;
  });
  const rows = [
    ["127.0.0.1", true],
    ["::1", true],
    ["10.255.255.255", true],
    ["172.31.0.1", true],
    ["172.32.0.1", false],
    ["192.168.1.1", true],
    ["169.254.9.9", true],
    ["100.127.255.255", true],
    ["100.128.0.0", false],
    ["fd00::1", true],
    ["fe80::1", true],
    ["192.0.2.1", false],
    ["2001:db8::1", false],
  ] as const;
  for (const [address, allowed] of rows) {
    await t.step(`${address} ${allowed ? "may ask" : "may not ask"}`, () => {
      assert.equal(prefixes.some((prefix) => prefixHolds(prefix, parseIp(address)!)), allowed);
    });
  }
});
