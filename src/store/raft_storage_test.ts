// Goal: a store becomes another member, or takes a whole state over, all at once or not at all, at
// whatever step it dies. Method: a disk in memory and a store whose n-th operation is the last one,
// for every n; then both are opened again.
import assert from "node:assert/strict";
import { FIRST_SEED, ids, listSpec } from "../model/fakes.ts";
import type { Change } from "../model/mod.ts";
import { FakeClock, FaultyKv, MemoryRaftDisk } from "./fakes.ts";
import { Applier, LocalReplicator, type RaftDisk, type RaftFile, RaftStorage } from "./mod.ts";

const ACTOR = { kind: "cli", name: null, address: null } as const;
const STEPS_MAX = 60;

/** A machine that dies after so many operations of its disks. */
class Machine {
  readonly kv: FaultyKv;
  readonly disk = new MemoryRaftDisk();
  #stepsLeft = Infinity;
  #numbers = 0;

  private constructor(kv: FaultyKv) {
    this.kv = kv;
  }

  static async make(): Promise<Machine> {
    return new Machine(await FaultyKv.open());
  }

  /** The next `steps` operations are the last ones. */
  dieAfter(steps: number): void {
    this.#stepsLeft = steps;
    // A commit that is the last one was made, and nobody heard of it.
    this.kv.faultOf = () => this.#step() ? null : this.#stepsLeft === -1 ? "after" : "before";
  }

  revive(): void {
    this.#stepsLeft = Infinity;
    this.kv.faultOf = () => null;
    this.disk.crash(() => false);
  }

  #step(): boolean {
    return this.#stepsLeft-- > 0;
  }

  async open() {
    const clock = new FakeClock();
    const store = await this.kv.store({ clock });
    const applier = new Applier(store);
    if (store.state.appliedIndex === 0) {
      await new LocalReplicator(applier, { clock, node: "a" }).propose(FIRST_SEED, ACTOR);
    }
    const storage = await RaftStorage.open({
      ...{ store, applier, node: "a", disk: this.#dying(), nowMs: () => clock.nowMs() },
      drawNumber: () => `${++this.#numbers}`,
    });
    return { store, applier, storage };
  }

  #dying(): RaftDisk {
    const { disk } = this;
    const alive = <T>(work: () => Promise<T>): Promise<T> =>
      this.#step() ? work() : Promise.reject(new Error("it has died"));
    const dying = (file: RaftFile | null): RaftFile | null =>
      file && {
        length: () => file.length(),
        read: (at, length) => file.read(at, length),
        write: (at, bytes) => alive(() => file.write(at, bytes)),
        truncate: (length) => alive(() => file.truncate(length)),
        sync: () => alive(() => file.sync()),
        close: () => file.close(),
      };
    return {
      open: async (name, mode) => dying(await disk.open(name, mode)),
      rename: (from, to) => alive(() => disk.rename(from, to)),
      remove: (name) => alive(() => disk.remove(name)),
    };
  }
}

type Opened = Awaited<ReturnType<Machine["open"]>>;

/** A list, made as an entry of the log. */
async function append({ storage, applier }: Opened, n: number): Promise<void> {
  const index = applier.state.appliedIndex + 1;
  const { currentTerm: term } = storage.persisted.hardState;
  const entry = { index, term, type: "command", data: Uint8Array.of(n) } as const;
  await storage.persist({ hardState: null, entries: [entry], compacted: null });
  const spec = listSpec(`list-${n}`);
  const change: Change = { type: "create", collection: "lists", id: ids.list(n), spec };
  const command = { change, actor: ACTOR, at: "2026-01-01T00:00:00.000Z", node: "a" };
  await applier.apply([{ index, command, id: null }], () => {});
}

/** Another configuration, in parts. */
async function otherParts(): Promise<{ parts: Uint8Array[]; index: number }> {
  using machine = await FaultyKv.open();
  const store = await machine.store();
  const applier = new Applier(store);
  const changes: Change[] = [FIRST_SEED];
  for (let n = 50; n < 53; n++) {
    changes.push({ type: "create", collection: "lists", id: ids.list(n), spec: listSpec(`o${n}`) });
  }
  const at = "2026-01-01T00:00:00.000Z";
  const commands = changes.map((change) => ({ change, actor: ACTOR, at, node: "b" }));
  const entries = commands.map((command, i) => ({ index: i + 1, command, id: null }));
  await applier.apply(entries, () => {});
  return { parts: [...store.export(4)], index: store.state.appliedIndex };
}

