import { messageOf, SvcError } from "../errors.ts";
import { log } from "../log.ts";
import { LocalReplicator } from "./local_replicator.ts";
import { openSeededTemporaryStore, type SeedSource, seedStore } from "./seed.ts";
import { openStore, type Store, type StoreOptions } from "./store.ts";

export interface NodeStoreOptions extends StoreOptions {
  readonly directory: string;
  /** This member's name in the audit log. */
  readonly node: string;
  /** `open`: rather run on a store in memory than not at all. */
  readonly onFailure: "open" | "closed";
}

export interface NodeStore {
  readonly store: Store;
  readonly replicator: LocalReplicator;
  /** What the status says: empty, or why this node runs on a store that will be gone. */
  readonly problems: readonly string[];
}

/**
 * Opens the store of a node that is in no cluster and seeds it from the configuration file if it
 * never was. Where that fails, DNS goes on with a temporary store made of that file.
 *
 * @throws {SvcError} If the store can't be opened and `onFailure` is `closed`.
 */
export async function openNodeStore(
  source: SeedSource,
  options: NodeStoreOptions,
): Promise<NodeStore> {
  let store: Store | null = null;
  try {
    store = await openStore(options);
    const replicator = new LocalReplicator(store, options);
    await seedStore(store, replicator, source);
    return { store, replicator, problems: [] };
  } catch (error) {
    store?.close();
    if (!(error instanceof SvcError) || options.onFailure === "closed") throw error;
    log.error("store not opened, changes will be lost with this process", { error });
    const problem = `${messageOf(error)}; changes are kept in memory only`;
    return { ...await openSeededTemporaryStore(source, options), problems: [problem] };
  }
}
