import { SvcError } from "../errors.ts";
import { log } from "../log.ts";
import type { Actor, AuditAction, Session, StoredUser } from "../model/mod.ts";
import { changeStored, userByName } from "./change_user.ts";
import { hashPassword, verifyPassword } from "./passwords.ts";
import type { Auth } from "./ports.ts";
import { isSameSha256, recoveryCodeSha256, sha256Hex } from "./secrets.ts";
import { isWithin, type NewSession, sessionFor } from "./sessions.ts";
import { otpStep } from "./totp.ts";

/** How long a reset link is good. */
export const RESET_LIFETIME_MS = 3_600_000;

type Otp = NonNullable<StoredUser["otp"]>;

/** Somebody's name and password, and the address they come from. */
export interface Credentials {
  readonly name: string;
  readonly password: string;
  readonly address: string;
}

/** A user who has signed in: the value is for the cookie, and nowhere else. */
export interface SignedIn extends NewSession {
  readonly user: StoredUser;
}

/** The same words whatever was wrong: which names there are is nobody's business. */
function wrong(): SvcError {
  return new SvcError("unauthorized", "wrong name, password or code");
}

/**
 * Signs in with a password, and with a code where the second factor is on.
 *
 * @throws {SvcError} `unauthorized`; `otp_required`, when only the code is missing; `forbidden` for a
 * disabled account; `unavailable`.
 * @throws {LockedError} After too many failures.
 */
export function login(
  auth: Auth,
  request: Credentials & { readonly code?: string | null },
): Promise<SignedIn> {
  return signIn(auth, request, async (user, actor) => {
    if (user.otp === null || !user.otp.active) return user;
    const code = request.code ?? "";
    if (code === "") {
      throw new SvcError("otp_required", "code: the second factor of this account is on");
    }
    return await useSecondFactor(auth, user, actor, "sign_in", (otp) => takeCode(auth, otp, code));
  });
}

/**
 * Signs in with a password and a recovery code, which is used up.
 *
 * @throws As `login` does; `unauthorized` as well where there is no second factor to recover.
 */
export function recovery(
  auth: Auth,
  request: Credentials & { readonly recoveryCode: string },
): Promise<SignedIn> {
  return signIn(auth, request, async (user, actor) => {
    const take = (otp: Otp) => takeRecoveryCode(otp, request.recoveryCode);
    return await useSecondFactor(auth, user, actor, "recovery", take);
  });
}

/** Ends a session. One that has ended already is no error. */
export async function logout(
  auth: Auth,
  session: Session,
  user: StoredUser,
  actor: Actor,
): Promise<void> {
  await auth.sessions.deleteSession(session.sha256);
  await auth.signInLog.signedOut(user, actor);
}

/**
 * Sets a new password by a reset link, which is used up; every session of the user ends.
 *
 * @throws {SvcError} `unauthorized` for a link that is unknown, used or over; `forbidden` for a
 * disabled account; `invalid` for a password too short or too long, which leaves the link as it is.
 * @throws {LockedError} After too many failures.
 */
export function redeemReset(
  auth: Auth,
  request: { readonly token: string; readonly password: string; readonly address: string },
): Promise<StoredUser> {
  const sha256 = sha256Hex(request.token);
  const isOpen = ({ reset }: StoredUser) =>
    reset !== null && isSameSha256(reset.token_sha256, sha256) &&
    isWithin(auth.clock.nowMs(), Date.parse(reset.expires_at), RESET_LIFETIME_MS);
  const over = () => new SvcError("unauthorized", "this reset link is not valid, or no longer");
  // A link that is wrong names nobody, so there is only the address to count against.
  return guarded(auth, request.address, null, async () => {
    const user = [...auth.users.state.users.values()].find(isOpen);
    if (user === undefined) throw over();
    if (user.disabled) throw disabled();
    const password_hash = await hashPassword(request.password);
    const actor: Actor = { kind: "user", name: user.name, address: request.address };
    return await changeStored(auth, user.id, actor, (current) => {
      if (!isOpen(current)) throw over();
      if (current.disabled) throw disabled();
      return {
        fields: { password_hash, reset: null },
        endSessions: true,
        action: "reset_redeem",
      };
    });
  });
}

