import { equalNames } from "../../dns/mod.ts";
import type { Delegation } from "./delegation.ts";
import type { Hint } from "./hints.ts";
import type { NameServer, NameServers } from "./name_servers.ts";
import { CutServer } from "./cut_server.ts";

/** A zone whose servers are asked at this moment, and what was learned of them for one question. */
export class Cut {
  readonly #delegation: Delegation;
  /** As the delegation has them, for all questions, until something is learned for this one. */
  #entries: readonly CutServer[];
  #isOwn = false;
  #hasMore = false;
  /** Addresses looked up for it, and those on their way. */
  lookups = 0;
  looking = 0;

  /**
   * `label` is where the zone begins in the name that is looked for, `hash` that of the zone's name.
   * `isStored`: it was kept from an earlier question, and may be out of date.
   */
  constructor(
    delegation: Delegation,
    readonly label: number,
    readonly hash: number,
    servers: NameServers,
    readonly isStored: boolean,
  ) {
    this.#delegation = delegation;
    this.#entries = delegation.entries(servers);
  }

  get zone(): Uint8Array {
    return this.#delegation.zone;
  }

  get expiresAtS(): number {
    return this.#delegation.expiresAtS;
  }

  get isRoot(): boolean {
    return this.zone.length === 1;
  }

  get entries(): readonly CutServer[] {
    return this.#entries;
  }

  /** The entries as this question's own, to be changed. */
  own(): readonly CutServer[] {
    if (!this.#isOwn) {
      this.#isOwn = true;
      this.#entries = this.#entries.map(({ name, servers }) => new CutServer(name, [...servers]));
    }
    return this.#entries;
  }

  /** The zone's own word for its name servers was heard. */
  get isOwnKnown(): boolean {
    return this.#delegation.isOwnKnown;
  }

  set isOwnKnown(isKnown: boolean) {
    this.#delegation.isOwnKnown = isKnown;
  }

  /** Adds further name servers, to be looked up or asked; says whether there are any. */
  add(more: readonly Hint[], servers: NameServers): boolean {
    if (this.#hasMore) return false;
    this.#hasMore = true;
    const added = more.filter(({ name }) => this.entryOf(name, 0) === null).map((
      { name, addresses },
    ) => new CutServer(name, addresses.map((address) => servers.at(address))));
    this.#entries = [...this.own(), ...added];
    return added.length > 0;
  }

  /** The entry of a name that is looked up. */
  entryOf(packet: Uint8Array, name: number): CutServer | null {
    return this.#entries.find((entry) => equalNames(entry.name, 0, packet, name)) ?? null;
  }

  /** The name of a server, for people. */
  nameOf(server: NameServer): Uint8Array | null {
    return this.#entries.find(({ servers }) => servers.includes(server))?.name ?? null;
  }
}
