// Goal: a log on the disk is whole, or lacks only what was never durable, or says that it is damaged.
// Method: a disk in memory that loses what was not synced; files cut, flipped and torn at every place.
import assert from "node:assert/strict";
import { Prng, seedFromEnv } from "../../tests/prng.ts";
import type { Entry } from "../raft/mod.ts";
import { MemoryRaftDisk } from "./fakes.ts";
import { DamagedLog, LOG_FILE, type LogContent, RaftLog } from "./raft_log.ts";

const none = { permissions: "none" } as const;
const OWNER = { id: "a.1", generation: 1 };
const CONFIGURATION = { voters: ["a.1"], outgoing: [], learners: [], witnesses: [] };
const FIRST: LogContent = {
  ...OWNER,
  hardState: { currentTerm: 1, votedFor: null, damagedTerm: 0 },
  snapshot: { index: 5, term: 1, configuration: CONFIGURATION },
  entries: [],
};

function command(index: number, term: number, length = 8): Entry {
  const data = new Uint8Array(length).fill(1 + index % 200);
  return { index, term, type: "command", data };
}

async function made(content = FIRST): Promise<{ disk: MemoryRaftDisk; log: RaftLog }> {
  const disk = new MemoryRaftDisk();
  const log = await RaftLog.prepare(disk, content);
  await log.adopt();
  return { disk, log };
}

function entries(...added: Entry[]) {
  return { hardState: null, snapshot: null, entries: added };
}

function shown({ content: { hardState, snapshot, entries } }: RaftLog): string {
  const log = entries.map(({ index, term }) => `${index}/${term}`).join(" ");
  return `${hardState.currentTerm} ${hardState.votedFor} ${snapshot.index}: ${log}`;
}

Deno.test("RaftLog brings back what was appended, the last of each place", none, async () => {
  const { disk, log } = await made();
  const hardState = { currentTerm: 2, votedFor: "b.1", damagedTerm: 0 };
  await log.append(entries(command(6, 1), command(7, 1), command(8, 1)));
  await log.append({ hardState, snapshot: null, entries: [command(7, 2)] });
  assert.equal(shown(await RaftLog.open(disk, OWNER)), "2 b.1 5: 6/1 7/2");
  await log.compact({ index: 6, term: 1, configuration: CONFIGURATION });
  await log.append(entries(command(8, 2)));
  assert.equal(shown(await RaftLog.open(disk, OWNER)), "2 b.1 6: 7/2 8/2");
  await log.append({
    hardState: null,
    snapshot: { index: 20, term: 2, configuration: CONFIGURATION },
    entries: [],
  });
  assert.equal(shown(await RaftLog.open(disk, OWNER)), "2 b.1 20: ");
  log.owe({ index: 30, term: 2, configuration: CONFIGURATION });
  await log.append(entries(command(31, 2)));
  assert.equal(shown(await RaftLog.open(disk, OWNER)), "2 b.1 30: 31/2");
});

Deno.test(
  "RaftLog is the one of the owner that the store names, and no other's",
  none,
  async () => {
    const { disk, log } = await made();
    const next = { ...FIRST, id: "a.2", generation: 2 };
    const prepared = await RaftLog.prepare(disk, next);
    assert.equal((await RaftLog.open(disk, OWNER)).content.id, "a.1", "nothing was decided");
    await log.append(entries(command(6, 1)));
    assert.equal(shown(await RaftLog.open(disk, OWNER)), "1 null 5: 6/1");
    await (await RaftLog.prepare(disk, next)).append(entries(command(6, 1)));
    assert.equal(
      shown(await RaftLog.open(disk, next)),
      "1 null 5: 6/1",
      "what was decided is done",
    );
    await assert.rejects(RaftLog.open(disk, OWNER), DamagedLog);
    await assert.rejects(RaftLog.open(new MemoryRaftDisk(), OWNER), DamagedLog);
    prepared.close();
  },
);

