import { messageOf } from "../errors.ts";
import { log } from "../log.ts";
import { ExportFigure, NO_RECORD, QueueReader, RecordAt } from "../logqueue/mod.ts";
import type { StoredEntry } from "../querylog/entry.ts";
import { RecordReader } from "../querylog/record.ts";

/** Entries of one batch: what a receiver that just went may get twice. */
const BATCH_MAX = 512;
/** Tries of one batch; it is let go after the last one, for it may be the batch that is not taken. */
const TRIES_MAX = 8;
/** Pauses between tries: they double, and each is half by chance, so that nodes come one by one. */
const PAUSE_MS_MIN = 500;
const PAUSE_MS_MAX = 30_000;
/** A connection that lasted so long was a good one. */
const STABLE_MS = 60_000;

/** A receiver that takes batches. */
export interface Session<Item> {
  /** Resolves when the receiver ends it. */
  readonly ended: Promise<void>;
  /** Resolves once the batch is out of this process's hands. */
  readonly send: (items: readonly Item[]) => Promise<void>;
  readonly close: () => Promise<void>;
}

export interface Receiver<Item> {
  /** Begins a session, or throws. */
  readonly open: (signal: AbortSignal) => Promise<Session<Item>>;
  /** What it takes of an entry; `response` is what the record has of the response. */
  readonly itemOf: (entry: StoredEntry, response: Uint8Array) => Item;
}

export interface SenderPorts {
  readonly monotonicMs: () => number;
  /** Draws from 0 (included) to 1 (excluded). */
  readonly chance: () => number;
  /** Resolves after so long, or when `signal` aborts. */
  readonly pause: (ms: number, signal: AbortSignal) => Promise<void>;
  /** It could not be sent for the time being: whoever looks hosts up may look again. */
  readonly onFailure: () => void;
}

export interface SenderOptions<Item> {
  readonly queue: SharedArrayBuffer;
  /** Memory of `figuresMemory`. */
  readonly figures: SharedArrayBuffer;
  /** As configured, by number. */
  readonly upstreams: readonly string[];
  readonly receiver: Receiver<Item>;
  /** Whom log lines are about. */
  readonly fields: Readonly<Record<"exporter" | "to", string>>;
  readonly ports: SenderPorts;
}

/** Sends what its queue holds, in order, again and again until it is taken. */
export class Sender<Item> {
  readonly #options: SenderOptions<Item>;
  readonly #reader: QueueReader;
  readonly #figures: Float64Array;
  readonly #record: RecordReader;
  readonly #bytes: Uint8Array;
  /** No more comes than waits by now. */
  readonly #stopping = new AbortController();
  /** The end, whatever waits. */
  readonly #stopped = new AbortController();
  #session: Session<Item> | null = null;
  #openedAtMs = 0;
  #hasEnded = false;
  #failures = 0;
  #tries = 0;
  /** Entries of the batch, which stays the same from try to try. */
  #batch = BATCH_MAX;
  /** Records of the batch that are no entries. */
  #unreadable = 0;

  constructor(options: SenderOptions<Item>) {
    this.#options = options;
    this.#reader = new QueueReader(options.queue);
    this.#figures = new Float64Array(options.figures);
    this.#figures[ExportFigure.Failing] = 0;
    // What is anonymised is so before it comes here.
    this.#record = new RecordReader({ anonymize: false, upstreams: options.upstreams });
    this.#bytes = new Uint8Array(this.#record.words.buffer);
  }

