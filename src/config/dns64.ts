import { EMBEDDING_LENGTHS, formatPrefix } from "../addr/mod.ts";
import type { Dns64Config } from "./config.ts";
import { boolean, ipv6Network } from "./readers.ts";
import { arrayOf, type Reader, type Table } from "./table.ts";

/** Most networks whose addresses are taken for none. */
const EXCLUDED_MAX = 64;
/** Bits 64 to 71 of an address with an IPv4 address in it are zero (RFC 6052 §2.2). */
const RESERVED_BYTE = 8;

const prefix: Reader<Dns64Config["prefix"]> = (value, place) => {
  const read = ipv6Network(value, place);
  if (read === null) return null;
  if (!EMBEDDING_LENGTHS.includes(read.lengthBits)) {
    const lengths = `${EMBEDDING_LENGTHS.slice(0, -1).join(", ")} or ${EMBEDDING_LENGTHS.at(-1)}`;
    return place.problem(`has ${read.lengthBits} bits: give the prefix ${lengths} (RFC 6052)`);
  }
  if (read.ip[RESERVED_BYTE] !== 0) {
    return place.problem("has bits 64 to 71 set, which have to be zero (RFC 6052): clear them");
  }
  return read;
};

/** Reads `[dns64]`. */
export function readDns64(table: Table): Dns64Config {
  const excluded = arrayOf(ipv6Network, EXCLUDED_MAX, formatPrefix);
  return {
    enabled: table.read("enabled", boolean, false),
    prefix: table.read("prefix", prefix, "64:ff9b::/96"),
    exclude: table.read("exclude", excluded, ["::ffff:0:0/96"]),
  };
}
