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

/**
 * Threads of the runtime that work for others. Those of V8 compile and collect garbage: code runs on
 * without its better version, and garbage waits. The others read and write files: each works for a
 * moment and waits for long, and with short time slices so many of them, one after another, would go
 * before whoever answers.
 */
const KINDS: readonly { readonly name: RegExp; readonly nice: number | null }[] = [
  { name: /^V8 /, nice: 10 },
  { name: /^tokio-runtime-w/, nice: null },
];

/** The runtime's helpers, which go behind the threads that answer: more begin as there is work. */
export class Helpers {
  readonly #host: Host;
  /** Threads that were looked at. */
  #seen: ReadonlySet<number> = new Set();
  readonly #name = new Uint8Array(NAME_BYTES);

  constructor(host: Host) {
    this.#host = host;
  }

  /**
   * Puts those behind that have begun since the last call. Returns how many; none where the kernel
   * shows or takes nothing.
   */
  stepBack(): number {
    const host = this.#host;
    const all = new Set(threads(host));
    let count = 0;
    for (const thread of all.difference(this.#seen)) {
      const name = readPath(host, `${THREADS}/${thread}/comm`, ReadCall.File, this.#name);
      const text = name === null ? "" : new TextDecoder().decode(name);
      const kind = KINDS.find(({ name }) => name.test(text));
      if (kind !== undefined && putBehind(host, thread, TimeSlice.Work, kind.nice)) count++;
    }
    this.#seen = all;
    return count;
  }
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
