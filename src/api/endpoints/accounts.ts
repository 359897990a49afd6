import {
  endedSessionCookie,
  SESSION_LIFETIME_MS,
  sessionCookie,
  sessionId,
} from "../../auth/mod.ts";
import { type Answer, type Call, type Endpoint, endpoint } from "../endpoint.ts";
import type { SignIn } from "../ports.ts";
import {
  AuthState,
  Login,
  Me,
  OtpBegin,
  OtpConfirm,
  OtpRemove,
  OtpSecret,
  PasswordChange,
  Recovery,
  RecoveryCodes,
  Reset,
  Sessions,
  SignedIn,
} from "../schemas/accounts.ts";
import type { z } from "zod";

function signedIn({ user, cookie }: SignIn, { isSecure }: Call): Answer<z.infer<typeof SignedIn>> {
  const { id, name, role } = user;
  return {
    body: { user: { id, name, role, otp: user.otp?.active === true } },
    cookie: sessionCookie(cookie, isSecure),
  };
}

export const accountEndpoints: readonly Endpoint[] = [
  endpoint("POST /api/v1/auth/login", {
    operationId: "signIn",
    tag: "auth",
    summary: "Sign in; the session's cookie lasts twelve hours",
    need: "nothing",
    body: Login,
    answer: SignedIn,
    hasCookie: true,
    errors: ["unauthorized", "otp_required", "forbidden", "too_many_requests", "unavailable"],
    handle: async (call) => {
      const { name, password, code = null } = call.body;
      const { accounts } = call.deps;
      return signedIn(await accounts.login({ name, password, code }, call.address), call);
    },
  }),
  endpoint("POST /api/v1/auth/recovery", {
    operationId: "signInByRecoveryCode",
    tag: "auth",
    summary: "Sign in with a recovery code, which is used up",
    need: "nothing",
    body: Recovery,
    answer: SignedIn,
    hasCookie: true,
    errors: ["unauthorized", "forbidden", "too_many_requests", "unavailable"],
    handle: async (call) => {
      const { name, password, recovery_code: recoveryCode } = call.body;
      const { accounts } = call.deps;
      return signedIn(
        await accounts.recover({ name, password, recoveryCode }, call.address),
        call,
      );
    },
  }),
  endpoint("POST /api/v1/auth/logout", {
    operationId: "signOut",
    tag: "auth",
    summary: "End this session",
    need: "viewer",
    hasCookie: true,
    errors: ["unavailable"],
    handle: async ({ deps, caller, isSecure }) => {
      await deps.accounts.logout(caller);
      return { cookie: endedSessionCookie(isSecure) };
    },
  }),
  endpoint("GET /api/v1/auth/state", {
    operationId: "getAuthState",
    tag: "auth",
    summary: "Whether there is a user yet, and what else signs in; for whoever is not signed in",
    need: "nothing",
    answer: AuthState,
    handle: ({ deps: { replicator, access } }) => ({
      body: {
        setup: replicator.state.users.size === 0,
        token: access.tokenSha256 !== null,
      },
    }),
  }),
  endpoint("GET /api/v1/auth/sessions", {
    operationId: "listSessions",
    tag: "auth",
    summary: "One's own sessions on this node",
    need: "viewer",
    answer: Sessions,
    handle: async ({ deps, caller }) => {
      const sessions = await deps.accounts.sessions(caller);
      const items = sessions.map((session) => ({
        id: sessionId(session),
        created_at: new Date(session.expiresAtMs - SESSION_LIFETIME_MS).toISOString(),
        expires_at: new Date(session.expiresAtMs).toISOString(),
        address: session.address ?? null,
        current: session.sha256 === caller.session?.sha256,
      }));
      return { body: { items } };
    },
  }),
  endpoint("DELETE /api/v1/auth/sessions", {
    operationId: "deleteOtherSessions",
    tag: "auth",
    summary: "End one's own sessions on this node but the one that asks",
    need: "viewer",
    errors: ["unavailable"],
    handle: async ({ deps, caller }) => {
      await deps.accounts.endOtherSessions(caller);
      return {};
    },
  }),
  endpoint("DELETE /api/v1/auth/sessions/{id}", {
    operationId: "deleteSession",
    tag: "auth",
    summary: "End one of one's own sessions on this node",
    need: "viewer",
    errors: ["not_found", "unavailable"],
    handle: async ({ deps, caller, param }) => {
      await deps.accounts.endSession(caller, param);
      return {};
    },
  }),
  endpoint("GET /api/v1/auth/me", {
    operationId: "getMe",
    tag: "auth",
    summary: "Who is asking",
    need: "viewer",
    answer: Me,
    handle: ({ caller: { actor, role, user } }) => ({
      body: {
        kind: actor.kind,
        name: actor.name,
        role: role ?? "viewer",
        otp: user?.otp?.active === true,
      },
    }),
  }),
  endpoint("PUT /api/v1/auth/password", {
    operationId: "changePassword",
    tag: "auth",
    summary: "Change one's own password; it ends all of one's sessions",
    need: "viewer",
    body: PasswordChange,
    errors: ["unauthorized", "forbidden", "too_many_requests", "unavailable"],
    handle: async ({ deps, caller, body }) => {
      await deps.accounts.changePassword(caller, body.current, body.password);
      return {};
    },
  }),
  endpoint("POST /api/v1/auth/otp", {
    operationId: "beginOtp",
    hasSecrets: true,
    tag: "auth",
    summary: "Begin a second factor, which holds once a code has confirmed it",
    need: "viewer",
    body: OtpBegin,
    answer: OtpSecret,
    errors: ["unauthorized", "forbidden", "conflict", "too_many_requests", "unavailable"],
    handle: async ({ deps, caller, body }) => ({
      body: await deps.accounts.beginOtp(caller, body.password),
    }),
  }),
  endpoint("POST /api/v1/auth/otp/confirm", {
    operationId: "confirmOtp",
    hasSecrets: true,
    tag: "auth",
    summary: "Confirm the second factor; it ends all of one's sessions",
    need: "viewer",
    body: OtpConfirm,
    answer: RecoveryCodes,
    errors: ["unauthorized", "forbidden", "conflict", "too_many_requests", "unavailable"],
    handle: async ({ deps, caller, body }) => ({
      body: { recovery_codes: await deps.accounts.confirmOtp(caller, body.code) },
    }),
  }),
  endpoint("POST /api/v1/auth/otp/remove", {
    operationId: "removeOtp",
    tag: "auth",
    summary: "Give up the second factor; it ends all of one's sessions",
    need: "viewer",
    body: OtpRemove,
    errors: ["unauthorized", "forbidden", "conflict", "too_many_requests", "unavailable"],
    handle: async ({ deps, caller, body }) => {
      await deps.accounts.removeOtp(caller, body.password, body.code);
      return {};
    },
  }),
  endpoint("POST /api/v1/auth/reset", {
    operationId: "redeemReset",
    tag: "auth",
    summary: "Set a new password by the token of a reset link",
    need: "nothing",
    body: Reset,
    errors: ["unauthorized", "forbidden", "too_many_requests", "unavailable"],
    handle: async ({ deps, body, address }) => {
      await deps.accounts.redeemReset(body.token, body.password, address);
      return {};
    },
  }),
];
