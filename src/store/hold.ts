import { join } from "node:path/posix";
import { messageOf, SvcError } from "../errors.ts";

/** The file whose lock says that a process works with the store; it stays, empty. */
const LOCK_FILE = "lock";

/** The store, held by this process alone. The system gives it free when the process ends. */
export interface StoreHold {
  release(): void;
}

/**
 * Holds the store's directory for this process, which makes it if it is not there.
 *
 * @throws {SvcError} `conflict`, when another process holds it; `unavailable`, when it can't be used.
 */
export async function holdStore(directory: string): Promise<StoreHold> {
  const file = await openLock(directory);
  let isHeld = false;
  try {
    isHeld = await file.tryLock(true);
  } finally {
    if (!isHeld) file.close();
  }
  if (isHeld) return { release: () => file.close() };
  throw new SvcError(
    "conflict",
    `store.path: ${directory} is in use: stop svc, or change it through the API`,
  );
}

async function openLock(directory: string): Promise<Deno.FsFile> {
  const path = join(directory, LOCK_FILE);
  try {
    await Deno.mkdir(directory, { recursive: true, mode: 0o700 });
    return await Deno.open(path, { read: true, write: true, create: true, mode: 0o600 });
  } catch (cause) {
    // On a disk that can't be written, the lock of a file that is there holds as well.
    const there = await Deno.open(path, { read: true }).catch(() => null);
    if (there !== null) return there;
    const reason = cause instanceof Deno.errors.PermissionDenied
      ? "may not be written: run this as the service's user"
      : messageOf(cause);
    throw new SvcError("unavailable", `store.path: ${path}: ${reason}`, { cause });
  }
}
