import { differences } from "../model/differences.ts";
import type { BlockedSpec, ClientSpec, Envelope, RecordedSpec } from "../model/mod.ts";
import type { Limit } from "./limited_rules.ts";

type Clients = ReadonlyMap<string, Envelope<ClientSpec>>;

/** A client that gets other than its group does: it is in a group of its own, made of that. */
export interface SpecialClient {
  readonly id: string;
  readonly group: string;
  /** Until when it is not filtered, in milliseconds since 1970; 0: it is. */
  readonly pausedUntilMs: number;
  /** When it has no Internet, whatever its group says; `null`: it is about the group alone. */
  readonly blocked: BlockedSpec | null;
  /** What its queries leave no trace in, beside what its group says. */
  readonly recorded: RecordedSpec;
  /** Numbers of the limits that hold for it beside those of its group, ascending. */
  readonly limits: readonly number[];
}

/** Finds the special ones among the clients, of which there may be many thousands. */
export class SpecialClients {
  #clients: Clients = new Map();
  /** IDs of those with a pause, over or not, of those blocked, now or not, and of those exempt. */
  readonly #own = new Set<string>();
  #found: readonly SpecialClient[] = [];
  #key = "[]";

  /** The same array as before where nothing about them changed. */
  find(clients: Clients, limits: readonly Limit[]): readonly SpecialClient[] {
    for (const { key, after } of differences(this.#clients, clients)) {
      const isOwn = after !== undefined &&
        (after.spec.paused_until !== null || after.spec.blocked === true ||
          after.spec.querylog === false || after.spec.statistics === false);
      if (isOwn) this.#own.add(key);
      else this.#own.delete(key);
    }
    this.#clients = clients;
    const own = new Map<string, number[]>();
    for (const [number, limit] of limits.entries()) {
      for (const id of limit.clients) own.set(id, [...own.get(id) ?? [], number]);
    }
    const ids = new Set([...this.#own, ...own.keys()]);
    const found: SpecialClient[] = [];
    for (const id of ids) {
      const client = clients.get(id);
      if (client === undefined) continue;
      const { group, paused_until, querylog, statistics } = client.spec;
      const pausedUntilMs = paused_until === null ? 0 : Date.parse(paused_until);
      const blocked = blockedOf(client.spec);
      const recorded = { querylog, statistics };
      found.push({ id, group, pausedUntilMs, blocked, recorded, limits: own.get(id) ?? [] });
    }
    const key = JSON.stringify(found);
    if (key !== this.#key) [this.#found, this.#key] = [found, key];
    return this.#found;
  }
}

/** What of a client's spec its group is made of. */
function blockedOf(
  { blocked, blocked_schedule, blocked_paused_until }: ClientSpec,
): BlockedSpec | null {
  return blocked === true ? { blocked, blocked_schedule, blocked_paused_until } : null;
}
