import { countLabels, formatName, nameKey } from "../../dns/mod.ts";
import { ResolveFailure } from "../failure.ts";
import { lineOf } from "../flights/mod.ts";
import { clientOf, type Query } from "../query.ts";

/** Signatures of a zone that do not fit, beyond those that do, before it is failing. */
export const FAILED_CHECKS_MAX = 32;
/** So many of them are forgiven a second: a name that fails now and then is no reason. */
const FORGIVEN_PER_S = 1;
/** Seconds for which a failing zone is left alone, at first and at most (RFC 9520 §3.2: 300). */
export const FAILING_S_MIN = 2;
export const FAILING_S_MAX = 32;
/** Seconds that one question has then to show that the zone is in order again. */
export const PROBE_S = 2;
/** Seconds without a failure after which it begins anew with a zone. */
export const FORGOTTEN_S = 120;
/** Zones that something is known of, by line. */
export const FAILING_ZONES_MAX = 1_024;
const MS_PER_SECOND = 1_000;
/** Of the root and of top-level domains too much depends. */
const LABELS_MIN = 2;

interface Entry {
  /** Checks that failed, less those that did not and those that are forgiven, at `atS`. */
  failed: number;
  atS: number;
  /** For how long it was left alone the last time; 0: it never was. */
  lastS: number;
  /** Said until `untilS`, to all but the question with this key; `null`: it is not failing. */
  failure: ResolveFailure | null;
  untilS: number;
  probe: number;
}

/**
 * Zones whose answers have cost many checks of signatures and proven nothing (KeyTrap,
 * CVE-2023-50387). For a while their servers are asked nothing more (RFC 9520), and then one question.
 * That is so for the clients of one line (`lineOf`), who have asked: nobody can have a zone left alone
 * for all.
 *
 * A zone here is one whose own servers have answered. By the names in a signature anybody could have
 * others' zones left alone: they are what the signer writes.
 */
export class FailingZones {
  /** In the order in which something was learned of them. */
  readonly #entries = new Map<string, Entry>();
  readonly #nowMs: () => number;

  /** `nowMs` is of the monotonic clock: whoever sets the other has no zone left alone for longer. */
  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  get #nowS(): number {
    return this.#nowMs() / MS_PER_SECOND;
  }

  get size(): number {
    return this.#entries.size;
  }

  clear(): void {
    this.#entries.clear();
  }

  /** Why the servers of a zone are not to be asked a question, or `null`. */
  admit(zone: Uint8Array, query: Query): ResolveFailure | null {
    const entry = this.#find(zone, query);
    if (entry === undefined || entry.failure === null) return null;
    const nowS = this.#nowS;
    if (nowS < entry.untilS) return entry.failure;
    entry.probe = query.keyHash;
    entry.untilS = nowS + PROBE_S;
    return null;
  }

  /** The same of a question that was admitted, perhaps before its zone was failing. */
  refusal(zone: Uint8Array, query: Query): ResolveFailure | null {
    const entry = this.#find(zone, query);
    return entry === undefined || this.#counts(entry, query) ? null : entry.failure;
  }

  /** The answer to a question is bogus, for which so many signatures were checked and do not fit. */
  failed(zone: Uint8Array, query: Query, checks: number): void {
    if (checks === 0 || countLabels(zone, 0) < LABELS_MIN) return;
    const nowS = this.#nowS;
    const key = keyOf(zone, query);
    const entry = this.#entries.get(key) ??
      { failed: 0, atS: nowS, lastS: 0, failure: null, untilS: 0, probe: NaN };
    if (!this.#counts(entry, query)) return;
    this.#entries.delete(key);
    this.#entries.set(key, entry);
    if (this.#entries.size > FAILING_ZONES_MAX) this.#dropOldest();
    const quietS = nowS - entry.atS;
    if (quietS >= FORGOTTEN_S) entry.lastS = 0;
    entry.failed = Math.max(0, entry.failed - FORGIVEN_PER_S * quietS) + checks;
    entry.atS = nowS;
    if (entry.failure === null && entry.failed <= FAILED_CHECKS_MAX) return;
    entry.lastS = Math.min(FAILING_S_MAX, Math.max(FAILING_S_MIN, 2 * entry.lastS));
    entry.untilS = nowS + entry.lastS;
    entry.failure = failing(zone, entry.lastS);
    entry.probe = NaN;
    entry.failed = 0;
  }

  /** The answer to a question holds, so many signatures of which fit. */
  held(zone: Uint8Array, query: Query, checks: number): void {
    const entry = this.#find(zone, query);
    if (entry === undefined || !this.#counts(entry, query)) return;
    entry.failed = Math.max(0, entry.failed - checks);
    entry.failure = null;
  }

  /** Says whether a question was asked of a zone that was not left alone, or is what it may show by. */
  #counts({ failure, probe }: Entry, { keyHash }: Query): boolean {
    return failure === null || probe === keyHash;
  }

  #find(zone: Uint8Array, query: Query): Entry | undefined {
    return this.#entries.size === 0 ? undefined : this.#entries.get(keyOf(zone, query));
  }

  #dropOldest(): void {
    for (const key of this.#entries.keys()) {
      this.#entries.delete(key);
      return;
    }
  }
}

function keyOf(zone: Uint8Array, query: Query): string {
  return `${lineOf(clientOf(query))} ${nameKey(zone)}`;
}

function failing(zone: Uint8Array, seconds: number): ResolveFailure {
  const text = `too many signatures of ${formatName(zone)} do not fit, ` +
    `its servers are left alone for ${seconds} s (FAILED_CHECKS_MAX)`;
  return new ResolveFailure("failing", text);
}
