import { SvcError } from "../errors.ts";
import { environmentPointer, type HandOver, type Process } from "../native/system.ts";
import { cString } from "./c_string.ts";
import { argumentVector, leaving, type Legacy, type Program } from "./self.ts";

const WNOHANG = 1;
const SIGKILL = 9;
/** Of the status that `waitpid` gives: set where a signal ended the process. */
const SIGNAL_MASK = 0x7f;

/**
 * Starts a program, which inherits `legacy`; its process ID.
 *
 * @throws {SvcError} `unavailable`, when the system refuses.
 */
export function startProgram(
  process: Process,
  { symbols }: HandOver,
  { path, args }: Program,
  legacy: Legacy,
): number {
  const pid = new Int32Array(1);
  const { vector, keep } = argumentVector(args);
  const failed = leaving(process, legacy, () =>
    symbols.posix_spawn(
      new Uint8Array(pid.buffer),
      cString(path),
      null,
      null,
      vector,
      environmentPointer(),
    ));
  keep.fill(0); // Until here it was in use.
  if (failed === 0) return pid[0];
  throw new SvcError("unavailable", `cannot start ${path}: may this user execute it? (${failed})`);
}

/** The exit code of a child that has ended, 128 and more of a signal; `null`: it has not. */
export function exitCodeOf({ symbols }: HandOver, pid: number): number | null {
  const status = new Int32Array(1);
  if (symbols.waitpid(pid, new Uint8Array(status.buffer), WNOHANG) !== pid) return null;
  const signal = status[0] & SIGNAL_MASK;
  return signal === 0 ? (status[0] >> 8) & 0xff : 128 + signal;
}

/** Ends a process at once. */
export function killProcess({ symbols }: HandOver, pid: number): void {
  if (pid > 1) symbols.kill(pid, SIGKILL);
}
