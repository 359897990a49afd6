import { openLibrary } from "./libc.ts";

/** What turns a process into one that may do less. */
const SYMBOLS = {
  geteuid: { parameters: [], result: "u32" },
  getpwnam: { parameters: ["buffer"], result: "pointer" },
  setgroups: { parameters: ["usize", "pointer"], result: "i32" },
  setresgid: { parameters: ["u32", "u32", "u32"], result: "i32" },
  setresuid: { parameters: ["u32", "u32", "u32"], result: "i32" },
  prctl: { parameters: ["i32", "u64", "u64", "u64", "u64"], result: "i32" },
  capget: { parameters: ["buffer", "buffer"], result: "i32" },
  capset: { parameters: ["buffer", "buffer"], result: "i32" },
  sigprocmask: { parameters: ["i32", "buffer", "pointer"], result: "i32" },
  fcntl: { parameters: ["i32", "i32", "i64"], result: "i32" },
  open: { parameters: ["buffer", "i32"], result: "i32" },
  read: { parameters: ["i32", "buffer", "usize"], result: "isize" },
  close: { parameters: ["i32"], result: "i32" },
  getenv: { parameters: ["buffer"], result: "pointer" },
  setenv: { parameters: ["buffer", "buffer", "i32"], result: "i32" },
  unsetenv: { parameters: ["buffer"], result: "i32" },
  execv: { parameters: ["buffer", "buffer"], result: "i32" },
} as const satisfies Deno.ForeignLibraryInterface;

/** The open library; closed, none of it can be called any more. */
export type Process = Deno.DynamicLibrary<typeof SYMBOLS>;

/** Binds them; `null` as with `openNative`. */
export function openProcess(): Process | null {
  return openLibrary(SYMBOLS);
}
