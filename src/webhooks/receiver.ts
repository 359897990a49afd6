import { messageOf, SvcError } from "../errors.ts";
import type { Credential } from "../model/mod.ts";
import type { HttpPost } from "../http/mod.ts";
import { signature, SIGNATURE_HEADER } from "./signature.ts";

/** Most events that wait for one receiver; one more, and the oldest that waits is dropped. */
export const QUEUE_LENGTH_MAX = 50;
/** Times that an event is sent to a receiver that does not take it. */
export const ATTEMPTS_MAX = 6;
/** Pauses after failures in a row; the last one goes for all further ones. */
const PAUSES_MS = [10_000, 60_000, 5 * 60_000, 30 * 60_000, 2 * 3_600_000] as const;
/** Longest time for a receiver to take an event, looking it up and connecting included. */
export const ANSWER_MS_MAX = 10_000;
/** Deliveries whose outcome is kept for each webhook. */
const LOG_LENGTH_MAX = 100;
/** Longest error that is kept, in UTF-16 units. */
const ERROR_LENGTH_MAX = 200;

export type DeliveryState = "waiting" | "delivered" | "failed" | "dropped";

/** What became of one event at one receiver. */
export interface Delivery {
  /** Goes with each try: a receiver knows by it what it has had. */
  readonly id: string;
  readonly event: string;
  readonly createdAtMs: number;
  readonly state: DeliveryState;
  readonly attempts: number;
  /** Of the last try; `null`: nothing was answered. */
  readonly status: number | null;
  readonly durationMs: number | null;
  /** Why the last try failed; it holds nothing of the address but its host. */
  readonly error: string | null;
  /** `null`: there is no next try. */
  readonly nextTryAtMs: number | null;
}

type Kept = { -readonly [K in keyof Delivery]: Delivery[K] };

interface Waiting {
  readonly kept: Kept;
  readonly body: Uint8Array;
}

/** What a receiver works with. */
export interface ReceiverPorts {
  readonly post: HttpPost;
  readonly nowMs: () => number;
  /** A clock that never jumps. */
  readonly steadyMs: () => number;
  /** Calls `work` in so many milliseconds. Returns what prevents that. */
  readonly later: (ms: number, work: () => void) => () => void;
}

/** How often what happened, since the start. */
export interface Tally {
  delivered: number;
  failed: number;
  dropped: number;
}

/** One webhook: what waits for it, one after another, and what became of it. */
export class Receiver {
  readonly #ports: ReceiverPorts;
  readonly #tally: Tally;
  readonly #waiting: Waiting[] = [];
  readonly #log: Kept[] = [];
  readonly #ended = new AbortController();
  #webhook: Credential<"webhooks">;
  /** In a row; whatever is taken ends it. */
  #failures = 0;
  #isSending = false;
  #cancelPause: (() => void) | null = null;

  constructor(webhook: Credential<"webhooks">, ports: ReceiverPorts, tally: Tally) {
    this.#webhook = webhook;
    this.#ports = ports;
    this.#tally = tally;
  }

  /** As it is by now: what waits is sent by it. */
  set webhook(webhook: Credential<"webhooks">) {
    const isElsewhere = webhook.secret.url !== this.#webhook.secret.url;
    this.#webhook = webhook;
    if (!isElsewhere || this.#cancelPause === null) return;
    this.#cancelPause(); // Another one may well take it.
    this.#cancelPause = null;
    this.#failures = 0;
    this.#pump();
  }

  get webhook(): Credential<"webhooks"> {
    return this.#webhook;
  }

  get waiting(): number {
    return this.#waiting.length;
  }

  /** The newest first. */
  get deliveries(): readonly Delivery[] {
    return this.#log.toReversed();
  }

  /** Has an event sent, once those before it are. */
  push(id: string, event: string, body: Uint8Array): void {
    const kept = this.#keep(id, event);
    if (this.#waiting.length >= QUEUE_LENGTH_MAX) {
      // The first may be on its way.
      const [oldest] = this.#waiting.splice(1, 1);
      this.#drop(oldest.kept);
    }
    this.#waiting.push({ kept, body });
    this.#pump();
  }

  /** Sends at once, ahead of all that waits and once; what became of it. */
  async test(id: string, event: string, body: Uint8Array): Promise<Delivery> {
    const kept = this.#keep(id, event);
    const isTaken = await this.#send({ kept, body });
    this.#settle(kept, isTaken ? "delivered" : "failed");
    return kept;
  }

  /** Nothing more is sent: what waits is dropped; how much that was. */
  end(): number {
    this.#ended.abort();
    this.#cancelPause?.();
    const left = this.#waiting.splice(0);
    for (const { kept } of left) this.#drop(kept);
    return left.length;
  }

  #keep(id: string, event: string): Kept {
    const kept: Kept = {
      ...{ id, event, createdAtMs: this.#ports.nowMs(), state: "waiting", attempts: 0 },
      ...{ status: null, durationMs: null, error: null, nextTryAtMs: null },
    };
    this.#log.push(kept);
    if (this.#log.length > LOG_LENGTH_MAX) this.#log.shift();
    return kept;
  }

  #drop(kept: Kept): void {
    [kept.state, kept.nextTryAtMs] = ["dropped", null];
    this.#tally.dropped++;
  }

  #settle(kept: Kept, state: "delivered" | "failed"): void {
    [kept.state, kept.nextTryAtMs] = [state, null];
    this.#tally[state]++;
  }

