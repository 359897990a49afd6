import { type IpPrefix, parsePrefix, PrefixSet, type PrefixTableData } from "../addr/mod.ts";
import { differences } from "../model/differences.ts";
import type { ClientSpec, Envelope } from "../model/mod.ts";
import { type ClientIdsData, ClientIdSet } from "./client_ids.ts";
import { isWasteful, share, type Shared } from "./shared.ts";

type Clients = ReadonlyMap<string, Envelope<ClientSpec>>;

/** What clients are called, and what they get. */
export interface ClientDetails {
  /** Group number of each client. */
  readonly clientGroups: Int32Array;
  /** Two words a client: where its text starts and ends. */
  readonly clientSpans: Int32Array;
  /** An ID, a zero byte and a name each. */
  readonly clientBytes: Uint8Array;
}

/** How clients are found, and what they are called: each part the same while it does not change. */
export interface ClientTables {
  readonly networks: Shared<PrefixTableData>;
  readonly ids: Shared<ClientIdsData>;
  readonly details: Shared<ClientDetails>;
}

/** What parts of a text stand apart by: no ID holds it. */
const ZERO = "\0";
const SPAN_WORDS = 2;
const encoder = new TextEncoder();

/**
 * Keeps the clients' tables in step with the state. Of thousands of clients few change at once: what
 * they were found by is taken out and put in, and what is shared is a copy.
 */
export class ClientTablesCompiler {
  #clients: Clients = new Map();
  #groups: ReadonlyMap<string, number> = new Map();
  #tables: ClientTables | null = null;
  #numbers = new Map<string, number>();
  /** Numbers that clients had who are gone. */
  #free: number[] = [];
  #networks = new PrefixSet([]);
  #ids = new ClientIdSet();
  #details = new Details();

