import type { Config } from "../config/mod.ts";
import { SvcError } from "../errors.ts";
import { LONE_NODE } from "../node/seed.ts";
import { openStore } from "../store/mod.ts";
import type { OpenUsers } from "./user.ts";
import { VERSION } from "../version.ts";

/**
 * Opens the store of a stopped node for its users; nothing else of it is touched.
 *
 * @throws {SvcError} `conflict`, when the service runs, or the node is in a cluster; `unavailable`, when it can't be opened.
 */
export async function openUsers({ store: { dir }, cluster }: Config): Promise<OpenUsers> {
  if (cluster !== null) {
    throw new SvcError(
      "conflict",
      "cluster: users of a node in a cluster are changed through its API",
    );
  }
  const { replicator, close } = await openStore({
    directory: dir,
    clock: { nowMs: () => Date.now() },
    program: VERSION,
    node: LONE_NODE,
  });
  return { users: replicator, close };
}
