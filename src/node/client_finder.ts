import {
  compilePrefixes,
  NO_VALUE,
  parseIp,
  parsePrefix,
  PrefixTable,
  unmapIpv4,
} from "../addr/mod.ts";
import type { ClientSpec, Envelope, State } from "../model/mod.ts";

type Client = Envelope<ClientSpec>;

/** Finds the client that an address or a client ID is of, in the state as it is. */
export class ClientFinder {
  readonly #state: () => Pick<State, "collections">;
  readonly #isAnonymized: boolean;
  /** What is found, of these clients. */
  #of: ReadonlyMap<string, Client> | null = null;
  #clients: readonly Client[] = [];
  #table: PrefixTable | null = null;
  #byId: ReadonlyMap<string, Client> = new Map();

  constructor(state: () => Pick<State, "collections">, isAnonymized = false) {
    this.#state = state;
    this.#isAnonymized = isAnonymized;
  }

  /**
   * The client with an address, or with a client ID; `null`: none is known. Of an anonymised log it is
   * the one with a name: what is left of an address is anybody's.
   */
  find(text: string): Client | null {
    this.#follow();
    if (this.#isAnonymized) return this.#clients.find(({ spec }) => spec.name === text) ?? null;
    const parsed = parseIp(text);
    if (parsed === null) return this.#byId.get(text) ?? null;
    const ip = unmapIpv4(parsed);
    const number = this.#table?.find(ip, 0, ip.length) ?? NO_VALUE;
    return number === NO_VALUE ? null : this.#clients[number];
  }

  #follow(): void {
    const { clients } = this.#state().collections;
    if (clients === this.#of) return;
    this.#of = clients;
    this.#clients = [...clients.values()];
    this.#byId = new Map(this.#clients.flatMap((one) => one.spec.ids.map((id) => [id, one])));
    const entries = this.#clients.flatMap(({ spec }, value) =>
      spec.addresses.flatMap((text) => {
        const prefix = parsePrefix(text);
        return prefix === null ? [] : [{ prefix, value }];
      })
    );
    this.#table = new PrefixTable(compilePrefixes(entries));
  }
}
