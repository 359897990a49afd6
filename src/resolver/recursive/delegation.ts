import { CutServer } from "./cut_server.ts";
import type { Hint } from "./hints.ts";
import type { NameServers } from "./name_servers.ts";

/** Where a zone is delegated to. */
export class Delegation {
  #entries: readonly CutServer[] | null = null;
  /** What the zone itself says of its name servers was heard. */
  isOwnKnown = false;

  /** `expiresAtS`: seconds, as the store counts them; of the root there is no end. */
  constructor(
    readonly zone: Uint8Array,
    readonly servers: readonly Hint[],
    readonly expiresAtS: number,
  ) {}

  /** Its servers as they are to be asked, for every question alike. */
  entries(servers: NameServers): readonly CutServer[] {
    return this.#entries ??= this.servers.map(({ name, addresses }) =>
      new CutServer(name, addresses.map((address) => servers.at(address)))
    );
  }
}