Deno.test("RaftLog goes on after a disk that was full", none, async () => {
  const { disk, log } = await made();
  await log.append(entries(command(6, 1)));
  disk.isFull = true;
  await assert.rejects(log.append(entries(command(7, 1, 2_000))));
  await assert.rejects(log.append(entries(command(7, 1, 2_000))));
  assert.equal(shown(log), "1 null 5: 6/1");
  disk.isFull = false;
  await log.append(entries(command(7, 1)));
  assert.equal(shown(await RaftLog.open(disk, OWNER)), "1 null 5: 6/1 7/1");
});

Deno.test(
  "RaftLog leaves out a record that a crash tore, and nothing that was durable",
  none,
  async () => {
    const prng = new Prng(seedFromEnv());
    let torn = 0;
    for (let round = 0; round < 400; round++) {
      const { disk, log } = await made();
      let durable = 5;
      for (let n = prng.int(6); n > 0; n--) {
        await log.append(entries(command(++durable, 1, 1 + prng.int(1_500))));
      }
      disk.beforeSync = () => new Promise(() => {}); // It dies before this is durable.
      void log.append(entries(command(durable + 1, 1, 1 + prng.int(4_000))));
      await new Promise((resolve) => setTimeout(resolve));
      disk.beforeSync = () => null;
      disk.crash(() => prng.chance(0.5));
      const found = await RaftLog.open(disk, OWNER);
      const last = found.content.entries.at(-1)?.index ?? 5;
      assert.ok(last === durable || last === durable + 1, `${last} of ${durable}`);
      if (last === durable) torn++;
      await found.append(entries(command(last + 1, 2)));
      const again = await RaftLog.open(disk, OWNER);
      assert.equal(again.content.entries.at(-1)?.index, last + 1, "it goes on from there");
    }
    assert.ok(torn > 50, `${torn} torn`);
  },
);

Deno.test("RaftLog leaves out a record whose head was torn between two sectors", none, async () => {
  let crossings = 0;
  for (let length = 1; length < 520; length++) {
    for (const isFirstLost of [false, true]) {
      const { disk, log } = await made();
      await log.append(entries(command(6, 1, length)));
      const durable = disk.file(LOG_FILE)?.bytes ?? new Uint8Array(0);
      const end = durable.findLastIndex((byte) => byte !== 0) + 1;
      const boundary = (Math.floor(end / 512) + 1) * 512;
      if (boundary - end > 9) continue;
      crossings++;
      await log.append(entries(command(7, 1, 700)));
      const file = disk.file(LOG_FILE);
      file?.bytes.fill(0, ...(isFirstLost ? [end, boundary] : [boundary, boundary + 512]));
      assert.equal(shown(await RaftLog.open(disk, OWNER)), "1 null 5: 6/1", `${length}`);
    }
  }
  assert.ok(crossings >= 16, `${crossings}`);
});

Deno.test(
  "RaftLog says that it is damaged, wherever a bit is flipped or it is cut",
  none,
  async () => {
    const { disk, log } = await made();
    for (let index = 6; index < 12; index++) await log.append(entries(command(index, 1, 40)));
    const whole = disk.file(LOG_FILE)?.bytes.slice() ?? new Uint8Array(0);
    let end = whole.length;
    while (whole[end - 1] === 0) end--;
    const open = async (bytes: Uint8Array) => {
      const other = new MemoryRaftDisk();
      const file = await other.open(LOG_FILE, "make");
      await file?.write(0, bytes);
      return await RaftLog.open(other, OWNER);
    };
    assert.equal((await open(whole)).content.entries.length, 6);
    for (let at = 0; at < end; at++) {
      const flipped = whole.slice();
      flipped[at] ^= 1 << at % 8;
      await assert.rejects(open(flipped), DamagedLog, `byte ${at} flipped`);
      await assert.rejects(open(whole.slice(0, at)), DamagedLog, `cut at ${at}`);
    }
    await assert.rejects(open(whole.slice(0, end + 10)), DamagedLog, "cut behind the last record");
  },
);
