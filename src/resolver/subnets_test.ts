// Goal: no more of a client is told than may be, and no answer for one subnet reaches another. Method:
// the table by itself, and a forwarder whose upstream answers for the subnet it is told.
import assert from "node:assert/strict";
import { formatIp, parseIp } from "../addr/mod.ts";
import { encodeQuery, HashedName } from "../dns/mod.ts";
import { SEED } from "./fakes.ts";
import { keyHashOf, Query, Read, readQuery, Transport } from "./query.ts";
import { subnetOption, Subnets, SUBNETS_MAX } from "./subnets.ts";

const none = { permissions: "none" } as const;
const ECS = 8;

/** A query as it comes in from an address. */
function queryFrom(from: string | null, option?: readonly number[]): Query {
  const options = option === undefined ? [] : [{ code: ECS, data: Uint8Array.from(option) }];
  const packet = encodeQuery("www.example", 1, { edns: { options } });
  const query = new Query();
  const ip = from === null ? new Uint8Array(0) : parseIp(from)!;
  query.transport = Transport.Tcp;
  query.address.aim(ip, 0, ip.length);
  assert.equal(readQuery(packet, 0, packet.length, SEED, query, new HashedName()), Read.Ok);
  return query;
}

/** `192.0.2.0/24` of an option's data. */
function show(option: Uint8Array | undefined): string {
  if (option === undefined) return "none";
  const ip = new Uint8Array(option[1] === 1 ? 4 : 16);
  ip.set(option.subarray(4));
  assert.equal(option[3], 0, "a query has no scope");
  return `${formatIp(ip)}/${option[2]}`;
}

/** Who asks, the option they send, and what an upstream is told. */
const ROWS: readonly (readonly [string | null, readonly number[] | undefined, string])[] = [
  ["198.51.100.77", undefined, "198.51.100.0/24"],
  ["2001:db8:1:2ff:1::1", undefined, "2001:db8:1:200::/56"],
  ["::ffff:198.51.100.77", undefined, "198.51.100.0/24"],
  ["127.0.0.1", undefined, "none"],
  ["192.168.1.1", undefined, "none"],
  ["100.64.1.1", undefined, "none"],
  ["fd00::1", undefined, "none"],
  ["fe80::1", undefined, "none"],
  ["::1", undefined, "none"],
  ["64:ff9b::c633:644d", undefined, "none"],
  ["2002:c633:644d::1", undefined, "none"], // A whole IPv4 address stands in these.
  ["2001:0:c633:644d::1", undefined, "none"],
  [null, undefined, "none"],
  ["192.168.1.1", [0, 1, 24, 0, 203, 0, 113], "203.0.113.0/24"],
  ["192.168.1.1", [0, 1, 32, 0, 203, 0, 113, 9], "203.0.113.0/24"],
  ["192.168.1.1", [0, 1, 20, 0, 203, 0, 127], "203.0.112.0/20"],
  ["192.168.1.1", [0, 2, 64, 0, 32, 1, 13, 184, 0, 1, 2, 255], "2001:db8:1:200::/56"],
  ["192.168.1.1", [0, 1, 24, 0, 10, 0, 113], "none"],
  ["198.51.100.77", [0, 1, 24, 0, 10, 0, 113], "none"],
  ["198.51.100.77", [0, 1, 0, 0], "none"], // It wants nothing told.
  ["198.51.100.77", [0, 2, 0, 0], "none"],
  ["198.51.100.77", [0, 3, 8, 0, 1], "none"],
  ["198.51.100.77", [0, 1, 24, 0, 203], "none"],
  ["198.51.100.77", [0, 1, 33, 0, 203, 0, 113, 1, 1], "none"],
  ["198.51.100.77", [0, 1], "none"],
  ["198.51.100.77", [], "none"],
];

Deno.test(
  "Subnets.of() tells a part of public addresses, and nothing of others",
  none,
  async (t) => {
    const subnets = new Subnets();
    for (const [from, option, want] of ROWS) {
      await t.step(`${from} ${option ?? ""}`, () => {
        assert.equal(show(subnets.of(queryFrom(from, option))?.option), want);
      });
    }
  },
);

Deno.test("Subnets.of() tells nothing of who asks by way of a proxy", none, () => {
  const query = queryFrom("198.51.100.77");
  query.transport = Transport.Odoh;
  assert.equal(new Subnets().of(query), null);
});

Deno.test("Subnets keeps a bounded number, and gives no number twice", none, () => {
  const subnets = new Subnets();
  const of = (i: number) => subnets.of(queryFrom(`203.${i >> 8}.${i & 255}.1`));
  const first = of(0);
  const ids = new Set<number>();
  for (let i = 0; i < 2 * SUBNETS_MAX; i++) {
    ids.add(of(i)!.id);
    of(0); // In use, and so it stays.
  }
  assert.equal(subnets.count, SUBNETS_MAX);
  assert.equal(ids.size, 2 * SUBNETS_MAX);
  assert.equal(of(0), first);
  assert.ok(!ids.has(of(1)!.id), "one that was forgotten is a new one");
});

Deno.test("keyHashOf() is another for each subnet of a name", none, () => {
  const option = subnetOption(parseIp("203.0.113.0")!, 24);
  const hashes = new Set([keyHashOf(12_345, 1, 4)]);
  for (let id = 1; id <= 100_000; id++) hashes.add(keyHashOf(12_345, 1, 4, { id, option }));
  assert.equal(hashes.size, 100_001);
});
