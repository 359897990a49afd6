import { getU16 } from "../../bytes/mod.ts";
import {
  expandName,
  HEADER_BYTES,
  NAME_BYTES_MAX,
  Qtype,
  Rcode,
  RCODE_MASK,
  readRecord,
  RecordView,
  skipName,
} from "../../dns/mod.ts";
import { type CutCache, type Finding, knownInsecure, type TrustAnchors } from "../../dnssec/mod.ts";
import type { BroughtMessage, Flight } from "../flights/mod.ts";

/** Types that validation looks at in a way of their own. */
const OTHER_TYPES: readonly number[] = [Qtype.DS, Qtype.RRSIG, Qtype.ANY];
/** What answers of unsigned zones do not hold, or what is not for everybody. */
const PROOF_TYPES: readonly number[] = [Qtype.RRSIG, Qtype.NSEC, Qtype.NSEC3];

/**
 * Finds answers that need no look, for all of them is of zones that are known not to be signed: most
 * of what clients ask for.
 */
export class UnsignedAnswers {
  readonly #cuts: CutCache;
  readonly #record = new RecordView();
  readonly #owner = new Uint8Array(NAME_BYTES_MAX);

  constructor(cuts: CutCache) {
    this.#cuts = cuts;
  }

  /** Why nothing of an answer is signed, or `null`, where that is to be found out. */
  find(
    { query, zone }: Flight,
    { message, length }: BroughtMessage,
    anchors: TrustAnchors,
    nowS: number,
  ): Finding | null {
    const rcode = getU16(message, 2) & RCODE_MASK;
    if (rcode !== Rcode.NoError && rcode !== Rcode.NXDomain) return null;
    if (OTHER_TYPES.includes(query.qtype)) return null;
    const answers = getU16(message, 6);
    const authorities = getU16(message, 8);
    // Where aliases have led to several zones, each has its say; what is denied is of the last.
    if (zone === null && (answers === 0 || authorities > 0)) return null;
    const own = query.packet.subarray(query.qname, query.qname + query.qnameLength);
    let finding = zone === null ? null : knownInsecure(own, zone, anchors, this.#cuts, nowS);
    if (zone !== null && finding === null) return null;
    let at = skipName(message, HEADER_BYTES, length) + 4;
    for (let i = 0; i < answers + authorities; i++) {
      const ownerAt = at;
      at = readRecord(message, at, length, this.#record);
      if (at < 0 || PROOF_TYPES.includes(this.#record.type)) return null;
      if (zone !== null) continue;
      const end = expandName(message, ownerAt, this.#owner, 0, length);
      if (end < 0) return null;
      const owner = this.#owner.subarray(0, end);
      finding = knownInsecure(owner, owner, anchors, this.#cuts, nowS);
      if (finding === null) return null;
    }
    return finding?.ede === null ? finding : null;
  }
}
