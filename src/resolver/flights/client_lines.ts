/** Lines; clients that share one share its turn. */
export const LINES = 64;

/** What waits, in a line for each client, of which each has its turn. */
export class ClientLines<T> {
  readonly #lines: T[][] = Array.from({ length: LINES }, () => []);
  #length = 0;
  #last = 0;

  /** Of all lines. */
  get length(): number {
    return this.#length;
  }

  /** `client` is any number that tells clients apart. */
  push(client: number, one: T): void {
    this.#lines[lineOf(client)].push(one);
    this.#length++;
  }

  /** Takes the first of the next line; `undefined`: nothing waits. */
  next(): T | undefined {
    if (this.#length === 0) return undefined;
    do this.#last = (this.#last + 1) & (LINES - 1); while (this.#lines[this.#last].length === 0);
    return this.nextOf(this.#last);
  }

  /** Takes the first of a client's line. */
  nextOf(client: number): T | undefined {
    const one = this.#lines[lineOf(client)].shift();
    if (one !== undefined) this.#length--;
    return one;
  }

  /** Takes one out that waits no longer; of one that does not wait nothing comes. */
  remove(client: number, one: T): void {
    const line = this.#lines[lineOf(client)];
    const at = line.indexOf(one);
    if (at < 0) return;
    line.splice(at, 1);
    this.#length--;
  }
}

/** The place of a client's line. */
export function lineOf(client: number): number {
  return client & (LINES - 1);
}
