/** The symbols that are bound, and no others: whoever gets hold of them can call nothing else. */
const SYMBOLS = {
  socket: { parameters: ["i32", "i32", "i32"], result: "i32" },
  bind: { parameters: ["i32", "buffer", "u32"], result: "i32" },
  connect: { parameters: ["i32", "buffer", "u32"], result: "i32" },
  listen: { parameters: ["i32", "i32"], result: "i32" },
  setsockopt: { parameters: ["i32", "i32", "i32", "buffer", "u32"], result: "i32" },
  getsockname: { parameters: ["i32", "buffer", "buffer"], result: "i32" },
  send: { parameters: ["i32", "buffer", "usize", "i32"], result: "isize" },
  recv: { parameters: ["i32", "buffer", "usize", "i32"], result: "isize" },
  recvmmsg: { parameters: ["i32", "pointer", "u32", "i32", "pointer"], result: "i32" },
  sendmmsg: { parameters: ["i32", "pointer", "u32", "i32"], result: "i32" },
  close: { parameters: ["i32"], result: "i32" },
  dup: { parameters: ["i32"], result: "i32" },
  getrlimit: { parameters: ["i32", "buffer"], result: "i32" },
  setrlimit: { parameters: ["i32", "buffer"], result: "i32" },
  fcntl: { parameters: ["i32", "i32", "i64"], result: "i32" },
  eventfd: { parameters: ["u32", "i32"], result: "i32" },
  eventfd_write: { parameters: ["i32", "u64"], result: "i32" },
  epoll_create1: { parameters: ["i32"], result: "i32" },
  epoll_ctl: { parameters: ["i32", "i32", "i32", "buffer"], result: "i32" },
  epoll_wait: { parameters: ["i32", "pointer", "i32", "i32"], result: "i32" },
  epoll_wait_parked: {
    name: "epoll_wait",
    parameters: ["i32", "pointer", "i32", "i32"],
    result: "i32",
    nonblocking: true,
  },
  clock_gettime: { parameters: ["i32", "buffer"], result: "i32" },
  madvise: { parameters: ["u64", "usize", "i32"], result: "i32" },
  syscall: { parameters: ["i64", "i64", "buffer", "u64", "u64"], result: "i64" },
  mallopt: { parameters: ["i32", "i32"], result: "i32" },
  __errno_location: { parameters: [], result: "pointer" },
} as const satisfies Deno.ForeignLibraryInterface;

/** The open library. */
export type Native = Deno.DynamicLibrary<typeof SYMBOLS>["symbols"];

/** Opens the C library, or returns `null` where there is none of this kind (not Linux, no FFI). */
export function openNative(): Native | null {
  return openLibrary(SYMBOLS)?.symbols ?? null;
}

/** Binds these symbols of the C library, and no others. */
export function openLibrary<const T extends Deno.ForeignLibraryInterface>(
  symbols: T,
): Deno.DynamicLibrary<T> | null {
  if (Deno.build.os !== "linux") return null;
  try {
    return Deno.dlopen("libc.so.6", symbols);
  } catch {
    return null; // musl, or no permission: the callers say which way they take instead.
  }
}

/** What the common numbers of `errno` mean to an operator, and the mend. */
const ERRNO: Readonly<Record<number, string>> = {
  1: "not permitted",
  13: "permission denied: ports below 1024 need root or CAP_NET_BIND_SERVICE",
  24: "too many open files: raise the limit on open files",
  97: "this system has no such address family: IPv6 may be switched off",
  98: "the address is in use by another program",
  99: "this machine has no such address",
};

/** The kernel had nothing to read after all. */
const EAGAIN = 11;

/** The system, or this process, has no descriptor left. */
const ENFILE = 23;
const EMFILE = 24;

/** Says whether the last call found nothing to do; as much of a hint as `errnoHint`. */
export function wouldBlock(native: Native): boolean {
  return lastErrno(native) === EAGAIN;
}

/** Says whether the last call failed for want of a descriptor; as much of a hint as `errnoHint`. */
export function lackedDescriptor(native: Native): boolean {
  const errno = lastErrno(native);
  return errno === EMFILE || errno === ENFILE;
}

function lastErrno(native: Native): number {
  const location = native.__errno_location();
  return location === null ? 0 : new Deno.UnsafePointerView(location).getInt32();
}

/**
 * Why the last call failed, for a message. Read by a call of its own, so another may have come
 * between: a hint, never a condition.
 */
export function errnoHint(native: Native): string {
  const errno = lastErrno(native);
  return ERRNO[errno] ?? `errno ${errno}`;
}

const M_MMAP_THRESHOLD = -3;
/** Allocations from this size on are mapped one by one, and go back to the system when freed. */
const MAPPED_BYTES_MIN = 1024 * 1024;

/**
 * Has large allocations returned to the system as soon as they are freed. By itself the C library
 * learns from the first large one to hold on to up to 64 MiB in each of its arenas, which after a
 * compile is as much as the lists are long.
 */
export function returnLargeAllocations(native: Native): void {
  native.mallopt(M_MMAP_THRESHOLD, MAPPED_BYTES_MIN);
}

const MADV_DONTNEED = 4;
/** Pages are larger on some ARM64 kernels; a range of whole ones of this size fits any. */
const PAGE_BYTES_MAX = 65_536;

/**
 * Gives the memory behind a buffer back to the system at once, whoever still holds the buffer: it
 * reads as zeros from then on. V8 would keep it until it next looks for garbage.
 */
export function dropPages(native: Native, buffer: SharedArrayBuffer): void {
  const address = addressOf(new Uint8Array(buffer));
  const from = Math.ceil(address / PAGE_BYTES_MAX) * PAGE_BYTES_MAX;
  const end = Math.floor((address + buffer.byteLength) / PAGE_BYTES_MAX) * PAGE_BYTES_MAX;
  if (end > from) native.madvise(BigInt(from), BigInt(end - from), MADV_DONTNEED);
}

/** The address of a buffer. The caller keeps the buffer in a field: the kernel will write there. */
export function addressOf(buffer: Uint8Array<ArrayBufferLike>): number {
  const pointer = Deno.UnsafePointer.of(buffer as Uint8Array<ArrayBuffer>);
  return Number(Deno.UnsafePointer.value(pointer));
}
