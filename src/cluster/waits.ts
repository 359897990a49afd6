interface Wait {
  readonly isMet: () => boolean;
  readonly resolve: (isMet: boolean) => void;
  ticksLeft: number;
}

/** Conditions that somebody waits for, each so long. */
export class Waits {
  readonly #waits = new Set<Wait>();

  /** Resolves to whether it was met in time. */
  until(isMet: () => boolean, ticksMax: number): Promise<boolean> {
    if (isMet()) return Promise.resolve(true);
    const { promise, resolve } = Promise.withResolvers<boolean>();
    this.#waits.add({ isMet, resolve, ticksLeft: ticksMax });
    return promise;
  }

  /** Something may have changed. */
  look(): void {
    for (const wait of this.#waits) if (wait.isMet()) this.#end(wait, true);
  }

  tick(): void {
    for (const wait of this.#waits) {
      wait.ticksLeft--;
      const isMet = wait.isMet();
      if (isMet || wait.ticksLeft <= 0) this.#end(wait, isMet);
    }
  }

  /** Nothing changes any more. */
  end(): void {
    for (const wait of this.#waits) this.#end(wait, wait.isMet());
  }

  #end(wait: Wait, isMet: boolean): void {
    this.#waits.delete(wait);
    wait.resolve(isMet);
  }
}
