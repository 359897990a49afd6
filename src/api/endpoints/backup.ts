import { encodeBackup, makeBackup, readBackup } from "../../backup/mod.ts";
import { log } from "../../log.ts";
import { apply, type RestoreReport } from "../../model/mod.ts";
import { valueOf } from "../../store/mod.ts";
import { type Call, type Endpoint, endpoint } from "../endpoint.ts";
import { Backup, BackupBody, Restored, RestoreQuery } from "../schemas/backup.ts";
import { note } from "./node.ts";
import { change, specOf } from "./resources.ts";

/** Nothing is changed by it, and it is needed most where the disk can't be written any more. */
async function noteBackup(call: Call, hasSecrets: boolean): Promise<void> {
  try {
    await note(call, "backup", { type: "config", id: null }, { secrets: hasSecrets });
  } catch (error) {
    log.warn("the audit log does not tell of a backup", {
      ...call.caller.actor,
      hasSecrets,
      error,
    });
  }
}

export const backupEndpoints: readonly Endpoint[] = [
  endpoint("GET /api/v1/backup", {
    operationId: "getBackup",
    hasSecrets: true,
    takesPassphrase: true,
    tag: "backup",
    summary: "Settings, resources and users as one file; passwords only under a passphrase",
    need: "admin",
    answer: Backup,
    errors: ["conflict", "unavailable"],
    handle: async (call) => {
      const { deps: { replicator, node, clock }, passphrase } = call;
      const by = { madeAtMs: clock.nowMs(), program: node.version };
      const file = await makeBackup(replicator.state, by, passphrase);
      encodeBackup(file);
      await noteBackup(call, passphrase !== null);
      return { body: file };
    },
  }),
  endpoint("POST /api/v1/restore", {
    operationId: "restoreBackup",
    takesPassphrase: true,
    tag: "backup",
    summary: "Put what a backup has in the place of all that is there: one change, or none",
    need: "admin",
    query: RestoreQuery,
    body: BackupBody,
    decode: (json) => json as BackupBody, // Read with the passphrase, by the file's own version.
    answer: Restored,
    errors: ["conflict", "unavailable"],
    handle: async (call) => {
      const { body, passphrase, query, caller: { actor }, deps: { replicator, node, clock } } =
        call;
      const restore = specOf(await readBackup(body, passphrase));
      const at = new Date(clock.nowMs()).toISOString();
      const command = { change: restore, actor, at, node: node.name };
      // What it would make here and now; refused as the change itself would be.
      const preview = valueOf(apply(replicator.state, command).settled) as RestoreReport;
      if (query.dry_run) return { body: { done: false, ...preview } };
      // A member that asked twice is told but once what became of it.
      const report = await change(call, restore) as RestoreReport | null;
      return { body: { done: true, ...report ?? preview } };
    },
  }),
];
