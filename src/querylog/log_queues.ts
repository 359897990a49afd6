import { log } from "../log.ts";
import { NO_RECORD, QueueReader } from "../logqueue/mod.ts";
import { emptyEntry, type Fillable, type TakenEntry } from "./entry.ts";
import { RecordReader, type RecordReaderOptions } from "./record.ts";

export interface LogQueuesOptions extends RecordReaderOptions {
  readonly queues: readonly SharedArrayBuffer[];
}

/** What is done with each record. */
export interface LogQueuesPorts {
  /** The right time of what the system's clock gave this one. */
  readonly dateOf: (wallMs: number) => number;
  /** Somebody sends such entries elsewhere. */
  readonly wants: (entry: TakenEntry) => boolean;
  readonly onTaken: () => void;
  readonly onUnreadable: (records: number) => void;
}

/** The queues of those who answer, read as one. */
export class LogQueues {
  readonly #readers: readonly QueueReader[];
  readonly #record: RecordReader;
  readonly #ports: LogQueuesPorts;
  /** Entries of a batch, filled anew with each, and how many of them the present one has. */
  readonly #pool: Fillable<TakenEntry>[] = [];
  #count = 0;

  constructor(options: LogQueuesOptions, ports: LogQueuesPorts) {
    this.#readers = options.queues.map((memory) => new QueueReader(memory));
    this.#record = new RecordReader(options);
    this.#ports = ports;
  }

  /** What waits in the fullest one, as part of what that holds. */
  get fill(): number {
    return Math.max(...this.#readers.map(({ fill }) => fill));
  }

  /** There is more than the last batch took. */
  get isBehind(): boolean {
    return this.#readers.some(({ isBehind }) => isBehind);
  }

  /** See `QueueReader.bytesOver`. */
  bytesOver(part: number): number {
    return this.#readers[0].bytesOver(part);
  }

  /** Resolves once so many bytes wait in one, or `endWait` is called. */
  async waitFor(bytes: number): Promise<void> {
    await Promise.race(this.#readers.map((reader) => reader.waitFor(bytes)));
  }

  endWait(): void {
    for (const reader of this.#readers) reader.endWait();
  }

  /**
   * Reads so many records at most, up to where their writers are now, in the order of their times.
   * What was not released is read again. The entries are filled anew by the next call.
   */
  read(most: number): TakenEntry[] {
    this.#count = 0;
    for (const reader of this.#readers) {
      reader.rewind();
      reader.mark();
    }
    const mostOfEach = Math.ceil(most / this.#readers.length);
    for (const reader of this.#readers) {
      try {
        this.#readOne(reader, mostOfEach);
      } catch (error) {
        const lost = reader.discard();
        this.#ports.onUnreadable(lost);
        log.error("a queue of the query log can't be read: its records are given up", {
          records: lost,
          error,
        });
      }
    }
    const batch = this.#pool.slice(0, this.#count);
    return this.#readers.length === 1 ? batch : batch.sort((a, b) => a.timeMs - b.timeMs);
  }

  #readOne(reader: QueueReader, most: number): void {
    const { words } = this.#record;
    for (let i = 0; i < most; i++) {
      const lengthBytes = reader.next(words);
      if (lengthBytes === NO_RECORD) return;
      this.#ports.onTaken();
      const entry = this.#record.read(this.#pool[this.#count] ??= emptyEntry());
      if (entry === null) {
        this.#ports.onUnreadable(1);
        continue;
      }
      // Its time is that of the thread that answered, by the system's clock.
      entry.timeMs = this.#ports.dateOf(entry.timeMs);
      if (this.#ports.wants(entry)) entry.record = words.slice(0, lengthBytes >>> 2);
      this.#count++;
    }
  }

  /** Gives back what was read. */
  release(): void {
    for (const reader of this.#readers) reader.release();
  }

  /** What found no room since the last call, by kind, of each queue. */
  takeDropped(): number[][] {
    return this.#readers.map((reader) => reader.takeDropped());
  }
}
