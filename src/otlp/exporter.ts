import { type ExportResult, ExportResultCode } from "@opentelemetry/core";
import type { ISerializer } from "@opentelemetry/otlp-transformer";
import { messageOf } from "../errors.ts";
import type { Outage, Signal } from "./outage.ts";
import type { OtlpPorts } from "./ports.ts";

/** Longest wait for the response to one request. */
export const REQUEST_MS_MAX = 10_000;
/** Times that a batch is sent again, and the first pause before that, which doubles. */
export const RETRIES_MAX = 3;
const RETRY_MS_MIN = 1_000;
/** An export with all its requests and pauses is over by then. */
export const EXPORT_MS_MAX = 60_000;
/** Answers that ask for another try (OTLP, "Retryable Response Codes"). */
const RETRYABLE: readonly number[] = [429, 502, 503, 504];

export interface ExporterOptions<Batch> {
  readonly signal: Signal;
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly serializer: ISerializer<Batch, unknown>;
  readonly ports: OtlpPorts;
  readonly outage: Outage;
  /** Aborts at the end: nothing is sent any more. */
  readonly stopped: AbortSignal;
  /** What is sent anew at every interval is not sent again. */
  readonly retries: number;
  readonly requestMs: number;
  /** Called after a request that went well, with the signals whose last one did not. */
  readonly onSuccess: (failing: readonly Signal[]) => void;
}

/** How one request went; `null`: well. */
interface Failure {
  readonly reason: string;
  readonly isRetryable: boolean;
}

/** Sends batches of one signal, and never throws: what can't be sent is counted and let go. */
export class OtlpExporter<Batch> {
  readonly #options: ExporterOptions<Batch>;
  #running: Promise<void> = Promise.resolve();
  /** Batches that are being sent. */
  #busy = 0;

  constructor(options: ExporterOptions<Batch>) {
    this.#options = options;
  }

  export(batch: Batch, done: (result: ExportResult) => void): void {
    this.#begin(
      this.#send(batch).then((failure) => {
        done(
          failure === null
            ? { code: ExportResultCode.SUCCESS }
            : { code: ExportResultCode.FAILED, error: new Error(failure) },
        );
      }),
    );
  }

  /** Asks with nothing to send whether the signal is taken again, unless something is being sent. */
  probe(): void {
    if (this.#busy > 0) return;
    this.#begin(this.#sendBytes(new Uint8Array(0), 0).then(() => undefined));
  }

  #begin(running: Promise<void>): void {
    this.#busy++;
    this.#running = running.finally(() => {
      this.#busy--;
    });
  }

  async forceFlush(): Promise<void> {
    await this.#running;
  }

  async shutdown(): Promise<void> {
    await this.#running;
  }

  /** Why the batch was not sent in the end, or `null`. */
  async #send(batch: Batch): Promise<string | null> {
    const { serializer, outage, signal } = this.#options;
    let body: Uint8Array;
    try {
      body = serializer.serializeRequest(batch) ?? new Uint8Array(0);
    } catch (error) {
      outage.failed(signal, `it can't be put into OTLP: ${messageOf(error)}`);
      return messageOf(error);
    }
    return await this.#sendBytes(body);
  }

  async #sendBytes(body: Uint8Array, retries = this.#options.retries): Promise<string | null> {
    const { outage, signal, ports, stopped, onSuccess } = this.#options;
    for (let i = 0, pauseMs = RETRY_MS_MIN;; i++, pauseMs *= 2) {
      if (stopped.aborted) return "the export has ended";
      const failure = await this.#request(body);
      if (failure === null) {
        onSuccess(outage.succeeded(signal));
        return null;
      }
      outage.failed(signal, failure.reason);
      if (!failure.isRetryable || i >= retries) return failure.reason;
      await ports.pause(pauseMs, stopped);
    }
  }

  async #request(body: Uint8Array): Promise<Failure | null> {
    const { url, headers, ports, stopped, requestMs } = this.#options;
    const deadline = ports.deadline(requestMs, stopped);
    try {
      const status = await ports.post(url, {
        headers: { ...headers, "content-type": "application/x-protobuf" },
        body,
        signal: deadline,
      });
      if (status >= 200 && status < 300) return null;
      // A redirect is not followed: the headers are for this endpoint alone.
      return { reason: `it answered ${status}`, isRetryable: RETRYABLE.includes(status) };
    } catch (error) {
      const isLate = deadline.aborted && !stopped.aborted;
      const reason = isLate ? `no answer within ${requestMs} ms` : messageOf(error);
      return { reason, isRetryable: true };
    }
  }
}
