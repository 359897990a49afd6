/** What an entry of the audit log says was done; another release may have others. */
export const AUDIT_ACTIONS = [
  "create",
  "update",
  "delete",
  "batch",
  "preset",
  "seed",
  "import",
  "migrate",
  "migrate_read",
  "backup",
  "restore",
  "replicate",
  "sign_in",
  "sign_in_failed",
  "sign_out",
  "recovery",
  "password",
  "password_rehash",
  "reset",
  "reset_redeem",
  "otp_begin",
  "otp_enable",
  "otp_disable",
  "pause",
  "resume",
  "refresh",
  "flush",
  "test",
  "promote",
  "demote",
  "remove",
] as const;
export type AuditAction = typeof AUDIT_ACTIONS[number];

/** What it says that was done to. */
export const AUDIT_TYPES = [
  "list",
  "lists",
  "rule",
  "record",
  "group",
  "client",
  "schedule",
  "settings",
  "user",
  "token",
  "webhook",
  "config",
  "cache",
  "profile",
  "node",
  "cluster",
  "member",
] as const;
export type AuditType = typeof AUDIT_TYPES[number];

/** What was done to what; without an ID where that is one of its kind, or many. */
export interface AuditedAction {
  readonly action: AuditAction;
  readonly resource: { readonly type: AuditType; readonly id: string | null };
}
