/** What stands for the surroundings of a validator in tests: zones in memory, and a cache. */
import assert from "node:assert/strict";
import { generateKeyPairSync, type KeyObject, sign } from "node:crypto";
import {
  encodeResponse,
  parseRecord,
  type TextRecord,
  wireName,
} from "../../tests/replay/records.ts";
import { concat, encodeHex, setU16, setU32 } from "../bytes/mod.ts";
import { nameKey, Qclass, Qtype, Rcode } from "../dns/mod.ts";
import type { TrustAnchor } from "./anchors.ts";
import { canonicalRdatas, signedData } from "./canonical.ts";
import type { ChainPorts, Cut, CutCache, RrSetResponse } from "./chain.ts";
import { digestKey } from "./digest.ts";
import { signedLabels } from "./names.ts";
import { keyTag, readRrsig } from "./records.ts";
import { readSections, type RrSet } from "./rrset.ts";
import { verifySignature } from "./verify.ts";

/** Responses by way of a packet, as the wire brings them. */
export function responseOf(
  name: string,
  type: number,
  sections: { readonly answer?: readonly string[]; readonly authority?: readonly string[] },
  rcode: number = Rcode.NoError,
): RrSetResponse {
  const question = { name: wireName(name), type };
  const answer = (sections.answer ?? []).map(parseRecord);
  const authority = (sections.authority ?? []).map(parseRecord);
  return responseOfRecords(question, rcode, answer, authority);
}

export function responseOfRecords(
  question: { readonly name: Uint8Array; readonly type: number },
  rcode: number,
  answer: readonly TextRecord[],
  authority: readonly TextRecord[],
): RrSetResponse {
  const read = readSections(encodeResponse(question, rcode, { answer, authority }));
  assert(read !== null);
  return { rcode, answer: read.answer, authority: read.authority };
}

/** RRsets of records in presentation form. */
export function rrsetsOf(lines: readonly string[]): readonly RrSet[] {
  return responseOf(".", Qtype.A, { answer: lines }).answer;
}

export class FakeCuts implements CutCache {
  readonly cuts = new Map<string, Cut>();
  get(name: Uint8Array): Cut | undefined {
    return this.cuts.get(nameKey(name));
  }
  set(name: Uint8Array, cut: Cut): void {
    this.cuts.set(nameKey(name), cut);
  }
}

/** Ports that count what they are asked for. */
export class FakePorts implements ChainPorts {
  readonly cuts = new FakeCuts();
  checks = 0;
  readonly asked: string[] = [];

  constructor(
    readonly answer: (
      name: Uint8Array,
      type: number,
      attempt: number,
    ) => RrSetResponse | null | Promise<RrSetResponse | null>,
  ) {}

  lookUp = async (
    name: Uint8Array,
    type: number,
    attempt: number,
  ): Promise<RrSetResponse | null> => {
    this.asked.push(`${nameKey(name)} ${type}`);
    return await this.answer(name, type, attempt);
  };

  check: ChainPorts["check"] = (check) => {
    this.checks++;
    return Promise.resolve(verifySignature(check));
  };
}

/** Inception and expiration of signatures made here, and a time between. */
export const TIMES = { inception: 1_700_000_000, nowS: 1_700_500_000, expiration: 1_701_000_000 };

/** What a signature made here can have of its own. */
export interface SignOptions {
  readonly inception?: number;
  readonly expiration?: number;
  readonly originalTtl?: number;
  /** Of a wildcard's expansion: fewer than the owner has. */
  readonly labels?: number;
  readonly signer?: string;
  readonly tag?: number;
  readonly algorithm?: number;
}

/** A key of a zone that signs: Ed25519, for its speed. */
export class FakeKey {
  readonly #private: KeyObject;
  readonly rdata: Uint8Array;

  constructor(readonly zone: string, flags = 257) {
    const { publicKey, privateKey } = generateKeyPairSync("ed25519");
    this.#private = privateKey;
    const spki = publicKey.export({ type: "spki", format: "der" });
    this.rdata = concat(Uint8Array.of(flags >> 8, flags, 3, 15), spki.subarray(-32));
  }

  get tag(): number {
    return keyTag(this.rdata);
  }

  /** An RRset of lines, which are of one, signed. */
  rrset(lines: readonly string[], options: SignOptions = {}): RrSet {
    const [rrset] = rrsetsOf(lines);
    return { ...rrset, signatures: [...rrset.signatures, this.sign(rrset, options)] };
  }

  /** RDATA of a signature. */
  sign(rrset: RrSet, options: SignOptions = {}): Uint8Array {
    const { owner, type, ttl } = rrset;
    const {
      inception = TIMES.inception,
      expiration = TIMES.expiration,
      originalTtl = ttl,
      labels = signedLabels(owner),
      signer = this.zone,
      tag = this.tag,
      algorithm = 15,
    } = options;
    const fixed = new Uint8Array(18);
    setU16(fixed, 0, type);
    fixed.set([algorithm, labels], 2);
    setU32(fixed, 4, originalTtl);
    setU32(fixed, 8, expiration);
    setU32(fixed, 12, inception);
    setU16(fixed, 16, tag);
    const fields = concat(fixed, wireName(signer));
    const read = readRrsig(concat(fields, Uint8Array.of(0)));
    const data = signedData(rrset, canonicalRdatas(rrset), read!);
    return concat(fields, sign(null, data!, this.#private));
  }

  /** The DNSKEY RRset, of this key and others, signed by this one. */
  dnskeys(others: readonly Uint8Array[] = [], options: SignOptions = {}): RrSet {
    const rrset: RrSet = {
      owner: wireName(this.zone),
      type: Qtype.DNSKEY,
      cls: Qclass.IN,
      ttl: 3600,
      rdatas: [this.rdata, ...others],
      signatures: [],
    };
    return { ...rrset, signatures: [this.sign(rrset, options)] };
  }

  /** A DS record of this key, in presentation form. */
  ds(digestType = 2): string {
    const digest = digestKey(wireName(this.zone), this.rdata, digestType);
    const hex = digest === null ? "00" : encodeHex(digest);
    return `${this.zone} 3600 IN DS ${this.tag} 15 ${digestType} ${hex}`;
  }

  anchor(): TrustAnchor {
    return { zone: wireName(this.zone), type: Qtype.DNSKEY, rdata: this.rdata };
  }
}

/** Answers to look up, by `name TYPE`; what is not there can't be had. */
export class FakeWorld {
  readonly responses = new Map<string, RrSetResponse>();
  readonly ports: FakePorts = new FakePorts((name, type) =>
    this.responses.get(keyOf(name, type)) ?? null
  );

  set(name: string, type: number, response: Partial<RrSetResponse>): void {
    const whole = { rcode: Rcode.NoError, answer: [], authority: [], ...response };
    this.responses.set(keyOf(wireName(name), type), whole);
  }

  /** A zone with its keys, and with the DS that `parent` signs. */
  addZone(key: FakeKey, parent: FakeKey | null, dnskeys: RrSet = key.dnskeys()): void {
    this.set(key.zone, Qtype.DNSKEY, { answer: [dnskeys] });
    if (parent === null) return;
    this.set(key.zone, Qtype.DS, { answer: [parent.rrset([key.ds()])] });
  }
}

function keyOf(name: Uint8Array, type: number): string {
  return `${nameKey(name)} ${type}`;
}
