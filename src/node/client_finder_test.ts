import assert from "node:assert/strict";
import { LeakTests } from "../api/mod.ts";
import { emptyState } from "../model/mod.ts";
import { policyState } from "../snapshot/fakes.ts";
import type { LogStatistics } from "../querylog/mod.ts";
import { ClientFinder } from "./client_finder.ts";
import { nodeLogs } from "./node_logs.ts";

const none = { permissions: "none" } as const;

const STATE = policyState({
  clients: {
    tv: { addresses: ["192.0.2.1", "192.0.2.2"] },
    guests: { addresses: ["198.51.100.0/24"], ids: ["phone"] },
  },
});

Deno.test("ClientFinder finds whose an address or a client ID is", none, () => {
  let state = STATE;
  const finder = new ClientFinder(() => state);
  const found = (text: string) => finder.find(text)?.id ?? null;
  assert.deepEqual(
    ["192.0.2.2", "::ffff:192.0.2.1", "198.51.100.77", "phone", "192.0.2.3", "tv", ""].map(found),
    ["cl_tv", "cl_tv", "cl_guests", "cl_guests", null, null, null],
  );
  state = policyState({ clients: { pc: { addresses: ["192.0.2.2"] } } });
  assert.deepEqual(["192.0.2.2", "phone"].map(found), ["cl_pc", null]);
});

Deno.test(
  "nodeLogs() counts a client by what it is called now, whatever it asked from",
  none,
  async () => {
    const rows = [
      { name: "192.0.2.1", count: 7 },
      { name: "phone", count: 5 },
      { name: "192.0.2.2", count: 4 },
      { name: "203.0.113.9", count: 3 },
      { name: "198.51.100.4", count: 2 },
    ];
    const empty = { names: [], blocked: [], blocked_clients: [], lists: [] };
    const top: LogStatistics["top"] = { ...empty, clients: rows };
    const asked: unknown[] = [];
    const counted = { top } as unknown as LogStatistics;
    const logs = nodeLogs(
      "n",
      {
        statistics: () => Promise.resolve(counted),
        counts: (query) => {
          asked.push(query);
          return Promise.resolve(counted);
        },
        search: () => Promise.reject(new Error("nothing is searched")),
        seen: () => Promise.reject(new Error("nobody is looked for")),
        names: () => Promise.reject(new Error("nothing is searched")),
        series: () => Promise.reject(new Error("no hours are asked for")),
        watch: () => () => undefined,
      },
      new LeakTests({ clock: { nowMs: () => 0 }, randomHex: () => "" }),
      () => ({ ...emptyState(), ...STATE }),
      { nameOf: () => ({ hostname: null, source: null }), macOf: () => null },
    );
    const query = { hours: 1, scope: "node", step: "1h" } as const;
    const { top: shown } = await logs.statistics(query);
    assert.deepEqual(shown.clients, [
      { name: "tv", count: 11, client: "cl_tv", address: "192.0.2.1" },
      { name: "guests", count: 7, client: "cl_guests", address: "198.51.100.4" },
      { name: "203.0.113.9", count: 3, client: null, address: "203.0.113.9" },
    ]);
    await logs.statistics({ ...query, step: "10m", client: "cl_guests" });
    await logs.statistics({ ...query, client: "203.0.113.9" });
    assert.deepEqual(asked, [
      { hours: 1, stepMs: 600_000, clients: ["198.51.100.0/24", "phone", "guests"] },
      { hours: 1, stepMs: 3_600_000, clients: ["203.0.113.9"] },
    ]);
  },
);

Deno.test("ClientFinder takes no cut address for a client's", none, () => {
  const finder = new ClientFinder(() => STATE, true);
  assert.equal(finder.find("198.51.100.0"), null);
  assert.equal(finder.find("guests")?.id, "cl_guests");
});
