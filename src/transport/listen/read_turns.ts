import { setImmediate } from "node:timers";

/** A connection that reads what its client sends. */
export interface Reader {
  /**
   * Reads for a slice: until nothing is left or `ReadTurns.spend` says no. Returns true where there
   * may be more to read; it is paused then, and called again.
   */
  readOn(): boolean;
  /** Leaves what comes in with the system until `readOn`. */
  pause(): void;
}

/**
 * Work of one connection until all others have their turn. A unit is about one query: 4 µs.
 */
export const SLICE_UNITS = 64;
/** The same in time, for what takes longer than it should. */
const SLICE_MS = 1;
/** Every so many units the clock is looked at. */
const CLOCK_UNITS = 16;
/** Work of all connections together until the event loop goes round. */
export const TURN_UNITS = 512;

/** What a chunk of input costs beside what is in it, in units. */
export const CHUNK_UNITS = 4;
/** Bytes that cost a unit. */
export const UNIT_BYTES = 1_024;
/** What taking a connection costs, a handshake, and a stream of QUIC. */
export const ACCEPT_UNITS = 16;
export const HANDSHAKE_UNITS = TURN_UNITS / 4;
export const QUIC_STREAM_UNITS = 8;

/** What the turns need of the runtime. */
export interface TurnPorts {
  readonly nowMs: () => number;
  /** Calls back once the event loop has gone round. */
  readonly later: (callback: () => void) => void;
}

const RUNTIME: TurnPorts = {
  nowMs: () => performance.now(),
  later: (callback) => void setImmediate(callback),
};

/**
 * Shares an isolate's time among all that reads connections. The runtime reads a socket that always
 * has data without a pause, so whoever sends fast would be the only one that is answered. Here each
 * connection reads for a slice, then waits behind all others that have something to read; its socket
 * is paused meanwhile, so that the system holds the client back. Behind each slice come the sockets
 * that no event loop is needed for (`between`: UDP and the upstreams), and behind each `TURN_UNITS`
 * the event loop: timers, messages, and whoever is new.
 */
export class ReadTurns {
  /** Called between two slices, never within one. */
  between: () => void = () => {};
  readonly #ports: TurnPorts;
  /** Who has more to read, the one that has waited longest first. */
  readonly #waiting = new Set<Reader>();
  /** Those that are not read before a time has passed. */
  readonly #held = new Map<Reader, ReturnType<typeof setTimeout>>();
  #sliceLeft = SLICE_UNITS;
  #turnLeft = TURN_UNITS;
  #sinceBetween = 0;
  /** When the clock was first looked at in this slice; 0 before that. */
  #sliceAtMs = 0;
  #clockIn = CLOCK_UNITS;
  #isRunning = false;
  #isScheduled = false;

  constructor(ports: TurnPorts = RUNTIME) {
    this.#ports = ports;
  }

  /** Connections that wait for their turn. */
  get waiting(): number {
    return this.#waiting.size;
  }

  /** Counts work of the connection that reads; returns false once its slice is over. */
  spend(units: number): boolean {
    this.#sliceLeft -= units;
    this.#turnLeft -= units;
    this.#sinceBetween += units;
    this.#clockIn -= units;
    if (this.#clockIn <= 0) {
      this.#clockIn = CLOCK_UNITS;
      const nowMs = this.#ports.nowMs();
      if (this.#sliceAtMs === 0) this.#sliceAtMs = nowMs;
      else if (nowMs - this.#sliceAtMs > SLICE_MS) this.#sliceLeft = 0;
    }
    return this.#sliceLeft > 0;
  }

  /** Has a connection read at once, where it is not to wait: `units` of work have come in. */
  take(reader: Reader, units: number): void {
    this.charge(units);
    if (this.#turnLeft <= 0 || this.#isRunning || this.#isPutOff(reader)) this.ask(reader);
    else this.#run(reader);
  }

  /** Counts work that is done whoever's turn it is. */
  charge(units: number): void {
    this.#turnLeft -= units;
    this.#sinceBetween += units;
    if (!this.#isRunning) this.#rest();
  }

  /** Has a connection read when it is its turn. */
  ask(reader: Reader): void {
    reader.pause();
    if (this.#held.has(reader)) return;
    this.#waiting.add(reader);
    this.#schedule();
  }

  /** Has a connection read no sooner than in `delayMs`. */
  hold(reader: Reader, delayMs: number): void {
    reader.pause();
    this.#waiting.delete(reader);
    if (this.#held.has(reader)) return;
    const timer = setTimeout(() => {
      this.#held.delete(reader);
      this.ask(reader);
    }, delayMs);
    Deno.unrefTimer(Number(timer));
    this.#held.set(reader, timer);
  }

  /** A connection is gone. */
  leave(reader: Reader): void {
    this.#waiting.delete(reader);
    const timer = this.#held.get(reader);
    if (timer === undefined) return;
    clearTimeout(timer);
    this.#held.delete(reader);
  }

  #isPutOff(reader: Reader): boolean {
    return this.#waiting.has(reader) || this.#held.has(reader);
  }

  #run(reader: Reader): void {
    this.#isRunning = true;
    this.#sliceLeft = SLICE_UNITS;
    this.#sliceAtMs = 0;
    this.#clockIn = CLOCK_UNITS;
    this.spend(1); // Looking is work too.
    let hasMore: boolean;
    try {
      hasMore = reader.readOn();
    } finally {
      this.#isRunning = false;
    }
    if (hasMore) this.ask(reader);
    this.#rest();
  }

  /** The others' turn, if a slice has passed since their last one. */
  #rest(): void {
    if (this.#turnLeft < TURN_UNITS / 2) this.#schedule();
    if (this.#sinceBetween < SLICE_UNITS && this.#sliceLeft > 0) return;
    this.#sinceBetween = 0;
    this.#sliceLeft = SLICE_UNITS;
    // What it answers may ask for turns; nobody's begins within it.
    this.#isRunning = true;
    try {
      this.between();
    } finally {
      this.#isRunning = false;
    }
  }

  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    this.#ports.later(() => this.#turn());
  }

  #turn(): void {
    this.#isScheduled = false;
    this.#turnLeft = TURN_UNITS;
    for (const reader of this.#waiting) {
      if (this.#turnLeft <= 0) break;
      this.#waiting.delete(reader);
      this.#run(reader); // One that has more goes to the end of the line.
    }
    if (this.#waiting.size > 0) this.#schedule();
  }
}
