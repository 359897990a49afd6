/** Zone files of many small zones, signed by one key of ECDSA P-256 in microseconds a signature. */
import { Buffer } from "node:buffer";
import { createHash } from "node:crypto";
import { decodeBase64url, encodeHex, setU16, setU32 } from "../../src/bytes/mod.ts";
import { parseName, Qtype, qtypeName } from "../../src/dns/mod.ts";
import { digestKey } from "../../src/dnssec/digest.ts";
import { compareNames } from "../../src/dnssec/mod.ts";
import { keyTag } from "../../src/dnssec/records.ts";
import { BenchError } from "./bench_error.ts";

/** Seconds; long enough that nothing that is kept ages out in a run. */
export const ZONE_TTL = 86_400;
/** Signatures hold from a day ago on. */
const HELD_S = 86_400;
const HOLDS_S = 30 * 86_400;
const ECDSAP256SHA256 = 13;
const SHA256_DIGEST = 2;
const KEY_FLAGS = 257;
const SCALAR_BYTES = 32;
/** Order of the group of P-256. */
const ORDER = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n;

/** An RRset: an absolute owner name, and RDATA in wire format. */
export interface ZoneSet {
  readonly owner: string;
  readonly type: number;
  readonly rdatas: readonly Uint8Array[];
}

export function wireName(text: string): Uint8Array {
  const name = parseName(text);
  if (name === null) throw new BenchError(`${text}: is no name`);
  return name;
}

/**
 * One key for every zone. It draws one nonce for all signatures, so that each takes one product in
 * place of one point: whoever reads two of them has the key, which is of no use to anybody.
 */
export class ZoneSigner {
  readonly dnskey: Uint8Array;
  readonly tag: number;
  readonly #inverse: bigint;
  readonly #product: bigint;
  readonly #r: string;
  readonly #inceptionS = Math.floor(Date.now() / 1_000) - HELD_S;

  private constructor(key: JsonWebKey, nonce: JsonWebKey) {
    const bytes = (text = "") => decodeBase64url(text) ?? new Uint8Array();
    const scalar = (text = "") => BigInt(`0x${encodeHex(bytes(text))}`);
    this.dnskey = new Uint8Array(4 + 2 * SCALAR_BYTES);
    setU16(this.dnskey, 0, KEY_FLAGS);
    this.dnskey.set([3, ECDSAP256SHA256], 2);
    this.dnskey.set(bytes(key.x), 4);
    this.dnskey.set(bytes(key.y), 4 + SCALAR_BYTES);
    this.tag = keyTag(this.dnskey);
    const r = scalar(nonce.x) % ORDER;
    this.#r = hexOf(r);
    this.#product = r * scalar(key.d) % ORDER;
    this.#inverse = powerOf(scalar(nonce.d), ORDER - 2n);
  }

  static async make(): Promise<ZoneSigner> {
    const [key, nonce] = await Promise.all([1, 2].map(async () => {
      const algorithm = { name: "ECDSA", namedCurve: "P-256" };
      const { privateKey } = await crypto.subtle.generateKey(algorithm, true, ["sign", "verify"]);
      return await crypto.subtle.exportKey("jwk", privateKey);
    }));
    return new ZoneSigner(key, nonce);
  }

  /** RDATA of the DS record of a zone. */
  ds(zone: string): Uint8Array {
    const head = new Uint8Array(4);
    setU16(head, 0, this.tag);
    head.set([ECDSAP256SHA256, SHA256_DIGEST], 2);
    return Buffer.concat([head, digestKey(wireName(zone), this.dnskey, SHA256_DIGEST)!]);
  }

