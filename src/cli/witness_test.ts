import assert from "node:assert/strict";
import { Exit, main } from "./mod.ts";

const files: Pick<Deno.TestDefinition, "permissions"> = {
  permissions: { read: true, write: true },
};

/** Runs `svc witness` with this configuration; the exit code and what it printed. */
async function witness(text: string | null): Promise<{ code: number; said: string[] }> {
  const directory = await Deno.makeTempDir({ prefix: "svc-witness-" });
  const file = `${directory}/svc.toml`;
  if (text !== null) await Deno.writeTextFile(file, text);
  const { error } = console;
  const said: string[] = [];
  console.error = (line: string) => void said.push(line.replaceAll(directory, ""));
  try {
    return { code: await main(["witness", "--config", file]), said };
  } finally {
    console.error = error;
    await Deno.remove(directory, { recursive: true });
  }
}

const CLUSTER = `[cluster]
node = "witness"
ca = "ca.crt"
cert = "witness.crt"
key = "witness.key"
member = [{ node = "node1", address = "192.0.2.1" }]
`;

Deno.test("svc witness wants [cluster], and nothing of a node", files, async (t) => {
  const rows: readonly (readonly [string, string | null, string])[] = [
    ["no file", null, "/svc.toml: is not there: make it, or name another with --config"],
    ["no cluster", "", "/svc.toml:1: cluster: is missing: a witness is a member of a cluster"],
    [
      "a node's table",
      `${CLUSTER}[api]\n`,
      "/svc.toml:7: api: means nothing to a witness: leave [cluster] and [store] only",
    ],
    [
      "a bootstrap",
      CLUSTER.replace("[cluster]", "[cluster]\nbootstrap = true"),
      "/svc.toml:2: cluster.bootstrap: is for nodes: a witness never starts a cluster, take it away",
    ],
  ];
  for (const [what, text, want] of rows) {
    await t.step(what, async () => {
      assert.deepEqual(await witness(text), { code: Exit.Usage, said: [want] });
    });
  }
});

Deno.test("svc witness ends where its certificate can't be read", files, async () => {
  const { code, said } = await witness(`${CLUSTER}[store]\npath = "store"\n`);
  assert.equal(code, Exit.Failed);
  assert.match(said.join("\n"), /^svc witness: cluster.ca: \/ca.crt can't be read: /);
});
