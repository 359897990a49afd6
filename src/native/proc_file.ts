import type { Host } from "./host.ts";

/** Numbers of the system calls; Deno itself shows nobody a file of `/proc`. */
const OPENAT = { x86_64: 257n, aarch64: 56n } as const;
const CLOSE = { x86_64: 3n, aarch64: 57n } as const;
const AT_FDCWD = -100n;
const O_RDONLY = 0n;

/** How a path is read, by what it is. */
export const ReadCall = {
  File: { x86_64: 0n, aarch64: 63n },
  Directory: { x86_64: 217n, aarch64: 61n }, // getdents64
} as const;
export type ReadCall = typeof ReadCall[keyof typeof ReadCall];

/** Reads from a path until its end, or until `target` is full; `null` where that fails. */
export function readPath(
  host: Host,
  path: string,
  call: ReadCall,
  target: Uint8Array<ArrayBuffer>,
): Uint8Array<ArrayBuffer> | null {
  const { arch } = Deno.build;
  const text = new TextEncoder().encode(`${path}\0`);
  const fd = host.syscall(OPENAT[arch], AT_FDCWD, text, O_RDONLY, 0n);
  if (fd < 0n) return null;
  let length = 0;
  let got = 1;
  while (got > 0 && length < target.length) {
    const rest = target.subarray(length);
    got = Number(host.syscall(call[arch], fd, rest, BigInt(rest.length), 0n));
    length += Math.max(0, got);
  }
  host.syscall(CLOSE[arch], fd, text, 0n, 0n);
  return got < 0 && length === 0 ? null : target.subarray(0, length);
}
