import type { Host } from "./host.ts";
import { ReadCall, readPath } from "./proc_file.ts";
import { putBehind, TimeSlice } from "./time_slice.ts";

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
    const path = `${THREADS}/${thread}/comm`;
    const name = readPath(host, path, ReadCall.File, new Uint8Array(NAME_BYTES));
    if (name === null || !HELPER.test(new TextDecoder().decode(name))) continue;
    if (putBehind(host, thread, TimeSlice.Work, HELPER_NICE)) count++;
  }
  return count;
}

/** IDs of this process's threads. */
function threads(host: Host): number[] {
  const target = new Uint8Array(ENTRIES_BYTES);
  const entries = readPath(host, THREADS, ReadCall.Directory, target);
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
