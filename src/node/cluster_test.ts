import assert from "node:assert/strict";
import { defaultConfig } from "../config/mod.ts";
import { ACTOR, ids } from "../model/fakes.ts";
import { openNodeStore } from "../store/mod.ts";
import { openCluster } from "./cluster.ts";

const clock = { nowMs: () => Date.UTC(2026, 0, 1) };

async function inStore(
  work: (directory: string, open: () => ReturnType<typeof openNodeStore>) => Promise<void>,
): Promise<void> {
  const directory = await Deno.makeTempDir();
  const source = { lists: [], rules: [] };
  const options = { directory, node: "a", onFailure: "open", clock, program: "0.7.0" } as const;
  try {
    await work(directory, () => openNodeStore(source, options));
  } finally {
    await Deno.remove(directory, { recursive: true });
  }
}

function config(directory: string) {
  const file = (name: string) => `${directory}/${name}`;
  const { listen } = defaultConfig(directory).api;
  return {
    ...{ node: "a", bootstrap: true, listen, members: [] },
    ...{ caFile: file("ca.crt"), certFile: file("a.crt"), keyFile: file("a.key") },
  };
}

Deno.test("openCluster() takes no part without a certificate, says why, and changes nothing", async () => {
  await inStore(async (directory, open) => {
    const opened = await open();
    const cluster = await openCluster(config(directory), directory, opened, clock);
    const { state, writable, problems } = cluster.report();
    assert.deepEqual([state, writable, cluster.problems], ["stopped", false, problems]);
    assert.match(problems.join(), /^cluster: this node takes no part: .*ca\.crt/);
    const change = { type: "delete", collection: "lists", id: ids.list(1), ifMatch: null } as const;
    await assert.rejects(cluster.replicator.propose(change, ACTOR), { code: "unavailable" });
    await assert.rejects(cluster.promote(true, ACTOR), { code: "unavailable" });
    assert.equal(cluster.replicator.state.settings.revision, 1, "what it has holds");
    await cluster.stop();
    await opened.close();
  });
});

Deno.test("openCluster() promises nothing on a store in memory, and leaves the log alone", async () => {
  await inStore(async (directory, open) => {
    await Deno.mkdir(`${directory}/store.kv`); // It can't be opened.
    await Deno.writeTextFile(`${directory}/raft.log`, "what was promised");
    const opened = await open();
    assert.equal(opened.isTemporary, true);
    const cluster = await openCluster(config(directory), directory, opened, clock);
    assert.match(cluster.problems.join(), /store: could not be opened/);
    assert.equal(await Deno.readTextFile(`${directory}/raft.log`), "what was promised");
    await opened.close();
  });
});
