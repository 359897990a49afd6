import { Ask, type AskOwner } from "./ask.ts";
import type { Server } from "./server.ts";

/**
 * Asks on their way. How many there may be is shared out as it is needed: one server has as many as
 * are left for the others, so that a silent one never takes them all.
 */
export class AskTable {
  readonly #all: Ask[] = [];
  readonly #free: Ask[] = [];
  readonly #max: number;

  constructor(max: number) {
    this.#max = max;
  }

  get inUse(): number {
    return this.#all.length - this.#free.length;
  }

  /** Asks that there is room for. */
  get left(): number {
    return this.#max - this.inUse;
  }

  /** Asks to a server that there is room for; what its connections don't take at a time would wait. */
  leftFor({ open, openAtOnce }: Server): number {
    return Math.min(openAtOnce, this.left) - open;
  }

  get isHalfFull(): boolean {
    return 2 * this.inUse >= this.#max;
  }

  /** Says whether a server has as many as it may. */
  isFull(server: Server): boolean {
    return server.open >= this.left;
  }

  /** The ask of a token, or `null` when nothing is wanted for it any more. */
  find(token: number): Ask | null {
    const ask = this.#all[token];
    return ask === undefined || ask.owner === null ? null : ask;
  }

  take(owner: AskOwner, server: Server, nowMs: number): Ask {
    const ask = this.#free.pop() ?? this.#new(server);
    ask.owner = owner;
    ask.server = server;
    ask.sentAtMs = nowMs;
    ask.overStream = server.remote.transport !== "udp";
    ask.mismatches = 0;
    ask.overTcp =
      ask.failed =
      ask.isDoubted =
      ask.hasBeside =
        false;
    owner.asks.push(ask);
    server.open++;
    return ask;
  }

  /** Takes an ask back; its owner forgets it. */
  release(ask: Ask): void {
    ask.owner = null;
    ask.query = null;
    ask.server.open--;
    this.#free.push(ask);
  }

  #new(server: Server): Ask {
    const ask = new Ask(this.#all.length, server);
    this.#all.push(ask);
    return ask;
  }
}
