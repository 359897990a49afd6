import {
  equalNames,
  formatName,
  Qclass,
  Qtype,
  Rcode,
  RCODE_MASK,
  RD_BIT,
  readRecord,
} from "../../dns/mod.ts";
import type { ResolveFailure } from "../failure.ts";
import type { Flight, Waiter } from "../flights/mod.ts";
import { hashQuestion, keptQuery, KEY_CD, type Query } from "../query.ts";
import type { Budget } from "./budget.ts";
import type { Cut } from "./cut.ts";
import { type CutServer, Lookup } from "./cut_server.ts";
import { isAskable } from "./delegations.ts";
import { TOO_DEEP, TOO_MANY_LOOKUPS, tooManyLookups } from "./failures.ts";
import type { Hint } from "./hints.ts";
import { ADDRESSES_PER_SERVER_MAX, LOOKUP_DEPTH_MAX, LOOKUPS_MAX } from "./limits.ts";
import type { Means } from "./means.ts";

/** Whoever needs addresses. */
export interface LookupOwner {
  readonly budget: Budget;
  /** A look-up has come to its end. */
  onAddresses(): void;
}

/**
 * Finds addresses of name servers that came without glue, or with glue that is of no use: as further
 * questions of the same flight, a few names at most, whoever a referral names (NXNSAttack).
 */
export class AddressLookups {
  readonly #flight: Flight;
  readonly #means: Means;
  readonly #owner: LookupOwner;
  #asking: Query | null = null;
  /** The bound that has ended the search in a zone; `null`: none has. */
  bound: ResolveFailure | null = null;
  /** What is known at once is found within `begin`. */
  #isBeginning = false;
  #found = 0;

  constructor(flight: Flight, means: Means, owner: LookupOwner) {
    this.#flight = flight;
    this.#means = means;
    this.#owner = owner;
  }

  /** Begins one look-up, or more where the answers are known; says whether addresses were found. */
  begin(cut: Cut): boolean {
    const { budget } = this.#owner;
    this.#isBeginning = true;
    this.#found = 0;
    const before = cut.looking;
    for (const entry of cut.own()) this.#found += this.#takeGlue(entry);
    while (this.#found === 0 && cut.looking === before) {
      const entry = this.#next(cut);
      if (entry === null) break;
      const bound = this.#boundOf(cut);
      if (bound !== null) {
        this.bound = bound;
        break;
      }
      const isIpv6 = this.#isIpv6(entry);
      entry.lookup = Lookup.Asked;
      cut.looking++;
      if (!this.#flight.ask(this.#query(entry.name, isIpv6 ? Qtype.AAAA : Qtype.A))) {
        cut.looking--;
        entry.lookup = Lookup.Done;
      } else if (cut.looking > before) {
        cut.lookups++;
        budget.lookups++;
      }
    }
    this.#isBeginning = false;
    return this.#found > 0;
  }

  /** The bound that further look-ups are over, or `null`. */
  #boundOf(cut: Cut): ResolveFailure | null {
    if (cut.lookups >= LOOKUPS_MAX) return tooManyLookups(formatName(cut.zone));
    if (!this.#owner.budget.hasLookups) return TOO_MANY_LOOKUPS;
    return this.#flight.depth >= LOOKUP_DEPTH_MAX ? TOO_DEEP : null;
  }

