import { encodeHex, equalBytes } from "../bytes/mod.ts";
import type { InterfaceAddress } from "../netlink/mod.ts";

/**
 * The node's own address on an interface, which announcements come from: the one in the network of
 * the peer, else the first; never the floating one.
 */
export function ownAddress(
  addresses: readonly InterfaceAddress[],
  index: number,
  floating: Uint8Array,
  peer: Uint8Array,
): Uint8Array<ArrayBuffer> | null {
  const own = addresses.filter((a) => a.index === index && !equalBytes(a.address, floating));
  const near = own.find((a) => isInNetwork(a, peer)) ?? own[0];
  return near?.address ?? null;
}

function isInNetwork({ address, prefixLengthBits }: InterfaceAddress, peer: Uint8Array): boolean {
  const network = (bytes: Uint8Array) =>
    prefixLengthBits === 0 ? 0n : BigInt(`0x${encodeHex(bytes)}`) >> BigInt(32 - prefixLengthBits);
  return network(address) === network(peer);
}
