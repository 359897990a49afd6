import type { Clock } from "../clock/mod.ts";
import type { LeakTest } from "./schemas/logs.ts";

const NAMES_PER_TEST = 8;
/** How long a test is kept, in memory only. */
const LIFETIME_MS = 3_600_000;
/** Most tests at a time; the oldest makes room. */
const TESTS_MAX = 64;
/** Most lookups that one test notes. */
const LOOKUPS_MAX = 256;
const RANDOM_BYTES = 8;
/** Below it only this service answers. */
const ZONE = "leak.svc.test";

export interface LeakTestPorts {
  readonly clock: Clock;
  /** Bytes that nobody can guess, as lower-case hexadecimal. */
  readonly randomHex: (lengthBytes: number) => string;
}

/** Somebody who asked for a name of a test. */
type Lookup = LeakTest["lookups"][number];

interface Kept {
  readonly test: Omit<LeakTest, "reached" | "lookups">;
  readonly endsAtMs: number;
  readonly reached: Set<string>;
  readonly lookups: Lookup[];
}

/** A test as one process leaves it to the next. */
export type SavedLeakTest = Omit<Kept, "reached"> & { readonly reached: readonly string[] };

/** DNS leak tests of this node: names that only it answers, and who asked for them. */
export class LeakTests {
  readonly #ports: LeakTestPorts;
  readonly #tests = new Map<string, Kept>();

  /** `saved` are those of a former process. */
  constructor(ports: LeakTestPorts, saved: readonly SavedLeakTest[] = []) {
    this.#ports = ports;
    for (const { reached, lookups, ...kept } of saved.slice(0, TESTS_MAX)) {
      const { id } = kept.test;
      this.#tests.set(id, { ...kept, reached: new Set(reached), lookups: [...lookups] });
    }
  }

  /** Those that are kept, for a process that takes them over. */
  save(): SavedLeakTest[] {
    this.#forget();
    return [...this.#tests.values()].map((kept) => ({ ...kept, reached: [...kept.reached] }));
  }

  start(): LeakTest {
    const { clock, randomHex } = this.#ports;
    this.#forget();
    const [oldest] = this.#tests.keys();
    if (this.#tests.size >= TESTS_MAX) this.#tests.delete(oldest);
    const key = randomHex(RANDOM_BYTES);
    const kept: Kept = {
      test: {
        id: `lt_${key}`,
        names: Array.from({ length: NAMES_PER_TEST }, (_, i) => `${i}-${key}.${ZONE}`),
        created_at: new Date(clock.nowMs()).toISOString(),
      },
      endsAtMs: clock.nowMs() + LIFETIME_MS,
      reached: new Set(),
      lookups: [],
    };
    this.#tests.set(kept.test.id, kept);
    return shown(kept);
  }

  find(id: string): LeakTest | null {
    this.#forget();
    const kept = this.#tests.get(id);
    return kept === undefined ? null : shown(kept);
  }

  /** The oldest first. */
  all(): LeakTest[] {
    this.#forget();
    return [...this.#tests.values()].map(shown);
  }

  /** Notes who asked for a name, in lower case; says whether it is one of a test. */
  note(name: string, lookup: Lookup): boolean {
    const key = /^\d-([0-9a-f]+)\./.exec(name)?.[1] ?? "";
    const kept = this.#tests.get(`lt_${key}`);
    if (kept === undefined || !kept.test.names.includes(name)) return false;
    kept.reached.add(name);
    const isKnown = kept.lookups.some(({ address, protocol, client }) =>
      address === lookup.address && protocol === lookup.protocol && client === lookup.client
    );
    if (!isKnown && kept.lookups.length < LOOKUPS_MAX) kept.lookups.push(lookup);
    return true;
  }

  #forget(): void {
    const nowMs = this.#ports.clock.nowMs();
    for (const [id, { endsAtMs }] of this.#tests) if (endsAtMs <= nowMs) this.#tests.delete(id);
  }
}

function shown({ test, reached, lookups }: Kept): LeakTest {
  return { ...test, reached: reached.size, lookups: [...lookups] };
}
