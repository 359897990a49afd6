/** A clock, a store in memory and a disk that fails at a chosen moment, for tests. */
import type { Clock } from "../clock/mod.ts";
import type { NewAuditEntry } from "../model/mod.ts";
import { type Batch, Store, type StoreOptions } from "./store.ts";

export class FakeClock implements Clock {
  constructor(public timeMs: number = Date.UTC(2026, 0, 1)) {}

  nowMs(): number {
    return this.timeMs;
  }
}

/** What changes nothing of a store, for a test to put something in. */
export function nothing({ state }: Store): Batch {
  return { base: state, state, writes: [], audit: [], proposals: [] };
}

export function auditEntry(action: string, rest: Partial<NewAuditEntry> = {}): NewAuditEntry {
  return {
    time: "2026-01-02T03:04:05.678Z",
    actor: { kind: "system", name: null, address: null },
    action,
    resource: { type: "node", id: null },
    before: null,
    after: null,
    node: "node-1",
    ...rest,
  };
}

/** How one commit goes: it fails before anything is written, or is made and then called failed. */
export type Fault = "before" | "after" | null;

/**
 * A store file in memory that outlives its `close`, so that it can be opened again as after a
 * crash. `faultOf` is asked at each commit, counted from 1; a disk that has failed may stay so.
 */
export class FaultyKv {
  /** What a store is opened over. */
  readonly kv: Deno.Kv;
  /** The file without faults. */
  readonly inner: Deno.Kv;
  commits = 0;
  faultOf: (commit: number) => Fault = () => null;

  private constructor(inner: Deno.Kv) {
    this.inner = inner;
    const methods: Partial<Record<string | symbol, unknown>> = {
      atomic: () => this.#atomic(),
      set: (key: Deno.KvKey, value: unknown) => this.#set(key, value),
      close: () => undefined,
    };
    this.kv = new Proxy(inner, {
      get: (target, name) => {
        if (name in methods) return methods[name];
        const value: unknown = Reflect.get(target, name, target);
        return typeof value === "function" ? value.bind(target) : value;
      },
    });
  }

  static async open(): Promise<FaultyKv> {
    return new FaultyKv(await Deno.openKv(":memory:"));
  }

  /** Counts for no commit; fails where the next one would. */
  async #set(key: Deno.KvKey, value: unknown): Promise<Deno.KvCommitResult> {
    if (this.faultOf(this.commits + 1) !== null) throw new Error("no space left on device");
    return await this.inner.set(key, value);
  }

  #atomic(): Deno.AtomicOperation {
    const operation = this.inner.atomic();
    const commit = async () => {
      const fault = this.faultOf(++this.commits);
      if (fault === "before") throw new Error("no space left on device");
      const result = await operation.commit();
      if (fault === "after") throw new Error("the disk went away");
      return result;
    };
    const faulty: Deno.AtomicOperation = new Proxy(operation, {
      get: (target, name) => {
        if (name === "commit") return commit;
        const method: unknown = Reflect.get(target, name, target);
        if (typeof method !== "function") return method;
        return (...args: unknown[]) => {
          method.apply(target, args);
          return faulty;
        };
      },
    });
    return faulty;
  }

  async store(options: Partial<StoreOptions> = {}): Promise<Store> {
    return await Store.over(this.kv, {
      clock: new FakeClock(),
      program: "0.7.0",
      node: "node-1",
      ...options,
    });
  }

  /** Every key with its value as text: what nobody changed is equal to what it was. */
  async dump(): Promise<[string, string][]> {
    const entries: [string, string][] = [];
    for await (const { key, value } of this.inner.list<Uint8Array>({ prefix: [] })) {
      entries.push([key.join("/"), new TextDecoder().decode(value)]);
    }
    return entries;
  }

  [Symbol.dispose](): void {
    this.inner.close();
  }
}
