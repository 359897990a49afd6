// A small iterative resolver over a scenario's servers: it follows referrals and aliases to the
// records that a validator is to judge, and keeps delegations alone, with the DS that came with them.
// What recursion has to stand is not its matter.

import { formatIp } from "../../src/addr/mod.ts";
import { getU16 } from "../../src/bytes/mod.ts";
import { equalNames, isAtOrBelow, nameKey, Qtype, Rcode } from "../../src/dns/mod.ts";
import { followAliases, readSections, type RrSetResponse } from "../../src/dnssec/mod.ts";
import { encodeResponse, type TextRecord } from "./records.ts";
import {
  configValues,
  findEntry,
  rcodeOf,
  type RplEntry,
  type RplQuestion,
  type Scenario,
} from "./rpl.ts";

const REFERRALS_MAX = 12;
const DEPTH_MAX = 4;
const ALIASES_MAX = 12;

/** A zone's servers, and what its parent says of its DS; `null` where it says nothing. */
interface Delegation {
  readonly zone: Uint8Array;
  readonly servers: readonly string[];
  readonly ds: RplEntry | null;
}

export class Iterator {
  readonly #scenario: Scenario;
  readonly #isForward: boolean;
  readonly #delegations = new Map<string, Delegation>();
  /** The step that the scenario is at. */
  step = 0;

  constructor(scenario: Scenario) {
    this.#scenario = scenario;
    const forward = configValues(scenario, "forward-addr");
    this.#isForward = forward.length > 0;
    const servers = this.#isForward ? forward : configValues(scenario, "stub-addr");
    this.#keep({ zone: new Uint8Array(1), servers, ds: null });
  }

  #keep(delegation: Delegation): Delegation {
    this.#delegations.set(nameKey(delegation.zone), delegation);
    return delegation;
  }

  /** The closest delegation for a question; that of DS is the parent's. */
  #closest({ name, type }: RplQuestion): Delegation {
    let closest: Delegation | null = null;
    for (const delegation of this.#delegations.values()) {
      const { zone } = delegation;
      if (!isAtOrBelow(name, 0, zone, 0)) continue;
      if (type === Qtype.DS && zone.length > 1 && equalNames(zone, 0, name, 0)) continue;
      if (closest === null || zone.length > closest.zone.length) closest = delegation;
    }
    return closest!;
  }

  /** Asks, and follows aliases that the answer leaves open; `null` where there is no answer. */
  async resolve(question: RplQuestion, attempt: number): Promise<RrSetResponse | null> {
    let whole = await this.lookUp(question.name, question.type, attempt);
    for (let i = 0; i < ALIASES_MAX && whole !== null; i++) {
      const trail = followAliases(whole.answer, question);
      const isOpen = trail.end === "missing" && trail.aliases.length > 0 &&
        whole.rcode === Rcode.NoError && !isDenied(whole, trail.name);
      if (!isOpen) return whole;
      const more: RrSetResponse | null = await this.lookUp(trail.name, question.type, attempt);
      whole = more === null ? null : {
        rcode: more.rcode,
        answer: [...whole.answer, ...more.answer],
        authority: [...whole.authority, ...more.authority],
      };
    }
    return whole;
  }

  /** As the port of a validator. */
  lookUp = (name: Uint8Array, type: number, attempt: number): Promise<RrSetResponse | null> => {
    const question = { name, type };
    const kept = type === Qtype.DS ? this.#delegations.get(nameKey(name))?.ds ?? null : null;
    const entry = attempt === 0 && kept !== null ? kept : this.#iterate(question, attempt, 0);
    return Promise.resolve(entry === null ? null : responseOf(question, entry));
  };

  #iterate(question: RplQuestion, attempt: number, depth: number): RplEntry | null {
    let delegation = this.#closest(question);
    for (let i = 0; i < REFERRALS_MAX; i++) {
      const { zone, servers } = delegation;
      // Another attempt is made elsewhere.
      const order = attempt === 0 ? servers : servers.toReversed();
      const entry = order.map((address) =>
        this.#ask(address, question)
      ).find((found) => found !== null && !isLame(found, zone, this.#isForward)) ?? null;
      const referral = entry === null || this.#isForward ? null : referralOf(entry, question, zone);
      if (entry === null) {
        return null;
      }
      if (referral === null) {
        return { ...entry, answer: entry.answer.filter(isIn(zone)) };
      }
      delegation = this.#keep({
        zone: referral[0].owner,
        servers: referral.flatMap((ns) =>
          this.#addressesOf(ns.rdata, entry, depth)
        ),
        ds: dsOf(entry, referral[0].owner),
      });
    }
    return null;
  }

  #ask(address: string, question: RplQuestion): RplEntry | null {
    const entry = findEntry(this.#scenario, this.step, address, question);
    if (entry === null || entry.raw !== null || entry.adjust.includes("do_not_answer")) return null;
    const rcode = rcodeOf(entry);
    return rcode === Rcode.ServFail || rcode === Rcode.Refused ? null : entry;
  }

  #addressesOf(server: Uint8Array, entry: RplEntry, depth: number): string[] {
    const ofServer = (records: readonly TextRecord[]) =>
      records.filter(({ owner, type }) =>
        (type === Qtype.A || type === Qtype.AAAA) && equalNames(owner, 0, server, 0)
      ).map(({ rdata }) => formatIp(rdata, 0, rdata.length));
    const glue = ofServer(entry.additional);
    if (glue.length > 0 || depth === DEPTH_MAX) return glue;
    const found = this.#iterate({ name: server, type: Qtype.A }, 0, depth + 1);
    return found === null ? [] : ofServer(found.answer);
  }
}

