import { SvcError } from "../errors.ts";
import type { Process } from "../native/system.ts";
import { cString } from "./c_string.ts";

/** Says to the next process what it inherits. */
const LEGACY_VARIABLE = "SVC_INHERITED";
/** More descriptors than any process leaves to the next. */
const DESCRIPTORS_MAX = 1_024;
const ARGUMENTS = "/proc/self/cmdline";
/** Longest command line that is read; Linux allows more, and nobody writes it. */
const ARGUMENTS_BYTES_MAX = 256 * 1024;
const O_RDONLY_CLOEXEC = 0o2000000;
const F_SETFD = 2;
const FD_CLOEXEC = 1n;

/** A program with its arguments; the first of these is what it is called by. */
export interface Program {
  readonly path: string;
  readonly args: readonly string[];
}

/** What a process leaves to the one that it becomes, or starts. */
export interface Legacy {
  /** Open ones, which are closed to everybody else. */
  readonly descriptors: readonly number[];
  /** Anything that JSON holds. */
  readonly notes: unknown;
}

/**
 * This program with its arguments, those of the runtime included.
 *
 * @throws {SvcError} `unavailable`.
 */
export function ownProgram(process: Process): Program {
  const bytes = readWhole(process, ARGUMENTS);
  if (bytes === null) throw new SvcError("unavailable", `cannot read ${ARGUMENTS}: mount /proc`);
  const args = new TextDecoder().decode(bytes).replace(/\0$/, "").split("\0");
  return { path: Deno.execPath(), args };
}

/** A program's arguments as the C library takes them; `keep` is what the pointers lead into. */
export function argumentVector(args: readonly string[]): {
  readonly vector: Uint8Array<ArrayBuffer>;
  readonly keep: Uint8Array<ArrayBuffer>;
} {
  const texts = args.map(cString);
  const keep = new Uint8Array(texts.reduce((sum, { length }) => sum + length, 0));
  const base = Deno.UnsafePointer.value(Deno.UnsafePointer.of(keep));
  const vector = new BigUint64Array(args.length + 1); // The last one is null.
  let at = 0;
  for (const [i, text] of texts.entries()) {
    keep.set(text, at);
    vector[i] = base + BigInt(at);
    at += text.length;
  }
  return { vector: new Uint8Array(vector.buffer), keep };
}

/** Calls `work` while whoever it executes or starts inherits `legacy`. */
export function leaving<T>({ symbols }: Process, legacy: Legacy, work: () => T): T {
  const name = cString(LEGACY_VARIABLE);
  if (symbols.setenv(name, cString(JSON.stringify(legacy)), 1) !== 0) {
    throw new SvcError("unavailable", "cannot extend the environment: free some memory");
  }
  for (const fd of legacy.descriptors) symbols.fcntl(fd, F_SETFD, 0n);
  try {
    return work();
  } finally {
    for (const fd of legacy.descriptors) symbols.fcntl(fd, F_SETFD, FD_CLOEXEC);
    symbols.unsetenv(name);
  }
}

/**
 * Executes a program as the same process, which inherits `legacy`. Does not return.
 *
 * @throws {SvcError} `unavailable`, when the system refuses; then nothing has changed.
 */
export function executeProgram(process: Process, program: Program, legacy: Legacy): never {
  const { path, args } = program;
  const { vector, keep } = argumentVector(args);
  leaving(process, legacy, () => process.symbols.execv(cString(path), vector));
  keep.fill(0); // Until here it was in use.
  throw new SvcError("unavailable", `cannot execute ${path}: may this user read and execute it?`);
}

/**
 * Executes this program anew, with the same arguments, as the same process; `sockets` stay open for
 * it. Does not return.
 *
 * @throws {SvcError} `unavailable`, when the system refuses; then nothing has changed.
 */
export function executeSelf(process: Process, sockets: readonly number[]): never {
  executeProgram(process, ownProgram(process), { descriptors: sockets, notes: null });
}

function readWhole({ symbols }: Process, path: string): Uint8Array<ArrayBuffer> | null {
  const fd = symbols.open(cString(path), O_RDONLY_CLOEXEC);
  if (fd < 0) return null;
  const target = new Uint8Array(ARGUMENTS_BYTES_MAX);
  let end = 0;
  for (let count = 1; count > 0 && end < target.length; end += Math.max(count, 0)) {
    count = Number(symbols.read(fd, target.subarray(end), BigInt(target.length - end)));
  }
  symbols.close(fd);
  return end === 0 || end === target.length ? null : target.slice(0, end);
}

/** A variable of the environment; `null`: it is not set. */
export function environmentOf({ symbols }: Process, name: string): string | null {
  const found = symbols.getenv(cString(name));
  return found === null ? null : new Deno.UnsafePointerView(found).getCString();
}

/**
 * What another process left to this one, in its order; `null`: nothing. It is asked for once, and no
 * program that this one starts inherits it.
 *
 * @throws {SvcError} `invalid`, when somebody else has set the variable to something else.
 */
export function inherit(process: Process): Legacy | null {
  const { symbols } = process;
  const value = environmentOf(process, LEGACY_VARIABLE);
  if (value === null) return null;
  symbols.unsetenv(cString(LEGACY_VARIABLE));
  const isOpen = (fd: unknown) =>
    Number.isSafeInteger(fd) && Number(fd) >= 0 && Number(fd) < 2 ** 31 &&
    symbols.fcntl(Number(fd), F_SETFD, FD_CLOEXEC) === 0;
  const legacy = parseLegacy(value);
  if (legacy === null || !legacy.descriptors.every(isOpen)) {
    throw new SvcError(
      "invalid",
      `${LEGACY_VARIABLE}: names no open descriptors: leave it unset`,
    );
  }
  return legacy;
}

function parseLegacy(value: string): Legacy | null {
  try {
    const { descriptors, notes } = JSON.parse(value);
    const isLegacy = Array.isArray(descriptors) && descriptors.length <= DESCRIPTORS_MAX;
    return isLegacy ? { descriptors, notes } : null;
  } catch {
    return null;
  }
}
