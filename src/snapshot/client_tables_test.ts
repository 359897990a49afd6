import assert from "node:assert/strict";
import { Prng, seedFromEnv } from "../../tests/prng.ts";
import { NO_VALUE, parseIp, PrefixTable } from "../addr/mod.ts";
import type { ClientSpec, Envelope } from "../model/mod.ts";
import { ClientIds, NO_CLIENT } from "./client_ids.ts";
import { type ClientTables, ClientTablesCompiler, clientTexts } from "./client_tables.ts";

const none = { permissions: "none" } as const;

function client(n: number, more: Partial<ClientSpec> = {}): Envelope<ClientSpec> {
  const time = "2026-01-01T00:00:00.000Z";
  const spec = {
    name: `client ${n}`,
    addresses: [`192.0.2.${n}`],
    ids: [`c${n}`],
    group: "gr_a",
    paused_until: null,
  };
  return {
    id: `cl_${n}`,
    revision: 1,
    created_at: time,
    updated_at: time,
    spec: { ...spec, ...more },
  };
}

function mapOf(clients: readonly Envelope<ClientSpec>[]): Map<string, Envelope<ClientSpec>> {
  return new Map(clients.map((one) => [one.id, one]));
}

const GROUPS = new Map([["gr_a", 0], ["gr_b", 1]]);
const FOUR = Array.from({ length: 4 }, (_, n) => client(n + 10));

Deno.test("ClientTablesCompiler.compile() makes anew what a change is about", none, async (t) => {
  const more = (n: number, fields: Partial<ClientSpec>) => [client(n, fields), client(2), ...FOUR];
  const rows: [string, made: (keyof ClientTables)[], Envelope<ClientSpec>[]][] = [
    ["nothing", [], more(1, {})],
    ["a group", ["details"], more(1, { group: "gr_b" })],
    ["a name", ["details"], more(1, { name: "other" })],
    ["an address", ["networks", "details"], more(1, { addresses: ["192.0.2.9"] })],
    ["one more address", ["networks", "details"], more(1, { addresses: ["192.0.2.1", "::1"] })],
    ["an ID", ["ids", "details"], more(1, { ids: ["other"] })],
    ["one less", ["networks", "ids", "details"], more(1, {}).slice(1)],
    ["one more", ["networks", "ids", "details"], [...more(1, {}), client(3)]],
  ];
  for (const [name, made, changed] of rows) {
    await t.step(name, () => {
      const compiler = new ClientTablesCompiler();
      const first = mapOf([client(1), client(2), ...FOUR]);
      const before = compiler.compile(first, GROUPS);
      // Whoever is as before is the same object, as in a state.
      const isSame = (one: Envelope<ClientSpec>) =>
        JSON.stringify(one) === JSON.stringify(first.get(one.id));
      const next = changed.map((one) => isSame(one) ? first.get(one.id)! : one);
      const after = compiler.compile(mapOf(next), GROUPS);
      for (const part of ["networks", "ids", "details"] as const) {
        assert.equal(after[part] !== before[part], made.includes(part), part);
      }
    });
  }
});

/** All that the tables say of some addresses and IDs, by the clients' names. */
function told(
  tables: ClientTables,
  addresses: readonly string[],
  ids: readonly string[],
): string[] {
  const prefixes = new PrefixTable(tables.networks.parts);
  const known = new ClientIds(tables.ids.parts);
  const { parts } = tables.details;
  const shown = (number: number) => {
    if (number === NO_CLIENT || number === NO_VALUE) return "nobody";
    const { id, name } = clientTexts(parts, number);
    return `${id} ${name} in ${parts.clientGroups[number]}`;
  };
  return [
    ...addresses.map((text) => {
      const ip = parseIp(text)!;
      return `${text}: ${shown(prefixes.find(ip, 0, ip.length))}`;
    }),
    ...ids.map((text) => {
      const id = new TextEncoder().encode(text);
      return `${text}: ${shown(known.find(id, 0, id.length))}`;
    }),
  ];
}

const NETWORKS = ["10.0.0.0/8", "10.1.0.0/16", "10.1.2.0/24", "10.1.2.3", "10.1.2.4", "0.0.0.0/0"]
  .concat([
    "2001:db8::/32",
    "2001:db8::/64",
    "2001:db8::1",
    "::/0",
    "10.1.2.128/25",
    "10.2.0.0/15",
  ]);
const ASKED = ["10.1.2.3", "10.1.2.4", "10.1.2.5", "10.1.2.200", "10.1.3.1", "10.9.9.9", "10.2.0.1"]
  .concat(["10.3.255.255", "192.0.2.1", "2001:db8::1", "2001:db8::2", "2001:db8:1::1", "fe80::1"]);
const IDS = Array.from({ length: 40 }, (_, i) => `id-${i}`);
const [ROUNDS, STEPS] = [40, 60];

Deno.test("ClientTablesCompiler finds clients as if all were compiled anew", none, () => {
  const prng = new Prng(seedFromEnv());
  for (let round = 0; round < ROUNDS; round++) {
    const compiler = new ClientTablesCompiler();
    let clients = mapOf(
      Array.from(
        { length: prng.int(12) },
        (_, n) => client(n, { addresses: [`172.16.0.${n}`], ids: [] }),
      ),
    );
    let groups = new Map(GROUPS);
    for (let step = 0; step < STEPS; step++) {
      for (let changes = 1 + prng.int(3); changes > 0; changes--) {
        const n = prng.int(20);
        clients = new Map(clients);
        if (prng.chance(0.3)) {
          clients.delete(`cl_${n}`);
          continue;
        }
        // No two clients have the same network or ID.
        const others = [...clients.values()].filter(({ id }) => id !== `cl_${n}`);
        const free = (all: readonly string[], taken: string[]) =>
          all.filter((text) => !taken.includes(text) && prng.chance(0.2));
        clients.set(
          `cl_${n}`,
          client(n, {
            name: prng.pick(["a", "bb", "\u00fc", "client"]),
            addresses: free(NETWORKS, others.flatMap(({ spec }) => spec.addresses)),
            ids: free(IDS, others.flatMap(({ spec }) => spec.ids)),
            group: prng.pick(["gr_a", "gr_b", "gr_gone"]),
          }),
        );
      }
      if (prng.chance(0.1)) groups = new Map([["gr_a", prng.int(3)], ["gr_b", prng.int(3)]]);
      const where = `seed ${prng.seed}, round ${round}, step ${step}`;
      const got = told(compiler.compile(clients, groups), ASKED, IDS);
      const want = told(new ClientTablesCompiler().compile(clients, groups), ASKED, IDS);
      assert.deepEqual(got, want, where);
    }
  }
});

Deno.test("ClientTablesCompiler keeps its size while clients come and go", none, () => {
  const compiler = new ClientTablesCompiler();
  const size = ({ networks, ids, details }: ClientTables) =>
    [networks, ids, details].reduce((sum, { memory }) => sum + memory.byteLength, 0);
  let clients = mapOf(Array.from({ length: 100 }, (_, n) => client(n)));
  const before = size(compiler.compile(clients, GROUPS));
  let largest = 0;
  for (let step = 0; step < 5_000; step++) {
    const n = step % 100;
    clients = new Map(clients).set(`cl_${n}`, client(n, { ids: [`id-of-step-${step}`] }));
    largest = Math.max(largest, size(compiler.compile(clients, GROUPS)));
  }
  assert.ok(largest < 8 * before + 2 * 2 * 64 * 1024, `${before} to ${largest} bytes`);
});
