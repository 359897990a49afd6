import assert from "node:assert/strict";
import {
  formatHostPort,
  formatIp,
  formatPrefix,
  isLoopback,
  parseHostPort,
  parseIp,
  parsePrefix,
  prefixHolds,
  unmapIpv4,
} from "./mod.ts";

const none = { permissions: "none" } as const;

Deno.test("parseIp() and formatIp() agree on the canonical form (RFC 5952)", none, () => {
  const rows = [
    ["192.0.2.1", "192.0.2.1"],
    ["0.0.0.0", "0.0.0.0"],
    ["::", "::"],
    ["::1", "::1"],
    ["2001:DB8:0:0:1:0:0:1", "2001:db8::1:0:0:1"],
    ["2001:db8:0:1:1:1:1:1", "2001:db8:0:1:1:1:1:1"],
    ["2001:0db8::0001", "2001:db8::1"],
    ["fe80::", "fe80::"],
    ["::ffff:192.0.2.1", "::ffff:192.0.2.1"],
    ["64:ff9b::192.0.2.33", "64:ff9b::c000:221"],
  ];
  for (const [text, canonical] of rows) {
    const ip = parseIp(text);
    assert.ok(ip !== null, text);
    assert.equal(formatIp(ip), canonical);
  }
});

Deno.test("parseIp() refuses what is no address", none, () => {
  const bad = [
    "",
    "1.2.3",
    "1.2.3.4.5",
    "256.1.1.1",
    "01.2.3.4",
    "1.2.3.4 ",
    ":",
    ":::",
    "1::2::3",
  ];
  bad.push("1:2:3:4:5:6:7", "1:2:3:4:5:6:7:8:9", "1:2:3:4:5:6:7::8:9", "g::", "12345::", "::1.2.3");
  bad.push("fe80::1%eth0", "[::1]", "1.2.3.4::");
  for (const text of bad) assert.equal(parseIp(text), null, text);
});

Deno.test("parseHostPort() reads listen addresses", none, () => {
  const rows = [["127.0.0.1:53", "127.0.0.1:53"], ["[::1]:853", "[::1]:853"], [
    "192.0.2.1",
    "192.0.2.1:53",
  ], [
    "2001:db8::1",
    "[2001:db8::1]:53",
  ], ["[2001:db8::1]", "[2001:db8::1]:53"]];
  for (const [text, want] of rows) {
    const parsed = parseHostPort(text, 53);
    assert.ok(parsed !== null, text);
    assert.equal(formatHostPort(parsed), want);
  }
  for (
    const bad of ["", "127.0.0.1", "127.0.0.1:65536", "[127.0.0.1]:53", "::1:x", "localhost:53"]
  ) {
    assert.equal(parseHostPort(bad), null, bad);
  }
});

Deno.test("prefixHolds() compares bit by bit", none, () => {
  const rows = [
    ["10.0.0.0/8", "10.255.0.1", true],
    ["10.0.0.0/8", "11.0.0.1", false],
    ["192.168.0.0/17", "192.168.127.255", true],
    ["192.168.0.0/17", "192.168.128.0", false],
    ["0.0.0.0/0", "203.0.113.9", true],
    ["::/0", "203.0.113.9", false],
    ["2001:db8::/33", "2001:db8:7fff::1", true],
    ["2001:db8::/33", "2001:db8:8000::1", false],
    ["192.0.2.7", "192.0.2.7", true],
  ] as const;
  for (const [prefix, address, holds] of rows) {
    assert.equal(
      prefixHolds(parsePrefix(prefix)!, parseIp(address)!),
      holds,
      `${prefix} ${address}`,
    );
    assert.equal(formatPrefix(parsePrefix(prefix)!), prefix);
  }
  for (
    const bad of ["10.0.0.1/8", "10.0.0.0/33", "::1/64", "10.0.0.0/", "10.0.0.0/8/9", "10.0.0.0/08"]
  ) {
    assert.equal(parsePrefix(bad), null, bad);
  }
});

Deno.test("unmapIpv4() and isLoopback() see through mapped addresses", none, () => {
  assert.equal(formatIp(unmapIpv4(parseIp("::ffff:192.0.2.1")!)), "192.0.2.1");
  assert.equal(formatIp(unmapIpv4(parseIp("2001:db8::1")!)), "2001:db8::1");
  for (const ip of ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"]) {
    assert.ok(isLoopback(parseIp(ip)!), ip);
  }
  for (const ip of ["128.0.0.1", "::2", "::", "::ffff:10.0.0.1"]) {
    assert.ok(!isLoopback(parseIp(ip)!), ip);
  }
});
