import assert from "node:assert/strict";
import { type Host, openHost } from "./host.ts";
import { setTimeSlice, TimeSlice, withTimeSlice } from "./time_slice.ts";

const host = openHost();
const SYSCALL = { x86_64: 315n, aarch64: 275n }[Deno.build.arch]; // sched_getattr

/** Nice value and length of this thread's time slices in nanoseconds, as the kernel has them. */
function scheduling(host: Host): { nice: number; sliceNs: bigint } {
  const attr = new Uint8Array(48);
  assert.equal(host.syscall(SYSCALL, 0n, attr, 48n, 0n), 0n);
  const view = new DataView(attr.buffer);
  return { nice: view.getInt32(16, true), sliceNs: view.getBigUint64(24, true) };
}

Deno.test({
  name: "setTimeSlice() and withTimeSlice() change the length of time slices and nothing else",
  permissions: { ffi: true },
  ignore: host === null,
  fn: () => {
    assert.ok(host !== null);
    const before = scheduling(host);
    assert.equal(setTimeSlice(host, TimeSlice.Query), true);
    const { nice, sliceNs } = scheduling(host);
    // Kernels before 6.12 take the call and leave time slices as they are.
    const isTaken = sliceNs === TimeSlice.Query;
    assert.ok(isTaken || sliceNs === before.sliceNs);
    assert.equal(nice, before.nice);
    const within = withTimeSlice(host, TimeSlice.Work, () => scheduling(host).sliceNs);
    assert.equal(within, isTaken ? TimeSlice.Work : before.sliceNs);
    assert.equal(scheduling(host).sliceNs, sliceNs);
    assert.throws(
      () => withTimeSlice(host, TimeSlice.Work, () => assert.fail("no thread")),
      /no thread/,
    );
    assert.equal(scheduling(host).sliceNs, sliceNs);
    assert.equal(setTimeSlice(host, TimeSlice.Request), true); // Other tests run on this thread.
  },
});
