// Goal: silent connections never keep a newcomer out, and whoever holds most goes first. Method: the
// table against a plain model of its rule.
import assert from "node:assert/strict";
import { Prng, seedFromEnv } from "../../../tests/prng.ts";
import { clientOf, ConnectionTable, type Place } from "./connection_table.ts";

const none = { permissions: "none" } as const;

/** A table, and who was put out of it, in order. */
class Bench {
  readonly table;
  readonly evicted: string[] = [];
  told = 0;

  constructor(connectionsMax: number, connectionsPerClientMax: number) {
    this.table = new ConnectionTable({ connectionsMax, connectionsPerClientMax });
  }

  add(address: string, name: string): Place {
    const client = clientOf(address);
    return this.table.add(client, () => this.evicted.push(name), () => this.told++);
  }
}

Deno.test("ConnectionTable takes a newcomer when a /64 of IPv6 holds every place", none, () => {
  const bench = new Bench(1_024, 1_024);
  for (let i = 0; i < 1_024; i++) bench.add(`2001:db8::${i.toString(16)}`, `silent ${i}`);
  bench.add("192.0.2.1", "newcomer");
  assert.deepEqual(bench.evicted, ["silent 0"]);
  assert.deepEqual([bench.told, bench.table.size], [1, 1_024]);
  assert.deepEqual(bench.table.occupancy, {
    taken: 1_024,
    max: 1_024,
    most: { client: "2001:db8::/64", connections: 1_023 },
  });
});

Deno.test("ConnectionTable counts the addresses of a /64 as one client", none, () => {
  const bench = new Bench(100, 2);
  bench.add("2001:db8::1", "a");
  bench.add("2001:db8::2", "b");
  bench.add("2001:db8:0:1::1", "other");
  bench.add("2001:db8::3%eth0", "c");
  assert.deepEqual(bench.evicted, ["a"]);
});

Deno.test("ConnectionTable lets go what has been idle for longest, and no one twice", none, () => {
  const bench = new Bench(3, 2);
  const a = bench.add("192.0.2.1", "a");
  const b = bench.add("192.0.2.2", "b");
  bench.add("192.0.2.3", "c");
  bench.table.touch(a);
  bench.add("192.0.2.4", "d");
  assert.deepEqual(bench.evicted, ["b"], "each has one");
  bench.table.remove(b);
  bench.table.touch(b);
  assert.equal(bench.table.size, 3);
});

Deno.test(
  "ConnectionTable keeps to its rule, seeded",
  { permissions: { env: ["SVC_SEED"] } },
  () => {
    const prng = new Prng(seedFromEnv());
    const bench = new Bench(12, 5);
    /** Open ones, the longest idle first. */
    let open: { client: string; name: string; place: Place }[] = [];
    const countOf = (client: string) => open.filter((one) => one.client === client).length;
    for (let i = 0; i < 5_000; i++) {
      const known = open.length > 0 ? prng.pick(open) : null;
      if (known !== null && prng.chance(0.3)) {
        bench.table.touch(known.place);
        open = [...open.filter((one) => one !== known), known];
      } else if (known !== null && prng.chance(0.2)) {
        bench.table.remove(known.place);
        open = open.filter((one) => one !== known);
      } else {
        const client = `192.0.2.${prng.int(8)}`;
        const most = Math.max(0, ...open.map((one) => countOf(one.client)));
        const allowed = countOf(client) >= 5
          ? open.filter((one) => one.client === client)
          : open.length >= 12
          ? open.filter((one) => countOf(one.client) === most)
          : [];
        const before = bench.evicted.length;
        const place = bench.add(client, `${i}`);
        const gone = bench.evicted.slice(before);
        assert.equal(gone.length, allowed.length > 0 ? 1 : 0);
        if (gone.length > 0) {
          const victim = allowed.find(({ name }) => name === gone[0]);
          assert.ok(victim !== undefined, `step ${i}: ${gone[0]} had to go`);
          const [first] = allowed.filter((one) => one.client === victim.client);
          assert.equal(victim, first, "the longest idle one of its client");
          open = open.filter((one) => one !== victim);
        }
        open.push({ client, name: `${i}`, place });
      }
      assert.equal(bench.table.size, open.length);
      const most = Math.max(0, ...open.map((one) => countOf(one.client)));
      assert.equal(bench.table.occupancy.most?.connections ?? 0, most);
    }
  },
);
