import type { NameServer } from "./name_servers.ts";

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
