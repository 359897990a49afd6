import { equalNames } from "../../dns/mod.ts";
import type { Delegation } from "./delegations.ts";
import type { NameServer, NameServers } from "./name_servers.ts";

/** What was done to find a name server's address beside glue. */
export const Lookup = { None: 0, Asked: 1, NoIpv4: 2, NoIpv6: 3, Done: 4 } as const;
export type Lookup = typeof Lookup[keyof typeof Lookup];

/** One name server of a zone: its name, and the addresses that are known. */
export class CutServer {
  lookup: Lookup = Lookup.None;
  /** Addresses of one family were looked up. */
  isHalf = false;
  /** What the zone above its own has told of its addresses is among them. */
  hasGlue: boolean;
  constructor(readonly name: Uint8Array, readonly servers: NameServer[]) {
    this.hasGlue = servers.length > 0;
  }
}

/** A zone whose servers are asked at this moment, and what was learned of them for one question. */
export class Cut {
  readonly entries: CutServer[];
  readonly expiresAtS: number;
  /** Addresses looked up for it, and those on their way. */
  lookups = 0;
  looking = 0;

  /**
   * `label` is where the zone begins in the name that is looked for, `hash` that of the zone's name.
   * `isStored`: it was kept from an earlier question, and may be out of date.
   */
  constructor(
    readonly zone: Uint8Array,
    readonly label: number,
    readonly hash: number,
    delegation: Delegation,
    servers: NameServers,
    readonly isStored: boolean,
  ) {
    this.expiresAtS = delegation.expiresAtS;
    this.entries = delegation.servers.map(({ name, addresses }) =>
      new CutServer(name, addresses.map((address) => servers.at(address)))
    );
  }

  get isRoot(): boolean {
    return this.zone.length === 1;
  }

  /** The entry of a name that is looked up. */
  entryOf(packet: Uint8Array, name: number): CutServer | null {
    return this.entries.find((entry) => equalNames(entry.name, 0, packet, name)) ?? null;
  }

  /** The name of a server, for people. */
  nameOf(server: NameServer): Uint8Array | null {
    return this.entries.find(({ servers }) => servers.includes(server))?.name ?? null;
  }
}
