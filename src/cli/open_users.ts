import type { Config } from "../config/mod.ts";
import { openStore } from "../store/mod.ts";
import type { OpenUsers } from "./user.ts";
import { VERSION } from "./version.ts";

/** What the audit log calls a node that is in no cluster. */
export const LONE_NODE = "local";

/**
 * Opens the store of a stopped node for its users; nothing else of it is touched.
 *
 * @throws {SvcError} `conflict`, when the service runs; `unavailable`, when it can't be opened.
 */
export async function openUsers({ store: { dir } }: Config): Promise<OpenUsers> {
  const { replicator, close } = await openStore({
    directory: dir,
    clock: { nowMs: () => Date.now() },
    program: VERSION,
    node: LONE_NODE,
  });
  return { users: replicator, close };
}
