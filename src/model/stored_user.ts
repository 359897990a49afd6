import * as z from "zod";
import type { StoredUser } from "./command.ts";

/** What a stored user looks like: held against each before it is stored and after it is read. */
export const StoredUserSchema = z.strictObject({
  id: z.string().min(1),
  revision: z.int().min(1),
  created_at: z.iso.datetime(),
  updated_at: z.iso.datetime(),
  name: z.string().min(1),
  role: z.enum(["admin", "viewer"]),
  disabled: z.boolean(),
  password_hash: z.string(),
  otp: z.strictObject({
    secret: z.string(),
    active: z.boolean(),
    last_step: z.int(),
    recovery: z.array(z.string()),
  }).nullable(),
  reset: z.strictObject({ token_sha256: z.string(), expires_at: z.string() }).nullable(),
  session_epoch: z.int(),
}) satisfies z.ZodType<StoredUser>;
