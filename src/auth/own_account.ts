import { SvcError } from "../errors.ts";
import type { Actor, StoredUser } from "../model/mod.ts";
import { changeStored, userById } from "./change_user.ts";
import { hashPassword, verifyPassword } from "./passwords.ts";
import type { Auth } from "./ports.ts";
import { newRecoveryCodes, recoveryCodeSha256 } from "./secrets.ts";
import { guarded, takeCode, takeRecoveryCode } from "./sign_in.ts";
import { newOtpSecret, otpUri } from "./totp.ts";

/** A signed-in user who changes their own account, and the address they come from. */
interface OwnRequest {
  readonly user: StoredUser;
  readonly address: string;
}

/** What an authenticator is set up with; shown once. */
export interface OtpSetup {
  readonly secret: string;
  readonly uri: string;
}

/**
 * Changes one's own password; every session of the user ends, this one too.
 *
 * @throws {SvcError} `unauthorized` for a wrong current password, `invalid` for a new one too short or
 * too long.
 * @throws {LockedError} After too many failures.
 */
export function changePassword(
  auth: Auth,
  request: OwnRequest & { readonly current: string; readonly password: string },
): Promise<StoredUser> {
  return withPassword(auth, request, request.current, async (checked, actor) => {
    const password_hash = await hashPassword(request.password);
    return await changeStored(auth, checked.id, actor, (current) => {
      checkUnchanged(checked, current);
      return { fields: { password_hash, reset: null }, endSessions: true, action: "password" };
    });
  });
}

/**
 * Begins to set up the second factor: a new secret that holds once `confirmOtp` has seen a code.
 *
 * @throws {SvcError} `unauthorized` for a wrong password, `conflict` where a second factor is on.
 * @throws {LockedError} After too many failures.
 */
export function beginOtp(
  auth: Auth,
  request: OwnRequest & { readonly password: string },
): Promise<OtpSetup> {
  return withPassword(auth, request, request.password, async (checked, actor) => {
    const secret = newOtpSecret();
    await changeStored(auth, checked.id, actor, (current) => {
      checkUnchanged(checked, current);
      if (current.otp?.active) {
        throw new SvcError("conflict", "otp: the second factor is on: remove it first");
      }
      return {
        fields: { otp: { secret, active: false, last_step: 0, recovery: [] } },
        endSessions: false,
        action: "otp_begin",
      };
    });
    return { secret, uri: otpUri(secret, checked.name) };
  });
}

/**
 * Turns the second factor on by a code of the new secret. Returns the recovery codes, which are shown
 * once; every session of the user ends.
 *
 * @throws {SvcError} `unauthorized` for a wrong code, `conflict` where there is nothing to confirm.
 * @throws {LockedError} After too many failures.
 */
export function confirmOtp(
  auth: Auth,
  { user, code, address }: OwnRequest & { readonly code: string },
): Promise<string[]> {
  return guarded(auth, address, user.name, async () => {
    const codes = newRecoveryCodes();
    const actor: Actor = { kind: "user", name: user.name, address };
    await changeStored(auth, user.id, actor, (current) => {
      if (current.otp === null || current.otp.active) {
        throw new SvcError("conflict", "otp: there is no second factor to confirm: set one up");
      }
      const taken = takeCode(auth, current.otp, code);
      if (taken === null) throw new SvcError("unauthorized", "code: it is wrong");
      const recovery = codes.map(recoveryCodeSha256);
      return {
        fields: { otp: { ...taken, active: true, recovery } },
        endSessions: true,
        action: "otp_enable",
      };
    });
    return codes;
  });
}

/**
 * Turns one's own second factor off; every session of the user ends. A recovery code does for a code
 * of the authenticator, which may be lost.
 *
 * @throws {SvcError} `unauthorized` for a wrong password or code, `conflict` where there is no factor.
 * @throws {LockedError} After too many failures.
 */
export function removeOtp(
  auth: Auth,
  request: OwnRequest & { readonly password: string; readonly code: string },
): Promise<StoredUser> {
  return withPassword(
    auth,
    request,
    request.password,
    (checked, actor) =>
      changeStored(auth, checked.id, actor, (current) => {
        checkUnchanged(checked, current);
        if (current.otp === null) throw new SvcError("conflict", "otp: there is no second factor");
        // One that was never confirmed guards nothing, and its codes are not asked for.
        const isRight = !current.otp.active || takeCode(auth, current.otp, request.code) !== null ||
          takeRecoveryCode(current.otp, request.code) !== null;
        if (!isRight) throw new SvcError("unauthorized", "wrong password or code");
        return { fields: { otp: null }, endSessions: true, action: "otp_disable" };
      }),
  );
}

/** Runs `work` for a user whose password is right, as counted as a sign-in. */
function withPassword<T>(
  auth: Auth,
  { user, address }: OwnRequest,
  password: string,
  work: (checked: StoredUser, actor: Actor) => Promise<T>,
): Promise<T> {
  return guarded(auth, address, user.name, async () => {
    const checked = userById(auth.users, user.id);
    const { isRight } = await verifyPassword(checked.password_hash, password);
    if (!isRight) throw new SvcError("unauthorized", "wrong password or code");
    return await work(checked, { kind: "user", name: checked.name, address });
  });
}

/** The password that was checked is still the one, and nothing has ended the session meanwhile. */
function checkUnchanged(checked: StoredUser, current: StoredUser): void {
  if (checked.session_epoch === current.session_epoch) return;
  throw new SvcError("unauthorized", "the account was changed meanwhile: sign in again");
}
