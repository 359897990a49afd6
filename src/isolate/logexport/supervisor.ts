import { messageOf } from "../../errors.ts";
import { areLogLinesHanded, log } from "../../log.ts";
import { ExportFigure, figuresMemory, queueFigures, queueMemory } from "../../logqueue/mod.ts";
import type { LogExport } from "../../querylog/mod.ts";
import { BEHIND_OTHERS, KeptIsolate } from "../kept_isolate.ts";
import { pause } from "../pause.ts";
import { startIsolate } from "../scopes.ts";
import type { ExportTo, FromExport, ToExport } from "./messages.ts";

const LINES = {
  crashed: "an isolate that sends the query log crashed",
  startedAgain: "an isolate that sends the query log was started again",
  notStarted: "an isolate that sends the query log can't be started",
} as const;
/** Bytes of records that wait for one receiver: some ten thousand entries. */
const QUEUE_BYTES = 4 * 1024 * 1024;
/** How soon a host without an answer is looked up again, and at least how far apart one with one. */
const LOOK_UP_MS = 5_000;
const LOOK_UP_AGAIN_MS = 60_000;
const LOOK_UP_MS_MAX = 10_000;

/** A receiver, and what it is sent. */
export interface ExportOptions {
  readonly exporter: "dnstap" | "otlp";
  /** Its name in log lines: no secret is in it. */
  readonly name: string;
  readonly version: string;
  readonly outcomes: LogExport["outcomes"];
  readonly upstreams: readonly string[];
  /** The host to look up; `null`: its addresses are known, or it is a socket's path. */
  readonly host: string | null;
  readonly addresses: readonly string[];
  /** What is open to the isolate with these addresses, as `SCOPES` takes it. */
  readonly reach: (addresses: readonly string[]) => string;
  readonly to: (addresses: readonly string[]) => ExportTo;
  readonly lookup: (host: string, signal: AbortSignal) => Promise<readonly string[]>;
}

export interface ExportFigures {
  readonly exporter: string;
  readonly sent: number;
  /** Entries that found no room while the receiver lagged, or that it never took. */
  readonly dropped: number;
  readonly failures: number;
  readonly isFailing: boolean;
}

/** Keeps the isolate alive that sends the query log to one receiver. */
export class ExportSupervisor {
  /** For the query log's isolate, which fills its queue. */
  readonly wanted: LogExport;
  readonly #options: ExportOptions;
  readonly #figures = figuresMemory();
  readonly #crashes = { count: 0 };
  readonly #ending = new AbortController();
  #isolate: KeptIsolate<ToExport, FromExport> | null = null;
  #addresses: readonly string[] = [];
  #lookedUpAtMs = -Infinity;
  #isLookingUp = false;
  #stopped = Promise.withResolvers<void>();

  constructor(options: ExportOptions) {
    this.#options = options;
    this.wanted = { queue: queueMemory(QUEUE_BYTES), outcomes: options.outcomes };
  }

  /** Isolates that crashed since the start. */
  get crashes(): number {
    return this.#crashes.count;
  }

  get figures(): ExportFigures {
    const values = new Float64Array(this.#figures);
    const { dropped } = queueFigures(this.wanted.queue);
    return {
      exporter: this.#options.exporter,
      sent: values[ExportFigure.Sent],
      dropped: dropped.reduce((sum, count) => sum + count, values[ExportFigure.Lost]),
      failures: values[ExportFigure.Failures],
      isFailing: values[ExportFigure.Failing] !== 0,
    };
  }

  /** Starts sending, as soon as it is known where to. */
  start(): void {
    const { host, addresses } = this.#options;
    if (host === null) this.#launch(addresses);
    else void this.#lookUp();
  }

  /** Has what waits sent, for `graceMs` at most, and ends the isolate. */
  async stop(graceMs: number): Promise<void> {
    this.#ending.abort();
    const isolate = this.#isolate;
    if (isolate === null || !isolate.isThere) return;
    isolate.retire();
    isolate.tell({ type: "stop", graceMs });
    const late = Promise.withResolvers<void>();
    const timer = setTimeout(late.resolve, graceMs);
    await Promise.race([this.#stopped.promise, late.promise]);
    clearTimeout(timer);
    isolate.end();
  }

  /** Looks the host up until there is an answer; one that differs from the former counts at once. */
  async #lookUp(): Promise<void> {
    const { host, lookup, exporter, name } = this.#options;
    if (host === null || this.#isLookingUp) return;
    this.#isLookingUp = true;
    for (let isFirst = true; !this.#ending.signal.aborted; isFirst = false) {
      try {
        const timely = AbortSignal.any([
          this.#ending.signal,
          AbortSignal.timeout(LOOK_UP_MS_MAX),
        ]);
        const found = await lookup(host, timely);
        if (this.#ending.signal.aborted) break;
        this.#lookedUpAtMs = performance.now();
        const isKnown = found.toSorted().join() === this.#addresses.toSorted().join();
        if (found.length > 0 && !isKnown) this.#launch(found);
        break;
      } catch (error) {
        if (this.#addresses.length > 0) break; // Those that are known may yet be right.
        if (isFirst) {
          const reason = messageOf(error);
          log.warn("the query log can't be sent; this is said once", {
            exporter,
            to: name,
            reason,
          });
        }
        new Float64Array(this.#figures)[ExportFigure.Failures]++;
        await pause(LOOK_UP_MS, this.#ending.signal);
      }
    }
    this.#isLookingUp = false;
  }

  #launch(addresses: readonly string[]): void {
    const { exporter, name, version, reach, to, upstreams } = this.#options;
    this.#addresses = addresses;
    this.#isolate?.end();
    const isolate: KeptIsolate<ToExport, FromExport> = new KeptIsolate({
      limits: BEHIND_OTHERS,
      lines: LINES,
      fields: { exporter },
      crashes: this.#crashes,
      startWorker: () => startIsolate("logexport", reach(addresses)),
      begin: () =>
        isolate.tell({
          type: "start",
          options: {
            ...{ to: to(addresses), fields: { exporter, to: name }, version, upstreams },
            queue: this.wanted.queue,
            figures: this.#figures,
          },
          handsLogOn: areLogLinesHanded(),
        }),
      hear: ({ type }) => {
        if (type === "stopped") this.#stopped.resolve();
        const isOld = performance.now() - this.#lookedUpAtMs >= LOOK_UP_AGAIN_MS;
        if (type === "failed" && isOld) void this.#lookUp();
      },
      ended: () => {
        if (this.#ending.signal.aborted) this.#stopped.resolve();
      },
    });
    this.#isolate = isolate;
    isolate.start();
  }
}
