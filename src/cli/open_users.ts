import type { Config } from "../config/mod.ts";
import { LONE_NODE } from "../node/seed.ts";
import { holdStore, LocalReplicator, openStore } from "../store/mod.ts";
import type { OpenUsers } from "./user.ts";
import { VERSION } from "../version.ts";

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
