import { formatName } from "../../dns/mod.ts";
import { FLIGHT_MS, type Share } from "../flights/mod.ts";
import { ZONE_FLIGHTS_MAX, ZONES_MAX } from "./limits.ts";

/** A zone whose servers questions wait for. */
export class ZoneShare implements Share {
  flights = 0;
  readonly flightMs: number = FLIGHT_MS;
  readonly flightsMax: number = ZONE_FLIGHTS_MAX;

  constructor(readonly zone: Uint8Array) {}

  get isFull(): boolean {
    return this.flights >= this.flightsMax;
  }

  get text(): string {
    return formatName(this.zone);
  }
}

/**
 * Zones by the hash of their names; two of one hash share their room, which harms nobody but the two.
 */
export class Zones {
  readonly #shares = new Map<number, ZoneShare>();

  /** The zone of a hash; `name` is copied from `from` on where it is new. */
  of(hash: number, name: Uint8Array, from: number, end: number): ZoneShare {
    const known = this.#shares.get(hash);
    if (known !== undefined) return known;
    if (this.#shares.size >= ZONES_MAX) this.#sweep();
    const share = new ZoneShare(name.slice(from, end));
    this.#shares.set(hash, share);
    return share;
  }

  /** No more than there are flights are in use. */
  #sweep(): void {
    for (const [hash, share] of this.#shares) if (share.flights === 0) this.#shares.delete(hash);
  }
}