function disabled(): SvcError {
  return new SvcError("forbidden", "this account is disabled");
}

/** Signs in by name and password; `second` checks what else there is and returns the user then. */
function signIn(
  auth: Auth,
  { name, password, address }: Credentials,
  second: (user: StoredUser, actor: Actor) => Promise<StoredUser>,
): Promise<SignedIn> {
  return guarded(auth, address, name, async () => {
    const user = userByName(auth.users, name);
    const check = await verifyPassword(user?.password_hash ?? null, password);
    if (user === null || !check.isRight) throw wrong();
    if (user.disabled) {
      await auth.signInLog.failed(user, address);
      throw disabled();
    }
    const actor: Actor = { kind: "user", name: user.name, address };
    const checked = await second(user, actor);
    let current = checked;
    if (check.isRehashDue) current = await rehash(auth, current, password, actor);
    // Made for the user whose password was checked: a change since then ends it before it begins.
    const made = sessionFor(user, auth.clock.nowMs(), address);
    await auth.sessions.putSession(made.session);
    // A code that was used up has an entry already, which is the sign-in's.
    if (checked === user) await auth.signInLog.signedIn(user, actor);
    return { user: current, ...made };
  });
}

/**
 * Counts the attempt against the address and the name, runs it, and says what it came to. Whatever
 * is no wrong secret counts for nothing.
 */
export async function guarded<T>(
  auth: Auth,
  address: string | null,
  name: string | null,
  work: () => Promise<T>,
): Promise<T> {
  const attempt = auth.lockout.begin(address, name);
  try {
    const result = await work();
    attempt.succeed();
    return result;
  } catch (error) {
    if (error instanceof SvcError && error.code === "unauthorized") {
      attempt.fail();
      // A name that nobody has may be a password in the wrong field.
      const user = name === null ? null : userByName(auth.users, name);
      log.warn("sign-in refused", { address, user: user?.name ?? null });
      await auth.signInLog.failed(user, address);
    }
    throw error;
  } finally {
    attempt.drop(); // Only what neither succeeded nor failed is still open.
  }
}

/**
 * Uses up a code of the user's second factor, once over all members: a second user of the same code
 * finds that the user has changed. `take` returns the factor without the code, or `null`.
 */
export async function useSecondFactor(
  auth: Auth,
  user: StoredUser,
  actor: Actor,
  action: AuditAction,
  take: (otp: Otp) => Otp | null,
): Promise<StoredUser> {
  return await changeStored(auth, user.id, actor, (current) => {
    // The password that was checked may be the last one by now.
    const isSame = current.session_epoch === user.session_epoch;
    const otp = isSame && current.otp?.active ? take(current.otp) : null;
    if (otp === null) throw wrong();
    return { fields: { otp }, endSessions: false, action };
  });
}

/** The factor after a code of the authenticator was taken, or `null` if it is none. */
export function takeCode(auth: Auth, otp: Otp, code: string): Otp | null {
  const step = otpStep(otp.secret, code, (auth.otpClock ?? auth.clock).nowMs(), otp.last_step);
  return step === null ? null : { ...otp, last_step: step };
}

/** The factor without a recovery code that was taken, or `null` if it is none. */
export function takeRecoveryCode(otp: Otp, code: string): Otp | null {
  const sha256 = recoveryCodeSha256(code);
  const left = otp.recovery.filter((kept) => !isSameSha256(kept, sha256));
  return left.length < otp.recovery.length ? { ...otp, recovery: left } : null;
}

/** Hashes a right password again, whose hash was made with less than is asked for today. */
async function rehash(
  auth: Auth,
  user: StoredUser,
  password: string,
  actor: Actor,
): Promise<StoredUser> {
  try {
    const password_hash = await hashPassword(password);
    return await changeStored(auth, user.id, actor, (current) => {
      if (current.password_hash !== user.password_hash) throw wrong();
      return { fields: { password_hash }, endSessions: false, action: "password_rehash" };
    });
  } catch (error) {
    // The next sign-in tries again; this one was right.
    log.warn("password not hashed anew", { user: user.name, error });
    return user;
  }
}