/** What a store is after it died in the middle of something, or after it was done. */
function shown({ storage, store }: Opened): string {
  const { cluster, hasLeft } = storage.member;
  const { snapshot, entries, hardState, appliedIndex } = storage.persisted;
  return `${cluster || "none"}${hasLeft ? " left" : ""} epoch ${store.epoch} ` +
    `term ${hardState.currentTerm} log ${snapshot.index}+${entries.length} applied ${appliedIndex} ` +
    `lists ${store.state.collections.lists.size}`;
}

const WORK: Readonly<Record<string, (opened: Opened) => Promise<void>>> = {
  "startCluster()": ({ storage }) => storage.startCluster("other"),
  "leave()": ({ storage }) => storage.leave(),
  "install()": async ({ storage }) => {
    const { parts, index } = await otherParts();
    const configuration = { voters: ["b.1"], outgoing: [], learners: ["a.1"], witnesses: [] };
    const snapshot = { index: index + 10, term: 9, configuration };
    const at = JSON.parse(new TextDecoder().decode(parts[0]));
    const header = new TextEncoder().encode(JSON.stringify({ ...at, index: snapshot.index }));
    const hardState = { currentTerm: 9, votedFor: null, damagedTerm: 0 };
    const whole = [header, ...parts.slice(1)];
    await storage.install({ hardState, snapshot, cluster: "first", parts: whole });
  },
  "compact()": async ({ storage }) => {
    const { snapshot } = storage.persisted;
    const compacted = { ...snapshot, index: snapshot.index + 2 };
    await storage.persist({ hardState: null, entries: [], compacted });
  },
};

Deno.test("RaftStorage does each thing whole or not at all, wherever it dies", async (t) => {
  for (const [name, work] of Object.entries(WORK)) {
    await t.step(name, async () => {
      const seen = new Set<string>();
      let [before, after] = ["", ""];
      for (let steps = 0; after === ""; steps++) {
        assert.ok(steps < STEPS_MAX, "it ends");
        const machine = await Machine.make();
        const opened = await machine.open();
        await opened.storage.startCluster("first");
        for (let n = 0; n < 3; n++) await append(opened, n);
        before = shown(opened);
        machine.dieAfter(steps);
        const isDone = await work(opened).then(() => true, () => false);
        machine.revive();
        const again = await machine.open();
        assert.equal(again.storage.damage, null, `${steps} steps`);
        const text = shown(again);
        if (isDone && text !== before) after = text;
        seen.add(text);
        if (again.storage.member.cluster !== "") await append(again, 9);
        assert.equal((await machine.open()).storage.damage, null, "and it goes on");
        machine.kv.inner.close();
      }
      // The term that comes with a state is durable before it, and promises nothing.
      const early = before.replace(/term \d+/, after.match(/term \d+/)?.[0] ?? "");
      for (const text of seen) assert.ok([before, after, early].includes(text), text);
      assert.ok(seen.size > 1, [...seen].join("\n"));
      console.log(`${name}: ${before} > ${after}`);
    });
  }
});

Deno.test("RaftStorage of a log that lacks what was applied is another member that waits", async () => {
  const machine = await Machine.make();
  const opened = await machine.open();
  await opened.storage.startCluster("first");
  const copy = machine.disk.file("raft.log")?.bytes.slice();
  assert.ok(copy !== undefined);
  await append(opened, 1);
  const { id } = opened.storage.member;
  const file = machine.disk.file("raft.log");
  assert.ok(file !== undefined);
  file.bytes = copy; // As it was before.
  const { storage, store } = await machine.open();
  assert.match(storage.damage ?? "", /it ends at \d+, and \d+ was applied/);
  assert.notEqual(storage.member.id, id);
  assert.deepEqual([storage.member.cluster, storage.member.hasLeft], ["", true]);
  assert.equal(store.state.collections.lists.size, 1, "what it has holds");
  assert.equal((await machine.open()).storage.damage, null);
  machine.kv.inner.close();
});
