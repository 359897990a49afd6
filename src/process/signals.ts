import type { Process } from "../native/system.ts";

const SIG_BLOCK = 0;
const SIG_UNBLOCK = 1;
const SIGSET_BYTES = 128;
/** SIGHUP, SIGINT, SIGUSR2 and SIGTERM: what whoever supervises a program sends it. */
const ORDERS = [1, 2, 12, 15];

/** `sigset_t` of these signals: bits count from 1. */
function signalSet(numbers: readonly number[]): Uint8Array<ArrayBuffer> {
  const set = new Uint8Array(SIGSET_BYTES);
  for (const number of numbers) set[(number - 1) >> 3] |= 1 << ((number - 1) & 7);
  return set;
}

/** Blocks signals for the calling thread, and what it executes; says whether the system did. */
export function blockSignals({ symbols }: Process, numbers: readonly number[]): boolean {
  return symbols.sigprocmask(SIG_BLOCK, signalSet(numbers), null) === 0;
}

/**
 * Has orders wait from now on, over an execution too, until somebody hears them: nobody listens in
 * between, and each would end the process where it stands.
 */
export function holdOrders(process: Process): void {
  blockSignals(process, ORDERS);
}

/** Has the calling thread, whose listeners are there by now, hear what waits. */
export function hearOrders({ symbols }: Process): void {
  symbols.sigprocmask(SIG_UNBLOCK, signalSet(ORDERS), null);
}
