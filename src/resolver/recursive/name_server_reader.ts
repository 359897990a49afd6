/** Reads what a name server says about a name of the zone that it is asked for. */
import { getU16, getU32 } from "../../bytes/mod.ts";
import {
  AA_BIT,
  copyRdata,
  countLabels,
  equalNames,
  expandName,
  FOLD,
  HEADER_BYTES,
  isAtOrBelow,
  MessageWriter,
  NAME_BYTES_MAX,
  Qclass,
  QR_BIT,
  Qtype,
  Rcode,
  readRecord,
  RecordView,
  Section,
} from "../../dns/mod.ts";
import type { ResponseReader } from "../ask/mod.ts";
import { isAskable } from "./delegations.ts";
import type { Hint } from "./hints.ts";
import { ADDRESSES_PER_SERVER_MAX, KEPT_BYTES_MAX, NAME_SERVERS_MAX } from "./limits.ts";

/** What a response comes to. */
export const Says = {
  /** Records of the name, or an alias of it. */
  Answer: 0,
  /** The name or the type is not there. */
  Denial: 1,
  /** Others serve the name. */
  Referral: 2,
  /** The server does not serve the zone. */
  Lame: 3,
  /** No word, with authority: a denial, or a server that is not well. */
  Nothing: 4,
} as const;
export type Says = typeof Says[keyof typeof Says];

/** Bytes of RRSIG RDATA before the signer's name (RFC 4034 §3.1). */
const RRSIG_SIGNER_OFFSET = 18;
/** Nothing says how long it holds. */
export const NO_TTL = 0x7fffffff;

/**
 * Tells answers, denials, referrals and nonsense apart. Only what is in the bailiwick of the zone is
 * looked at: in its authority section a server can speak of delegations further down and of nothing
 * else, and glue is of names below its zone. Its fields are of the response read last.
 */
export class NameServerReader {
  /** Of a referral: the zone it leads to, uncompressed. */
  readonly cut: Uint8Array = new Uint8Array(NAME_BYTES_MAX);
  /** Labels of that zone. */
  cutLabels = 0;
  /** Of an answer: it is by a DNAME, which holds for all names below its owner. */
  byDname = false;
  /** Of a denial: it comes with signed records that prove it, whether or not they are right. */
  hasProof = false;
  /** Seconds that an answer or a denial holds. */
  ttl = 0;

  #packet: Uint8Array = new Uint8Array(0);
  #end = 0;
  #zone: Uint8Array = new Uint8Array(1);
  readonly #record = new RecordView();
  readonly #owner = new Uint8Array(NAME_BYTES_MAX);
  readonly #name = new Uint8Array(NAME_BYTES_MAX);
  readonly #rdata = new Uint8Array(0xffff + 2 * NAME_BYTES_MAX);
  readonly #writer = new MessageWriter();
  readonly #made = new Uint8Array(KEPT_BYTES_MAX);

