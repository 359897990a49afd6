import type { Host } from "./host.ts";
import type { Native } from "./libc.ts";

const RLIMIT_NOFILE = 7;

/** How many descriptors the process may have open: it reaches `soft`, and may raise it to `hard`. */
export interface FileLimit {
  readonly soft: number;
  readonly hard: number;
}

/** The limit on open files, or `null` where the system does not tell. */
export function fileLimit(native: Pick<Native, "getrlimit">): FileLimit | null {
  const limits = new BigUint64Array(2); // rlimit: soft, hard.
  if (native.getrlimit(RLIMIT_NOFILE, new Uint8Array(limits.buffer)) !== 0) return null;
  return { soft: Number(limits[0]), hard: Number(limits[1]) };
}

/**
 * Raises the soft limit on open files to the hard one, which the system left to the process to do:
 * whoever waits with `select` must not have more than 1,024, and nobody here does. Returns the limit
 * that holds then, or `null` where the system does not tell.
 */
export function raiseFileLimit(host: Host): FileLimit | null {
  const before = fileLimit(host);
  if (before === null || before.soft === before.hard) return before;
  const limits = BigUint64Array.of(BigInt(before.hard), BigInt(before.hard));
  host.setrlimit(RLIMIT_NOFILE, new Uint8Array(limits.buffer));
  return fileLimit(host);
}
