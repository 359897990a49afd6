import { setU16 } from "../../src/bytes/mod.ts";
import { HEADER_BYTES } from "../../src/dns/mod.ts";
import type { Prng } from "../prng.ts";

/** Most changes to one packet. */
const CHANGES_MAX = 6;

/** Changes `packet` in place by chance, and may shorten it. */
export function mutate(prng: Prng, packet: Uint8Array, seeds: readonly Uint8Array[]): Uint8Array {
  let length = packet.length;
  for (let left = prng.int(CHANGES_MAX + 1); left > 0 && length > 0; left--) {
    const at = prng.int(length);
    switch (prng.int(7)) {
      case 0:
        packet[at] ^= 1 << prng.int(8);
        break;
      case 1:
        packet[at] = prng.pick([0, 1, 3, 63, 64, 0x80, 0xc0, 0xff]);
        break;
      case 2: // A pointer, most often to somewhere in the packet.
        if (at + 1 < length) {
          setU16(packet, at, 0xc000 | prng.int(prng.chance(0.9) ? length : 16384));
        }
        break;
      case 3: // The counts, which promise.
        if (length >= HEADER_BYTES) {
          setU16(packet, 4 + 2 * prng.int(4), prng.pick([0, 1, 2, 65535]));
        }
        break;
      case 4:
        length = at;
        break;
      case 5: { // A part of another packet.
        const other = prng.pick(seeds);
        const from = prng.int(other.length);
        const part = Math.min(1 + prng.int(40), other.length - from, length - at);
        for (let i = 0; i < part; i++) packet[at + i] = other[from + i];
        break;
      }
      case 6: // A part of itself, moved.
        packet.copyWithin(at, prng.int(length), length);
        break;
    }
  }
  return packet.subarray(0, length);
}