  /** RDATA of the RRSIG record of an RRset, whose RDATA is canonical. */
  sign(zone: string, { owner, type, rdatas }: ZoneSet): Uint8Array {
    const head = new Uint8Array(18);
    setU16(head, 0, type);
    head.set([ECDSAP256SHA256, owner === "." ? 0 : owner.split(".").length - 1], 2);
    setU32(head, 4, ZONE_TTL);
    setU32(head, 8, this.#inceptionS + HELD_S + HOLDS_S);
    setU32(head, 12, this.#inceptionS);
    setU16(head, 16, this.tag);
    const fields = Buffer.concat([head, wireName(zone)]);
    const name = wireName(owner);
    const sorted = [...rdatas].sort((a, b) => encodeHex(a) < encodeHex(b) ? -1 : 1);
    const records = sorted.map((rdata) => {
      const fixed = new Uint8Array(10);
      setU16(fixed, 0, type);
      setU16(fixed, 2, 1);
      setU32(fixed, 4, ZONE_TTL);
      setU16(fixed, 8, rdata.length);
      return Buffer.concat([name, fixed, rdata]);
    });
    const digest = createHash("sha256").update(Buffer.concat([fields, ...records])).digest("hex");
    const s = this.#inverse * (BigInt(`0x${digest}`) + this.#product) % ORDER;
    return Buffer.concat([fields, Buffer.from(this.#r + hexOf(s), "hex")]);
  }
}

function hexOf(value: bigint): string {
  return value.toString(16).padStart(2 * SCALAR_BYTES, "0");
}

function powerOf(base: bigint, exponent: bigint): bigint {
  let power = 1n;
  for (let left = exponent; left > 0n; left >>= 1n) {
    if ((left & 1n) === 1n) power = power * base % ORDER;
    base = base * base % ORDER;
  }
  return power;
}

/**
 * The text of a zone file, signed with NSEC where there is a signer. `sets` begin with those of the
 * zone's own name; what is below another name with NS records is glue.
 */
export function zoneText(
  zone: string,
  sets: readonly ZoneSet[],
  signer: ZoneSigner | null,
): string {
  const lines: string[] = [];
  const add = ({ owner, type, rdatas }: ZoneSet) => {
    for (const rdata of rdatas) {
      const bytes = encodeHex(rdata);
      lines.push(`${owner} ${ZONE_TTL} IN ${qtypeName(type)} \\# ${rdata.length} ${bytes}\n`);
    }
  };
  for (const set of sets) add(set);
  if (signer === null) return lines.join("");
  const cuts = new Set(
    sets.filter(({ owner, type }) => type === Qtype.NS && owner !== zone).map((set) => set.owner),
  );
  const isGlue = (owner: string) => cuts.has(owner.slice(owner.indexOf(".") + 1));
  const keys: ZoneSet = { owner: zone, type: Qtype.DNSKEY, rdatas: [signer.dnskey] };
  add(keys);
  const own = [...sets, keys].filter(({ owner }) => !isGlue(owner));
  const signs = (set: ZoneSet) =>
    add({ owner: set.owner, type: Qtype.RRSIG, rdatas: [signer.sign(zone, set)] });
  for (const set of own) if (set.type === Qtype.DS || !cuts.has(set.owner)) signs(set);
  const names = [...Map.groupBy(own, ({ owner }) => owner)]
    .map(([owner, sets]) => ({ owner, name: wireName(owner), types: sets.map((set) => set.type) }))
    .sort((a, b) => compareNames(a.name, b.name));
  for (const [i, { owner, types }] of names.entries()) {
    const { name } = names[(i + 1) % names.length];
    const bits = typeBits([...types, Qtype.RRSIG, Qtype.NSEC]);
    const nsec = { owner, type: Qtype.NSEC, rdatas: [Buffer.concat([name, bits])] };
    add(nsec);
    signs(nsec);
  }
  return lines.join("");
}

/** The types of a name as in NSEC records (RFC 4034 §4.1.2); all are below 256. */
function typeBits(types: readonly number[]): Uint8Array {
  const bits = new Uint8Array((Math.max(...types) >> 3) + 1);
  for (const type of types) bits[type >> 3] |= 0x80 >> (type & 7);
  return Buffer.concat([Uint8Array.of(0, bits.length), bits]);
}
