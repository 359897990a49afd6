import { formatNetwork, parseIp } from "../../addr/mod.ts";

export interface TableLimits {
  /** Connections of one listener at a time. */
  readonly connectionsMax: number;
  /** Connections of one client: an IPv4 address, or a /64 of IPv6. */
  readonly connectionsPerClientMax: number;
}

/** How many connections there are. */
export interface Occupancy {
  readonly taken: number;
  readonly max: number;
  /** The client that has most of them; `null` where there are none. */
  readonly most: { readonly client: string; readonly connections: number } | null;
}

/** A place in the table. */
export class Place {
  /** Whose it is; `null` once it is given up. */
  holder: Holder | null;

  constructor(holder: Holder, readonly end: () => void) {
    this.holder = holder;
  }
}

/** A client and its places, the one that has been idle for longest first. */
class Holder {
  readonly places = new Set<Place>();
  constructor(readonly client: string) {}
}

/** The client that an address counts for; one of a zone (`fe80::1%eth0`) counts without it. */
export function clientOf(address: string): string {
  const ip = parseIp(address.split("%")[0]);
  return ip === null ? address : formatNetwork(ip);
}

/**
 * The connections of a listener, by client. There is always room for one more: where all places are
 * taken, the client that has most of them loses the one that has been idle for longest, and so does
 * the client that has as many as one may. Each call takes the same few steps, however many there are.
 */
export class ConnectionTable {
  readonly #limits: TableLimits;
  readonly #holders = new Map<string, Holder>();
  /** Clients by the number of their places; of one number, the one idle for longest first. */
  readonly #byCount: Set<Holder>[] = [];
  #size = 0;
  #most = 0;

  constructor(limits: TableLimits) {
    this.#limits = limits;
  }

  get size(): number {
    return this.#size;
  }

  get occupancy(): Occupancy {
    const [most] = this.#byCount[this.#most] ?? [];
    return {
      taken: this.#size,
      max: this.#limits.connectionsMax,
      most: most === undefined ? null : { client: most.client, connections: most.places.size },
    };
  }

  /**
   * Takes a place; `end` closes its connection. Where another had to make room, that is ended before
   * this returns, and `onEvicted` is called.
   */
  add(client: string, end: () => void, onEvicted: () => void): Place {
    const held = this.#holders.get(client)?.places.size ?? 0;
    if (held >= this.#limits.connectionsPerClientMax) {
      this.#evict(this.#holders.get(client)!, onEvicted);
    } else if (this.#size >= this.#limits.connectionsMax) {
      const [most] = this.#byCount[this.#most];
      this.#evict(most, onEvicted);
    }
    let holder = this.#holders.get(client);
    if (holder === undefined) this.#holders.set(client, holder = new Holder(client));
    const place = new Place(holder, end);
    this.#leaveCount(holder);
    holder.places.add(place);
    this.#enterCount(holder);
    this.#size++;
    return place;
  }

  /** The connection is in use: it is the last to go. */
  touch(place: Place): void {
    const { holder } = place;
    if (holder === null) return;
    holder.places.delete(place);
    holder.places.add(place);
    const alike = this.#byCount[holder.places.size];
    alike.delete(holder);
    alike.add(holder);
  }

  /** The connection is gone. */
  remove(place: Place): void {
    const { holder } = place;
    if (holder === null) return;
    place.holder = null;
    this.#leaveCount(holder);
    holder.places.delete(place);
    if (holder.places.size > 0) this.#enterCount(holder);
    else this.#holders.delete(holder.client);
    this.#size--;
    // One less at most: whoever had most has one less, or somebody else has as many.
    if (this.#byCount[this.#most].size === 0) this.#most--;
  }

  #evict({ places }: Holder, onEvicted: () => void): void {
    const [place] = places;
    this.remove(place);
    onEvicted();
    place.end();
  }

  #leaveCount(holder: Holder): void {
    this.#byCount[holder.places.size]?.delete(holder);
  }

  #enterCount(holder: Holder): void {
    const count = holder.places.size;
    (this.#byCount[count] ??= new Set()).add(holder);
    this.#most = Math.max(this.#most, count);
  }
}
