import { z } from "zod";
import { PASSWORD_LENGTH_MAX, PASSWORD_LENGTH_MIN } from "../../auth/mod.ts";
import { USER_NAME_LENGTH_MAX } from "../../model/mod.ts";
import { answer, request, timestamp } from "./common.ts";
import { envelope } from "./resources.ts";

/** Longest name that is looked for: whatever it is, the answer is whether it is right. */
const NAME_LENGTH_MAX = 128;
const CODE_LENGTH_MAX = 64;
const TOKEN_LENGTH_MAX = 256;

const Role = z.enum(["admin", "viewer"]);
const userName = z.string().min(1).max(USER_NAME_LENGTH_MAX);
/** A password to check against. A character has two UTF-16 units at most; auth counts them. */
const anyPassword = z.string().max(2 * PASSWORD_LENGTH_MAX);
const newPassword = anyPassword.meta({
  minLength: PASSWORD_LENGTH_MIN,
  maxLength: PASSWORD_LENGTH_MAX,
});
const code = z.string().max(CODE_LENGTH_MAX);
const otp = z.boolean().optional().describe(
  "read-only: taken so that what was read may be sent back, and refused where it differs",
);

export const UserCreate = request(
  "UserCreate",
  z.strictObject({
    name: userName,
    role: Role,
    disabled: z.boolean().default(false),
    password: newPassword,
    otp,
  }),
);
export const UserReplace = request(
  "UserReplace",
  z.strictObject({
    name: userName,
    role: Role,
    disabled: z.boolean().default(false),
    password: newPassword.optional().describe("left out: the password stays"),
    otp,
  }),
);
export const UserEnvelope = answer(
  "User",
  envelope(
    z.object({ name: z.string(), role: Role, disabled: z.boolean(), otp: z.boolean() }),
  ),
);
export type UserEnvelope = z.infer<typeof UserEnvelope>;
export const UserCollection = answer(
  "UserCollection",
  z.object({ items: z.array(UserEnvelope) }),
);

export const ResetLink = answer(
  "ResetLink",
  z.object({
    url: z.string().describe("the page where the user sets a password, once"),
    token: z.string(),
    expires_at: timestamp,
  }),
);

export const Login = request(
  "Login",
  z.strictObject({
    name: z.string().max(NAME_LENGTH_MAX),
    password: anyPassword,
    code: code.optional(),
  }),
);
export const Recovery = request(
  "Recovery",
  z.strictObject({
    name: z.string().max(NAME_LENGTH_MAX),
    password: anyPassword,
    recovery_code: code,
  }),
);
export const SignedIn = answer(
  "SignedIn",
  z.object({
    user: z.object({ id: z.string(), name: z.string(), role: Role, otp: z.boolean() }),
  }),
);
export const Me = answer(
  "Me",
  z.object({
    kind: z.string().describe("token, user or unauthenticated; new values may appear"),
    name: z.string().nullable(),
    role: Role,
    otp: z.boolean(),
  }),
);
export const PasswordChange = request(
  "PasswordChange",
  z.strictObject({ current: anyPassword, password: newPassword }),
);
export const OtpBegin = request("OtpBegin", z.strictObject({ password: anyPassword }));
export const OtpSecret = answer(
  "OtpSecret",
  z.object({ secret: z.string(), uri: z.string().describe("otpauth://, for a QR code") }),
);
export const OtpConfirm = request("OtpConfirm", z.strictObject({ code }));
export const RecoveryCodes = answer(
  "RecoveryCodes",
  z.object({ recovery_codes: z.array(z.string()).describe("shown this once") }),
);
export const OtpRemove = request("OtpRemove", z.strictObject({ password: anyPassword, code }));
export const Reset = request(
  "Reset",
  z.strictObject({ token: z.string().max(TOKEN_LENGTH_MAX), password: newPassword }),
);
