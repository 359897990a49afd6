import type { SignatureCheck } from "../../dnssec/verify.ts";
import type { CheckThreads } from "../../resolver/validate/mod.ts";
import type { CheckResult, NumberedCheck } from "../check/messages.ts";

/** Checks that a thread has of this isolate at one time: the next is there when one is done. */
const SENT_MAX = 2;

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
  readonly sent: Set<number>;
}

/** The ways of this isolate to the threads that check signatures. */
export class CheckWays implements CheckThreads {
  /** Set before the first way is led here. */
  events: CheckEvents = { onResult: () => {}, onLost: () => {}, feed: () => {} };
  readonly #ways = new Map<number, Way>();

  get hasRoom(): boolean {
    for (const { sent } of this.#ways.values()) if (sent.size < SENT_MAX) return true;
    return false;
  }

  /** Takes a way to a thread, in place of that to the one before it. */
  take(thread: number, port: MessagePort): void {
    const former = this.#ways.get(thread);
    former?.port.close();
    const sent = new Set<number>();
    this.#ways.set(thread, { port, sent });
    port.onmessage = ({ data: { id, fits } }: MessageEvent<CheckResult>) => {
      sent.delete(id);
      this.events.onResult(id, fits);
    };
    if (former === undefined) this.events.feed();
    else this.events.onLost([...former.sent]);
  }

  /** To the thread with the fewest; there is one with room. */
  send(id: number, check: SignatureCheck): void {
    let best: Way | null = null;
    for (const way of this.#ways.values()) {
      if (best === null || way.sent.size < best.sent.size) best = way;
    }
    if (best === null) return;
    best.sent.add(id);
    const message: NumberedCheck = { id, check };
    best.port.postMessage(message);
  }

  close(): void {
    for (const { port } of this.#ways.values()) port.close();
    this.#ways.clear();
  }
}
