import assert from "node:assert/strict";
import { FRESH_NODE_ALLOWED } from "../model/mod.ts";
import { createApi } from "./app.ts";
import { fakeDeps, LOOPBACK } from "./fakes.ts";

const none = { permissions: "none" } as const;

const ROWS: readonly (readonly [unknown, unknown])[] = [
  [{}, { allowed: FRESH_NODE_ALLOWED, disallowed: [] }],
  [{ protection: false }, { allowed: FRESH_NODE_ALLOWED, disallowed: [] }],
  [{ access: {} }, { allowed: FRESH_NODE_ALLOWED, disallowed: [] }],
  [{ access: { disallowed: ["192.168.1.9"] } }, {
    allowed: FRESH_NODE_ALLOWED,
    disallowed: ["192.168.1.9"],
  }],
  [{ access: { allowed: ["192.168.1.0/24"] } }, { allowed: ["192.168.1.0/24"], disallowed: [] }],
  [{ access: { allowed: [] } }, { allowed: [], disallowed: [] }],
];

Deno.test("PUT /settings opens the node to nobody by what it leaves out", none, async (t) => {
  for (const [json, access] of ROWS) {
    await t.step(JSON.stringify(json), async () => {
      const body = JSON.stringify(json);
      const request = new Request("http://api.invalid/api/v1/settings", {
        method: "PUT",
        headers: {
          "host": "localhost",
          "content-type": "application/json",
          "content-length": String(body.length),
        },
        body,
      });
      const response = await createApi(fakeDeps().deps)(request, LOOPBACK);
      assert.equal(response.status, 200);
      assert.deepEqual((await response.json()).access, access);
    });
  }
});
