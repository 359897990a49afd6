import { formatIp } from "../../addr/mod.ts";
import { PROTOCOL_NAMES } from "../../logqueue/mod.ts";
import type { Pipeline, Query } from "../../resolver/mod.ts";
import { NO_CLIENT } from "../../snapshot/mod.ts";
import type { LeakLookup } from "../messages.ts";

/** Look-ups of leak tests that are told in a second; a test has some dozens. */
const PER_SECOND_MAX = 1_000;

/** Hands look-ups of leak tests to the main isolate, so many a second. */
export class LeakLookups {
  readonly #tell: (lookup: LeakLookup) => void;
  /** The second of the last one, and how many were told in it. */
  #second = 0;
  #told = 0;

  constructor(tell: (lookup: LeakLookup) => void) {
    this.#tell = tell;
  }

  /** `query` asked for `name`, of a leak test. */
  note(
    { address, client, transport }: Query,
    name: string,
    { snapshot, nowSeconds }: Pick<Pipeline, "snapshot" | "nowSeconds">,
  ): void {
    if (this.#second !== nowSeconds) this.#told = 0;
    this.#second = nowSeconds;
    if (++this.#told > PER_SECOND_MAX) return;
    this.#tell({
      name,
      address: formatIp(address.bytes, address.offset, address.lengthBytes),
      protocol: PROTOCOL_NAMES[transport],
      client: client === NO_CLIENT ? null : snapshot.client(client).name,
    });
  }
}