/** The NS records of a zone cut further down, where that is all that an entry says. */
function referralOf(
  { answer, authority }: RplEntry,
  { name, type }: RplQuestion,
  zone: Uint8Array,
): TextRecord[] | null {
  if (answer.length > 0 || authority.some(({ type }) => type === Qtype.SOA)) return null;
  const down = authority.filter((record) =>
    record.type === Qtype.NS && isAtOrBelow(name, 0, record.owner, 0) &&
    record.owner.length > zone.length &&
    // Who delegates a name is who answers for its DS.
    !(type === Qtype.DS && equalNames(record.owner, 0, name, 0))
  );
  return down.length > 0 ? down : null;
}

/** What a referral says of the DS of the zone it leads to. */
function dsOf(entry: RplEntry, zone: Uint8Array): RplEntry | null {
  const isOfDs = ({ owner, rdata, type }: TextRecord) =>
    equalNames(owner, 0, zone, 0) &&
    (type === Qtype.DS || (type === Qtype.RRSIG && getU16(rdata, 0) === Qtype.DS));
  const answer = entry.authority.filter(isOfDs);
  if (answer.length > 0) return { ...entry, answer, authority: [] };
  const isProof = ({ type }: TextRecord) => type === Qtype.NSEC || type === Qtype.NSEC3;
  return entry.authority.some(isProof) ? entry : null;
}

/** Says whether a zone's servers can speak of a record. */
function isIn(zone: Uint8Array): (record: TextRecord) => boolean {
  return ({ owner }) => isAtOrBelow(owner, 0, zone, 0);
}

/** A referral that leads up or nowhere comes of a server that does not serve the zone. */
function isLame({ answer, authority }: RplEntry, zone: Uint8Array, isForward: boolean): boolean {
  if (isForward || answer.length > 0) return false;
  const ns = authority.filter(({ type }) => type === Qtype.NS);
  return ns.length > 0 && ns.length === authority.length &&
    ns.every(({ owner }) => owner.length <= zone.length);
}

function isDenied({ authority }: RrSetResponse, name: Uint8Array): boolean {
  return authority.some(({ owner, type }) =>
    (type === Qtype.SOA || type === Qtype.NSEC || type === Qtype.NSEC3) &&
    isAtOrBelow(name, 0, owner, 0)
  );
}

function responseOf(question: RplQuestion, entry: RplEntry): RrSetResponse {
  const sections = readSections(encodeResponse(question, rcodeOf(entry), entry));
  if (sections === null) throw new Error("a scenario's records make a message");
  return { rcode: rcodeOf(entry), answer: sections.answer, authority: sections.authority };
}
