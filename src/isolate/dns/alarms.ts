/** Work that is due at a time, `Infinity` while none is. */
export interface Alarm {
  /** Monotonic milliseconds. */
  set(atMs: number): void;
}

/** How alarms see the time: as `performance.now` and `setTimeout` do. */
export interface AlarmTime {
  readonly nowMs: () => number;
  /** `null` where the owner asks for what is due: a blocked thread hears of no timer. */
  readonly after: ((ms: number, work: () => void) => () => void) | null;
}

/** What one thread has to do later; there are a handful, looked through once each turn. */
export class Alarms {
  readonly #time: AlarmTime;
  readonly #set: { atMs: number; readonly work: () => void }[] = [];
  #timerAtMs = Infinity;
  #callOff: () => void = () => {};
  /** When the first of them is due. */
  nextAtMs = Infinity;

  constructor(time: AlarmTime) {
    this.#time = time;
  }

  /** An alarm that calls `work` once each time it is set. */
  add(work: () => void): Alarm {
    const alarm = { atMs: Infinity, work };
    this.#set.push(alarm);
    return {
      set: (atMs) => {
        alarm.atMs = atMs;
        this.#schedule();
      },
    };
  }

  /** Calls `work` once, in so many milliseconds; returns what calls that off. */
  after(ms: number, work: () => void): () => void {
    const alarm = { atMs: this.#time.nowMs() + ms, work: () => (callOff(), work()) };
    const callOff = () => {
      const at = this.#set.indexOf(alarm);
      if (at >= 0) this.#set.splice(at, 1);
      this.#schedule();
    };
    this.#set.push(alarm);
    this.#schedule();
    return callOff;
  }

  /** Does what is due by now. */
  run(nowMs: number): void {
    if (nowMs < this.nextAtMs) return;
    for (const alarm of [...this.#set]) {
      if (nowMs < alarm.atMs) continue;
      alarm.atMs = Infinity; // First: it may set itself again.
      alarm.work();
    }
    this.#schedule();
  }

  /** Calls all of them off. */
  clear(): void {
    for (const alarm of this.#set) alarm.atMs = Infinity;
    this.#schedule();
  }

  #schedule(): void {
    let next = Infinity;
    for (const { atMs } of this.#set) next = Math.min(next, atMs);
    this.nextAtMs = next;
    const { after, nowMs } = this.#time;
    if (after === null || next === this.#timerAtMs) return;
    this.#callOff();
    this.#timerAtMs = next;
    if (next === Infinity) return;
    this.#callOff = after(Math.max(0, next - nowMs()), () => {
      this.#timerAtMs = Infinity;
      this.run(nowMs());
      this.#schedule(); // A timer may be early by a little.
    });
  }
}
