import { formatIp, parseIp, unmapIpv4 } from "../addr/mod.ts";
import type { Clock } from "../clock/mod.ts";
import { SvcError } from "../errors.ts";
import { USER_NAME_LENGTH_MAX } from "../model/mod.ts";
import { isWithin } from "./sessions.ts";

/** Failures within the window that lock an address or a user name. */
export const FAILURES_MAX = 5;
export const FAILURE_WINDOW_MS = 5 * 60_000;
export const LOCKED_MS = 5 * 60_000;

/**
 * Most addresses, and as many names, that are counted. Each failure costs a password hash, two of
 * which run at once: no guesser makes five for each of so many before the first lock has ended.
 */
const ENTRIES_MAX = 16_384;
/** The wait while attempts that are under way may still turn out to be the last failures. */
const BUSY_RETRY_SECONDS = 1;
/** Bytes of an IPv6 address that are counted: a /64 is one customer's. */
const IPV6_NETWORK_BYTES = 8;

/** Too many failed attempts; it passes after `retryAfterSeconds`. */
export class LockedError extends SvcError {
  constructor(readonly retryAfterSeconds: number) {
    super("too_many_requests", `too many failed attempts: wait ${retryAfterSeconds} seconds`);
  }
}

/** What was locked: one of both. */
export interface Locked {
  readonly address: string | null;
  /** As it was typed, in lower case; it may be a password in the wrong field. */
  readonly name: string | null;
  readonly untilMs: number;
}

/** Failures of one address or name. */
interface Entry {
  /** When each failed, the oldest first. */
  failuresMs: number[];
  /** Attempts that have begun and not ended. */
  pending: number;
  lockedUntilMs: number;
}

/** One attempt, from its beginning; exactly one of the three ends it, and the first one counts. */
export interface Attempt {
  /** It was right: what was counted against the name is forgotten, the address keeps its failures. */
  succeed(): void;
  fail(): void;
  /** It was neither: it broke off, or was right as far as it went. */
  drop(): void;
}

/** Counts failed attempts by address and by user name, and refuses more where there were many. */
export class Lockout {
  /** Called when an address (IPv6: a /64) or a name is locked. */
  onLocked: (what: Locked) => void = () => {};
  readonly #addresses: Table;
  readonly #names: Table;
  readonly #clock: Clock;

