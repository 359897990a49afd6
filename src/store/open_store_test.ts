import assert from "node:assert/strict";
import { SvcError } from "../errors.ts";
import { ACTOR, ids, listSpec } from "../model/fakes.ts";
import type { Change } from "../model/mod.ts";
import { FakeClock } from "./fakes.ts";
import { openNodeStore, openStore } from "./open_store.ts";

const disk: Pick<Deno.TestDefinition, "permissions"> = { permissions: { read: true, write: true } };
const SOURCE = { lists: [], rules: [] };
const LIST: Change = {
  type: "create",
  collection: "lists",
  id: ids.list(1),
  spec: listSpec("mine"),
};

async function inDirectory(
  work: (options: Parameters<typeof openStore>[0]) => Promise<void>,
): Promise<void> {
  const directory = await Deno.makeTempDir();
  try {
    await work({ directory, clock: new FakeClock(), program: "0.7.0", node: "node-1" });
  } finally {
    await Deno.remove(directory, { recursive: true });
  }
}

function isInUse(error: unknown): boolean {
  return error instanceof SvcError && error.code === "conflict" &&
    /is in use: stop svc, or change it through the API/.test(error.message);
}

Deno.test("a store that is open is held until it is closed", disk, async (t) => {
  for (const first of ["command", "node"] as const) {
    await t.step(`by a ${first}`, () =>
      inDirectory(async (options) => {
        // Rather than not at all: but two must not write.
        const asNode = () => openNodeStore(SOURCE, { ...options, onFailure: "open" });
        const asCommand = () => openStore(options);
        const open = await (first === "node" ? asNode() : asCommand());
        await assert.rejects(asNode(), isInUse);
        await assert.rejects(asCommand(), isInUse);
        await open.close();
        await (await asCommand()).close();
        await (await asNode()).close();
      }));
  }
});

Deno.test("a store that can't be opened is given free", disk, async () => {
  await inDirectory(async (options) => {
    const path = `${options.directory}/store.kv`;
    await Deno.writeTextFile(path, "no database ".repeat(1_000));
    await assert.rejects(openStore(options), /not a database/);
    const asNode = openNodeStore(SOURCE, { ...options, onFailure: "closed" });
    await assert.rejects(asNode, /not a database/);
    await Deno.remove(path);
    const { replicator, close } = await openStore(options);
    assert.equal(replicator.state.appliedIndex, 0, "a command seeds nothing");
    await close();
  });
});

Deno.test("close() finishes what was proposed and noted", disk, async () => {
  await inDirectory(async (options) => {
    const { store, replicator, close } = await openNodeStore(SOURCE, {
      ...options,
      onFailure: "closed",
    });
    const note = { action: "pause", resource: { type: "node", id: null }, after: null } as const;
    const done = Promise.all([replicator.propose(LIST, ACTOR), store.note(note, ACTOR)]);
    await close();
    await done;
    const again = await openStore(options);
    assert.ok(again.store.state.collections.lists.has(ids.list(1)));
    const { entries } = await again.store.audit({ limit: 3 });
    assert.deepEqual(entries.map(({ action }) => action).toSorted(), ["create", "pause", "seed"]);
    await again.close();
  });
});

Deno.test("resume() may be asked for again by who has the store already", disk, async () => {
  await inDirectory(async (options) => {
    const open = await openNodeStore(SOURCE, { ...options, onFailure: "closed" });
    await open.suspend();
    const other = await openStore(options);
    await assert.rejects(open.resume(), isInUse);
    await other.close();
    await open.resume();
    await open.resume();
    await open.replicator.propose(LIST, ACTOR);
    await assert.rejects(openStore(options), isInUse);
    await open.close();
  });
});
