import { copyWhole } from "./transaction.ts";

/** Where the files stand for a moment; memory first, as no disk may be writable. */
const IN_MEMORY = "/dev/shm";
/** What SQLite has beside a file and can't do without: the newest changes. */
const LOG_SUFFIX = "-wal";

/**
 * Reads a store that can't be written into memory: SQLite itself may have to write to read it.
 * Nothing of the store is touched, and nobody else may write to it meanwhile.
 *
 * @throws If it can't be read.
 */
export async function openReadableCopy(path: string): Promise<Deno.Kv> {
  const directory = await makeDirectory();
  const memory = await Deno.openKv(":memory:");
  try {
    const copy = `${directory}/store.kv`;
    await Deno.copyFile(path, copy);
    await Deno.copyFile(path + LOG_SUFFIX, copy + LOG_SUFFIX).catch((error) => {
      if (!(error instanceof Deno.errors.NotFound)) throw error;
    });
    for (const file of [copy, copy + LOG_SUFFIX]) await Deno.chmod(file, 0o600).catch(() => {});
    using kv = await Deno.openKv(copy);
    await copyWhole(kv, memory);
    return memory;
  } catch (error) {
    memory.close();
    throw error;
  } finally {
    await Deno.remove(directory, { recursive: true }).catch(() => {}); // It is in memory, or empty.
  }
}

async function makeDirectory(): Promise<string> {
  const prefix = "svc-store-";
  try {
    return await Deno.makeTempDir({ prefix, dir: IN_MEMORY });
  } catch {
    return await Deno.makeTempDir({ prefix });
  }
}
