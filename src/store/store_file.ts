import { messageOf } from "../errors.ts";
import { openReadableCopy } from "./readable_copy.ts";
import { Store, type StoreOptions } from "./store.ts";
import { unavailable } from "./values.ts";

const FILE_NAME = "store.kv";

export type StoreFileOptions = StoreOptions & { readonly directory: string };

/** Opens the file at `path`, which is made for the owner alone. */
async function openFile(directory: string, path: string): Promise<Deno.Kv> {
  await Deno.mkdir(directory, { recursive: true, mode: 0o700 });
  // Made here, as SQLite would let others read it; its other files take this one's mode.
  (await Deno.open(path, { write: true, create: true, mode: 0o600 })).close();
  await Deno.chmod(path, 0o600); // One that was there already.
  return await Deno.openKv(path);
}

/**
 * Opens the store in `directory`, which is made for the owner alone.
 *
 * @throws {SvcError} `unavailable`, if it can't be opened, is damaged or of a newer program.
 */
export async function openStoreFile(options: StoreFileOptions): Promise<Store> {
  const path = `${options.directory}/${FILE_NAME}`;
  const reopen = () => openFile(options.directory, path);
  let kv: Deno.Kv;
  try {
    kv = await reopen();
  } catch (error) {
    throw unavailable(`${path}: cannot be opened: ${messageOf(error)}`, error);
  }
  return await Store.over(kv, { ...options, reopen });
}

/**
 * Opens a store in `directory` that can be read and not written, for which `failure` is the reason:
 * it is written once it can be.
 *
 * @throws If it can't be read either, is damaged or of a newer program.
 */
export async function openReadOnlyStoreFile(
  options: StoreFileOptions,
  failure: string,
): Promise<Store> {
  const path = `${options.directory}/${FILE_NAME}`;
  const reopen = () => openFile(options.directory, path);
  return await Store.over(await openReadableCopy(path), { ...options, reopen }, { failure });
}

/** Opens a store in memory, which is gone with the process: what a node runs on that has no other. */
export async function openTemporaryStore(options: StoreOptions): Promise<Store> {
  return await Store.over(await Deno.openKv(":memory:"), options);
}
