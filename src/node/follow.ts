import { messageOf } from "../errors.ts";
import { log } from "../log.ts";
import type { Replicator } from "../store/mod.ts";
import type { Devices } from "./devices.ts";
import type { Filtering } from "./filtering.ts";
import { listsOf } from "./lists_of.ts";
import type { Policy } from "./policy.ts";
import type { Problems } from "./problems.ts";

/**
 * Puts each change into force, of the configuration and of where its clients are. Returns what resolves once every change applied so far holds for the
 * next query.
 */
export function follow(
  replicator: Replicator,
  devices: Devices,
  policy: Policy,
  filtering: Filtering,
  problems: Problems,
): () => Promise<void> {
  let inForce = Promise.resolve();
  /** Why the last change could not be put into force. */
  let failure: string | null = null;
  problems.watch("change", () => failure === null ? [] : [`a change is not in force: ${failure}`]);
  let { lists } = replicator.state.collections;
  replicator.subscribe(({ change, state }) => {
    if (/^(user|credential)_/.test(change?.type ?? "")) return; // They decide about no query.
    if (state.collections.lists !== lists) filtering.setLists(listsOf(state));
    lists = state.collections.lists;
    inForce = policy.update(devices.locate(state)).then(
      () => {
        failure = null;
      },
      (error) => {
        failure = messageOf(error);
        log.error("a change can't be put into force", { error });
      },
    );
  });
  devices.onMove = () => policy.update(devices.locate(replicator.state));
  return () => inForce;
}
