import assert from "node:assert/strict";
import { openStore } from "../store/mod.ts";
import { VERSION } from "../version.ts";
import { importConfig } from "./import.ts";

const clock = { nowMs: () => Date.now() };

/** Runs the command on a configuration; what it printed, and its exit code or what it threw. */
async function svcImport(config: string): Promise<{ code: unknown; out: string[] }> {
  const out: string[] = [];
  const { log, error } = console;
  console.log = console.error = (line: string) => void out.push(line);
  try {
    return { code: await importConfig(["--config", config]), out };
  } catch (thrown) {
    return { code: thrown instanceof Error ? thrown.message : thrown, out };
  } finally {
    Object.assign(console, { log, error });
  }
}

Deno.test({
  name: "svc import replaces what came from the file, and leaves the rest",
  permissions: { read: true, write: true },
  fn: async () => {
    const directory = await Deno.makeTempDir();
    const config = `${directory}/svc.toml`;
    const write = (filter: string) =>
      Deno.writeTextFile(config, `[store]\npath = "store"\n[filter]\n${filter}\n`);
    try {
      await write('rules = ["||a.example^", "||b.example^"]');
      assert.deepEqual(
        (await svcImport(config)).out.at(-1),
        "rules: 2 added, 0 replaced, 0 removed",
      );
      const options = { directory: `${directory}/store`, clock, program: VERSION, node: "local" };
      const { replicator, close } = await openStore(options);
      const spec = {
        rule: "||mine.example^",
        enabled: true,
        comment: "",
        managed_by: "api",
        expires_at: null,
        groups: [],
        clients: [],
      };
      const id = "ru_00000000000000aa";
      await replicator.propose(
        { type: "create", collection: "rules", id, spec },
        { kind: "token", name: null, address: null },
      );
      await close();

      await write('rules = ["||b.example^", "||c.example^"]');
      const again = await svcImport(config);
      assert.equal(again.code, 0);
      assert.match(again.out.at(-1) ?? "", /^rules: 1 added, \d+ replaced, 1 removed$/);
      const after = await openStore(options);
      const rules = [...after.replicator.state.collections.rules.values()].map(({ spec }) =>
        spec.rule
      );
      await after.close();
      assert.deepEqual(rules.sort(), ["||b.example^", "||c.example^", "||mine.example^"]);

      const held = await openStore(options);
      assert.match(String((await svcImport(config)).code), /is in use: stop svc/);
      await held.close();
    } finally {
      await Deno.remove(directory, { recursive: true });
    }
  },
});