  /** The answer for `child` is in the cache under `entry`, or there is none. */
  onChild(cut: Cut, { query, failure }: Waiter, entry: number): void {
    if (failure?.code === "overWork") this.bound = failure;
    const server = cut.entryOf(query.packet, query.qname);
    // Of a zone that was left by now, where it is a server of this one as well.
    if (server === null || server.lookup !== Lookup.Asked) return;
    cut.looking--;
    const isIpv6 = query.qtype === Qtype.AAAA;
    const found = entry < 0 ? -1 : this.#take(server, entry, query.qtype);
    this.#found += Math.max(0, found);
    const { servers, nowMs } = this.#means;
    // A name without addresses of one family may have some of the other.
    const hasOther = found === 0 && !server.isHalf && servers.hasWay(!isIpv6, nowMs());
    server.isHalf = true;
    server.lookup = !hasOther ? Lookup.Done : isIpv6 ? Lookup.NoIpv6 : Lookup.NoIpv4;
    if (!this.#isBeginning) this.#owner.onAddresses();
  }

  /**
   * Takes the glue that is kept of a zone that a name server is in, if it serves that: the zone above
   * has told it for this very end. Returns how many addresses are new.
   */
  #takeGlue(entry: CutServer): number {
    const { scratch, seed, delegations, servers } = this.#means;
    if (entry.hasGlue) return 0;
    const { name } = entry;
    scratch.read(name, 0, name.length, seed);
    let kept: Hint | undefined;
    // The closest zone may be one that only the server itself speaks of.
    for (let from = 0; kept === undefined;) {
      const label = delegations.closest(scratch, name, from);
      if (label < 0 || label === scratch.count) return 0;
      const zone = delegations.delegation(scratch, name, label);
      kept = zone?.servers.find((server) =>
        server.addresses.length > 0 && equalNames(server.name, 0, name, 0)
      );
      from = label + 1;
    }
    entry.hasGlue = true;
    const before = entry.servers.length;
    for (const address of kept.addresses) {
      const server = servers.at(address);
      if (!entry.servers.includes(server)) entry.servers.push(server);
    }
    return entry.servers.length - before;
  }

  /** A name server to look up: of those without an address first, and any of these. */
  #next(cut: Cut): CutServer | null {
    const open = cut.entries.filter(({ lookup }) =>
      lookup !== Lookup.Asked && lookup !== Lookup.Done
    );
    for (
      const group of [
        open.filter(({ lookup, servers }) => lookup === Lookup.None && servers.length === 0),
        open.filter(({ lookup }) => lookup !== Lookup.None),
        open,
      ]
    ) {
      if (group.length > 0) return group[Math.floor(this.#means.random() * group.length)];
    }
    return null;
  }

  #isIpv6({ lookup }: CutServer): boolean {
    const { servers, nowMs } = this.#means;
    if (lookup === Lookup.None) return !servers.hasWay(false, nowMs());
    return lookup === Lookup.NoIpv4;
  }

  #query(name: Uint8Array, qtype: number): Query {
    const query = this.#asking ??= keptQuery();
    query.packet.fill(0);
    query.flags = RD_BIT;
    query.qtype = qtype;
    query.qclass = Qclass.IN;
    // What a server is asked for is checked, and where it is need not be.
    query.keyBits = this.#means.dnssecOk ? KEY_CD : 0;
    query.rename(name);
    hashQuestion(query, this.#means.scratch, this.#means.seed);
    return query;
  }

  /** Takes the addresses of an answer; returns how many are new, or -1 of one that failed. */
  #take(entry: CutServer, kept: number, qtype: number): number {
    const { cache, messages, servers } = this.#means;
    const rcode = cache.flags(kept) & RCODE_MASK;
    if (rcode !== Rcode.NoError) return -1;
    const reader = this.#means.kept;
    const message = messages.copy(kept);
    if (!reader.readKept(message)) return -1;
    const record = this.#means.record;
    let found = 0;
    let at = reader.answersAt;
    for (let i = 0; i < reader.answers; i++) {
      at = readRecord(message, at, message.length, record);
      if (record.type !== qtype || entry.servers.length >= ADDRESSES_PER_SERVER_MAX) continue;
      const address = message.subarray(record.rdataOffset, record.end);
      if (!isAskable(address)) continue;
      const server = servers.at(address);
      if (entry.servers.includes(server)) continue;
      entry.servers.push(server);
      found++;
    }
    return found;
  }
}
