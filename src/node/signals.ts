/** The signals that a running service hears, from its first moment to its last. */
export class Signals {
  /** Resolves with the signal that asks for the end. A second one ends at once. */
  readonly stop: Promise<Deno.Signal>;
  /** To read again what may have changed; unheard, the signal would end the process. */
  readonly reload = new Wish();
  /** To hand over to the program as it is on disk by then. */
  readonly upgrade = new Wish();

  constructor() {
    const { promise, resolve } = Promise.withResolvers<Deno.Signal>();
    this.stop = promise;
    let asked = false;
    for (const signal of ["SIGTERM", "SIGINT"] as const) {
      Deno.addSignalListener(signal, () => {
        if (asked) Deno.exit(1);
        asked = true;
        resolve(signal);
      });
    }
    Deno.addSignalListener("SIGHUP", () => this.reload.express());
    Deno.addSignalListener("SIGUSR2", () => this.upgrade.express());
  }
}

/** What may be asked for before anybody can do it. */
export class Wish {
  #fulfil: (() => void) | null = null;
  #isWaiting = false;

  express(): void {
    if (this.#fulfil === null) this.#isWaiting = true;
    else this.#fulfil();
  }

  /** Called when it is expressed, and now, if it was before; `null`: later. */
  set onWish(fulfil: (() => void) | null) {
    this.#fulfil = fulfil;
    if (fulfil === null || !this.#isWaiting) return;
    this.#isWaiting = false;
    fulfil();
  }
}