  /** Sends until `stop`. */
  async run(): Promise<void> {
    while (!this.#stopped.signal.aborted) {
      try {
        this.#session ??= await this.#open();
        if (this.#reader.fill > 0) await this.#sendBatch(this.#session);
        else if (this.#stopping.signal.aborted) break;
        else if (!this.#hasEnded) await this.#wait();
      } catch (error) {
        await this.#failed(error);
      }
      if (this.#hasEnded) await this.#end();
    }
    const session = this.#session;
    this.#session = null;
    await session?.close();
  }

  /** Ends the run once what waits is sent, or `graceMs` are over. */
  stop(graceMs: number): void {
    this.#stopping.abort();
    this.#reader.endWait();
    const { pause } = this.#options.ports;
    void pause(graceMs, this.#stopped.signal).then(() => this.#stopped.abort());
  }

  async #open(): Promise<Session<Item>> {
    const session = await this.#options.receiver.open(this.#stopped.signal);
    this.#hasEnded = false;
    this.#openedAtMs = this.#options.ports.monotonicMs();
    void session.ended.then(() => {
      if (this.#session !== session) return;
      this.#hasEnded = true;
      this.#reader.endWait();
    });
    return session;
  }

  /** The receiver has ended the session, which is no success of it unless it lasted. */
  async #end(): Promise<void> {
    this.#hasEnded = false;
    if (this.#session === null) return;
    if (this.#options.ports.monotonicMs() - this.#openedAtMs >= STABLE_MS) this.#failures = 0;
    await this.#failed(new Error("the receiver ended the connection"));
  }

  /** Until there is something to send; the end of a session, and of the run, ends the wait. */
  async #wait(): Promise<void> {
    await this.#reader.waitFor(1);
    this.#reader.endWait();
  }

  async #sendBatch(session: Session<Item>): Promise<void> {
    const items = this.#take();
    if (items.length > 0) {
      this.#batch = items.length;
      this.#tries++;
      if (this.#tries > TRIES_MAX) {
        this.#figures[ExportFigure.Lost] += items.length;
        log.warn("a batch of the query log was taken by nobody: it is let go", {
          ...this.#options.fields,
          entries: items.length,
        });
      } else {
        await session.send(items);
        this.#figures[ExportFigure.Sent] += items.length;
        this.#succeeded();
      }
    }
    this.#tries = 0;
    this.#batch = BATCH_MAX;
    this.#figures[ExportFigure.Lost] += this.#unreadable;
    this.#reader.release();
  }

  /** The oldest records, as many as make a batch; they stay in the queue until they are released. */
  #take(): Item[] {
    const items: Item[] = [];
    const { words } = this.#record;
    const messageAt = RecordAt.End * 4;
    this.#reader.rewind();
    this.#reader.mark();
    this.#unreadable = 0;
    try {
      while (items.length < this.#batch && this.#reader.next(words) !== NO_RECORD) {
        const entry = this.#record.read();
        const end = messageAt + (words[RecordAt.Lengths] & 0xffff);
        if (entry === null) this.#unreadable++;
        else items.push(this.#options.receiver.itemOf(entry, this.#bytes.slice(messageAt, end)));
      }
      return items;
    } catch (error) {
      const records = this.#reader.discard();
      this.#figures[ExportFigure.Lost] += records;
      log.error("a queue of the query log can't be read: its records are given up", {
        ...this.#options.fields,
        records,
        error,
      });
      return [];
    }
  }

  #succeeded(): void {
    this.#failures = 0;
    if (this.#figures[ExportFigure.Failing] === 0) return;
    this.#figures[ExportFigure.Failing] = 0;
    log.info("the query log is sent again", this.#options.fields);
  }

  async #failed(error: unknown): Promise<void> {
    const { ports, fields } = this.#options;
    const session = this.#session;
    this.#session = null;
    await session?.close();
    if (this.#stopped.signal.aborted) return;
    this.#figures[ExportFigure.Failures]++;
    if (this.#figures[ExportFigure.Failing] === 0) {
      this.#figures[ExportFigure.Failing] = 1;
      const reason = messageOf(error);
      log.warn("the query log can't be sent; this is said once", { ...fields, reason });
    }
    ports.onFailure();
    const most = Math.min(PAUSE_MS_MIN * 2 ** this.#failures, PAUSE_MS_MAX);
    this.#failures = Math.min(this.#failures + 1, 16);
    await ports.pause(most * (1 + ports.chance()) / 2, this.#stopped.signal);
  }
}
