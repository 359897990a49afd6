import type { Native } from "./libc.ts";

/** Numbers of the system calls, which the C library has no names for. */
const SCHED_SETATTR = { x86_64: 314n, aarch64: 274n } as const;
const SCHED_GETATTR = { x86_64: 315n, aarch64: 275n } as const;
/** `struct sched_attr`, as the first kernels that knew it have it. */
const ATTR_BYTES = 48;
const POLICY_OFFSET = 4;
/** For a thread of the common kind: how long its turns on a processor are, in nanoseconds. */
const RUNTIME_OFFSET = 24;
const SCHED_OTHER = 0;
/**
 * Who takes short turns comes sooner, and gets no more of a processor by it: so a request is answered
 * beside isolates that never rest. These keep the kernel's own turns; with shorter ones requests
 * waited longer, and queries were no quicker.
 */
export const Turn = { Short: 500_000n, Usual: 0n } as const;
export type Turn = typeof Turn[keyof typeof Turn];
const THIS_THREAD = 0n;

/**
 * Sets how long this thread, and each that it starts from now on, may run until others do (Linux
 * 6.12; earlier kernels leave all as it is). Says whether the kernel took it.
 */
export function takeTurns(native: Native, turn: Turn): boolean {
  const { arch } = Deno.build;
  const attr = new Uint8Array(ATTR_BYTES);
  // The rest stays: an operator may have given the process another priority.
  const got = native.syscall(SCHED_GETATTR[arch], THIS_THREAD, attr, BigInt(ATTR_BYTES), 0n);
  const view = new DataView(attr.buffer);
  if (got !== 0n || view.getUint32(POLICY_OFFSET, true) !== SCHED_OTHER) return false;
  view.setBigUint64(RUNTIME_OFFSET, turn, true);
  return native.syscall(SCHED_SETATTR[arch], THIS_THREAD, attr, 0n, 0n) === 0n;
}
