import { newWake } from "./event_queue.ts";
import type { Native } from "./libc.ts";
import { closeSocket } from "./sockets.ts";

/** `clockid_t` of a thread: its number inverted, above the bits for "one thread's time on a CPU". */
const CLOCK_SHIFT = 3;
const CLOCK_OF_THREAD = 6;

/** The system's number of the thread that calls; `null` where the C library is too old to tell. */
export function threadId(native: Native): number | null {
  return native.gettid === null ? null : native.gettid();
}

/** How long a thread of this process has run on a processor; `null` once it has ended. */
export function threadCpuMs(native: Native, thread: number): number | null {
  const time = new BigInt64Array(2); // timespec: seconds, nanoseconds.
  const clock = (~thread << CLOCK_SHIFT) | CLOCK_OF_THREAD;
  if (native.clock_gettime(clock, new Uint8Array(time.buffer)) !== 0) return null;
  return Number(time[0]) * 1_000 + Number(time[1]) / 1e6;
}

/** Says whether this process may open so many more descriptors at this moment. */
export function hasSpareDescriptors(native: Native, count: number): boolean {
  const opened: number[] = [];
  while (opened.length < count) {
    const fd = newWake(native);
    if (fd < 0) break;
    opened.push(fd);
  }
  for (const fd of opened) closeSocket(native, fd);
  return opened.length === count;
}
