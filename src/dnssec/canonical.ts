/** The bytes that a signature of an RRset covers (RFC 4034 §3.1.8.1, §6; RFC 6840 §5.1). */
import { setU16, setU32 } from "../bytes/mod.ts";
import { FOLD, Qtype, skipPlainName } from "../dns/mod.ts";
import { ancestor, canonicalName, compareBytes, signedLabels } from "./names.ts";
import type { Rrsig } from "./records.ts";
import type { RrSet } from "./rrset.ts";

/** Bytes of a record between its owner name and its RDATA. */
const RECORD_FIXED_BYTES = 10;
/** Bytes of RRSIG, and of the older SIG, before the signer's name. */
const RRSIG_FIXED_BYTES = 18;

/**
 * Types whose names are covered in lower case: bytes before the names, and how many there are. Of
 * NSEC and of every type since RFC 3597 the case counts.
 */
const LOWERED: ReadonlyMap<number, readonly [before: number, names: number]> = new Map([
  [Qtype.NS, [0, 1]],
  [Qtype.MD, [0, 1]],
  [Qtype.MF, [0, 1]],
  [Qtype.CNAME, [0, 1]],
  [Qtype.SOA, [0, 2]],
  [Qtype.MB, [0, 1]],
  [Qtype.MG, [0, 1]],
  [Qtype.MR, [0, 1]],
  [Qtype.PTR, [0, 1]],
  [Qtype.MINFO, [0, 2]],
  [Qtype.MX, [2, 1]],
  [Qtype.RP, [0, 2]],
  [Qtype.AFSDB, [2, 1]],
  [Qtype.RT, [2, 1]],
  [Qtype.SIG, [RRSIG_FIXED_BYTES, 1]],
  [Qtype.PX, [2, 2]],
  [Qtype.NXT, [0, 1]],
  [Qtype.KX, [2, 1]],
  [Qtype.SRV, [6, 1]],
  [Qtype.DNAME, [0, 1]],
  [Qtype.RRSIG, [RRSIG_FIXED_BYTES, 1]],
]);

/** RDATA in canonical form; the RDATA itself where that is the same. */
export function canonicalRdata(type: number, rdata: Uint8Array): Uint8Array {
  const [before, names] = LOWERED.get(type) ??
    (type === Qtype.NAPTR ? [skipStrings(rdata, 4, 3), 1] : [0, 0]);
  let end = before < 0 ? -1 : before;
  for (let i = 0; i < names && end >= 0; i++) end = skipPlainName(rdata, end);
  if (names === 0 || end < 0) return rdata;
  const copy = rdata.slice();
  for (let i = before; i < end; i++) copy[i] = FOLD[copy[i]];
  return copy;
}

/** Returns the offset behind `count` character strings, or -1 when they are cut off. */
function skipStrings(rdata: Uint8Array, offset: number, count: number): number {
  let at = offset;
  for (let i = 0; i < count && at >= 0; i++) at = at < rdata.length ? at + 1 + rdata[at] : -1;
  return at <= rdata.length ? at : -1;
}

/** An RRset's RDATA in canonical form and order, equal ones once (RFC 4034 §6.3). */
export function canonicalRdatas(rrset: RrSet): readonly Uint8Array[] {
  const rdatas = rrset.rdatas.map((rdata) => canonicalRdata(rrset.type, rdata)).sort(compareBytes);
  return rdatas.filter((rdata, i) => i === 0 || compareBytes(rdata, rdatas[i - 1]) !== 0);
}

/**
 * The owner name as it was signed: of what a wildcard was expanded to, the wildcard. `null` where
 * the signature counts more labels than there are (RFC 4035 §5.3.2).
 */
function signedOwner(owner: Uint8Array, labels: number): Uint8Array | null {
  const count = signedLabels(owner);
  if (labels > count) return null;
  if (labels === count) return canonicalName(owner);
  const encloser = canonicalName(ancestor(owner, labels));
  const wildcard = new Uint8Array(2 + encloser.length);
  wildcard.set([1, 0x2a]);
  wildcard.set(encloser, 2);
  return wildcard;
}

/**
 * The data under a signature, for the RRset's `rdatas` as `canonicalRdatas` returns them, or `null`
 * where the signature cannot be of this owner.
 */
export function signedData(
  rrset: RrSet,
  rdatas: readonly Uint8Array[],
  rrsig: Rrsig,
): Uint8Array<ArrayBuffer> | null {
  const owner = signedOwner(rrset.owner, rrsig.labels);
  if (owner === null) return null;
  const { signedFields } = rrsig;
  let size = signedFields.length;
  for (const rdata of rdatas) size += owner.length + RECORD_FIXED_BYTES + rdata.length;
  const data = new Uint8Array(size);
  data.set(signedFields);
  for (let i = RRSIG_FIXED_BYTES; i < signedFields.length; i++) data[i] = FOLD[data[i]];
  let at = signedFields.length;
  for (const rdata of rdatas) {
    data.set(owner, at);
    at += owner.length;
    setU16(data, at, rrset.type);
    setU16(data, at + 2, rrset.cls);
    setU32(data, at + 4, rrsig.originalTtl);
    setU16(data, at + 8, rdata.length);
    at += RECORD_FIXED_BYTES;
    data.set(rdata, at);
    at += rdata.length;
  }
  return data;
}
