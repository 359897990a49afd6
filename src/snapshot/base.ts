import type { SourcedRule } from "../filter/mod.ts";

/** The rules of lists and services: large, compiled when one of their texts changes. */
export interface Base {
  /** `null` filters by custom rules alone. */
  readonly rules: SharedArrayBuffer | null;
  /** By the number that the compiled rules name: a list's ID, or `service:` and the service's. */
  readonly sources: readonly { readonly id: string; readonly name: string }[];
  /** The `$badfilter` rules of lists: where the list is active they turn custom rules off as well. */
  readonly badfilters: readonly SourcedRule[];
}

/** What the ID of a blocked service's source begins with. */
export const SERVICE_PREFIX = "service:";
