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
  gettid: { parameters: [], result: "i32", optional: true }, // Older C libraries have none.
  memcpy: { parameters: ["buffer", "pointer", "usize"], result: "void" },
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
  const last = lastErrno(native);
  return last === EMFILE || last === ENFILE;
}

const errno = new Int32Array(1);
const errnoBytes = new Uint8Array(errno.buffer);

/** By a copy, which needs no permission: an isolate that answers has given its own up by then. */
function lastErrno(native: Native): number {
  native.memcpy(errnoBytes, native.__errno_location(), 4n);
  return errno[0];
}

/**
 * Why the last call failed, for a message. Read by a call of its own, so another may have come
 * between: a hint, never a condition.
 */
export function errnoHint(native: Native): string {
  const last = lastErrno(native);
  return ERRNO[last] ?? `errno ${last}`;
}

/** The address of a buffer. The caller keeps the buffer in a field: the kernel will write there. */
export function addressOf(buffer: Uint8Array<ArrayBufferLike>): number {
  const pointer = Deno.UnsafePointer.of(buffer as Uint8Array<ArrayBuffer>);
  return Number(Deno.UnsafePointer.value(pointer));
}
