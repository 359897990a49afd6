import assert from "node:assert/strict";
import {
  formatHostPort,
  formatIp,
  formatNetwork,
  formatPrefix,
  isLoopback,
  isPrivateAt,
  parseHostPort,
  parseIp,
  parsePrefix,
  prefixHolds,
  serverAddresses,
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

Deno.test("serverAddresses() has one socket for both families of every address", none, () => {
  const rows = [
    ["0.0.0.0:8054 [::]:8054", "[::]:8054"],
    ["0.0.0.0:8054 [::]:8055", "0.0.0.0:8054 [::]:8055"],
    ["0.0.0.0:0 [::]:0", "0.0.0.0:0 [::]:0"],
    ["192.0.2.1:8054 [::]:8054", "192.0.2.1:8054 [::]:8054"],
    ["0.0.0.0:8054 [2001:db8::1]:8054", "0.0.0.0:8054 [2001:db8::1]:8054"],
  ];
  for (const [listen, want] of rows) {
    const addresses = listen.split(" ").map((text) => parseHostPort(text)!);
    assert.equal(serverAddresses(addresses).map(formatHostPort).join(" "), want);
  }
});

Deno.test("isPrivateAt() tells the network at hand from the Internet", none, async (t) => {
  const rows: readonly (readonly [string, boolean])[] = [
    ["0.0.0.0 0.1.2.3 0.255.255.255", true],
    ["1.0.0.0 9.255.255.255 11.0.0.0", false],
    ["10.0.0.0 10.255.255.255 127.0.0.1 127.255.255.255", true],
    ["100.63.255.255 100.128.0.0 101.64.0.0 126.255.255.255 128.0.0.1", false],
    ["100.64.0.0 100.127.255.255 169.254.0.0 169.254.255.255", true],
    ["169.253.255.255 169.255.0.0 172.15.255.255 172.32.0.0", false],
    ["172.16.0.0 172.31.255.255 192.168.0.0 192.168.255.255", true],
    ["192.167.255.255 192.169.0.0 192.0.2.1 198.51.100.1 203.0.113.1 8.8.8.8", false],
    [":: ::1 fc00:: fdff:ffff::1 fe80::1 febf::1", true],
    ["fbff::1 fe00::1 fec0::1 fe7f::1 2001:db8::1 2600::1 ::2:0:0 0:1::", false],
    ["::ffff:10.0.0.1 ::ffff:127.0.0.1 ::ffff:0.0.0.0 ::10.0.0.1 ::192.168.0.1", true],
    ["::ffff:8.8.8.8 ::8.8.8.8 ::1:ffff:10.0.0.1 ::fffe:10.0.0.1", false],
    ["64:ff9b::10.0.0.1 64:ff9b::192.168.1.1 64:ff9b::127.0.0.1", true],
    ["64:ff9b::8.8.8.8 64:ff9b::100.63.0.1 64:ff9b:0:1::10.0.0.1 64:ff9b:2::1 65:ff9b:1::1", false],
    ["64:ff9b:1:: 64:ff9b:1:ffff::8.8.8.8", true],
  ];
  for (const [addresses, want] of rows) {
    await t.step(addresses, () => {
      for (const text of addresses.split(" ")) {
        const ip = parseIp(text);
        assert.ok(ip !== null, text);
        const inside = new Uint8Array([0xfd, ...ip, 10]);
        assert.equal(isPrivateAt(inside, 1, ip.length), want, text);
      }
    });
  }
});

Deno.test("formatNetwork() names what is limited as one client", none, () => {
  const rows = [
    ["192.0.2.1", "192.0.2.1"],
    ["2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"],
    ["2001:db8:1:2::", "2001:db8:1:2::/64"],
    ["::1", "::/64"],
  ] as const;
  for (const [address, want] of rows) assert.equal(formatNetwork(parseIp(address)!), want);
});
