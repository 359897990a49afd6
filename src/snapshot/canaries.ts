import { equalNames, HashedName, parseName, Rcode } from "../dns/mod.ts";
import { invariant } from "../errors.ts";

/** The name is none that clients look at to learn whether the network filters. */
export const NO_CANARY = -1;

/** Whole names, whose absence makes a browser or a device keep to the network's resolver. */
const ABSENT = [
  // Firefox leaves its own DNS over HTTPS off.
  "use-application-dns.net",
  // Private Relay tells its user that this network needs it off.
  "mask.icloud.com",
  "mask-h2.icloud.com",
] as const;
/** Where clients ask a resolver for its encrypted ways (RFC 9462 §4); the zone is local (§6.5). */
const DESIGNATED = "resolver.arpa";

interface Known {
  readonly wire: Uint8Array;
  readonly hash: number;
  readonly labels: number;
}

/**
 * Names by which clients decide whether to go around the network's resolver, and so around its
 * filter. They are answered here and never forwarded.
 */
export class Canaries {
  readonly #absent: readonly Known[];
  readonly #designated: Known;

  /** `seed` is that of every hash of a name in this process. */
  constructor(seed: number) {
    this.#absent = ABSENT.map((name) => known(name, seed));
    this.#designated = known(DESIGNATED, seed);
  }

  /**
   * The response code that tells a client to stay, or `NO_CANARY` for any other name: NXDOMAIN, or
   * NOERROR without an answer. Leaves no garbage.
   */
  rcode(packet: Uint8Array, { count, hashes, offsets }: HashedName): number {
    const absent = this.#absent;
    for (let i = 0; i < absent.length; i++) {
      if (hashes[0] !== absent[i].hash || count !== absent[i].labels) continue;
      if (equalNames(packet, offsets[0], absent[i].wire, 0)) return Rcode.NXDomain;
    }
    const { wire, hash, labels } = this.#designated;
    const zone = count - labels;
    if (zone < 0 || hashes[zone] !== hash) return NO_CANARY;
    return equalNames(packet, offsets[zone], wire, 0) ? Rcode.NoError : NO_CANARY;
  }
}

function known(name: string, seed: number): Known {
  const wire = parseName(name);
  invariant(wire !== null, `${name} is a name`);
  const hashed = new HashedName();
  hashed.read(wire, 0, wire.length, seed);
  return { wire, hash: hashed.hashes[0], labels: hashed.count };
}
