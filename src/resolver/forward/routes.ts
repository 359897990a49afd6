import { log } from "../../log.ts";
import { ROUTES_MAX } from "../query.ts";
import type { UpstreamTable } from "./upstream.ts";

/**
 * Which upstreams clients of a group are asked of, in place of those for everybody: a number for each
 * list of them, which is part of the keys of their answers. A list keeps its number as long as the
 * process runs, so that no answer of one is ever found by another. One per dns isolate.
 */
export class Routes {
  readonly #table: UpstreamTable;
  readonly #numbers = new Map<string, number>();

  constructor(table: UpstreamTable) {
    this.#table = table;
  }

  /**
   * The number of the route of each group, 0 of those that have none. `lists` are the names or
   * addresses of upstreams by the number of the group; `null`: no group has any.
   */
  of(lists: ReadonlyMap<number, readonly string[]>, groups: number): Uint8Array | null {
    if (lists.size === 0) return null;
    const routes = new Uint8Array(groups);
    for (const [group, names] of lists) routes[group] = this.numberOf(names);
    return routes;
  }

  /** The number of the route of a list; 0 of an empty one. */
  numberOf(names: readonly string[]): number {
    if (names.length === 0) return 0;
    const indexes = this.#table.find(names);
    const key = indexes.join();
    const known = this.#numbers.get(key);
    if (known !== undefined) return known;
    // More lists than there are numbers, since the start: the last one has nobody to ask.
    const number = Math.min(this.#numbers.size + 1, ROUTES_MAX);
    const isRoom = number < ROUTES_MAX;
    if (!isRoom) log.error("groups had too many different lists of upstreams: start anew", { key });
    this.#table.addRoute(number, isRoom ? indexes : []);
    if (isRoom) this.#numbers.set(key, number);
    return number;
  }
}
