import assert from "node:assert/strict";
import { NO_SERIES } from "../api/mod.ts";
import type { State } from "../model/mod.ts";
import type { SeriesQuery } from "../querylog/mod.ts";
import { nodeLogs } from "./node_logs.ts";

type Made = Parameters<typeof nodeLogs>;

Deno.test(
  "clientSeries() asks for what clients are known by, and of an anonymised log for nothing",
  {
    permissions: "none",
  },
  async () => {
    const spec = { name: "TV", addresses: ["192.0.2.7", "192.0.2.64/28"], ids: ["tv"] };
    const clients = new Map([["cl_1", { id: "cl_1", spec }]]);
    const state = () => ({ collections: { clients } }) as unknown as State;
    const asked: SeriesQuery[] = [];
    const querylog = {
      series: (query: SeriesQuery) => {
        asked.push(query);
        const counts = query.clients.map(() => [1, 2]);
        return Promise.resolve({ since: "2026-01-02T03:00:00.000Z", active: [1, 1], counts });
      },
    } as unknown as Made[1];
    const names = { nameOf: () => null, macOf: () => null } as unknown as Made[4];
    const logsOf = (some: Made[4]) =>
      nodeLogs("a", querylog, null as unknown as Made[2], state, some);
    const query = { clients: ["cl_gone", "cl_1"], hours: 2 };
    assert.deepEqual(await logsOf(null).clientSeries(query), NO_SERIES);
    assert.deepEqual(asked, []);
    assert.deepEqual((await logsOf(names).clientSeries(query)).items, [
      { client: "cl_1", queries: [1, 2] },
    ]);
    assert.deepEqual(asked, [{ clients: [["192.0.2.7", "192.0.2.64/28", "tv", "TV"]], hours: 2 }]);
  },
);
