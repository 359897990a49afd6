import { invariant } from "../errors.ts";
import type { Configuration } from "./configuration.ts";
import { ENTRY_OVERHEAD_BYTES } from "./limits.ts";
import type { Entry, LogEnd, RaftSnapshot } from "./messages.ts";

interface ConfigurationAt {
  readonly index: number;
  readonly configuration: Configuration;
}

/** What an entry counts for where bytes are bounded. */
export function sizeOf(entry: Entry): number {
  return ENTRY_OVERHEAD_BYTES + (entry.type === "command" ? entry.data.length : 0);
}

/**
 * A log and the Raft snapshot before it; immutable. Logs share their entries: `#entries` may be
 * longer than this one is, but nothing within its length ever changes.
 */
export class Log {
  readonly #entries: Entry[];
  readonly #length: number;
  /** Those of the entries, in their order. */
  readonly #configurations: readonly ConfigurationAt[];

  private constructor(
    readonly base: RaftSnapshot,
    entries: Entry[],
    length: number,
    configurations: readonly ConfigurationAt[],
  ) {
    this.#entries = entries;
    this.#length = length;
    this.#configurations = configurations;
  }

  /** @throws {InvariantError} If the entries do not follow `base` and one another. */
  static of(base: RaftSnapshot, entries: readonly Entry[] = []): Log {
    return new Log(base, [], 0, []).append(entries);
  }

  get lastIndex(): number {
    return this.base.index + this.#length;
  }

  get lastTerm(): number {
    return this.#length === 0 ? this.base.term : this.#entries[this.#length - 1].term;
  }

  get end(): LogEnd {
    return { lastLogIndex: this.lastIndex, lastLogTerm: this.lastTerm };
  }

  /** In force: the last one in the log, committed or not. */
  get configuration(): Configuration {
    return (this.#configurations.at(-1) ?? this.base).configuration;
  }

  get configurationIndex(): number {
    return (this.#configurations.at(-1) ?? this.base).index;
  }

  /** The configuration that was in force when `index` was the last entry. */
  configurationAt(index: number): Configuration {
    return (this.#configurations.findLast((at) => at.index <= index) ?? this.base).configuration;
  }

  /** The term of an entry, or -1 where the log does not reach. */
  termAt(index: number): number {
    const { base } = this;
    if (index === base.index) return base.term;
    return index > base.index && index <= this.lastIndex
      ? this.#entries[index - base.index - 1].term
      : -1;
  }

  /** Entries from `from` through `to`, as many as fit; at least one, if there is one. */
  slice(from: number, to: number, bytesMax = Infinity, entriesMax = Infinity): Entry[] {
    const offset = this.base.index + 1;
    const start = Math.max(from, offset);
    const end = Math.min(to, this.lastIndex, start + entriesMax - 1);
    const entries: Entry[] = [];
    for (let index = start, bytes = 0; index <= end; index++) {
      const entry = this.#entries[index - offset];
      bytes += sizeOf(entry);
      if (bytes > bytesMax && entries.length > 0) break;
      entries.push(entry);
    }
    return entries;
  }

  /** Whether another log is at least as new as this one (Raft paper §5.4.1). */
  isUpToDate({ lastLogIndex, lastLogTerm }: LogEnd): boolean {
    return lastLogTerm > this.lastTerm ||
      (lastLogTerm === this.lastTerm && lastLogIndex >= this.lastIndex);
  }

  /** Whether another log is newer than this one. */
  isBehind({ lastLogIndex, lastLogTerm }: LogEnd): boolean {
    return lastLogTerm > this.lastTerm ||
      (lastLogTerm === this.lastTerm && lastLogIndex > this.lastIndex);
  }

  /**
   * The last place, at `index` or before, whose term is at most `term`: terms only rise, so no
   * later place can be the same in a log that has `term` at `index`.
   */
  lastCandidate(index: number, term: number): number {
    let low = this.base.index;
    let high = Math.min(index, this.lastIndex);
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      if (this.termAt(middle) <= term) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  /** @throws {InvariantError} If the entries do not follow this log and one another. */
  append(entries: readonly Entry[]): Log {
    if (entries.length === 0) return this;
    let { lastIndex, lastTerm } = this;
    for (const { index, term } of entries) {
      invariant(index === ++lastIndex && term >= lastTerm, "entries of a log follow one another");
      lastTerm = term;
    }
    // Another log may have been continued from this one and own what comes after.
    const isOwn = this.#entries.length === this.#length;
    const all = isOwn ? this.#entries : this.#entries.slice(0, this.#length);
    for (const entry of entries) all.push(entry);
    let configurations = this.#configurations;
    for (const entry of entries) {
      if (entry.type === "configuration") configurations = [...configurations, entry];
    }
    return new Log(this.base, all, this.#length + entries.length, configurations);
  }

  /** Without the entries from `index` on, which lies after the Raft snapshot. */
  truncate(index: number): Log {
    if (index > this.lastIndex) return this;
    invariant(index > this.base.index, "a log is cut after its Raft snapshot");
    const configurations = this.#configurations.filter((at) => at.index < index);
    return new Log(this.base, this.#entries, index - this.base.index - 1, configurations);
  }

  /** What stands for the log up to `index`, or null where the log does not reach. */
  snapshotAt(index: number): RaftSnapshot | null {
    const term = this.termAt(index);
    return term < 0 ? null : { index, term, configuration: this.configurationAt(index) };
  }

  /** Without the entries that `snapshot`, which is one of this log, stands for. */
  compact(snapshot: RaftSnapshot): Log {
    const entries = this.#entries.slice(snapshot.index - this.base.index, this.#length);
    const configurations = this.#configurations.filter((at) => at.index > snapshot.index);
    return new Log(snapshot, entries, entries.length, configurations);
  }
}
