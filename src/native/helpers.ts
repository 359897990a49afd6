import type { Host } from "./host.ts";
import { putBehind, TimeSlice } from "./time_slice.ts";

/** Numbers of the system calls; Deno itself shows nobody a file of `/proc`. */
const OPENAT = { x86_64: 257n, aarch64: 56n } as const;
const READ = { x86_64: 0n, aarch64: 63n } as const;
const GETDENTS64 = { x86_64: 217n, aarch64: 61n } as const;
const CLOSE = { x86_64: 3n, aarch64: 57n } as const;
const AT_FDCWD = -100n;
const O_RDONLY = 0n;
const THREADS = "/proc/self/task";
/** Room for the entries of far more threads than there are at the start. */
const ENTRIES_BYTES = 32 * 1024;
/** In an entry of a directory (`linux_dirent64`): its length, and its name up to a zero byte. */
const LENGTH_OFFSET = 16;
const NAME_OFFSET = 19;
/** A thread has a name of 15 bytes at most. */
const NAME_BYTES = 16;

/** The threads on which V8 compiles, and collects garbage, for every isolate. */
const HELPER = /^V8 /;
/** Code runs on without its better version, and garbage waits. */
const HELPER_NICE = 10;

/**
 * Has the runtime's helpers go behind the threads that answer: they begin to work whenever lists are
 * compiled. Returns how many do; none where the kernel shows or takes nothing.
 */
export function stepHelpersBack(host: Host): number {
  let count = 0;
  for (const thread of threads(host)) {
    const name = read(host, `${THREADS}/${thread}/comm`, READ, new Uint8Array(NAME_BYTES));
    if (name === null || !HELPER.test(new TextDecoder().decode(name))) continue;
    if (putBehind(host, thread, TimeSlice.Work, HELPER_NICE)) count++;
  }
  return count;
}

/** IDs of this process's threads. */
function threads(host: Host): number[] {
  const entries = read(host, THREADS, GETDENTS64, new Uint8Array(ENTRIES_BYTES));
  if (entries === null) return [];
  const view = new DataView(entries.buffer, 0, entries.length);
  const found: number[] = [];
  for (let at = 0; at < entries.length; at += view.getUint16(at + LENGTH_OFFSET, true)) {
    const name = entries.subarray(at + NAME_OFFSET);
    const thread = Number(new TextDecoder().decode(name.subarray(0, name.indexOf(0))));
    if (Number.isInteger(thread)) found.push(thread); // The others are `.` and `..`.
  }
  return found;
}

/** Reads once from a path, by the call for its kind; `null` where that fails. */
function read(
  host: Host,
  path: string,
  call: typeof READ | typeof GETDENTS64,
  target: Uint8Array<ArrayBuffer>,
): Uint8Array<ArrayBuffer> | null {
  const { arch } = Deno.build;
  const text = new TextEncoder().encode(`${path}\0`);
  const fd = host.syscall(OPENAT[arch], AT_FDCWD, text, O_RDONLY, 0n);
  if (fd < 0n) return null;
  const length = host.syscall(call[arch], fd, target, BigInt(target.length), 0n);
  host.syscall(CLOSE[arch], fd, text, 0n, 0n);
  return length < 0n ? null : target.subarray(0, Number(length));
}
