import assert from "node:assert/strict";
import { type Native, openNative } from "./libc.ts";
import { setTimeSlice, TimeSlice, withTimeSlice } from "./time_slice.ts";

const native = openNative();
const SYSCALL = { x86_64: 315n, aarch64: 275n }[Deno.build.arch]; // sched_getattr

/** Nice value and length of this thread's time slices in nanoseconds, as the kernel has them. */
function scheduling(native: Native): { nice: number; sliceNs: bigint } {
  const attr = new Uint8Array(48);
  assert.equal(native.syscall(SYSCALL, 0n, attr, 48n, 0n), 0n);
  const view = new DataView(attr.buffer);
  return { nice: view.getInt32(16, true), sliceNs: view.getBigUint64(24, true) };
}

Deno.test({
  name: "setTimeSlice() and withTimeSlice() change the length of time slices and nothing else",
  permissions: { ffi: true },
  ignore: native === null,
  fn: () => {
    assert.ok(native !== null);
    const before = scheduling(native);
    assert.equal(setTimeSlice(native, TimeSlice.Query), true);
    const { nice, sliceNs } = scheduling(native);
    // Kernels before 6.12 take the call and leave time slices as they are.
    const isTaken = sliceNs === TimeSlice.Query;
    assert.ok(isTaken || sliceNs === before.sliceNs);
    assert.equal(nice, before.nice);
    const within = withTimeSlice(native, TimeSlice.Work, () => scheduling(native).sliceNs);
    assert.equal(within, isTaken ? TimeSlice.Work : before.sliceNs);
    assert.equal(scheduling(native).sliceNs, sliceNs);
    assert.throws(
      () => withTimeSlice(native, TimeSlice.Work, () => assert.fail("no thread")),
      /no thread/,
    );
    assert.equal(scheduling(native).sliceNs, sliceNs);
    assert.equal(setTimeSlice(native, TimeSlice.Request), true); // Other tests run on this thread.
  },
});
