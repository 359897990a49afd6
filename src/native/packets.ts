import { openLibrary } from "./libc.ts";

/** Beside those of `Native`, for sockets whose packets say more than whence they come. */
const SYMBOLS = {
  sendto: { parameters: ["i32", "buffer", "usize", "i32", "buffer", "u32"], result: "isize" },
  sendmsg: { parameters: ["i32", "buffer", "i32"], result: "isize" },
  recvmsg: { parameters: ["i32", "buffer", "i32"], result: "isize" },
  accept4: { parameters: ["i32", "pointer", "pointer", "i32"], result: "i32" },
  getsockopt: { parameters: ["i32", "i32", "i32", "buffer", "buffer"], result: "i32" },
} as const satisfies Deno.ForeignLibraryInterface;

export type Packets = Deno.DynamicLibrary<typeof SYMBOLS>["symbols"];

/** Binds them; `null` as with `openNative`. */
export function openPackets(): Packets | null {
  return openLibrary(SYMBOLS)?.symbols ?? null;
}
