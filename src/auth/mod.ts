/**
 * Who may do what: passwords, second factors, tokens, sessions, reset links, lockout, roles. Takes
 * what a request says and users as they are stored; gives identities, changes to propose, and
 * `SvcError`s. Secrets are made here and kept as hashes. Scope: ffi, for Argon2 alone, which is
 * loaded with the first password. RFC 9106, 6238, 6265. @module
 */
export {
  type AccessConfig,
  type AccessFacts,
  type AccessRequest,
  authenticate,
  decideAccess,
  type Identity,
  type Need,
  userOf,
} from "./access.ts";
export { type CookieSignIn, UserAccounts } from "./accounts.ts";
export { userByName } from "./change_user.ts";
export { addressKey, type Locked, LockedError, Lockout } from "./lockout.ts";
export { beginOtp, changePassword, confirmOtp, type OtpSetup, removeOtp } from "./own_account.ts";
export {
  deriveKey,
  hashPassword,
  isKnownHash,
  KEY_LIMITS,
  PASSWORD_LENGTH_MAX,
  PASSWORD_LENGTH_MIN,
  preparePasswords,
  verifyPassword,
} from "./passwords.ts";
export type { Auth, SessionStore, UserStore } from "./ports.ts";
export { newPassword, newToken, randomBytes, tokenSha256 } from "./secrets.ts";
export {
  endedSessionCookie,
  isSessionValid,
  SESSION_COOKIE,
  SESSION_LIFETIME_MS,
  sessionCookie,
  sessionFor,
  sessionId,
} from "./sessions.ts";
export {
  type Credentials,
  login,
  logout,
  recovery,
  redeemReset,
  type SignedIn,
} from "./sign_in.ts";
export { SignInLog } from "./sign_in_log.ts";
export { checkNewToken, TokenUses } from "./tokens.ts";
export { otpCode } from "./totp.ts";
export {
  changeUser,
  createUser,
  disableOtp,
  findUserNameProblem,
  issueReset,
  removeUser,
  type ResetLink,
  type ShownUser,
  shownUser,
  type UserInput,
} from "./user_admin.ts";
