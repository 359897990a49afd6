import type { Config } from "../config/mod.ts";
import { LocalReplicator, openStore } from "../store/mod.ts";
import { holdStore } from "./store_lock.ts";
import type { OpenUsers } from "./user.ts";
import { VERSION } from "./version.ts";

/** What the audit log calls a node that is in no cluster. */
export const LONE_NODE = "local";

/**
 * Opens the store of a stopped node for its users; nothing else of it is touched.
 *
 * @throws {SvcError} `unavailable`, when the service runs or the store can't be opened.
 */
export async function openUsers({ store: { dir } }: Config): Promise<OpenUsers> {
  const clock = { nowMs: () => Date.now() };
  const hold = await holdStore(dir);
  try {
    const store = await openStore({ directory: dir, clock, program: VERSION });
    const users = new LocalReplicator(store, { clock, node: LONE_NODE });
    return {
      users,
      async close(): Promise<void> {
        await users.close();
        store.close();
        hold.release();
      },
    };
  } catch (error) {
    hold.release();
    throw error;
  }
}
