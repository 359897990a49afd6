/** A disk, a clock, a network, chance and a keeper for tests: the same each time for the same seed. */
import assert from "node:assert/strict";
import type { Clock } from "../clock/mod.ts";
import type { HttpGet } from "../http/mod.ts";
import { ListKeeper, type RefreshEvent, type RefreshOptions } from "./keeper.ts";
import type { Chance, Disk, DiskFile, DiskStat } from "./ports.ts";
import type { ListSource } from "./source.ts";

export const DAY_MS = 86_400_000;

/** Numbers from a seed (mulberry32); not for secrets. */
export function seededChance(seed: number): Chance {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

export class FakeClock implements Clock {
  constructor(public timeMs: number = Date.UTC(2026, 0, 1)) {}

  nowMs(): number {
    return this.timeMs;
  }
}

/** What a fake server says; a missing header is not sent. */
export interface FakeAnswer {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array | AsyncIterable<Uint8Array>;
}

/** Answers each request by `answer`, which may throw; `asked` notes the requests. */
export class FakeNetwork {
  readonly asked: { url: string; headers: Readonly<Record<string, string>> }[] = [];
  constructor(
    public answer: (
      url: URL,
      headers: Readonly<Record<string, string>>,
      signal: AbortSignal,
    ) => FakeAnswer,
  ) {}

  readonly get: HttpGet = (url, { headers, signal }) => {
    this.asked.push({ url: url.href, headers });
    try {
      const { status = 200, headers: head = {}, body = "" } = this.answer(url, headers, signal);
      return Promise.resolve({ status, headers: head, body: pieces(body) });
    } catch (error) {
      return Promise.reject(error);
    }
  };
}

async function* pieces(body: string | Uint8Array | AsyncIterable<Uint8Array>) {
  if (typeof body === "string") yield new TextEncoder().encode(body);
  else if (body instanceof Uint8Array) yield body;
  else yield* body;
}

interface Inode {
  bytes: Uint8Array;
  durable: Uint8Array;
}

type Names = Map<string, Inode>;

export class CrashError extends Error {
  override readonly name = "CrashError";
}

/** A disk in memory that counts its writing steps and can fail or die at any of them. */
export class MemoryDisk implements Disk {
  /** Writing steps so far. */
  steps = 0;
  /** The step that fails, and the one at which the process ends. */
  failingStep = Infinity;
  lastStep = Infinity;
  #live: Names = new Map();
  #durable: Names = new Map();
  /** Changes of names that a loss of power may undo, each by itself. */
  #pending: ((names: Names) => void)[] = [];

  /** What is there after the process was killed: all that was done. */
  afterKill(): MemoryDisk {
    const disk = new MemoryDisk();
    for (const [path, { bytes }] of this.#live) {
      const inode = { bytes: bytes.slice(), durable: bytes.slice() };
      disk.#live.set(path, inode);
      disk.#durable.set(path, inode);
    }
    return disk;
  }

  /** What is there after a loss of power: what was durable, and some of the rest. */
  afterOutage(chance: Chance): MemoryDisk {
    const names: Names = new Map(this.#durable);
    for (const change of this.#pending) if (chance() < 0.5) change(names);
    const disk = new MemoryDisk();
    for (const [path, { bytes, durable }] of names) {
      const lost = bytes === durable ? bytes : bytes.slice(0, Math.floor(chance() * bytes.length));
      const inode = { bytes: lost, durable: lost };
      disk.#live.set(path, inode);
      disk.#durable.set(path, inode);
    }
    return disk;
  }

  /** Puts a file there, durable, without a step. */
  put(path: string, content: string | Uint8Array): void {
    const bytes = typeof content === "string" ? new TextEncoder().encode(content) : content;
    const inode = { bytes, durable: bytes };
    this.#live.set(path, inode);
    this.#durable.set(path, inode);
  }

  paths(): string[] {
    return [...this.#live.keys()].sort();
  }

  text(path: string): string {
    return new TextDecoder().decode(this.#inode(path).bytes);
  }

  makeDirectory(): Promise<void> {
    return Promise.resolve();
  }

  names(directory: string): Promise<string[]> {
    const prefix = directory + "/";
    const below = this.paths().filter((path) => path.startsWith(prefix));
    return Promise.resolve(below.map((path) => path.slice(prefix.length)));
  }

  // Async throughout, so that what is absent rejects, as it does on a real disk.
  // deno-lint-ignore require-await
  async stat(path: string): Promise<DiskStat> {
    return { isFile: true, sizeBytes: this.#inode(path).bytes.length };
  }

  // deno-lint-ignore require-await
  async realPath(path: string): Promise<string> {
    const isDirectory = this.paths().some((other) => other.startsWith(path + "/"));
    if (!isDirectory) this.#inode(path);
    return path;
  }

  async *chunks(path: string): AsyncGenerator<Uint8Array> {
    const { bytes } = this.#inode(path);
    const middle = bytes.length >> 1;
    if (middle > 0) yield bytes.slice(0, middle);
    yield bytes.slice(middle);
  }

  // deno-lint-ignore require-await
  async create(path: string): Promise<DiskFile> {
    this.#step();
    const inode: Inode = { bytes: new Uint8Array(), durable: new Uint8Array() };
    this.#change((names) => names.set(path, inode));
    const append = (bytes: Uint8Array) => {
      const whole = new Uint8Array(inode.bytes.length + bytes.length);
      whole.set(inode.bytes);
      whole.set(bytes, inode.bytes.length);
      inode.bytes = whole;
    };
    return {
      // deno-lint-ignore require-await
      write: async (bytes) => {
        this.#step(() => append(bytes.subarray(0, bytes.length >> 1)));
        append(bytes);
      },
      // deno-lint-ignore require-await
      sync: async () => {
        this.#step();
        inode.durable = inode.bytes;
      },
      close: () => undefined,
    };
  }

  // deno-lint-ignore require-await
  async rename(from: string, to: string): Promise<void> {
    this.#step();
    const inode = this.#inode(from);
    this.#change((names) => {
      names.delete(from);
      names.set(to, inode);
    });
  }

  // deno-lint-ignore require-await
  async remove(path: string): Promise<void> {
    this.#step();
    this.#inode(path);
    this.#change((names) => names.delete(path));
  }

  // deno-lint-ignore require-await
  async syncDirectory(): Promise<void> {
    this.#step();
    this.#durable = new Map(this.#live);
    this.#pending = [];
  }

  #inode(path: string): Inode {
    const inode = this.#live.get(path);
    if (inode === undefined) throw new Deno.errors.NotFound(`no such file: ${path}`);
    return inode;
  }

  #change(change: (names: Names) => void): void {
    change(this.#live);
    this.#pending.push(change);
  }

  /** Counts a step and fails it if it is its turn; `half` is what a failed step still did. */
  #step(half: () => void = () => undefined): void {
    this.steps++;
    if (this.steps === this.failingStep || this.steps === this.lastStep) half();
    if (this.steps === this.failingStep) throw new Error("no space left on device");
    if (this.steps >= this.lastStep) throw new CrashError("the process is gone");
  }
}

/** A keeper in `/kept` with all its surroundings; lists by path are in `/local`. `reopen` is a new start on the same disk. */
export class KeeperBench {
  readonly clock = new FakeClock();
  readonly network = new FakeNetwork((url) => ({ body: `||${url.pathname.slice(1)}.example^\n` }));
  disk = new MemoryDisk();
  keeper!: ListKeeper;

  static async open(disk = new MemoryDisk()): Promise<KeeperBench> {
    const bench = new KeeperBench();
    bench.disk = disk;
    await bench.reopen();
    return bench;
  }

  async reopen(): Promise<void> {
    const { clock, disk, network } = this;
    const options = {
      get: network.get,
      clock,
      disk,
      chance: () => 0,
      localListsDirectory: "/local",
    };
    this.keeper = await ListKeeper.open("/kept", options);
  }

  /** `id outcome` of each list that was due, in the order in which they were done. */
  async refresh(sources: ListSource[], options: Partial<RefreshOptions> = {}): Promise<string[]> {
    const outcomes: string[] = [];
    const onFinished = ({ source: { id }, outcome }: RefreshEvent) =>
      void outcomes.push(`${id} ${outcome}`);
    await this.keeper.refresh(sources, { intervalMs: DAY_MS, onFinished, ...options }).done;
    return outcomes;
  }

  /** `id text` of each list that is at hand. */
  async load(sources: ListSource[], alsoKeep: string[] = []): Promise<string[]> {
    const texts: string[] = [];
    for await (const { source, bytes } of this.keeper.load(sources, () => alsoKeep)) {
      assert.equal(bytes.byteLength, bytes.buffer.byteLength, "the buffer holds the text alone");
      texts.push(`${source.id} ${new TextDecoder().decode(bytes).trim()}`);
    }
    return texts;
  }

  state(source: ListSource): string {
    const { state, message } = this.keeper.status(source.id);
    return message === null ? state : `${state}: ${message}`;
  }
}
