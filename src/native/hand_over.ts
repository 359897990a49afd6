import { openLibrary } from "./libc.ts";

/** What starts the next program, and what is said and left to it. */
const SYMBOLS = {
  posix_spawn: {
    parameters: ["buffer", "buffer", "pointer", "pointer", "buffer", "pointer"],
    result: "i32",
  },
  waitpid: { parameters: ["i32", "buffer", "i32"], result: "i32" },
  kill: { parameters: ["i32", "i32"], result: "i32" },
  socketpair: { parameters: ["i32", "i32", "i32", "buffer"], result: "i32" },
  memfd_create: { parameters: ["buffer", "u32"], result: "i32" },
  pread: { parameters: ["i32", "buffer", "usize", "i64"], result: "isize" },
  pwrite: { parameters: ["i32", "buffer", "usize", "i64"], result: "isize" },
  lseek: { parameters: ["i32", "i64", "i32"], result: "i64" },
  send: { parameters: ["i32", "buffer", "usize", "i32"], result: "isize" },
  recv: { parameters: ["i32", "buffer", "usize", "i32"], result: "isize" },
  poll: { parameters: ["buffer", "u64", "i32"], result: "i32", nonblocking: true },
  shutdown: { parameters: ["i32", "i32"], result: "i32" },
  close: { parameters: ["i32"], result: "i32" },
} as const satisfies Deno.ForeignLibraryInterface;

/** The open library; closed, none of it can be called any more. */
export type HandOver = Deno.DynamicLibrary<typeof SYMBOLS>;

/** Binds them; `null` as with `openNative`. */
export function openHandOver(): HandOver | null {
  return openLibrary(SYMBOLS);
}

/** The environment as it is at this moment, for who starts a program. */
export function environmentPointer(): Deno.PointerValue {
  const place = openLibrary({ environ: { type: "pointer" } } as const)?.symbols.environ ?? null;
  return place === null ? null : new Deno.UnsafePointerView(place).getPointer();
}
