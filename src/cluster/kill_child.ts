/**
 * The child of `kill_test.ts`: the only voter of a cluster on a real disk, which makes rules as fast
 * as it can until it is killed. It says each once before it proposes it and once it was answered, and
 * each term that it leads.
 */
import { ACTOR, ids, ruleSpec } from "../model/fakes.ts";
import { TICK_MS } from "../raft/mod.ts";
import { denoRaftDisk, openNodeStore, RaftStorage } from "../store/mod.ts";
import { Member } from "./member.ts";

const LANES = 8;
/** Some changes are larger than a sector of the disk. */
const LARGE_LENGTH = 1_000;

const [directory, first] = Deno.args;
const encoder = new TextEncoder();
const say = (line: string) => void Deno.stdout.writeSync(encoder.encode(line + "\n"));
const nowMs = () => Date.now();
const random = () => crypto.getRandomValues(new Uint32Array(1))[0];
const { store, applier } = await openNodeStore({ lists: [], rules: [] }, {
  ...{ directory, node: "a", onFailure: "closed", clock: { nowMs }, program: "0.7.0" },
});
const storage = await RaftStorage.open({
  ...{ store, applier, node: "a", nowMs, disk: denoRaftDisk(directory) },
  drawNumber: () => random().toString(16),
});
const member = new Member({
  ...{ node: "a", version: "0.7.0", isWitness: false, bootstrap: true, addresses: new Map() },
  ...{ storage, store, applier, nowMs, random },
  channel: { send: () => false, peers: () => [], greet: () => {} },
  drawId: () => crypto.randomUUID(),
});
// Elections are no matter here: time passes quickly.
setInterval(() => member.tick(), TICK_MS / 25);
while (member.report().state !== "leader") await new Promise((go) => setTimeout(go, 1));
say(`term ${member.report().term} ${member.report().cluster}`);
let next = Number(first);
await Promise.all(Array.from({ length: LANES }, async (_, lane) => {
  for (;;) {
    const id = ids.rule(next++);
    const comment = lane === 0 ? "x".repeat(random() % LARGE_LENGTH) : "";
    const spec = { ...ruleSpec(`||${id}.example^`), comment };
    say(`try ${id}`);
    const settled = await member.replicator.propose(
      { type: "create", collection: "rules", id, spec },
      ACTOR,
    );
    if (settled.kind !== "done") throw new Error(settled.message);
    say(`ack ${id}`);
  }
}));
