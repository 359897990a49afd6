/** Names that the root is never asked for (RFC 6761, 6303, 6762, 7686, 7793, 8375, 9462). */
import { equalNames, HashedName, parseName } from "../../dns/mod.ts";
import { invariant } from "../../errors.ts";

const LOCALHOST = "localhost";

/** Reverse zones of networks that nobody else knows (RFC 6303 §4, RFC 7793). */
const REVERSE = [
  ...["0", "10", "127", "254.169", "168.192", "2.0.192", "100.51.198", "113.0.203"],
  "255.255.255.255",
  ...Array.from({ length: 16 }, (_, i) => `${16 + i}.172`),
  ...Array.from({ length: 64 }, (_, i) => `${64 + i}.100`),
].map((name) => `${name}.in-addr.arpa`);
const REVERSE_IPV6 = [
  `${"0.".repeat(32)}`,
  `1.${"0.".repeat(31)}`,
  ...["d.f.", "8.e.f.", "9.e.f.", "a.e.f.", "b.e.f.", "8.b.d.0.1.0.0.2."],
].map((name) => `${name}ip6.arpa`);

const NAMES = [
  ...[LOCALHOST, "test", "invalid", "onion", "local", "home.arpa", "resolver.arpa"],
  ...REVERSE,
  ...REVERSE_IPV6,
];

/** What a name is to be answered with. */
export const Special = { No: 0, Denied: 1, Localhost: 2 } as const;
export type Special = typeof Special[keyof typeof Special];

/** Knows the special-use names, each of which holds for all below it. */
export class SpecialNames {
  readonly #zones = new Map<number, Uint8Array>();
  readonly #localhost: Uint8Array = wire(LOCALHOST);

  /** `seed` is that of the hashes of names that are looked up. */
  constructor(seed: number) {
    const hashed = new HashedName();
    for (const zone of NAMES.map(wire)) {
      hashed.read(zone, 0, zone.length, seed);
      this.#zones.set(hashed.hashes[0], zone);
    }
  }

  /** What the name read into `hashed`, from `bytes`, is; `zoneIndex` of it is the zone's label. */
  find(
    bytes: Uint8Array,
    hashed: HashedName,
  ): { readonly kind: Special; readonly zoneIndex: number } {
    for (let k = 0; k < hashed.count; k++) {
      const zone = this.#zones.get(hashed.hashes[k]);
      if (zone === undefined || !equalNames(bytes, hashed.offsets[k], zone, 0)) continue;
      return {
        kind: zone.length === this.#localhost.length && equalNames(zone, 0, this.#localhost, 0)
          ? Special.Localhost
          : Special.Denied,
        zoneIndex: k,
      };
    }
    return NOT_SPECIAL;
  }
}

const NOT_SPECIAL = { kind: Special.No, zoneIndex: -1 } as const;

function wire(text: string): Uint8Array {
  const name = parseName(text);
  invariant(name !== null, `${text} is a name`);
  return name;
}
