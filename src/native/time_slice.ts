import type { Host } from "./host.ts";

/** Numbers of the system calls, which the C library has no names for. */
const SCHED_SETATTR = { x86_64: 314n, aarch64: 274n } as const;
const SCHED_GETATTR = { x86_64: 315n, aarch64: 275n } as const;
/** `struct sched_attr`, as the first kernels that knew it have it. */
const ATTR_BYTES = 48;
const POLICY_OFFSET = 4;
const NICE_OFFSET = 16;
/** For a thread of the common kind: how long its time slices are, in nanoseconds. */
const RUNTIME_OFFSET = 24;
const SCHED_OTHER = 0;
/**
 * Who has shorter time slices is let in before who has longer ones, and gets no more of a processor
 * by it: a query does not wait until a request has been answered, nor a request for a compile.
 */
export const TimeSlice = { Query: 300_000n, Request: 600_000n, Work: 100_000_000n } as const;
export type TimeSlice = typeof TimeSlice[keyof typeof TimeSlice];
const THIS_THREAD = 0;

/**
 * Sets how long this thread, and each that it starts from now on, may run until others do (Linux
 * 6.12; earlier kernels leave all as it is). Says whether the kernel took it.
 */
export function setTimeSlice(host: Host, slice: TimeSlice): boolean {
  return replaceTimeSlice(host, slice) !== null;
}

/** Calls `start`, whose threads have slices of this length; this thread's are what they were. */
export function withTimeSlice<T>(host: Host, slice: TimeSlice, start: () => T): T {
  const former = replaceTimeSlice(host, slice);
  try {
    return start();
  } finally {
    if (former !== null) replaceTimeSlice(host, former);
  }
}

/**
 * Gives a thread of this process longer time slices than others and a smaller part, as a nice
 * value. Says whether the kernel took it.
 */
export function putBehind(host: Host, thread: number, slice: TimeSlice, nice: number): boolean {
  const attr = attributesOf(host, thread);
  if (attr === null) return false;
  attr.setBigUint64(RUNTIME_OFFSET, slice, true);
  attr.setInt32(NICE_OFFSET, nice, true);
  return setAttributes(host, thread, attr);
}

/** Returns the length of the slices before, or `null` where nothing was changed. */
function replaceTimeSlice(host: Host, sliceNs: bigint): bigint | null {
  const attr = attributesOf(host, THIS_THREAD);
  if (attr === null) return null;
  const former = attr.getBigUint64(RUNTIME_OFFSET, true);
  attr.setBigUint64(RUNTIME_OFFSET, sliceNs, true);
  return setAttributes(host, THIS_THREAD, attr) ? former : null;
}

/** How a thread of the common kind is scheduled, all of it: an operator may have set the rest. */
function attributesOf(host: Host, thread: number): DataView<ArrayBuffer> | null {
  const bytes = new Uint8Array(ATTR_BYTES);
  const number = SCHED_GETATTR[Deno.build.arch];
  const got = host.syscall(number, BigInt(thread), bytes, BigInt(ATTR_BYTES), 0n);
  const attr = new DataView(bytes.buffer);
  return got === 0n && attr.getUint32(POLICY_OFFSET, true) === SCHED_OTHER ? attr : null;
}

function setAttributes(host: Host, thread: number, attr: DataView<ArrayBuffer>): boolean {
  const number = SCHED_SETATTR[Deno.build.arch];
  return host.syscall(number, BigInt(thread), new Uint8Array(attr.buffer), 0n, 0n) === 0n;
}
