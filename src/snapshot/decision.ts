import { Qtype } from "../dns/mod.ts";
import { NO_RULE } from "../filter/mod.ts";

/** What the filter says of a name. */
export const Ruling = {
  /** No rule is about it, or the query is not filtered. */
  None: 0,
  Block: 1,
  /** An exception decides; it keeps the answer from address rules and CNAME uncloaking as well. */
  Allow: 2,
  /** A rewrite or the addresses of hosts lines answer. */
  Answer: 3,
} as const;
export type Ruling = typeof Ruling[keyof typeof Ruling];

/** A decision's `rcode` where addresses answer. */
export const NO_RCODE = -1;

/** Most addresses of a family that one name is answered with; further ones are left out. */
export const ADDRESSES_MAX = 256;

/** In the place of a rule's reference: whoever asks has no Internet now. */
export const OFF_RULE = -2;
/** What is said where a rule and its list would be. */
export const OFF: { readonly rule: string; readonly list: { id: string; name: string } } = {
  rule: "the Internet is off",
  list: { id: "off", name: "Internet off" },
};

const IPV4_BYTES = 4;
const IPV6_BYTES = 16;

/** What `Snapshot.decide` fills in; made once and used for every query. */
export class Decision {
  /** Reference of the deciding rule for `decidedBy` and `blockedText`; `NO_RULE` for `None`. */
  rule: number = NO_RULE;
  /** Where rules answer: the response code that does, or `NO_RCODE` where addresses do. */
  rcode: number = NO_RCODE;
  /** Where rules answer: says whether a `$dnsrewrite` does, or addresses of hosts lines. */
  isRewrite = false;
  readonly #ipv4 = new Uint8Array(ADDRESSES_MAX * IPV4_BYTES);
  readonly #ipv6 = new Uint8Array(ADDRESSES_MAX * IPV6_BYTES);
  #count4 = 0;
  #count6 = 0;

  /** Forgets the last query. */
  clear(): void {
    this.rule = NO_RULE;
    this.rcode = NO_RCODE;
    this.isRewrite = false;
    this.#count4 = 0;
    this.#count6 = 0;
  }

  /** How many addresses answer a query for A or AAAA; none of another type, which is NODATA. */
  count(qtype: number): number {
    if (qtype === Qtype.A) return this.#count4;
    return qtype === Qtype.AAAA ? this.#count6 : 0;
  }

  /** Copies address `i` of the family, 4 bytes of A or 16 of AAAA, to `offset`. */
  copyAddress(qtype: number, i: number, target: Uint8Array, offset: number): void {
    const lengthBytes = qtype === Qtype.A ? IPV4_BYTES : IPV6_BYTES;
    const from = qtype === Qtype.A ? this.#ipv4 : this.#ipv6;
    for (let k = 0; k < lengthBytes; k++) target[offset + k] = from[i * lengthBytes + k];
  }

  /** Adds the 4 or 16 bytes at `offset`; one that is there already, or one too many, is left out. */
  addAddress(bytes: Uint8Array, offset: number, lengthBytes: number): void {
    const isIpv4 = lengthBytes === IPV4_BYTES;
    const to = isIpv4 ? this.#ipv4 : this.#ipv6;
    const count = isIpv4 ? this.#count4 : this.#count6;
    if (count === ADDRESSES_MAX) return;
    for (let i = 0; i < count; i++) {
      let same = 0;
      while (same < lengthBytes && to[i * lengthBytes + same] === bytes[offset + same]) same++;
      if (same === lengthBytes) return;
    }
    for (let k = 0; k < lengthBytes; k++) to[count * lengthBytes + k] = bytes[offset + k];
    if (isIpv4) this.#count4++;
    else this.#count6++;
  }
}
