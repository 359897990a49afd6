import { SvcError } from "../errors.ts";
import type { Process } from "../native/system.ts";
import { blockSignals } from "./signals.ts";

/** Those that anything here needs. */
export const Capability = { NetBindService: 10, NetAdmin: 12, NetRaw: 13 } as const;
export type CapabilityNumber = typeof Capability[keyof typeof Capability];

export interface UserIds {
  readonly uid: number;
  readonly gid: number;
}

/** Linux has 41; the kernel refuses numbers that it does not know. */
const CAPABILITIES_MAX = 64;
/** `_LINUX_CAPABILITY_VERSION_3`: two words each of effective, permitted and inheritable. */
const CAPABILITY_VERSION = 0x2008_0522;
const PR_SET_KEEPCAPS = 8;
const PR_GET_SECCOMP = 21;
const PR_CAPBSET_READ = 23;
const PR_CAPBSET_DROP = 24;
const PR_SET_NO_NEW_PRIVS = 38;
const PR_CAP_AMBIENT = 47;
const AMBIENT_RAISE = 2;
const AMBIENT_CLEAR_ALL = 4;
const SIGUSR1 = 10;
/** Offsets in `passwd`. */
const UID_OFFSET = 16;
const GID_OFFSET = 20;

function bits(numbers: readonly number[]): bigint {
  return numbers.reduce((all, number) => all | (1n << BigInt(number)), 0n);
}

function header(): Uint8Array<ArrayBuffer> {
  return new Uint8Array(new Uint32Array([CAPABILITY_VERSION, 0]).buffer);
}

/** The effective capabilities of the calling thread, as bits. */
export function capabilities({ symbols }: Process): bigint {
  const words = new Uint32Array(6);
  if (symbols.capget(header(), new Uint8Array(words.buffer)) !== 0) return 0n;
  return BigInt(words[0]) | (BigInt(words[3]) << 32n);
}

/** What a process holds at a moment. */
export interface Held {
  /** The effective ones, as the system spells them. */
  readonly capabilities: readonly string[];
  /** A filter of system calls is on it. */
  readonly isFiltered: boolean;
}

/** What the calling thread holds. */
export function heldBy(process: Process): Held {
  const { symbols } = process;
  const all = capabilities(process);
  const numbers = Array.from({ length: CAPABILITIES_MAX }, (_, number) => number)
    .filter((number) => (all & (1n << BigInt(number))) !== 0n);
  const spelled = new Map<number, string>(
    Object.entries(Capability).map(([key, number]) => [
      number,
      `CAP${key.replace(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase()}`,
    ]),
  );
  return {
    capabilities: numbers.map((number) => spelled.get(number) ?? `capability ${number}`),
    isFiltered: symbols.prctl(PR_GET_SECCOMP, 0n, 0n, 0n, 0n) > 0,
  };
}

/** Says whether all of `wanted` are among the effective capabilities. */
export function hasCapabilities(process: Process, wanted: readonly CapabilityNumber[]): boolean {
  const all = bits(wanted);
  return (capabilities(process) & all) === all;
}

/** Whose IDs a name stands for, by whatever this system looks users up in; `null`: nobody's. */
export function lookUpUser({ symbols }: Process, name: string): UserIds | null {
  const entry = symbols.getpwnam(new TextEncoder().encode(`${name}\0`));
  if (entry === null) return null;
  const view = new Deno.UnsafePointerView(entry);
  return { uid: view.getUint32(UID_OFFSET), gid: view.getUint32(GID_OFFSET) };
}

/** The name of a user, or the number of one that has none. */
export function nameOf({ symbols }: Process, uid: number): string {
  const entry = symbols.getpwuid(uid);
  const name = entry === null ? null : new Deno.UnsafePointerView(entry).getPointer();
  return name === null ? String(uid) : new Deno.UnsafePointerView(name).getCString();
}

/**
 * Leaves the calling thread, and what it executes, with these capabilities and no others, as this
 * user where one is given, with no way to more, and deaf to SIGUSR1, at which the runtime would open
 * its debugger. It holds for the whole process once that has executed itself (`executeSelf`).
 *
 * @throws {SvcError} `unavailable`, with the step that the system refuses.
 */
export function dropPrivileges(
  process: Process,
  keep: readonly CapabilityNumber[],
  user: UserIds | null,
): void {
  const { symbols } = process;
  const must = (done: number, step: string) => {
    if (done !== 0) throw new SvcError("unavailable", `the system refuses to ${step}`);
  };
  const prctl = (option: number, argument: number, second = 0) =>
    symbols.prctl(option, BigInt(argument), BigInt(second), 0n, 0n);
  // What is dropped here, not even a program of the superuser's could have again. It takes a right
  // that only the superuser has; for others no_new_privs is what keeps them from more.
  for (let number = 0; number < CAPABILITIES_MAX; number++) {
    const isKept = keep.some((kept) => kept === number);
    if (!isKept && prctl(PR_CAPBSET_READ, number) === 1) prctl(PR_CAPBSET_DROP, number);
  }
  if (user !== null && symbols.geteuid() === 0) {
    must(prctl(PR_SET_KEEPCAPS, 1), "keep capabilities while the user changes");
    must(symbols.setgroups(0n, null), "leave the groups");
    must(symbols.setresgid(user.gid, user.gid, user.gid), `become group ${user.gid}`);
    must(symbols.setresuid(user.uid, user.uid, user.uid), `become user ${user.uid}`);
  }
  prctl(PR_CAP_AMBIENT, AMBIENT_CLEAR_ALL);
  const kept = bits(keep);
  const low = Number(kept & 0xffff_ffffn);
  const high = Number(kept >> 32n);
  const words = new Uint32Array([low, low, low, high, high, high]);
  must(symbols.capset(header(), new Uint8Array(words.buffer)), "give up capabilities");
  for (const number of keep) {
    must(prctl(PR_CAP_AMBIENT, AMBIENT_RAISE, number), `keep capability ${number}`);
  }
  must(prctl(PR_SET_NO_NEW_PRIVS, 1), "rule out new privileges");
  must(blockSignals(process, [SIGUSR1]) ? 0 : -1, "block SIGUSR1");
}
