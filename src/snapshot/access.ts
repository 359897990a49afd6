import {
  compilePrefixes,
  type IpPrefix,
  NO_VALUE,
  parsePrefix,
  type PrefixEntry,
  prefixHolds,
  PrefixTable,
  type PrefixTableData,
} from "../addr/mod.ts";
import type { AccessSettings } from "../model/mod.ts";
import { ClientIds, type ClientIdsData, compileClientIds, NO_CLIENT } from "./client_ids.ts";
import { share, type Shared } from "./shared.ts";

/** What the setting `access` says of an address. */
const Standing = {
  /** Loopback: always let in. */
  Trusted: 0,
  /** Let in, unless its client ID is not. */
  Allowed: 1,
  /** Nobody let it in: its client ID has to be. */
  Unlisted: 2,
  /** Kept out, whatever its client ID. */
  Disallowed: 3,
} as const;

/** Which list a client ID stands in, as its number in the table: 0 is the disallowed. */
const IDS_ALLOWED = 1;

/** The lists compiled: networks with their standings, client IDs with their lists. */
export interface AccessParts extends PrefixTableData, ClientIdsData {}

/** Access control as it travels to a dns isolate. */
export interface AccessData extends Shared<AccessParts> {
  /** Of every address that no network holds. */
  readonly otherwise: number;
  /** Some client is allowed by its ID, so an address alone decides nothing. */
  readonly allowsIds: boolean;
}

/** Whoever asks from here is the operator, who must not lock himself out. */
const LOOPBACK = ["127.0.0.0/8", "::1"];

function networksOf(texts: readonly string[]): IpPrefix[] {
  return texts.map(parsePrefix).filter((prefix) => prefix !== null);
}

function isWithin({ ip, lengthBits }: IpPrefix, outer: readonly IpPrefix[]): boolean {
  return outer.some((one) => one.lengthBits <= lengthBits && prefixHolds(one, ip));
}

/**
 * Compiles the setting `access`. The longest network decides in the table, so that each gets the
 * standing that all networks around it come to.
 */
export function compileAccess({ allowed, disallowed }: AccessSettings): AccessData {
  const loopback = networksOf(LOOPBACK);
  const closed = networksOf(disallowed);
  const open = networksOf(allowed);
  const entry = (prefix: IpPrefix): PrefixEntry => {
    const standing = isWithin(prefix, loopback)
      ? Standing.Trusted
      : isWithin(prefix, closed)
      ? Standing.Disallowed
      : Standing.Allowed;
    return { prefix, value: standing };
  };
  const idsOf = (texts: readonly string[]) => texts.filter((text) => parsePrefix(text) === null);
  const allowedIds = idsOf(allowed);
  // Of an ID in both lists the first one counts.
  const ids = [idsOf(disallowed), allowedIds];
  const { memory, parts } = share<AccessParts>({
    ...compilePrefixes([...loopback, ...closed, ...open].map(entry)),
    ...compileClientIds(ids),
  });
  return {
    memory,
    parts,
    otherwise: allowed.length === 0 ? Standing.Allowed : Standing.Unlisted,
    allowsIds: allowedIds.length > 0,
  };
}

/** Compiles the setting where it has changed; a change of anything else keeps the tables. */
export class AccessCompiler {
  #settings: AccessSettings | null = null;
  #data: AccessData | null = null;

  compile(settings: AccessSettings): AccessData {
    const former = this.#settings;
    this.#settings = settings;
    const isAsBefore = former !== null && areSame(former.allowed, settings.allowed) &&
      areSame(former.disallowed, settings.disallowed);
    if (this.#data === null || !isAsBefore) this.#data = compileAccess(settings);
    return this.#data;
  }
}

function areSame(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((text, i) => text === b[i]);
}

/** Says who may ask. Leaves no garbage. */
export class Access {
  readonly #networks: PrefixTable;
  readonly #ids: ClientIds;
  readonly #otherwise: number;
  readonly #allowsIds: boolean;

  constructor({ parts, otherwise, allowsIds }: AccessData) {
    this.#networks = new PrefixTable(parts);
    this.#ids = new ClientIds(parts);
    this.#otherwise = otherwise;
    this.#allowsIds = allowsIds;
  }

  /**
   * Says whether a query from an address of 4 or 16 bytes, with the client ID `id` if it carries
   * one, is let in. `lengthBytes` is 0 where the address is not known.
   */
  admits(
    bytes: Uint8Array,
    offset: number,
    lengthBytes: number,
    id: Uint8Array | null,
  ): boolean {
    const standing = this.#standing(bytes, offset, lengthBytes);
    if (id === null) return standing <= Standing.Allowed;
    if (standing === Standing.Trusted || standing === Standing.Disallowed) {
      return standing === Standing.Trusted;
    }
    const list = this.#ids.find(id, 0, id.length);
    return list === NO_CLIENT ? standing === Standing.Allowed : list === IDS_ALLOWED;
  }

  /**
   * Says whether an address may connect, before anything else of it is known. One that only a client
   * ID could let in may, where `mayCarryId`: its queries are looked at one by one.
   */
  admitsConnection(
    bytes: Uint8Array,
    offset: number,
    lengthBytes: number,
    mayCarryId: boolean,
  ): boolean {
    const standing = this.#standing(bytes, offset, lengthBytes);
    return standing <= Standing.Allowed ||
      (standing === Standing.Unlisted && mayCarryId && this.#allowsIds);
  }

  #standing(bytes: Uint8Array, offset: number, lengthBytes: number): number {
    if (lengthBytes === 0) return this.#otherwise;
    const standing = this.#networks.find(bytes, offset, lengthBytes);
    return standing === NO_VALUE ? this.#otherwise : standing;
  }
}
