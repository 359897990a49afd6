/** A clock, a store in memory and a disk that fails at a chosen moment, for tests. */
import type { Clock } from "../clock/mod.ts";
import type { NewAuditEntry } from "../model/mod.ts";
import type { RaftDisk, RaftFile } from "./raft_log.ts";
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
  /** The file without faults. */
  readonly inner: Deno.Kv;
  commits = 0;
  faultOf: (commit: number) => Fault = () => null;
  #generation = 0;

  private constructor(inner: Deno.Kv) {
    this.inner = inner;
  }

  /** What a store is opened over, until its process dies. */
  get kv(): Deno.Kv {
    const generation = this.#generation;
    const methods: Partial<Record<string | symbol, unknown>> = {
      atomic: () => this.#atomic(generation),
      set: (key: Deno.KvKey, value: unknown) => this.#set(generation, key, value),
      close: () => undefined,
    };
    return new Proxy(this.inner, {
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

  /** Another file with what is in this one. */
  async copy(): Promise<FaultyKv> {
    const other = await FaultyKv.open();
    for await (const { key, value } of this.inner.list({ prefix: [] })) {
      await other.inner.set(key, value);
    }
    return other;
  }

  /** The process that has it dies: what that one was about to write is never written. */
  crash(): void {
    this.#generation++;
  }

  async #alive(generation: number): Promise<void> {
    if (generation !== this.#generation) await new Promise(() => {});
  }

  /** Counts for no commit; fails where the next one would. */
  async #set(
    generation: number,
    key: Deno.KvKey,
    value: unknown,
  ): Promise<Deno.KvCommitResult> {
    await this.#alive(generation);
    if (this.faultOf(this.commits + 1) !== null) throw new Error("no space left on device");
    return await this.inner.set(key, value);
  }

  #atomic(generation: number): Deno.AtomicOperation {
    const operation = this.inner.atomic();
    const commit = async () => {
      await this.#alive(generation);
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

/** A piece that a disk writes whole or not at all. */
const SECTOR_BYTES = 512;

interface MemoryFile {
  bytes: Uint8Array;
  /** As of the last sync. */
  durable: Uint8Array;
}

/** A folder in memory that loses what was not synced, when it is told to. */
export class MemoryRaftDisk implements RaftDisk {
  #files = new Map<string, MemoryFile>();
  #generation = 0;
  /** Writes fail. */
  isFull = false;
  /** It says that something is durable which is not. */
  isLying = false;
  /** Asked at each sync, which waits for it. */
  beforeSync: () => Promise<void> | null = () => null;

  get names(): string[] {
    return [...this.#files.keys()];
  }

  /** What would be read after a restart. */
  file(name: string): MemoryFile | undefined {
    return this.#files.get(name);
  }

  /** Another folder with what is in this one. */
  copy(): MemoryRaftDisk {
    const other = new MemoryRaftDisk();
    for (const [name, { bytes, durable }] of this.#files) {
      other.#files.set(name, { bytes: bytes.slice(), durable: durable.slice() });
    }
    return other;
  }

  /** Of a process that died: of what was not synced, each sector is there or is not. */
  crash(keeps: () => boolean): void {
    this.#generation++;
    for (const file of this.#files.values()) {
      const { bytes, durable } = file;
      const next = new Uint8Array(keeps() ? bytes.length : durable.length);
      for (let at = 0; at < next.length; at += SECTOR_BYTES) {
        const from = at < bytes.length && (at >= durable.length || keeps()) ? bytes : durable;
        next.set(from.subarray(at, at + SECTOR_BYTES).subarray(0, next.length - at), at);
      }
      file.bytes = file.durable = next;
    }
  }

  open(name: string, mode: "make" | "find"): Promise<RaftFile | null> {
    let file = this.#files.get(name);
    if (file === undefined) {
      if (mode === "find") return Promise.resolve(null);
      if (this.isFull) return Promise.reject(new Error("no space left on device"));
      file = { bytes: new Uint8Array(0), durable: new Uint8Array(0) };
      this.#files.set(name, file);
    }
    return Promise.resolve(this.#handle(file));
  }

  rename(from: string, to: string): Promise<void> {
    const file = this.#files.get(from);
    if (file === undefined) return Promise.reject(new Error(`${from} is not there`));
    this.#files.delete(from);
    this.#files.set(to, file);
    return Promise.resolve();
  }

  remove(name: string): Promise<void> {
    this.#files.delete(name);
    return Promise.resolve();
  }

  #handle(file: MemoryFile): RaftFile {
    const generation = this.#generation;
    // A process that died never hears of what it asked for.
    const alive = <T>(work: () => T | Promise<T>): Promise<T> =>
      generation === this.#generation
        ? new Promise((resolve) => resolve(work()))
        : new Promise(() => {});
    const room = () => {
      if (this.isFull) throw new Error("no space left on device");
    };
    return {
      length: () => alive(() => file.bytes.length),
      read: (at, length) => alive(() => file.bytes.slice(at, at + length)),
      write: (at, bytes) =>
        alive(() => {
          room();
          if (at + bytes.length > file.bytes.length) resize(file, at + bytes.length);
          file.bytes.set(bytes, at);
        }),
      truncate: (length) => alive(() => resize(file, length)),
      sync: () =>
        alive(async () => {
          await this.beforeSync();
          await alive(() => {
            room();
            if (!this.isLying) file.durable = file.bytes.slice();
          });
        }),
      close: () => {},
    };
  }
}

function resize(file: MemoryFile, length: number): void {
  const bytes = new Uint8Array(length);
  bytes.set(file.bytes.subarray(0, length));
  file.bytes = bytes;
}
