/** The signals that a running service hears, from its first moment to its last. */
export class Signals {
  /** Resolves with the signal that asks for the end. A second one ends at once. */
  readonly stop: Promise<Deno.Signal>;
  /** Asked to read again what may have changed; unheard, the signal would end the process. */
  onHangup: () => void = () => {};
  /** Asked to hand over to the program as it is on disk by now; unheard, the same. */
  onUpgrade: () => void = () => {};

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
    Deno.addSignalListener("SIGUSR2", () => this.onUpgrade());
  }
}
