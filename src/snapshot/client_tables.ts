import {
  compilePrefixes,
  type IpPrefix,
  parsePrefix,
  type PrefixEntry,
  type PrefixTableData,
} from "../addr/mod.ts";
import type { ClientSpec, Envelope } from "../model/mod.ts";
import { type ClientIdsData, compileClientIds } from "./client_ids.ts";
import { packTexts, share, type Shared } from "./shared.ts";

/** How clients are found, and what they are called. */
export interface ClientParts extends PrefixTableData, ClientIdsData {
  /** ID and name of each client. */
  readonly clientTextOffsets: Int32Array;
  readonly clientTextBytes: Uint8Array;
}

export type ClientTables = Shared<ClientParts>;

/**
 * Compiles the clients' tables. Of thousands of clients few change at once, and seldom in what they
 * are found by: then the tables are those made before.
 */
export class ClientTablesCompiler {
  #tables: ClientTables | null = null;
  /** What the tables were made of. */
  #clients: readonly Envelope<ClientSpec>[] = [];
  /** Addresses of the clients compiled before. */
  readonly #parsed = new WeakMap<ClientSpec, readonly IpPrefix[]>();

  compile(clients: readonly Envelope<ClientSpec>[]): ClientTables {
    const former = this.#clients;
    this.#clients = clients;
    const isAsBefore = this.#tables !== null && former.length === clients.length &&
      clients.every((client, i) => areFoundAlike(client, former[i]));
    if (this.#tables !== null && isAsBefore) return this.#tables;
    const texts = packTexts(clients.flatMap(({ id, spec }) => [id, spec.name]));
    this.#tables = share<ClientParts>({
      ...compilePrefixes(clients.flatMap((client, i) => this.#prefixesOf(client, i))),
      ...compileClientIds(clients.map(({ spec }) => spec.ids)),
      clientTextOffsets: texts.offsets,
      clientTextBytes: texts.bytes,
    });
    return this.#tables;
  }

  #prefixesOf({ spec }: Envelope<ClientSpec>, value: number): PrefixEntry[] {
    let prefixes = this.#parsed.get(spec);
    if (prefixes === undefined) {
      prefixes = spec.addresses.map(parsePrefix).filter((prefix) => prefix !== null);
      this.#parsed.set(spec, prefixes);
    }
    return prefixes.map((prefix) => ({ prefix, value }));
  }
}

/** Says whether two clients differ in nothing that the tables hold. */
function areFoundAlike(a: Envelope<ClientSpec>, b: Envelope<ClientSpec>): boolean {
  if (a === b) return true;
  return a.id === b.id && a.spec.name === b.spec.name &&
    areSame(a.spec.addresses, b.spec.addresses) && areSame(a.spec.ids, b.spec.ids);
}

function areSame(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((text, i) => text === b[i]);
}
