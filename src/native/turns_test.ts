import assert from "node:assert/strict";
import { type Native, openNative } from "./libc.ts";
import { takeTurns, Turn } from "./turns.ts";

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
  name: "takeTurns() changes the length of turns and nothing else",
  permissions: { ffi: true },
  ignore: native === null,
  fn: () => {
    assert.ok(native !== null);
    const before = scheduling(native);
    assert.equal(takeTurns(native, Turn.Short), true);
    const { nice, turnNs } = scheduling(native);
    // Kernels before 6.12 take the call and leave turns as they are.
    assert.ok(turnNs === Turn.Short || turnNs === before.turnNs);
    assert.equal(nice, before.nice);
    assert.equal(takeTurns(native, Turn.Usual), true);
    assert.deepEqual(scheduling(native), before);
  },
});
