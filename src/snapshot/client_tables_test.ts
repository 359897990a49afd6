import assert from "node:assert/strict";
import type { ClientSpec, Envelope } from "../model/mod.ts";
import { ClientTablesCompiler } from "./client_tables.ts";

const none = { permissions: "none" } as const;

function client(n: number, more: Partial<ClientSpec> = {}): Envelope<ClientSpec> {
  const time = "2026-01-01T00:00:00.000Z";
  const spec = { name: `client ${n}`, addresses: [`192.0.2.${n}`], ids: [`c${n}`], group: "gr_a" };
  return {
    id: `cl_${n}`,
    revision: 1,
    created_at: time,
    updated_at: time,
    spec: { ...spec, ...more },
  };
}

Deno.test("ClientTablesCompiler.compile() makes anew what a change is about", none, async (t) => {
  const rows: [string, isSame: boolean, Envelope<ClientSpec>[]][] = [
    ["nothing", true, [client(1), client(2)]],
    ["a group", true, [client(1, { group: "gr_b" }), client(2)]],
    ["a name", false, [client(1, { name: "other" }), client(2)]],
    ["an address", false, [client(1), client(2, { addresses: ["192.0.2.9"] })]],
    ["one more address", false, [client(1), client(2, { addresses: ["192.0.2.2", "::1"] })]],
    ["an ID", false, [client(1, { ids: ["other"] }), client(2)]],
    ["their order", false, [client(2), client(1)]],
    ["one more", false, [client(1), client(2), client(3)]],
    ["one less", false, [client(1)]],
  ];
  for (const [name, isSame, changed] of rows) {
    await t.step(name, () => {
      const compiler = new ClientTablesCompiler();
      const before = compiler.compile([client(1), client(2)]);
      const after = compiler.compile(changed);
      assert.equal(after === before, isSame);
      assert.deepEqual(after.parts, new ClientTablesCompiler().compile(changed).parts);
    });
  }
});
