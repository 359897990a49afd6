import { type Host, MADV_DONTNEED } from "./host.ts";
import { ReadCall, readPath } from "./proc_file.ts";

/** Room for `/proc/self/status`, and for a line of `/proc/self/maps` for each of 10,000 mappings. */
const STATUS_BYTES_MAX = 8 * 1024;
const MAPS_BYTES_MAX = 1024 * 1024;
/** What is smaller is not worth the call. */
const MAPPED_BYTES_MIN = 1024 * 1024;
/**
 * Of a file, and never written to: code, and constants, which an executable begins with. Where else
 * something can't be written to now, it may have been before.
 */
const FIXED = /^([0-9a-f]+)-([0-9a-f]+) (?:r-xp [0-9a-f]+|r--p 0+) \S+ [1-9]\d* +\//;

/** Resident memory of this process that is of no file; `null` where the kernel does not tell. */
export function anonymousBytes(host: Host): number | null {
  const target = new Uint8Array(STATUS_BYTES_MAX);
  const bytes = readPath(host, "/proc/self/status", ReadCall.File, target);
  const [, kib] = /^RssAnon:\s+(\d+) kB$/m.exec(new TextDecoder().decode(bytes ?? undefined)) ?? [];
  return kib === undefined ? null : Number(kib) * 1_024;
}

/**
 * Lets go of the pages of the program's own code: half of the runtime's is for its start alone. What
 * is needed again is read where the system has it, which is in memory as long as there is room.
 */
export function dropCode(host: Host): void {
  const target = new Uint8Array(MAPS_BYTES_MAX);
  const maps = readPath(host, "/proc/self/maps", ReadCall.File, target);
  for (const line of new TextDecoder().decode(maps ?? undefined).split("\n")) {
    const [, from, end] = FIXED.exec(line) ?? [];
    if (from === undefined) continue;
    const address = BigInt(`0x${from}`);
    const lengthBytes = BigInt(`0x${end}`) - address;
    if (lengthBytes >= MAPPED_BYTES_MIN) host.madvise(address, lengthBytes, MADV_DONTNEED);
  }
}
