import { SvcError } from "../errors.ts";
import type { Actor, Session, StoredUser } from "../model/mod.ts";
import { type Identity, userOf } from "./access.ts";
import { beginOtp, changePassword, confirmOtp, type OtpSetup, removeOtp } from "./own_account.ts";
import type { Auth } from "./ports.ts";
import { isSessionValid, sessionId } from "./sessions.ts";
import { login, logout, recovery, redeemReset, type SignedIn } from "./sign_in.ts";
import {
  changeUser,
  createUser,
  disableOtp,
  issueReset,
  removeUser,
  type ResetLink,
  type UserInput,
} from "./user_admin.ts";

/** A user who has signed in, and the value of the session's cookie. */
export interface CookieSignIn {
  readonly user: StoredUser;
  readonly cookie: string;
}

function cookieOf({ user, value }: SignedIn): CookieSignIn {
  return { user, cookie: value };
}

/** Where a caller comes from; a request always comes from somewhere. */
function addressOf(caller: Identity): string {
  return caller.actor.address ?? "";
}

/**
 * The operations on users as the API asks for them: by who is calling. Each throws as its function
 * does, and `forbidden` where it is for users and the caller is none.
 */
export class UserAccounts {
  readonly #auth: Auth;

  constructor(auth: Auth) {
    this.#auth = auth;
  }

  async login(
    input: { readonly name: string; readonly password: string; readonly code: string | null },
    address: string,
  ): Promise<CookieSignIn> {
    return cookieOf(await login(this.#auth, { ...input, address }));
  }

  async recover(
    input: { readonly name: string; readonly password: string; readonly recoveryCode: string },
    address: string,
  ): Promise<CookieSignIn> {
    return cookieOf(await recovery(this.#auth, { ...input, address }));
  }

  /** The caller's own sessions on this node, the oldest first. */
  async sessions(caller: Identity): Promise<readonly Session[]> {
    const user = userOf(caller);
    const { sessions, clock } = this.#auth;
    const nowMs = clock.nowMs();
    return (await sessions.sessionsOf(user.id)).filter((one) => isSessionValid(one, user, nowMs));
  }

  /**
   * Ends one of the caller's own sessions.
   *
   * @throws {SvcError} `not_found`.
   */
  async endSession(caller: Identity, id: string): Promise<void> {
    const found = (await this.sessions(caller)).find((one) => sessionId(one) === id);
    if (found === undefined) throw new SvcError("not_found", "session: there is none with this ID");
    await logout(this.#auth, found, userOf(caller), caller.actor);
  }

  /** Ends the caller's own sessions but the one that asks. */
  async endOtherSessions(caller: Identity): Promise<void> {
    const user = userOf(caller);
    for (const session of await this.sessions(caller)) {
      if (session.sha256 === caller.session?.sha256) continue;
      await logout(this.#auth, session, user, caller.actor);
    }
  }

  /** Ends the caller's session, if it came with one. */
  async logout({ session, user, actor }: Identity): Promise<void> {
    if (session !== null && user !== null) await logout(this.#auth, session, user, actor);
  }

  async changePassword(caller: Identity, current: string, password: string): Promise<void> {
    await changePassword(this.#auth, { ...own(caller), current, password });
  }

  async beginOtp(caller: Identity, password: string): Promise<OtpSetup> {
    return await beginOtp(this.#auth, { ...own(caller), password });
  }

  async confirmOtp(caller: Identity, code: string): Promise<string[]> {
    return await confirmOtp(this.#auth, { ...own(caller), code });
  }

  async removeOtp(caller: Identity, password: string, code: string): Promise<void> {
    await removeOtp(this.#auth, { ...own(caller), password, code });
  }

  async redeemReset(token: string, password: string, address: string): Promise<void> {
    await redeemReset(this.#auth, { token, password, address });
  }

  issueReset(id: string, actor: Actor): Promise<ResetLink> {
    return issueReset(this.#auth, id, actor);
  }

  async disableOtp(id: string, actor: Actor): Promise<void> {
    await disableOtp(this.#auth, id, actor);
  }

  create(user: UserInput & { readonly password: string }, actor: Actor): Promise<StoredUser> {
    return createUser(this.#auth, user, actor);
  }

  replace(
    id: string,
    user: UserInput & { readonly password: string | null },
    ifMatch: number | null,
    actor: Actor,
  ): Promise<StoredUser> {
    return changeUser(this.#auth, id, user, ifMatch, actor);
  }

  remove(id: string, ifMatch: number | null, actor: Actor): Promise<void> {
    return removeUser(this.#auth, id, ifMatch, actor);
  }
}

function own(caller: Identity) {
  return { user: userOf(caller), address: addressOf(caller) };
}
