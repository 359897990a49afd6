// Durable changes: a client edited in a store of 10,000, one change after another and 16 side by
// side, next to a bare transaction of the same database.
import { ACTOR, clientSpec, FIRST_SEED, hex, ids } from "../model/fakes.ts";
import { openStore } from "./mod.ts";

const CLIENTS = 10_000;
const SIDE_BY_SIDE = 16;

const directory = await Deno.makeTempDir();
globalThis.addEventListener("unload", () => Deno.removeSync(directory, { recursive: true }));
const clock = { nowMs: () => Date.now() };
const { replicator } = await openStore({ directory, clock, program: "0.7.0", node: "node-1" });
const bare = await Deno.openKv(`${directory}/bare.kv`);

function spec(n: number, name: string) {
  return clientSpec(name, [`10.${n >> 16}.${(n >> 8) & 255}.${n & 255}`], [`id-${hex(n)}`]);
}

await replicator.propose(FIRST_SEED, ACTOR);
for (let n = 0; n < CLIENTS; n += 1_000) {
  await Promise.all(Array.from({ length: 1_000 }, (_, i) =>
    replicator.propose({
      type: "create",
      collection: "clients",
      id: ids.client(n + i),
      spec: spec(n + i, "new"),
    }, ACTOR)));
}

let turn = 0;
async function edit(): Promise<void> {
  const n = (turn++ * 7_919) % CLIENTS;
  const settled = await replicator.propose({
    type: "replace",
    collection: "clients",
    id: ids.client(n),
    spec: spec(n, `turn ${turn}`),
    ifMatch: null,
  }, ACTOR);
  if (settled.kind === "refused") throw new Error(settled.message);
}

const group = "durable changes";
const bytes = new Uint8Array(500);
Deno.bench("a bare transaction", { group, baseline: true }, async () => {
  await bare.atomic().set(["a"], bytes).set(["b"], bytes).commit();
});
Deno.bench("a change", { group }, async () => await edit());
Deno.bench("16 changes side by side", { group }, async () => {
  await Promise.all(Array.from({ length: SIDE_BY_SIDE }, edit));
});
