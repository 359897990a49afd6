import assert from "node:assert/strict";
import { ACTOR, clientSpec, ids, stateAfter } from "../model/fakes.ts";
import { createApi } from "./app.ts";
import { fakeDeps, LOOPBACK } from "./fakes.ts";
import { findAsker } from "./find_asker.ts";

const none = { permissions: "none" } as const;

const create = (n: number, name: string, addresses: string[], clientIds: string[] = []) =>
  ({
    type: "create",
    collection: "clients",
    id: ids.client(n),
    spec: clientSpec(name, addresses, clientIds),
  }) as const;

const STATE = stateAfter(
  create(1, "Tablet", ["192.0.2.7"], ["tab"]),
  create(2, "tablet", ["192.0.2.8"]),
  create(3, "Ann's phone", ["192.0.2.0/28"], ["phone"]),
  create(4, "phone", ["192.0.2.9"]),
  create(5, "TV", ["192.0.2.10"]),
  create(6, "TV", ["192.0.2.11"]),
  create(7, "Bücher", ["192.0.2.12"]),
);

const FOUND: readonly (readonly [string, string])[] = [
  ["192.0.2.7", "192.0.2.7"],
  ["203.0.113.1", "203.0.113.1"], // Of nobody: who asks from there is not known, and may ask.
  ["2001:db8::1", "2001:db8::1"],
  [ids.client(5), ids.client(5)],
  ["tab", ids.client(1)],
  ["TAB", ids.client(1)],
  ["Tablet", ids.client(1)],
  ["tablet", ids.client(2)],
  ["ANN'S PHONE", ids.client(3)],
  ["phone", ids.client(3)], // A client ID goes before a name, as it does for a query.
  ["Bu\u0308cher", ids.client(7)],
];

const REFUSED: readonly (readonly [string, RegExp])[] = [
  ["nobody", /^client: nobody is no address, and no client has it for an ID or name$/],
  ["TABLET", /^client: 2 clients are called TABLET: .*: cl_0+1 \(Tablet\), cl_0+2 \(tablet\)$/],
  ["TV", /^client: 2 clients are called TV: .*: cl_0+5 \(TV\), cl_0+6 \(TV\)$/],
  ["192.0.2.0/28", /no address/],
  ["a\u202eb".repeat(40), /^client: a\ufffdb.*…/],
];

Deno.test(
  "findAsker() takes an address, an ID or a name, and nothing that is unclear",
  none,
  async (t) => {
    for (const [text, want] of FOUND) {
      await t.step(text, () => assert.equal(findAsker(STATE, text), want));
    }
    for (const [text, message] of REFUSED) {
      await t.step(text, () => {
        assert.throws(() => findAsker(STATE, text), { code: "bad_request", message });
      });
    }
  },
);

Deno.test("GET /explain asks as the client that is named, or refuses", none, async () => {
  const { deps, store } = fakeDeps();
  await store.propose(create(1, "Ann's tablet", ["192.0.2.7"]), ACTOR);
  const ask = async (client: string) => {
    const path = `/api/v1/explain?name=ads.example&client=${encodeURIComponent(client)}`;
    const request = new Request(`http://api.invalid${path}`, { headers: { host: "localhost" } });
    const response = await createApi(deps)(request, LOOPBACK);
    return { status: response.status, json: await response.json() };
  };
  // The fake node tells by what it was asked.
  assert.equal((await ask("ann's tablet")).json.client.name, ids.client(1));
  assert.equal((await ask("192.0.2.9")).json.client.name, "192.0.2.9");
  const { status, json } = await ask("somebody");
  assert.equal(status, 400);
  assert.match(json.error.message, /^client: somebody is no address/);
});
