import type { SignatureCheck } from "../../dnssec/verify.ts";
import type { CheckThreads } from "../../resolver/validate/mod.ts";
import type { WayToThread } from "../check/messages.ts";
import { Bell, CheckRing, CHECKS_MAX } from "../check/ring.ts";

/** Who is told what came of checks. */
export interface CheckEvents {
  onResult(id: number, fits: boolean): void;
  /** A thread is gone with these. */
  onLost(ids: readonly number[]): void;
  /** There is a further thread. */
  feed(): void;
}

interface Way {
  readonly port: MessagePort | null;
  readonly ring: CheckRing;
  readonly bell: Bell;
  /** Checks that it has. */
  readonly sent: Set<number>;
}

/** The ways of this isolate to the threads that check signatures. */
export class CheckWays implements CheckThreads {
  /** Set before the first way is led here. */
  events: CheckEvents = { onResult: () => {}, onLost: () => {}, feed: () => {} };
  readonly #ways = new Map<number, Way>();
  /** Results are told of by messages. */
  usesPorts = false;

  get hasRoom(): boolean {
    for (const way of this.#ways.values()) if (takesMore(way)) return true;
    return false;
  }

  /** Takes a way to a thread, in place of that to the one before it. */
  take({ thread, ring, bell, port }: WayToThread): void {
    const former = this.#ways.get(thread);
    former?.port?.close();
    const way = { port, ring: new CheckRing(ring), bell: new Bell(bell), sent: new Set<number>() };
    this.#ways.set(thread, way);
    if (port !== null) {
      this.usesPorts = true;
      port.onmessage = () => this.read();
    }
    if (former === undefined) this.events.feed();
    else this.events.onLost([...former.sent]);
  }

  /** To the thread with the fewest, of those with room; there is one. */
  send(id: number, check: SignatureCheck): void {
    let best: Way | null = null;
    for (const way of this.#ways.values()) {
      if (takesMore(way) && (best === null || way.sent.size < best.sent.size)) best = way;
    }
    // One for which there is no room has a result that proves nothing; see `SIGNED_BYTES_MAX`.
    if (best === null || !best.ring.push(id, check)) {
      queueMicrotask(() => this.events.onResult(id, false));
      return;
    }
    best.sent.add(id);
    best.bell.ring();
  }

  get hasResults(): boolean {
    for (const { ring } of this.#ways.values()) if (ring.hasResult) return true;
    return false;
  }

  /** Reads what has come of checks, so much of each thread at most. */
  read(most: number = CHECKS_MAX): void {
    for (const { ring, sent } of this.#ways.values()) {
      ring.read(most, (id, fits) => {
        if (sent.delete(id)) this.events.onResult(id, fits);
      });
    }
  }

  close(): void {
    for (const { port } of this.#ways.values()) port?.close();
    this.#ways.clear();
  }
}

function takesMore({ sent, ring }: Way): boolean {
  return sent.size < CHECKS_MAX && ring.hasRoom;
}
