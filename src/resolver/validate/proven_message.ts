import { TTLS_MAX } from "../../cache/mod.ts";
import { AD_BIT, MessageWriter, Qclass, QR_BIT, Qtype, RA_BIT, Section } from "../../dns/mod.ts";
import { type RrSet, Security, type ValidatedRrSet } from "../../dnssec/mod.ts";
import type { BroughtMessage } from "../flights/mod.ts";
import { KEY_DO, type Query } from "../query.ts";

const MESSAGE_BYTES_MAX = 0xffff;

/** What is to be said of a question. */
export interface Proven {
  readonly rcode: number;
  readonly security: Security;
  readonly answer: readonly ValidatedRrSet[];
  readonly authority: readonly ValidatedRrSet[];
  /** Seconds that it may be kept at most; 0: not at all. */
  readonly ttlMax: number;
}

/**
 * Writes an answer of the RRsets that were found to be of it, and of none besides. Signatures and
 * proofs are for who asks for them. Made once; speaks of what was written last.
 */
export class ProvenMessage implements BroughtMessage {
  readonly message: Uint8Array<ArrayBuffer> = new Uint8Array(MESSAGE_BYTES_MAX);
  length = 0;
  readonly ttlOffsets: Uint16Array = new Uint16Array(TTLS_MAX);
  ttlCount = 0;
  ttl = 0;
  readonly #writer = new MessageWriter(true);

  /** Says whether it has room; the question is as `query`, which was kept, has it. */
  write({ packet, qname, qnameLength, qtype, keyBits }: Query, proven: Proven): boolean {
    const { rcode, security, answer, authority, ttlMax } = proven;
    const ad = security === Security.Secure ? AD_BIT : 0;
    const writer = this.#writer;
    this.ttlCount = 0;
    this.ttl = ttlMax;
    const wantsProofs = (keyBits & KEY_DO) !== 0;
    const flags = QR_BIT | RA_BIT | ad | (rcode & 15);
    const name = packet.subarray(qname, qname + qnameLength);
    let fits = writer.start(this.message, 0, MESSAGE_BYTES_MAX, 0, flags) &&
      writer.question(name, qtype);
    for (const part of answer) fits &&= this.#add(Section.Answer, part, wantsProofs);
    for (const part of authority) {
      this.ttl = Math.min(this.ttl, part.ttl);
      if (!wantsProofs && part.rrset.type !== Qtype.SOA) continue;
      fits &&= this.#add(Section.Authority, part, wantsProofs);
    }
    this.length = writer.lengthBytes;
    return fits;
  }

  #add(section: Section, { rrset, ttl }: ValidatedRrSet, wantsProofs: boolean): boolean {
    this.ttl = Math.min(this.ttl, ttl);
    const { owner, type, rdatas, signatures } = rrset;
    for (const rdata of rdatas) if (!this.#write(section, owner, type, ttl, rdata)) return false;
    if (!wantsProofs) return true;
    for (const rdata of signatures) {
      if (!this.#write(section, owner, Qtype.RRSIG, ttl, rdata)) return false;
    }
    return true;
  }

  #write(
    section: Section,
    owner: RrSet["owner"],
    type: number,
    ttl: number,
    rdata: Uint8Array,
  ): boolean {
    if (this.ttlCount >= TTLS_MAX) return false;
    if (!this.#writer.record(section, owner, type, Qclass.IN, ttl, rdata)) return false;
    this.ttlOffsets[this.ttlCount++] = this.#writer.ttlOffset;
    return true;
  }
}
