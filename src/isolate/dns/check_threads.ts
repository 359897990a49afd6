import type { SignatureCheck } from "../../dnssec/verify.ts";
import type { CheckThreads } from "../../resolver/validate/mod.ts";
import { type CheckResults, type NumberedCheck, packChecks } from "../check/messages.ts";

/** Messages with checks that a thread has of this isolate: the next is there when one is done. */
const MESSAGES_MAX = 2;
/** Checks of one message: where many wait, each costs a part of its way there and back. */
const BATCH_MAX = 8;

/** Who is told what came of checks. */
export interface CheckEvents {
  onResult(id: number, fits: boolean): void;
  /** A thread is gone with these. */
  onLost(ids: readonly number[]): void;
  /** There is a further thread. */
  feed(): void;
}

interface Way {
  readonly port: MessagePort;
  /** Checks that it has, those of `batch` among them. */
  readonly sent: Set<number>;
  /** Messages on their way, each with an answer to come. */
  messages: number;
  /** What goes with the next one, at the end of this microtask. */
  batch: NumberedCheck[];
}

/** The ways of this isolate to the threads that check signatures. */
export class CheckWays implements CheckThreads {
  /** Set before the first way is led here. */
  events: CheckEvents = { onResult: () => {}, onLost: () => {}, feed: () => {} };
  readonly #ways = new Map<number, Way>();

  get hasRoom(): boolean {
    for (const way of this.#ways.values()) if (takesMore(way)) return true;
    return false;
  }

  /** Takes a way to a thread, in place of that to the one before it. */
  take(thread: number, port: MessagePort): void {
    const former = this.#ways.get(thread);
    former?.port.close();
    const way: Way = { port, sent: new Set(), messages: 0, batch: [] };
    this.#ways.set(thread, way);
    port.onmessage = ({ data: results }: MessageEvent<CheckResults>) => {
      way.messages--;
      for (const { id } of results) way.sent.delete(id);
      for (const { id, fits } of results) this.events.onResult(id, fits);
    };
    if (former === undefined) this.events.feed();
    else this.events.onLost([...former.sent]);
  }

  /** To the thread with the fewest, of those with room; there is one. */
  send(id: number, check: SignatureCheck): void {
    let best: Way | null = null;
    for (const way of this.#ways.values()) {
      if (takesMore(way) && (best === null || way.sent.size < best.sent.size)) best = way;
    }
    if (best === null) return;
    const way = best;
    way.sent.add(id);
    if (way.batch.push({ id, check }) > 1) return;
    queueMicrotask(() => {
      way.messages++;
      way.port.postMessage(packChecks(way.batch));
      way.batch = [];
    });
  }

  close(): void {
    for (const { port } of this.#ways.values()) port.close();
    this.#ways.clear();
  }
}

function takesMore({ messages, batch }: Way): boolean {
  return messages < MESSAGES_MAX && batch.length < BATCH_MAX;
}
