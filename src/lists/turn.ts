/** Lets one piece of work through at a time, in the order in which it came. */
export class Turn {
  #last: Promise<unknown> = Promise.resolve();

  /** Runs `work` once all before it has ended, well or badly. */
  run<T>(work: () => Promise<T>): Promise<T> {
    const mine = this.#last.then(work);
    // Whoever asked gets the failure through `mine`; the next in turn has nothing to do with it.
    this.#last = mine.catch(() => undefined);
    return mine;
  }
}
