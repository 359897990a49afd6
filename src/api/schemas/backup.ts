import * as z from "zod";
import { BACKUP_VERSION, BackupFile } from "../../backup/mod.ts";
import { DEFAULT_GROUP_ID, DEFAULT_SETTINGS, SPECS, USER_ID_PREFIX } from "../../model/mod.ts";
import { answer, count, EXAMPLE_DIGITS, EXAMPLE_TIME, exampleOf, request } from "./common.ts";
import { exampleHead, RESOURCES } from "./resources.ts";

const EXAMPLE: z.output<typeof BackupFile> = {
  format: "svc backup",
  version: BACKUP_VERSION,
  made_at: EXAMPLE_TIME,
  program: "0.7.0",
  settings: { ...BackupFile.shape.settings.parse(DEFAULT_SETTINGS) },
  schedules: [],
  lists: [],
  records: [],
  groups: [{
    ...exampleHead(""),
    id: DEFAULT_GROUP_ID,
    spec: SPECS.groups.parse({ name: "Default" }),
  }],
  clients: [],
  rules: [exampleOf(RESOURCES.rules.one) as z.output<typeof BackupFile>["rules"][number]],
  users: [{
    ...exampleHead(USER_ID_PREFIX),
    spec: { name: "ann", role: "admin", disabled: false },
  }],
  tokens: [],
  webhooks: [],
  secrets: null,
};

export const Backup = answer("Backup", BackupFile, EXAMPLE);
export const BackupBody = request("BackupBody", BackupFile, EXAMPLE);
export type BackupBody = z.output<typeof BackupBody>;

export const RestoreQuery = z.strictObject({
  dry_run: z.enum(["true", "false"]).default("false").transform((text) => text === "true")
    .describe("true: tells what would differ, and changes nothing"),
});

const Counts = z.object({
  added: count.describe("of the backup, and not here before"),
  changed: count.describe("otherwise here than in the backup"),
  removed: count.describe("here, and not in the backup"),
  kept: count.describe("as they were"),
  left_out: count.describe(
    "users, tokens and webhooks whose secrets nobody has: give the passphrase",
  ),
});

/** What a restoration came to, or would. */
export const Restored = answer(
  "Restored",
  z.object({
    done: z.boolean().describe("false: nothing was changed"),
    counts: z.record(z.string(), Counts).describe(
      "by collection, and of users, tokens, webhooks and settings",
    ),
    items: z.array(z.object({
      type: z.string().describe("as in the audit log"),
      id: z.string().nullable().describe("null: the settings"),
      name: z.string().describe("of a rule its text, of a record its name and type"),
      kind: z.string().describe("added, changed, removed or left_out; new values may appear"),
    })).describe("the first 1,000 of what differs"),
  }),
  {
    done: true,
    counts: { rules: { added: 1, changed: 0, removed: 0, kept: 41, left_out: 0 } },
    items: [{ type: "rule", id: `ru_${EXAMPLE_DIGITS}`, name: "||ads.example^", kind: "added" }],
  },
);
export type Restored = z.infer<typeof Restored>;
