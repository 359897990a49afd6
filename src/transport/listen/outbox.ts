import { invariant } from "../../errors.ts";

/** Room for the largest answer there is, with its frames, and for many small ones. */
const OUTBOX_BYTES = 160 * 1024;

/** Takes bytes away; they are a copy. */
export interface ByteSink {
  write(bytes: Uint8Array): void;
}

/**
 * Gathers what goes out on one connection while it is read, so that the answers of one read leave
 * in one write and so in one TLS record. One buffer serves all connections of a listener in turn.
 */
export class Outbox {
  readonly bytes = new Uint8Array(OUTBOX_BYTES);
  #length = 0;
  /** Whose bytes are in it. */
  #owner: ByteSink | null = null;
  /** The connection being read: its bytes may stay for a while. */
  #reading: ByteSink | null = null;

  /** Everything `owner` writes stays here until `endRead`. Returns what `endRead` takes. */
  beginRead(owner: ByteSink): ByteSink | null {
    const outer = this.#reading;
    this.#reading = owner;
    return outer;
  }

  endRead(outer: ByteSink | null): void {
    this.flush();
    this.#reading = outer;
  }

  /** Returns where the next bytes of `owner` go, with room for `length` of them. */
  room(owner: ByteSink, length: number): number {
    if (this.#owner !== owner || this.#length + length > OUTBOX_BYTES) {
      this.flush();
      this.#owner = owner;
    }
    invariant(length <= OUTBOX_BYTES, "what is written at once fits the outbox");
    return this.#length;
  }

  /** What was written ends at `end`. */
  wrote(end: number): void {
    this.#length = end;
    if (this.#owner !== this.#reading) this.flush();
  }

  flush(): void {
    if (this.#length === 0 || this.#owner === null) return;
    const bytes = this.bytes.slice(0, this.#length);
    this.#length = 0;
    this.#owner.write(bytes);
  }
}
