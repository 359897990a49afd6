import { openLibrary } from "./libc.ts";

/** What turns a process into one that may do less, and what a process leaves to the next. */
const SYMBOLS = {
  geteuid: { parameters: [], result: "u32" },
  getpwuid: { parameters: ["u32"], result: "pointer" },
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
  chown: { parameters: ["buffer", "u32", "u32"], result: "i32" },
  getenv: { parameters: ["buffer"], result: "pointer" },
  setenv: { parameters: ["buffer", "buffer", "i32"], result: "i32" },
  unsetenv: { parameters: ["buffer"], result: "i32" },
  execv: { parameters: ["buffer", "buffer"], result: "i32" },
  /** Landlock and seccomp have no function in the C library. */
  landlock_create_ruleset: {
    name: "syscall",
    parameters: ["i64", "buffer", "usize", "u64"],
    result: "i64",
  },
  landlock_add_rule: {
    name: "syscall",
    parameters: ["i64", "i64", "i64", "buffer", "u64"],
    result: "i64",
  },
  landlock_restrict_self: {
    name: "syscall",
    parameters: ["i64", "i64", "u64"],
    result: "i64",
  },
  seccomp: { name: "syscall", parameters: ["i64", "u64", "u64", "buffer"], result: "i64" },
} as const satisfies Deno.ForeignLibraryInterface;

/** The open library; closed, none of it can be called any more. */
export type Process = Deno.DynamicLibrary<typeof SYMBOLS>;

/** Binds them; `null` as with `openNative`. */
export function openProcess(): Process | null {
  return openLibrary(SYMBOLS);
}
