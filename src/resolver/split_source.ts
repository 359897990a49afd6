import { ResolveFailure } from "./failure.ts";
import type { Flight, Share, Source } from "./flights/mod.ts";
import type { Forwarder } from "./forward/mod.ts";
import type { Recursor } from "./recursive/mod.ts";
import type { Query } from "./query.ts";

/** Has upstreams asked for the names that are theirs, and name servers for all others. */
export class SplitSource implements Source {
  readonly #forwarder: Forwarder;
  readonly #recursor: Recursor;

  constructor(forwarder: Forwarder, recursor: Recursor) {
    this.#forwarder = forwarder;
    this.#recursor = recursor;
  }

  shareOf(query: Query): Share | ResolveFailure {
    const share = this.#forwarder.shareOf(query);
    return share instanceof ResolveFailure ? this.#recursor.shareOf(query) : share;
  }

  left(share: Share): number {
    return this.#forwarder.owns(share) ? this.#forwarder.left(share) : this.#recursor.left();
  }

  full(share: Share): ResolveFailure {
    return this.#forwarder.owns(share) ? this.#forwarder.full(share) : this.#recursor.full(share);
  }

  begin(flight: Flight, share: Share): void {
    if (this.#forwarder.owns(share)) this.#forwarder.begin(flight, share);
    else this.#recursor.begin(flight);
  }

  tick(nowMs: number): boolean {
    return this.#forwarder.tick(nowMs);
  }

  close(): void {
    this.#forwarder.close();
  }
}
