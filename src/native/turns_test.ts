import assert from "node:assert/strict";
import { type Native, openNative } from "./libc.ts";
import { takeTurns, Turn, withTurns } from "./turns.ts";

const native = openNative();
const SYSCALL = { x86_64: 315n, aarch64: 275n }[Deno.build.arch]; // sched_getattr

/** Nice value and length of this thread's turns in nanoseconds, as the kernel has them. */
function scheduling(native: Native): { nice: number; turnNs: bigint } {
  const attr = new Uint8Array(48);
  assert.equal(native.syscall(SYSCALL, 0n, attr, 48n, 0n), 0n);
  const view = new DataView(attr.buffer);
  return { nice: view.getInt32(16, true), turnNs: view.getBigUint64(24, true) };
}

Deno.test({
  name: "takeTurns() and withTurns() change the length of turns and nothing else",
  permissions: { ffi: true },
  ignore: native === null,
  fn: () => {
    assert.ok(native !== null);
    const before = scheduling(native);
    assert.equal(takeTurns(native, Turn.Query), true);
    const { nice, turnNs } = scheduling(native);
    // Kernels before 6.12 take the call and leave turns as they are.
    const isTaken = turnNs === Turn.Query;
    assert.ok(isTaken || turnNs === before.turnNs);
    assert.equal(nice, before.nice);
    const within = withTurns(native, Turn.Work, () => scheduling(native).turnNs);
    assert.equal(within, isTaken ? Turn.Work : before.turnNs);
    assert.equal(scheduling(native).turnNs, turnNs);
    assert.throws(() => withTurns(native, Turn.Work, () => assert.fail("no thread")), /no thread/);
    assert.equal(scheduling(native).turnNs, turnNs);
    assert.equal(takeTurns(native, Turn.Request), true); // Other tests run on this thread.
  },
});
