/** The signals that a running service hears, from its first moment to its last. */
export class Signals {
  /** Resolves with the signal that asks for the end. A second one ends at once. */
  readonly stop: Promise<Deno.Signal>;
  /** Asked to read again what may have changed; unheard, the signal would end the process. */
  onHangup: () => void = () => {};
  #upgrade: (() => void) | null = null;
  /** Somebody has asked for an upgrade while nobody could begin one. */
  #isUpgradeAsked = false;

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
    Deno.addSignalListener("SIGHUP", () => this.onHangup());
    Deno.addSignalListener("SIGUSR2", () => {
      if (this.#upgrade === null) this.#isUpgradeAsked = true;
      else this.#upgrade();
    });
  }

  /**
   * Called when it is asked to hand over to the program as it is on disk by then, and now, if that was
   * asked before; `null`: later.
   */
  set onUpgrade(upgrade: (() => void) | null) {
    this.#upgrade = upgrade;
    if (upgrade === null || !this.#isUpgradeAsked) return;
    this.#isUpgradeAsked = false;
    upgrade();
  }
}