  constructor(clock: Clock, entriesMax = ENTRIES_MAX) {
    this.#clock = clock;
    this.#addresses = new Table(entriesMax, (key, untilMs) => {
      this.onLocked({ address: key, name: null, untilMs });
    });
    this.#names = new Table(entriesMax, (key, untilMs) => {
      this.onLocked({ address: null, name: key, untilMs });
    });
  }

  /**
   * Begins an attempt. It counts from now on, so that many at once get no further than many in
   * turn. `null` stands for an attempt that has no address or no name.
   *
   * @throws {LockedError} While the address or the name is locked.
   */
  begin(address: string | null, name: string | null): Attempt {
    const nowMs = this.#clock.nowMs();
    const keys: (readonly [Table, string])[] = [];
    if (address !== null) keys.push([this.#addresses, addressKey(address)]);
    if (name !== null) keys.push([this.#names, nameKey(name)]);
    const waits = keys.map(([table, key]) => table.waitSeconds(key, nowMs));
    const wait = Math.max(0, ...waits);
    if (wait > 0) throw new LockedError(wait);
    for (const [table, key] of keys) table.begin(key, nowMs);
    let isOpen = true;
    const end = (act: (table: Table, key: string) => void) => {
      if (!isOpen) return;
      isOpen = false;
      for (const [table, key] of keys) {
        table.end(key);
        act(table, key);
      }
    };
    return {
      succeed: () => end((table, key) => table === this.#names && table.forget(key)),
      fail: () => end((table, key) => table.fail(key, this.#clock.nowMs())),
      drop: () => end(() => {}),
    };
  }
}

/** What a name is counted as: whatever finds the same user counts for one. */
function nameKey(name: string): string {
  return name.normalize("NFC").toLowerCase().slice(0, USER_NAME_LENGTH_MAX);
}

/** What an address is counted as: IPv4 whole, IPv6 by its /64. */
export function addressKey(text: string): string {
  const parsed = parseIp(text.replace(/%.*$/, ""));
  if (parsed === null) return text;
  const ip = unmapIpv4(parsed);
  if (ip.length === 4) return formatIp(ip);
  const network = new Uint8Array(ip.length);
  network.set(ip.subarray(0, IPV6_NETWORK_BYTES));
  return `${formatIp(network)}/64`;
}

/** The failures of one kind of key. */
class Table {
  readonly #entries = new Map<string, Entry>();
  readonly #entriesMax: number;
  readonly #onLocked: (key: string, untilMs: number) => void;

  constructor(entriesMax: number, onLocked: (key: string, untilMs: number) => void) {
    this.#entriesMax = entriesMax;
    this.#onLocked = onLocked;
  }

  /** Seconds until the next attempt may begin; 0: now. */
  waitSeconds(key: string, nowMs: number): number {
    const entry = this.#entries.get(key);
    if (entry === undefined) return 0;
    if (isLocked(entry, nowMs)) return Math.ceil((entry.lockedUntilMs - nowMs) / 1_000);
    forgetOld(entry, nowMs);
    return entry.failuresMs.length + entry.pending < FAILURES_MAX ? 0 : BUSY_RETRY_SECONDS;
  }

  begin(key: string, nowMs: number): void {
    this.#entryOf(key, nowMs).pending++;
  }

  end(key: string): void {
    const entry = this.#entries.get(key);
    // It may have been dropped to make room, and come back since.
    if (entry === undefined || entry.pending === 0) return;
    entry.pending--;
    this.#dropIfIdle(key, entry);
  }

  fail(key: string, nowMs: number): void {
    const entry = this.#entryOf(key, nowMs);
    forgetOld(entry, nowMs);
    entry.failuresMs.push(nowMs);
    if (entry.failuresMs.length < FAILURES_MAX) return;
    entry.failuresMs = [];
    entry.lockedUntilMs = nowMs + LOCKED_MS;
    this.#onLocked(key, entry.lockedUntilMs);
  }

  forget(key: string): void {
    const entry = this.#entries.get(key);
    if (entry === undefined) return;
    entry.failuresMs = [];
    this.#dropIfIdle(key, entry);
  }

  /** An entry that was ever locked stays until its room is needed: its end is not known here. */
  #dropIfIdle(key: string, entry: Entry): void {
    const isIdle = entry.pending === 0 && entry.failuresMs.length === 0;
    if (isIdle && entry.lockedUntilMs === 0) this.#entries.delete(key);
  }

  #entryOf(key: string, nowMs: number): Entry {
    const known = this.#entries.get(key);
    if (known !== undefined) return known;
    if (this.#entries.size >= this.#entriesMax) this.#makeRoom(nowMs);
    const entry: Entry = { failuresMs: [], pending: 0, lockedUntilMs: 0 };
    this.#entries.set(key, entry);
    return entry;
  }

  /** Drops what is over; else the entry with least against it, so that a flood evicts its own. */
  #makeRoom(nowMs: number): void {
    let victim: string | null = null;
    let least = Infinity;
    for (const [key, entry] of this.#entries) {
      forgetOld(entry, nowMs);
      const weight = isLocked(entry, nowMs)
        ? FAILURES_MAX
        : entry.failuresMs.length + entry.pending;
      if (weight === 0) this.#entries.delete(key);
      else if (weight < least) [victim, least] = [key, weight];
    }
    if (victim !== null && this.#entries.size >= this.#entriesMax) this.#entries.delete(victim);
  }
}

/** A lock of days to come was made while the clock was ahead, and nobody waits for its end. */
function isLocked({ lockedUntilMs }: Entry, nowMs: number): boolean {
  return isWithin(nowMs, lockedUntilMs, LOCKED_MS);
}

function forgetOld(entry: Entry, nowMs: number): void {
  entry.failuresMs = entry.failuresMs.filter((failedMs) =>
    isWithin(nowMs, failedMs + FAILURE_WINDOW_MS, FAILURE_WINDOW_MS)
  );
}