  /** `groups` are numbers by the ID of a client or of its group; without either it is in the first. */
  compile(clients: Clients, groups: ReadonlyMap<string, number>): ClientTables {
    const changed = differences(this.#clients, clients);
    const isOther = this.#tables === null || changed.length > clients.size / 2 ||
      this.#details.isWasteful || this.#ids.isWasteful;
    if (isOther) return this.#compileAll(clients, groups);
    const former = this.#tables!;
    let [networks, ids] = [false, false];
    // What one client loses another may have got: it is taken from all before it is given to any.
    for (const { key, before, after } of changed) {
      if (before === undefined) continue;
      const number = this.#numbers.get(key)!;
      if (!areSame(before.spec.addresses, after?.spec.addresses)) {
        networks = true;
        for (const prefix of prefixesOf(before)) this.#networks.delete({ prefix, value: number });
      }
      if (!areSame(before.spec.ids, after?.spec.ids)) {
        ids = true;
        for (const id of before.spec.ids) this.#ids.delete(id, number);
      }
      this.#details.clear(number);
      if (after !== undefined) continue;
      this.#numbers.delete(key);
      this.#free.push(number);
    }
    for (const { key, before, after } of changed) {
      if (after === undefined) continue;
      const number = this.#numbers.get(key) ?? this.#free.pop() ?? this.#numbers.size;
      this.#numbers.set(key, number);
      if (!areSame(before?.spec.addresses, after.spec.addresses)) {
        networks = true;
        for (const prefix of prefixesOf(after)) this.#networks.add({ prefix, value: number });
      }
      if (!areSame(before?.spec.ids, after.spec.ids)) {
        ids = true;
        for (const id of after.spec.ids) this.#ids.add(id, number);
      }
      this.#details.set(number, after, groupOf(after, groups));
    }
    const regrouped = groups !== this.#groups;
    if (regrouped) this.#regroup(clients, groups);
    this.#clients = clients;
    this.#groups = groups;
    this.#tables = {
      networks: networks ? share({ ...this.#networks.compile() }) : former.networks,
      ids: ids ? share({ ...this.#ids.data }) : former.ids,
      details: regrouped || changed.length > 0 ? share({ ...this.#details.data }) : former.details,
    };
    return this.#tables;
  }

  #compileAll(clients: Clients, groups: ReadonlyMap<string, number>): ClientTables {
    this.#clients = clients;
    this.#groups = groups;
    this.#free = [];
    this.#numbers = new Map(Array.from(clients.keys(), (id, number) => [id, number]));
    this.#ids = new ClientIdSet();
    this.#details = new Details();
    const entries = [];
    for (const [number, client] of [...clients.values()].entries()) {
      for (const prefix of prefixesOf(client)) entries.push({ prefix, value: number });
      for (const id of client.spec.ids) this.#ids.add(id, number);
      this.#details.set(number, client, groupOf(client, groups));
    }
    this.#networks = new PrefixSet(entries);
    this.#tables = {
      networks: share({ ...this.#networks.compile() }),
      ids: share({ ...this.#ids.data }),
      details: share({ ...this.#details.data }),
    };
    return this.#tables;
  }

  #regroup(clients: Clients, groups: ReadonlyMap<string, number>): void {
    for (const client of clients.values()) {
      this.#details.setGroup(this.#numbers.get(client.id)!, groupOf(client, groups));
    }
  }
}

/** Some clients are in a group of their own. */
function groupOf(
  { id, spec }: Envelope<ClientSpec>,
  groups: ReadonlyMap<string, number>,
): number {
  return groups.get(id) ?? groups.get(spec.group) ?? 0;
}

/** `ClientDetails` while clients come and go. */
class Details {
  #groups = new Int32Array(16);
  #spans = new Int32Array(16 * SPAN_WORDS);
  #count = 0;
  #bytes = new Uint8Array(1_024);
  #endBytes = 0;
  #usedBytes = 0;

  /** Good until the next change. */
  get data(): ClientDetails {
    return {
      clientGroups: this.#groups.subarray(0, this.#count),
      clientSpans: this.#spans.subarray(0, this.#count * SPAN_WORDS),
      clientBytes: this.#bytes.subarray(0, this.#endBytes),
    };
  }

  get isWasteful(): boolean {
    return isWasteful(this.#endBytes, this.#usedBytes);
  }

  set(number: number, { id, spec }: Envelope<ClientSpec>, group: number): void {
    if (number >= this.#groups.length) {
      this.#groups = grown(this.#groups, number + 1);
      this.#spans = grown(this.#spans, (number + 1) * SPAN_WORDS);
    }
    this.#count = Math.max(this.#count, number + 1);
    const text = encoder.encode(id + ZERO + spec.name);
    const start = this.#endBytes;
    this.#endBytes += text.length;
    this.#usedBytes += text.length;
    if (this.#endBytes > this.#bytes.length) this.#bytes = grown(this.#bytes, this.#endBytes);
    this.#bytes.set(text, start);
    this.#spans.set([start, this.#endBytes], number * SPAN_WORDS);
    this.#groups[number] = group;
  }

  clear(number: number): void {
    const at = number * SPAN_WORDS;
    this.#usedBytes -= this.#spans[at + 1] - this.#spans[at];
    this.#spans.fill(0, at, at + SPAN_WORDS);
    this.#groups[number] = 0;
  }

  setGroup(number: number, group: number): void {
    this.#groups[number] = group;
  }
}

function grown<T extends Int32Array<ArrayBuffer> | Uint8Array<ArrayBuffer>>(
  array: T,
  length: number,
): T {
  const capacity = 2 * length;
  const larger = array instanceof Int32Array ? new Int32Array(capacity) : new Uint8Array(capacity);
  larger.set(array);
  return larger as T;
}

/** ID and name of a client. */
export function clientTexts(
  { clientSpans, clientBytes }: ClientDetails,
  number: number,
): { id: string; name: string } {
  const at = number * SPAN_WORDS;
  // A copy: text in shared memory can't be decoded where it stands.
  const text = new TextDecoder().decode(clientBytes.slice(clientSpans[at], clientSpans[at + 1]));
  const zero = text.indexOf(ZERO);
  return { id: text.slice(0, zero), name: text.slice(zero + 1) };
}

function prefixesOf({ spec }: Envelope<ClientSpec>): IpPrefix[] {
  return spec.addresses.map(parsePrefix).filter((prefix) => prefix !== null);
}

function areSame(a: readonly string[] = [], b: readonly string[] = []): boolean {
  return a.length === b.length && a.every((text, i) => text === b[i]);
}