  #pump(): void {
    const [first] = this.#waiting;
    const isBusy = this.#isSending || this.#cancelPause !== null;
    if (first === undefined || isBusy || this.#ended.signal.aborted) return;
    this.#isSending = true;
    void this.#send(first).then((isTaken) => {
      this.#isSending = false;
      if (this.#ended.signal.aborted) return;
      if (isTaken) this.#taken(first);
      else this.#refused(first);
    });
  }

  #taken({ kept }: Waiting): void {
    this.#failures = 0;
    this.#settle(kept, "delivered");
    this.#waiting.shift();
    this.#pump();
  }

  #refused({ kept }: Waiting): void {
    const pauseMs = PAUSES_MS[Math.min(this.#failures++, PAUSES_MS.length - 1)];
    if (kept.attempts >= ATTEMPTS_MAX) {
      this.#settle(kept, "failed");
      this.#waiting.shift();
    } else kept.nextTryAtMs = this.#ports.nowMs() + pauseMs;
    this.#cancelPause = this.#ports.later(pauseMs, () => {
      this.#cancelPause = null;
      this.#pump();
    });
  }

  /** Tries once, and says whether it was taken. Never throws. */
  async #send({ kept, body }: Waiting): Promise<boolean> {
    const { post, nowMs, steadyMs, later } = this.#ports;
    const { secret: { url, key } } = this.#webhook;
    const hop = new AbortController();
    const cancel = later(ANSWER_MS_MAX, () => {
      hop.abort(new SvcError("unavailable", `no answer in ${ANSWER_MS_MAX / 1_000} s`));
    });
    const startedMs = steadyMs();
    kept.attempts++;
    [kept.status, kept.error, kept.nextTryAtMs] = [null, null, null];
    try {
      const { status } = await aborted(
        post(new URL(url), {
          headers: {
            "content-type": "application/json",
            "user-agent": "svc",
            "svc-event": kept.event,
            "svc-delivery": kept.id,
            [SIGNATURE_HEADER]: signature(key, body, nowMs()),
          },
          body,
          signal: AbortSignal.any([hop.signal, this.#ended.signal]),
        }),
        hop.signal,
      );
      kept.status = status;
      if (status >= 200 && status < 300) return true;
      const isRedirect = status >= 300 && status < 400;
      kept.error = isRedirect ? "it redirects, which is not followed" : `it answers ${status}`;
      return false;
    } catch (error) {
      kept.error = errorText(hop.signal.aborted ? hop.signal.reason : error, url);
      return false;
    } finally {
      cancel();
      kept.durationMs = Math.round(steadyMs() - startedMs);
      hop.abort(); // Closes the connection: nobody looks at the body.
    }
  }
}

/** The outcome of `work`, or the reason of `signal` where that comes first. */
async function aborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>();
  const onAbort = () => reject(signal.reason);
  signal.addEventListener("abort", onAbort);
  try {
    return await Promise.race([work, promise]);
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}

/** What went wrong, without what is secret of the address. */
function errorText(error: unknown, url: string): string {
  const { host, pathname, search } = new URL(url);
  let text = messageOf(error).split("\n", 1)[0];
  for (const secret of [url, pathname + search, pathname]) {
    if (secret.length > 1) text = text.replaceAll(secret, "…");
  }
  return `${host}: ${text}`.slice(0, ERROR_LENGTH_MAX);
}
