import * as z from "zod";
import { PASSWORD_LENGTH_MAX, PASSWORD_LENGTH_MIN } from "../../auth/mod.ts";
import { USER_ID_PREFIX, USER_NAME_LENGTH_MAX } from "../../model/mod.ts";
import {
  answer,
  EXAMPLE_DIGITS,
  EXAMPLE_LATER,
  EXAMPLE_TIME,
  request,
  type Shown,
  timestamp,
} from "./common.ts";
import { envelope, exampleHead } from "./resources.ts";

/** Longest name that is looked for: whatever it is, the answer is whether it is right. */
const NAME_LENGTH_MAX = 128;
const CODE_LENGTH_MAX = 64;
const TOKEN_LENGTH_MAX = 256;

const Role = z.enum(["admin", "viewer"])
  .describe("admin: everything; viewer: reads, and its own account");
const userName = z.string().min(1).max(USER_NAME_LENGTH_MAX).meta({
  pattern: "^[^\\p{C}\\p{Z}]+( [^\\p{C}\\p{Z}]+)*$",
  description: "characters that show, with single spaces inside; no two users have names that " +
    "read alike",
});
const shownName = z.string().describe("what the user signs in by");
/** A password to check against. A character has two UTF-16 units at most; auth counts them. */
const anyPassword = z.string().max(2 * PASSWORD_LENGTH_MAX);
const newPassword = anyPassword.meta({
  minLength: PASSWORD_LENGTH_MIN,
  maxLength: PASSWORD_LENGTH_MAX,
  description: "write-only; is kept as an Argon2id hash",
});
const code = z.string().max(CODE_LENGTH_MAX);
const otp = z.boolean().optional().describe(
  "read-only: taken so that what was read may be sent back, and refused where it differs",
);
const hasOtp = z.boolean().describe("whether a second factor is on");
const disabled = z.boolean().describe("keeps the user from signing in");

const EXAMPLE_USER = { name: "ann", role: "admin", disabled: false, otp: true } as const;
const EXAMPLE_PASSWORD = "example password 1";

export const UserCreate = request(
  "UserCreate",
  z.strictObject({
    name: userName,
    role: Role,
    disabled: disabled.default(false),
    password: newPassword,
    otp,
  }),
  { name: "ann", role: "admin", password: EXAMPLE_PASSWORD },
);
export const UserReplace = request(
  "UserReplace",
  z.strictObject({
    name: userName,
    role: Role,
    disabled: disabled.default(false),
    password: newPassword.optional().describe("left out: the password stays"),
    otp,
  }),
  EXAMPLE_USER,
);
const UserSpec = answer(
  "UserSpec",
  z.object({ name: shownName, role: Role, disabled, otp: hasOtp }),
  EXAMPLE_USER,
);
const EXAMPLE_ENVELOPE = { ...exampleHead(USER_ID_PREFIX), spec: EXAMPLE_USER };
export const UserEnvelope = answer("User", envelope(UserSpec), EXAMPLE_ENVELOPE);
export type UserEnvelope = z.infer<typeof UserEnvelope>;
export const UserCollection = answer(
  "UserCollection",
  z.object({ items: z.array(UserEnvelope).describe("oldest first") }),
  { items: [EXAMPLE_ENVELOPE] },
);

const EXAMPLE_TOKEN = "mB3h0bq7Yp1sVwXz2fTgRk9uLd4cEo5nJa8iQxWtZyU";
export const ResetLink = answer(
  "ResetLink",
  z.object({
    url: z.string().describe(
      "the page where the user sets a password, once: below api.public_url, a path without it",
    ),
    token: z.string().describe("what the page sends back"),
    expires_at: timestamp,
  }),
  {
    url: `https://dns.example/reset?token=${EXAMPLE_TOKEN}`,
    token: EXAMPLE_TOKEN,
    expires_at: EXAMPLE_LATER,
  },
);

