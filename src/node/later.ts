import { SvcError } from "../errors.ts";

/** Where a part of a node reaches one that is opened after it. */
export class Later<T> {
  #part: T | null = null;

  /** The part is there from now on. */
  open(part: T): void {
    this.#part = part;
  }

  /** @throws {SvcError} `unavailable`, as long as it is not there. */
  get part(): T {
    if (this.#part === null) throw new SvcError("unavailable", "the service is still starting");
    return this.#part;
  }
}
