import { messageOf, SvcError } from "../errors.ts";
import { log } from "../log.ts";
import { isSeeded } from "../model/mod.ts";
import { LocalReplicator } from "./local_replicator.ts";
import { openSeededTemporaryStore, type SeedSource, seedStore } from "./seed.ts";
import { openReadOnlyStore, openStore, type Store, type StoreOptions } from "./store.ts";

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
  /** What the status says at the moment: why changes are refused, or will be gone. */
  readonly problems: readonly string[];
}

async function seeded(
  store: Store,
  source: SeedSource,
  options: NodeStoreOptions,
): Promise<NodeStore> {
  const replicator = new LocalReplicator(store, options);
  await seedStore(store, replicator, source);
  return {
    store,
    replicator,
    get problems() {
      return store.problem === null ? [] : [store.problem];
    },
  };
}

/** The store as it is, where it can be read and not written; `null` where it is of no use. */
async function openReadable(
  source: SeedSource,
  options: NodeStoreOptions,
  failure: SvcError,
): Promise<NodeStore | null> {
  let store: Store;
  try {
    store = await openReadOnlyStore(options, failure.message.replace(/^store: /, ""));
  } catch (error) {
    log.warn("the store can't be read either", { error });
    return null;
  }
  if (isSeeded(store.state)) return await seeded(store, source, options);
  store.close();
  return null;
}

/**
 * Opens the store of a node that is in no cluster and seeds it from the configuration file if it
 * never was. One that can be read and not written is read, and written once it can be. Where it
 * can't be read, DNS goes on with a temporary store made of that file.
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
    return await seeded(store, source, options);
  } catch (error) {
    store?.close();
    if (!(error instanceof SvcError)) throw error;
    const readable = await openReadable(source, options, error);
    if (readable !== null) return readable;
    if (options.onFailure === "closed") throw error;
    log.error("store not opened, changes will be lost with this process", { error });
    const problem = `${messageOf(error)}; changes are kept in memory only`;
    return { ...await openSeededTemporaryStore(source, options), problems: [problem] };
  }
}