const signInName = z.string().max(NAME_LENGTH_MAX).describe("the user's name");
const signInPassword = anyPassword.describe("the user's password");
export const Login = request(
  "Login",
  z.strictObject({
    name: signInName,
    password: signInPassword,
    code: code.optional().describe("of the authenticator, where a second factor is on"),
  }),
  { name: "ann", password: EXAMPLE_PASSWORD, code: "123456" },
);
export const Recovery = request(
  "Recovery",
  z.strictObject({
    name: signInName,
    password: signInPassword,
    recovery_code: code.describe("one of those shown when the second factor was confirmed"),
  }),
  { name: "ann", password: EXAMPLE_PASSWORD, recovery_code: "7k2mq-x9d4r-5wz1p" },
);
export const SignedIn = answer(
  "SignedIn",
  z.object({
    user: z.object({
      id: z.string().describe("the user's ID"),
      name: shownName,
      role: Role,
      otp: hasOtp,
    }).describe("who has signed in"),
  }),
  { user: { id: USER_ID_PREFIX + EXAMPLE_DIGITS, name: "ann", role: "admin", otp: true } },
);
export const AuthState = answer(
  "AuthState",
  z.object({
    setup: z.boolean().describe("there is no user yet: the first one is to be made"),
    token: z.boolean().describe("an admin token is configured"),
  }),
  { setup: false, token: true },
);
export const Sessions = answer(
  "Sessions",
  z.object({
    items: z.array(z.object({
      id: z.string().describe("by which it can be ended; nobody signs in by it"),
      created_at: timestamp.describe("when it was begun"),
      expires_at: timestamp.describe("when it ends by itself"),
      address: z.string().nullable().describe("where it was begun from; null: nobody said"),
      current: z.boolean().describe("whether it is the one that asks"),
    })).describe("one's own on the node that is asked, the oldest first"),
  }),
  {
    items: [{
      id: `se_${EXAMPLE_DIGITS}`,
      created_at: EXAMPLE_TIME,
      expires_at: "2026-01-02T15:04:05.678Z",
      address: "192.168.1.20",
      current: true,
    }],
  },
);
export const Me = answer(
  "Me",
  z.object({
    kind: z.string().describe("token, user or unauthenticated; new values may appear"),
    name: z.string().nullable().describe("the user's, or the named token's; null for who has none"),
    role: Role,
    otp: hasOtp,
  }),
  { kind: "user", name: "ann", role: "admin", otp: true },
);
export type Me = Shown<z.infer<typeof Me>>;
const ownPassword = anyPassword.describe("one's own, as it is");
export const PasswordChange = request(
  "PasswordChange",
  z.strictObject({ current: ownPassword, password: newPassword }),
  { current: EXAMPLE_PASSWORD, password: "example password 2" },
);
export const OtpBegin = request(
  "OtpBegin",
  z.strictObject({ password: ownPassword }),
  { password: EXAMPLE_PASSWORD },
);
export const OtpSecret = answer(
  "OtpSecret",
  z.object({
    secret: z.string().describe("in base32, for an authenticator; shown this once"),
    uri: z.string().describe("otpauth://, for a QR code"),
  }),
  {
    secret: "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP",
    uri: "otpauth://totp/svc:ann?issuer=svc&secret=JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP",
  },
);
const ownCode = code.describe("of the authenticator");
export const OtpConfirm = request(
  "OtpConfirm",
  z.strictObject({ code: ownCode }),
  { code: "123456" },
);
export const RecoveryCodes = answer(
  "RecoveryCodes",
  z.object({
    recovery_codes: z.array(z.string()).describe("ten, each good once; shown this once"),
  }),
  { recovery_codes: ["7k2mq-x9d4r-5wz1p", "b3n8t-0hv6y-q4c2s"] },
);
export const OtpRemove = request(
  "OtpRemove",
  z.strictObject({
    password: ownPassword,
    code: code.describe("of the authenticator, or a recovery code"),
  }),
  { password: EXAMPLE_PASSWORD, code: "123456" },
);
export const Reset = request(
  "Reset",
  z.strictObject({
    token: z.string().max(TOKEN_LENGTH_MAX).describe("of the reset link"),
    password: newPassword,
  }),
  { token: EXAMPLE_TOKEN, password: EXAMPLE_PASSWORD },
);
