import type { Refused } from "./live_state.ts";
import { refuse } from "./references.ts";
import { shownText } from "./text.ts";

/** What has an ID, or a refusal: it is not there, or not at the revision that is meant. */
export function found<T extends { readonly revision: number }>(
  all: Pick<ReadonlyMap<string, T>, "get">,
  type: string,
  id: string,
  ifMatch: number | null,
): T | Refused {
  const one = all.get(id);
  if (one === undefined) return refuse("not_found", `${shownText(id)}: there is no such ${type}`);
  return mismatch(id, one.revision, ifMatch) ?? one;
}

/** Refuses to change another revision than the one that is meant; `null`: whichever is there. */
export function mismatch(id: string, revision: number, ifMatch: number | null): Refused | null {
  if (ifMatch === null || ifMatch === revision) return null;
  return refuse("revision_mismatch", `${id}: has revision ${revision}, not ${ifMatch}`);
}
