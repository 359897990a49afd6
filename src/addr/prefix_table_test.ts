import assert from "node:assert/strict";
import { Prng, seedFromEnv } from "../../tests/prng.ts";
import {
  compilePrefixes,
  formatIp,
  type IpPrefix,
  NO_VALUE,
  parseIp,
  parsePrefix,
  type PrefixEntry,
  prefixHolds,
  PrefixTable,
} from "./mod.ts";

const none = { permissions: "none" } as const;

function tableOf(...networks: readonly string[]): PrefixTable {
  const entries = networks.map((text, value) => {
    const prefix = parsePrefix(text);
    assert.ok(prefix !== null, text);
    return { prefix, value };
  });
  return new PrefixTable(compilePrefixes(entries));
}

function find(table: PrefixTable, text: string): number {
  const ip = parseIp(text);
  assert.ok(ip !== null, text);
  // Not at the start of its array: as in a buffer of a transport.
  const bytes = new Uint8Array(3 + ip.length);
  bytes.set(ip, 3);
  return table.find(bytes, 3, ip.length);
}

Deno.test("PrefixTable.find() takes the longest prefix that holds the address", none, async (t) => {
  const table = tableOf(
    "0.0.0.0/0", // 0
    "10.0.0.0/8",
    "10.1.0.0/16",
    "10.1.2.3", // 3
    "255.255.255.255",
    "127.0.0.1",
    "::/0", // 6
    "2001:db8::/32",
    "2001:db8:0:1::/64",
    "2001:db8:0:1::7", // 9
    "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
    "10.0.0.0/8", // Again: the first one counts.
    "::ffff:192.0.2.0/120", // 12
  );
  const rows = [
    ["0.0.0.0", 0],
    ["9.255.255.255", 0],
    ["10.0.0.0", 1],
    ["10.0.255.255", 1],
    ["10.1.0.0", 2],
    ["10.1.2.2", 2],
    ["10.1.2.3", 3],
    ["10.1.2.4", 2],
    ["10.2.0.0", 1],
    ["11.0.0.0", 0],
    ["127.0.0.1", 5],
    ["127.0.0.2", 0],
    ["128.0.0.0", 0],
    ["192.0.1.255", 0],
    ["192.0.2.99", 12],
    ["255.255.255.254", 0],
    ["255.255.255.255", 4],
    ["::", 6],
    ["2001:db7:ffff::", 6],
    ["2001:db8::", 7],
    ["2001:db8:0:1::6", 8],
    ["2001:db8:0:1::7", 9],
    ["2001:db8:0:1:ffff::", 8],
    ["2001:db8:0:2::", 7],
    ["2001:db9::", 6],
    ["8000::", 6],
    ["ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", 10],
  ] as const;
  for (const [address, want] of rows) {
    await t.step(`${address} is in ${want}`, () => assert.equal(find(table, address), want));
  }
});

Deno.test("PrefixTable.find() knows where no network is", none, () => {
  const empty = tableOf();
  const some = tableOf("192.0.2.0/25", "192.0.2.128/25", "2001:db8::/127");
  const rows = [
    ["192.0.1.255", NO_VALUE],
    ["192.0.2.0", 0],
    ["192.0.2.127", 0],
    ["192.0.2.128", 1],
    ["192.0.3.0", NO_VALUE],
    ["2001:db7::", NO_VALUE],
    ["2001:db8::1", 2],
    ["2001:db8::2", NO_VALUE],
  ] as const;
  for (const [address, want] of rows) {
    assert.equal(find(some, address), want, address);
    assert.equal(find(empty, address), NO_VALUE, address);
  }
});

/** The slow and plain way: every network is looked at. */
function findSlowly(entries: readonly PrefixEntry[], address: Uint8Array): number {
  let best: PrefixEntry | null = null;
  for (const entry of entries) {
    if (!prefixHolds(entry.prefix, address)) continue;
    if (best === null || entry.prefix.lengthBits > best.prefix.lengthBits) best = entry;
  }
  return best === null ? NO_VALUE : best.value;
}

function maskedPrefix(ip: Uint8Array<ArrayBuffer>, lengthBits: number): IpPrefix {
  for (let bit = lengthBits; bit < 8 * ip.length; bit++) ip[bit >> 3] &= ~(0x80 >> (bit & 7));
  return { ip, lengthBits };
}

Deno.test("PrefixTable.find() agrees with a look at every network", none, () => {
  const prng = new Prng(seedFromEnv());
  // Few different bytes, so that networks lie inside each other.
  const address = (length: number) =>
    Uint8Array.from({ length }, () => prng.pick([0, 1, 127, 128, 254, 255]));
  for (let round = 0; round < 200; round++) {
    const entries: PrefixEntry[] = Array.from({ length: prng.int(60) }, (_, value) => {
      const length = prng.pick([4, 16]);
      return { prefix: maskedPrefix(address(length), prng.int(8 * length + 1)), value };
    });
    const table = new PrefixTable(compilePrefixes(entries));
    const edges = entries.map(({ prefix }) => prefix.ip);
    const asked = Array.from({ length: 60 }, () => address(prng.pick([4, 16])));
    for (const ip of [...edges, ...asked]) {
      const want = findSlowly(entries, ip);
      assert.equal(table.find(ip, 0, ip.length), want, `round ${round}: ${formatIp(ip)}`);
    }
  }
});
