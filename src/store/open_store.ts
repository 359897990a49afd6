import { messageOf, SvcError } from "../errors.ts";
import { log } from "../log.ts";
import { isSeeded } from "../model/mod.ts";
import { Applier } from "./applier.ts";
import { holdStore, type StoreHold } from "./hold.ts";
import { LocalReplicator } from "./local_replicator.ts";
import { type SeedSource, seedStore } from "./seed.ts";
import type { Store } from "./store.ts";
import {
  openReadOnlyStoreFile,
  openStoreFile,
  openTemporaryStore,
  type StoreFileOptions,
} from "./store_file.ts";

/** A store that is open, held by this process alone. */
export interface OpenStore {
  readonly store: Store;
  readonly applier: Applier;
  readonly replicator: LocalReplicator;
  /** It is in memory alone, and nothing that is promised of it would outlive the process. */
  readonly isTemporary: boolean;
  /** What the status says at the moment: why changes are refused, or will be gone. */
  readonly problems: readonly string[];
  /** Finishes what was proposed, and leaves the store to another process until `resume`. */
  suspend(): Promise<void>;
  /**
   * Goes on with it.
   *
   * @throws {SvcError} `conflict`, if another process still has it; `unavailable`.
   */
  resume(): Promise<void>;
  /** Finishes what was proposed, closes the store and gives it free. */
  close(): Promise<void>;
}

export interface NodeStoreOptions extends StoreFileOptions {
  /** `open`: rather run on a store in memory than not at all. */
  readonly onFailure: "open" | "closed";
}

/**
 * Opens the store of a stopped node, to read or change it and close it again; nothing is seeded.
 *
 * @throws {SvcError} `conflict`, if another process holds it; `unavailable`, if it can't be opened.
 */
export async function openStore(options: StoreFileOptions): Promise<OpenStore> {
  const hold = await holdStore(options.directory);
  try {
    return opened(await openStoreFile(options), hold, options);
  } catch (error) {
    hold.release();
    throw error;
  }
}

/**
 * Opens the store of a node that is in no cluster and seeds it from the configuration file if it
 * never was. One that can be read and not written is read, and written once it can be. Where it
 * can't be read, DNS goes on with a temporary store made of that file.
 *
 * @throws {SvcError} `conflict`, if another process holds it; if it can't be opened and `onFailure`
 * is `closed`.
 */
export async function openNodeStore(
  source: SeedSource,
  options: NodeStoreOptions,
): Promise<OpenStore> {
  const hold = await holdIfPossible(options);
  try {
    return await openSeeded(source, options, hold);
  } catch (error) {
    hold?.release();
    throw error;
  }
}

/** The hold of a directory; `null` where there can be none and the node goes on without. */
async function holdIfPossible(options: NodeStoreOptions): Promise<StoreHold | null> {
  try {
    return await holdStore(options.directory);
  } catch (error) {
    // Another process that uses the store is no failure of it: two must not write.
    const isInUse = error instanceof SvcError && error.code === "conflict";
    if (isInUse || options.onFailure === "closed") throw error;
    return null;
  }
}

async function openSeeded(
  source: SeedSource,
  options: NodeStoreOptions,
  hold: StoreHold | null,
): Promise<OpenStore> {
  try {
    return await seeded(await openStoreFile(options), source, options, hold);
  } catch (error) {
    if (!(error instanceof SvcError)) throw error;
    const readable = await openReadable(options, error);
    if (readable !== null) return await seeded(readable, source, options, hold);
    if (options.onFailure === "closed") throw error;
    log.error("store not opened, changes will be lost with this process", { error });
    const problems = [`${messageOf(error)}; changes are kept in memory only`];
    const temporary = await seeded(await openTemporaryStore(options), source, options, hold);
    return { ...temporary, isTemporary: true, problems };
  }
}

/** The store as it is, where it can be read and not written; `null` where it is of no use. */
async function openReadable(options: StoreFileOptions, failure: SvcError): Promise<Store | null> {
  let store: Store;
  try {
    store = await openReadOnlyStoreFile(options, failure.message.replace(/^store: /, ""));
  } catch (error) {
    log.warn("the store can't be read either", { error });
    return null;
  }
  if (isSeeded(store.state)) return store;
  store.close();
  return null;
}

/** A store that is seeded; one that can't be is closed. */
async function seeded(
  store: Store,
  source: SeedSource,
  options: StoreFileOptions,
  hold: StoreHold | null,
): Promise<OpenStore> {
  const open = opened(store, hold, options);
  try {
    await seedStore(open, source);
    return open;
  } catch (error) {
    store.close();
    throw error;
  }
}

function opened(store: Store, first: StoreHold | null, options: StoreFileOptions): OpenStore {
  let hold = first;
  const applier = new Applier(store);
  const replicator = new LocalReplicator(applier, options);
  return {
    store,
    applier,
    replicator,
    isTemporary: false,
    get problems() {
      return store.problem === null ? [] : [store.problem];
    },
    suspend: async () => {
      await applier.idle();
      await store.suspend();
      hold?.release();
      hold = null;
    },
    resume: async () => {
      if (first !== null) hold ??= await holdStore(options.directory);
      await store.resume();
    },
    close: async () => {
      await replicator.close();
      await applier.idle();
      await store.idle();
      store.close();
      hold?.release();
    },
  };
}
