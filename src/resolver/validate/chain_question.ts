import { setU16 } from "../../bytes/mod.ts";
import { CD_BIT, HashedName, HEADER_BYTES, Qclass, RD_BIT } from "../../dns/mod.ts";
import {
  keptQuery,
  KEY_CD,
  KEY_DO,
  keyHashOf,
  type Query,
  QUESTION_BYTES_MAX,
  routeOf,
  withRoute,
} from "../query.ts";

/** Questions about DS and DNSKEY: with DO, and with CD, so that they are not validated themselves. */
export class ChainQuestion {
  readonly #query = keptQuery();
  readonly #name = new HashedName();
  readonly #seed: number;

  /** `seed` is that of every hash of a name in this process. */
  constructor(seed: number) {
    this.#seed = seed;
  }

  /** A question on the way of another one, good until the next call. */
  about(name: Uint8Array, type: number, asker: Query): Query {
    const query = this.#query;
    const { packet } = query;
    packet.set(name, HEADER_BYTES);
    query.qnameLength = name.length;
    setU16(packet, HEADER_BYTES + name.length, type);
    setU16(packet, HEADER_BYTES + name.length + 2, Qclass.IN);
    query.flags = RD_BIT | CD_BIT;
    query.qtype = type;
    query.qclass = Qclass.IN;
    query.keyBits = withRoute(KEY_DO | KEY_CD, routeOf(asker));
    query.edns = query.dnssecOk = true;
    this.#name.read(packet, HEADER_BYTES, QUESTION_BYTES_MAX, this.#seed);
    query.keyHash = keyHashOf(this.#name.hashes[0], type, query.keyBits);
    return query;
  }
}
