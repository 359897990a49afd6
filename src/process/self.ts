import { SvcError } from "../errors.ts";
import type { Process } from "../native/system.ts";

/** Says to stage 2 which descriptors it inherits. */
const SOCKETS_VARIABLE = "SVC_SOCKETS";
/** More sockets than any stage hands on. */
const SOCKETS_MAX = 1_024;
const ARGUMENTS = "/proc/self/cmdline";
/** Longest command line that is read; Linux allows more, and nobody writes it. */
const ARGUMENTS_BYTES_MAX = 256 * 1024;
const O_RDONLY_CLOEXEC = 0o2000000;
const F_SETFD = 2;
const FD_CLOEXEC = 1n;

const text = (value: string) => new TextEncoder().encode(`${value}\0`);

/**
 * Executes this program anew, with the same arguments, as the same process; `sockets` stay open for
 * it. Does not return.
 *
 * @throws {SvcError} `unavailable`, when the system refuses; then nothing has changed.
 */
export function executeSelf(process: Process, sockets: readonly number[]): never {
  const { symbols } = process;
  const fail = (what: string): never => {
    throw new SvcError("unavailable", `cannot ${what}: may this user do so?`);
  };
  // As they are, ends included: the runtime's own flags are among them.
  const block = readWhole(process, ARGUMENTS) ?? fail(`read ${ARGUMENTS}`);
  const starts = Array.from(block).flatMap((byte, i) => byte === 0 ? [i + 1] : []);
  const base = BigInt(Deno.UnsafePointer.value(Deno.UnsafePointer.of(block)));
  const pointers = [0, ...starts.slice(0, -1)].map((start) => base + BigInt(start));
  const argv = BigUint64Array.from([...pointers, 0n]);
  if (symbols.setenv(text(SOCKETS_VARIABLE), text(sockets.join(",")), 1) !== 0) {
    fail("extend the environment");
  }
  for (const fd of sockets) symbols.fcntl(fd, F_SETFD, 0n);
  // By its path, from which the process has its name.
  symbols.execv(text(Deno.execPath()), new Uint8Array(argv.buffer));
  block.fill(0); // Until here it was in use: the pointers lead into it.
  for (const fd of sockets) symbols.fcntl(fd, F_SETFD, FD_CLOEXEC);
  symbols.unsetenv(text(SOCKETS_VARIABLE));
  return fail(`execute ${Deno.execPath()}`);
}

function readWhole({ symbols }: Process, path: string): Uint8Array<ArrayBuffer> | null {
  const fd = symbols.open(text(path), O_RDONLY_CLOEXEC);
  if (fd < 0) return null;
  const target = new Uint8Array(ARGUMENTS_BYTES_MAX);
  let end = 0;
  for (let count = 1; count > 0 && end < target.length; end += Math.max(count, 0)) {
    count = Number(symbols.read(fd, target.subarray(end), BigInt(target.length - end)));
  }
  symbols.close(fd);
  return end === 0 || end === target.length ? null : target.slice(0, end);
}

/**
 * The sockets that stage 1 left to this process, in its order; `null`: this is stage 1. They are
 * asked for once, and no program that this one starts inherits them.
 *
 * @throws {SvcError} `invalid`, when somebody else has set the variable to something else.
 */
export function inheritedSockets({ symbols }: Process): number[] | null {
  const name = text(SOCKETS_VARIABLE);
  const found = symbols.getenv(name);
  if (found === null) return null;
  const value = new Deno.UnsafePointerView(found).getCString();
  symbols.unsetenv(name);
  const sockets = value === "" ? [] : value.split(",");
  const isOpen = (fd: string) =>
    /^\d{1,9}$/.test(fd) && symbols.fcntl(Number(fd), F_SETFD, FD_CLOEXEC) === 0;
  if (sockets.length > SOCKETS_MAX || !sockets.every(isOpen)) {
    throw new SvcError("invalid", `${SOCKETS_VARIABLE}: names no open sockets: leave it unset`);
  }
  return sockets.map(Number);
}
