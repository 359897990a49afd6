import assert from "node:assert/strict";
import type { Message } from "../raft/mod.ts";
import type { Spool } from "../store/mod.ts";
import type { Frame } from "./frames.ts";
import { REFUSED_TICKS } from "./limits.ts";
import { SnapshotReceiver, SnapshotSender } from "./snapshots.ts";

const none = { permissions: "none" } as const;
const SNAPSHOT: Message = {
  ...{ type: "installSnapshot", from: "a.1", to: "b.1", term: 2 },
  snapshot: {
    ...{ index: 9, term: 2 },
    configuration: { voters: ["a.1"], outgoing: [], learners: ["b.1"], witnesses: [] },
  },
};
const PARTS = [Uint8Array.of(1), Uint8Array.of(2)];

Deno.test("SnapshotSender leaves a member that refuses a state in peace for a while", none, () => {
  const sent: Frame[] = [];
  const failed: string[] = [];
  const sender = new SnapshotSender(
    (_, frame) => (sent.push(frame), true),
    () => 7,
    (member) => failed.push(member),
  );
  sender.start("c1", SNAPSHOT, PARTS);
  assert.equal(sender.isSending("b"), true);
  const before = sent.length;
  sender.onAnswer("b", { type: "partAnswer", transfer: 7, next: 0, isRefused: true });
  assert.equal(sender.isSending("b"), false);
  for (let i = 1; i < REFUSED_TICKS; i++) sender.tick();
  assert.deepEqual([failed, sent.length], [[], before], "not yet");
  sender.tick();
  assert.deepEqual([failed, sent.length], [["b.1"], before], "whoever asked for it asks again");
});

Deno.test("SnapshotReceiver says why it could take no state, until it took one", none, async () => {
  const disk = { isFull: true };
  const spool = {
    append: () => disk.isFull ? Promise.reject(new Error("no space left")) : Promise.resolve(),
    close: () => Promise.resolve(),
  } as unknown as Spool;
  const answers: Frame[] = [];
  const receiver = new SnapshotReceiver(
    () => Promise.resolve(spool),
    (_, frame) => (answers.push(frame), true),
    (_head, _spool, after) => after(true),
  );
  const send = async (transfer: number) => {
    for (const [place, bytes] of [...PARTS, new Uint8Array(0)].entries()) {
      const head = place === 0 ? { cluster: "c1", message: SNAPSHOT } : null;
      const isLast = place === PARTS.length;
      receiver.onPart("a", { type: "part", transfer, place, isLast, head, bytes });
    }
    await receiver.idle();
  };
  await send(1);
  assert.match(receiver.problems.join(), /can't be taken over: no space left; it is tried again$/);
  disk.isFull = false;
  await send(2);
  assert.deepEqual(receiver.problems, []);
  assert.equal(answers.some((frame) => frame.type === "partAnswer" && frame.next === 3), true);
});
