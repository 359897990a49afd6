import { compilePrefixes, type IpPrefix, NO_VALUE, PrefixTable } from "../../addr/mod.ts";
import { finishHash } from "../../dns/mod.ts";
import { clientOf, type Query, Transport } from "../query.ts";

/** Counts of clients. Two that a hash gives the same one have the room of one. */
const COUNTS = 4_096;
/** Who waits for no more than this is never in anybody's way. */
export const FEW_WAITS = 16;
/** The count of those that are not counted. */
export const UNCOUNTED = 0;

/**
 * How many queries of each client wait: of an IPv4 address, or a /64 of IPv6. A client has as many as
 * are left for all others, so that one whose questions get no answer leaves its neighbours room.
 */
export class ClientWaits {
  readonly #counts = new Uint16Array(COUNTS);
  readonly #exempt: PrefixTable;
  readonly #seed: number;

  /** Nobody of the networks in `exempt` is counted; `seed` is nothing that clients can know. */
  constructor(exempt: readonly IpPrefix[], seed: number) {
    this.#exempt = new PrefixTable(
      compilePrefixes(exempt.map((prefix) => ({ prefix, value: 0 }))),
    );
    this.#seed = seed;
  }

  /** Counts a query that is to wait; returns what `leave` takes once it does no more. */
  enter(query: Query): number {
    const { address, isOwn, transport } = query;
    const { bytes, offset, lengthBytes } = address;
    // Behind a proxy of oblivious clients stand many.
    if (isOwn || lengthBytes === 0 || transport === Transport.Odoh) return UNCOUNTED;
    if (this.#exempt.find(bytes, offset, lengthBytes) !== NO_VALUE) return UNCOUNTED;
    const client = 1 + (finishHash(clientOf(query) ^ this.#seed) >>> 0) % (COUNTS - 1);
    this.#counts[client]++;
    return client;
  }

  leave(client: number): void {
    if (client !== UNCOUNTED) this.#counts[client]--;
  }

  /** Says whether more of a client wait than there is `left`. */
  isOver(client: number, left: number): boolean {
    return client !== UNCOUNTED && this.#counts[client] > Math.max(FEW_WAITS, left);
  }
}
