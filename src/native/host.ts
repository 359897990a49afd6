import { addressOf, openLibrary } from "./libc.ts";

/** What the main isolate does to its own process and threads; who answers queries has none of it. */
const SYMBOLS = {
  getrlimit: { parameters: ["i32", "buffer"], result: "i32" },
  setrlimit: { parameters: ["i32", "buffer"], result: "i32" },
  madvise: { parameters: ["u64", "usize", "i32"], result: "i32" },
  malloc_trim: { parameters: ["usize"], result: "i32" },
  mallopt: { parameters: ["i32", "i32"], result: "i32" },
  /** Of threads: what they are scheduled by, and their names. */
  syscall: { parameters: ["i64", "i64", "buffer", "u64", "u64"], result: "i64" },
} as const satisfies Deno.ForeignLibraryInterface;

/** The open library. */
export type Host = Deno.DynamicLibrary<typeof SYMBOLS>["symbols"];

/** Binds them; `null` as with `openNative`. */
export function openHost(): Host | null {
  return openLibrary(SYMBOLS)?.symbols ?? null;
}

const M_MMAP_THRESHOLD = -3;
/** Allocations from this size on are mapped one by one, and go back to the system when freed. */
const MAPPED_BYTES_MIN = 1024 * 1024;

/**
 * Has large allocations returned to the system as soon as they are freed. By itself the C library
 * learns from the first large one to hold on to up to 64 MiB in each of its arenas, which after a
 * compile is as much as the lists are long.
 */
export function returnLargeAllocations(host: Host): void {
  host.mallopt(M_MMAP_THRESHOLD, MAPPED_BYTES_MIN);
}

/** Has the C library return what is free in any of its arenas: some milliseconds. */
export function returnFreeAllocations(host: Host): void {
  host.malloc_trim(0n);
}

export const MADV_DONTNEED = 4;
/** Pages are larger on some ARM64 kernels; a range of whole ones of this size fits any. */
const PAGE_BYTES_MAX = 65_536;

/**
 * Gives the memory behind a buffer back to the system at once, whoever still holds the buffer: it
 * reads as zeros from then on. V8 would keep it until it next looks for garbage.
 */
export function dropPages(host: Host, buffer: SharedArrayBuffer): void {
  const address = addressOf(new Uint8Array(buffer));
  const from = Math.ceil(address / PAGE_BYTES_MAX) * PAGE_BYTES_MAX;
  const end = Math.floor((address + buffer.byteLength) / PAGE_BYTES_MAX) * PAGE_BYTES_MAX;
  if (end > from) host.madvise(BigInt(from), BigInt(end - from), MADV_DONTNEED);
}
