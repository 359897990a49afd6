import type { Native } from "./libc.ts";

/** Numbers of the system calls, which the C library has no names for. */
const SCHED_SETATTR = { x86_64: 314n, aarch64: 274n } as const;
const SCHED_GETATTR = { x86_64: 315n, aarch64: 275n } as const;
/** `struct sched_attr`, as the first kernels that knew it have it. */
const ATTR_BYTES = 48;
const POLICY_OFFSET = 4;
const NICE_OFFSET = 16;
/** For a thread of the common kind: how long its turns on a processor are, in nanoseconds. */
const RUNTIME_OFFSET = 24;
const SCHED_OTHER = 0;
/**
 * Who takes shorter turns is let in before who takes longer ones, and gets no more of a processor by
 * it: a query does not wait until a request has been answered, nor a request for a compile.
 */
export const Turn = { Query: 300_000n, Request: 600_000n, Work: 100_000_000n } as const;
export type Turn = typeof Turn[keyof typeof Turn];
const THIS_THREAD = 0;

/**
 * Sets how long this thread, and each that it starts from now on, may run until others do (Linux
 * 6.12; earlier kernels leave all as it is). Says whether the kernel took it.
 */
export function takeTurns(native: Native, turn: Turn): boolean {
  return setTurn(native, turn) !== null;
}

/** Calls `start`, whose threads take turns of this length; this thread's are what they were. */
export function withTurns<T>(native: Native, turn: Turn, start: () => T): T {
  const former = setTurn(native, turn);
  try {
    return start();
  } finally {
    if (former !== null) setTurn(native, former);
  }
}

/**
 * Gives a thread of this process longer turns than others and a smaller part, as a nice value. Says
 * whether the kernel took it.
 */
export function putBehind(native: Native, thread: number, turn: Turn, nice: number): boolean {
  const attr = attributesOf(native, thread);
  if (attr === null) return false;
  attr.setBigUint64(RUNTIME_OFFSET, turn, true);
  attr.setInt32(NICE_OFFSET, nice, true);
  return setAttributes(native, thread, attr);
}

/** Returns the length of the turns before, or `null` where nothing was changed. */
function setTurn(native: Native, turnNs: bigint): bigint | null {
  const attr = attributesOf(native, THIS_THREAD);
  if (attr === null) return null;
  const former = attr.getBigUint64(RUNTIME_OFFSET, true);
  attr.setBigUint64(RUNTIME_OFFSET, turnNs, true);
  return setAttributes(native, THIS_THREAD, attr) ? former : null;
}

/** How a thread of the common kind is scheduled, all of it: an operator may have set the rest. */
function attributesOf(native: Native, thread: number): DataView<ArrayBuffer> | null {
  const bytes = new Uint8Array(ATTR_BYTES);
  const number = SCHED_GETATTR[Deno.build.arch];
  const got = native.syscall(number, BigInt(thread), bytes, BigInt(ATTR_BYTES), 0n);
  const attr = new DataView(bytes.buffer);
  return got === 0n && attr.getUint32(POLICY_OFFSET, true) === SCHED_OTHER ? attr : null;
}

function setAttributes(native: Native, thread: number, attr: DataView<ArrayBuffer>): boolean {
  const number = SCHED_SETATTR[Deno.build.arch];
  return native.syscall(number, BigInt(thread), new Uint8Array(attr.buffer), 0n, 0n) === 0n;
}