  /** Reads the response of a server of `zone`. */
  read(response: ResponseReader, zone: Uint8Array): Says {
    const { packet, flags, rcode } = response;
    this.#packet = packet;
    this.#end = response.length;
    this.#zone = zone;
    this.byDname = this.hasProof = false;
    this.ttl = NO_TTL;
    const qtype = getU16(packet, response.answersAt - 4);
    if (rcode === Rcode.YXDomain || this.#hasAnswer(response, qtype)) return Says.Answer;
    const isAuthoritative = (flags & AA_BIT) !== 0;
    const authority = this.#readAuthority(response, qtype);
    if (rcode === Rcode.NXDomain) {
      return isAuthoritative || authority.denies ? Says.Denial : Says.Lame;
    }
    if (authority.denies) return Says.Denial;
    if (authority.refers) return Says.Referral;
    if (this.hasProof) return Says.Denial;
    // Who speaks of the zone itself, and with authority, has nothing of the type.
    if (!isAuthoritative || authority.refersUp) return Says.Lame;
    return response.authorities > 0 ? Says.Denial : Says.Nothing;
  }

  /** A copy of `cut`, in lower case. */
  cutName(): Uint8Array {
    const name = this.cut.slice(0, nameLength(this.cut));
    for (let i = 0; i < name.length; i++) name[i] = FOLD[name[i]];
    return name;
  }

  /** Name servers of the referral read last, with the glue that its server can know. */
  nameServers(response: ResponseReader): { readonly servers: Hint[]; readonly ttl: number } {
    const record = this.#record;
    const servers: { name: Uint8Array; addresses: Uint8Array[] }[] = [];
    let ttl = NO_TTL;
    let at = response.authoritiesAt;
    for (let i = 0; i < response.authorities && servers.length < NAME_SERVERS_MAX; i++) {
      at = this.#next(at);
      if (record.type !== Qtype.NS || record.cls !== Qclass.IN) continue;
      if (!equalNames(this.#owner, 0, this.cut, 0)) continue;
      const { rdataOffset, end } = record;
      const length = expandName(this.#packet, rdataOffset, this.#name, 0, end);
      if (length < 0) continue;
      const name = this.#name.slice(0, length);
      for (let k = 0; k < length; k++) name[k] = FOLD[name[k]];
      if (servers.some((known) => equalNames(known.name, 0, name, 0))) continue;
      servers.push({ name, addresses: [] });
      ttl = Math.min(ttl, seconds(record.ttl));
    }
    this.#addGlue(response, servers);
    return { servers, ttl };
  }

  /** The zone's own word for its name servers, where the response read last has it (RFC 2181 §5.4.1). */
  ownServers(response: ResponseReader): { readonly servers: Hint[]; readonly ttl: number } {
    if ((response.flags & AA_BIT) === 0) return { servers: [], ttl: 0 };
    this.cut.set(this.#zone);
    return this.nameServers(response);
  }

  /** The root's name servers from its own answer (RFC 8109 §4), as those of a referral. */
  rootServers(response: ResponseReader): { readonly servers: Hint[]; readonly ttl: number } {
    this.cut[0] = 0;
    const { answers, answersAt } = response;
    const servers: { name: Uint8Array; addresses: Uint8Array[] }[] = [];
    let ttl = NO_TTL;
    let at = answersAt;
    for (let i = 0; i < answers && servers.length < NAME_SERVERS_MAX; i++) {
      at = this.#next(at);
      const { type, rdataOffset, end } = this.#record;
      if (type !== Qtype.NS || this.#owner[0] !== 0) continue;
      const length = expandName(this.#packet, rdataOffset, this.#name, 0, end);
      if (length < 0) continue;
      servers.push({ name: this.#name.slice(0, length).map((b) => FOLD[b]), addresses: [] });
      ttl = Math.min(ttl, seconds(this.#record.ttl));
    }
    this.#addGlue(response, servers);
    return { servers, ttl };
  }

  /**
   * What the referral read last says of the DS of the zone it leads to, as a response to a question
   * for that, with how long it holds; `null`: it says nothing. A view, good until the next call.
   */
  ds(response: ResponseReader): { readonly message: Uint8Array; readonly ttl: number } | null {
    const record = this.#record;
    const writer = this.#writer;
    const cut = this.cutName();
    writer.start(this.#made, 0, this.#made.length, 0, QR_BIT);
    writer.question(cut, Qtype.DS);
    let ttl = NO_TTL;
    let fits = true;
    for (const section of [Section.Answer, Section.Authority]) {
      let at = response.authoritiesAt;
      for (let i = 0; i < response.authorities; i++) {
        at = this.#next(at);
        if (record.cls !== Qclass.IN) continue;
        const covered = record.type === Qtype.RRSIG ? this.#covered() : record.type;
        const isDs = covered === Qtype.DS && equalNames(this.#owner, 0, this.cut, 0);
        const isProof = (covered === Qtype.NSEC || covered === Qtype.NSEC3) &&
          isAtOrBelow(this.#owner, 0, this.#zone, 0);
        if (section === Section.Answer ? !isDs : !isProof) continue;
        ttl = Math.min(ttl, seconds(record.ttl));
        fits &&= this.#copy(section);
      }
    }
    return ttl === NO_TTL || !fits ? null : { message: writer.bytes(), ttl };
  }

  #copy(section: Section): boolean {
    const { type, cls, ttl, rdataOffset, rdataLength } = this.#record;
    const length = copyRdata(this.#packet, type, rdataOffset, rdataLength, this.#rdata, 0);
    if (length < 0 || length > 0xffff) return false;
    const owner = this.#owner.subarray(0, nameLength(this.#owner));
    const rdata = this.#rdata.subarray(0, length);
    return this.#writer.record(section, owner, type, cls, seconds(ttl), rdata);
  }

  #addGlue(
    response: ResponseReader,
    servers: readonly { readonly name: Uint8Array; readonly addresses: Uint8Array[] }[],
  ): void {
    const record = this.#record;
    let at = response.additionalsAt;
    for (let i = 0; i < response.additionals; i++) {
      at = this.#next(at);
      const { type, cls, rdataOffset, rdataLength, end } = record;
      const isAddress = (type === Qtype.A && rdataLength === 4) ||
        (type === Qtype.AAAA && rdataLength === 16);
      if (!isAddress || cls !== Qclass.IN || !isAtOrBelow(this.#owner, 0, this.#zone, 0)) continue;
      const server = servers.find(({ name }) => equalNames(name, 0, this.#owner, 0));
      if (server === undefined || server.addresses.length >= ADDRESSES_PER_SERVER_MAX) continue;
      const address = this.#packet.slice(rdataOffset, end);
      if (isAskable(address)) server.addresses.push(address);
    }
  }

  /** Says whether the answer section has something of the name that was asked for. */
  #hasAnswer({ packet, answers, answersAt }: ResponseReader, qtype: number): boolean {
    const record = this.#record;
    let isFound = false;
    let at = answersAt;
    for (let i = 0; i < answers; i++) {
      at = this.#next(at);
      const { type, cls } = record;
      if (cls !== Qclass.IN || !isAtOrBelow(this.#owner, 0, this.#zone, 0)) continue;
      if (type === Qtype.DNAME && isAtOrBelow(packet, HEADER_BYTES, this.#owner, 0)) {
        if (!equalNames(packet, HEADER_BYTES, this.#owner, 0)) this.byDname = isFound = true;
        else if (qtype === type) isFound = true;
      } else if (
        (type === qtype || type === Qtype.CNAME || qtype === Qtype.ANY) &&
        equalNames(packet, HEADER_BYTES, this.#owner, 0)
      ) isFound = true;
      else continue;
      this.ttl = Math.min(this.ttl, seconds(record.ttl));
    }
    return isFound;
  }

  #readAuthority({ packet, authorities, authoritiesAt }: ResponseReader, qtype: number) {
    const record = this.#record;
    const found = { denies: false, refers: false, refersUp: false };
    let hasDenials = false;
    let hasSignatures = false;
    let at = authoritiesAt;
    for (let i = 0; i < authorities; i++) {
      at = this.#next(at);
      if (record.cls !== Qclass.IN) continue;
      const isInside = isAtOrBelow(this.#owner, 0, this.#zone, 0);
      const isAbove = isAtOrBelow(packet, HEADER_BYTES, this.#owner, 0);
      switch (record.type) {
        case Qtype.SOA:
          if (!isInside || !isAbove) break;
          found.denies = true;
          // The time of a denial (RFC 2308 §5).
          this.ttl = Math.min(this.ttl, seconds(record.ttl), getU32(this.#packet, record.end - 4));
          break;
        case Qtype.NSEC:
        case Qtype.NSEC3:
          hasDenials ||= isInside;
          break;
        case Qtype.RRSIG:
          hasSignatures ||= isInside;
          break;
        case Qtype.NS: {
          const isZone = isInside && isAtOrBelow(this.#zone, 0, this.#owner, 0);
          if (!isInside || !isAbove) found.refersUp = true;
          // Of DS the zone above speaks: a server that refers there knows of none.
          else if (qtype === Qtype.DS && equalNames(packet, HEADER_BYTES, this.#owner, 0)) {
            found.denies ||= !isZone;
          } else if (!isZone && !found.refers) {
            found.refers = true;
            this.cut.set(this.#owner);
            this.cutLabels = countLabels(this.#owner, 0);
          }
        }
      }
    }
    this.hasProof = hasDenials && hasSignatures;
    return found;
  }

  /** The type that the RRSIG at hand covers. */
  #covered(): number {
    const { rdataOffset, rdataLength } = this.#record;
    return rdataLength < RRSIG_SIGNER_OFFSET ? 0 : getU16(this.#packet, rdataOffset);
  }

  /** Reads the record at `at` and its owner; returns where the next is. */
  #next(at: number): number {
    const next = readRecord(this.#packet, at, this.#end, this.#record);
    expandName(this.#packet, at, this.#owner, 0, this.#end);
    return next;
  }
}

/** The top bit set means zero (RFC 2181 §8). */
function seconds(ttl: number): number {
  return ttl > 0x7fffffff ? 0 : ttl;
}

function nameLength(name: Uint8Array): number {
  let at = 0;
  while (name[at] !== 0) at += 1 + name[at];
  return at + 1;
}
