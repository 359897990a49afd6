import { computed, signal } from "@preact/signals";
import { ApiError, call, sessionBegins, sessionEnds, token } from "./api.ts";
import type { Me } from "./types.ts";

/** Who is in front of the page; `null`: nobody has said yet, or nobody is let in. */
export const me = signal<Me | null>(null);
/** Why the API lets nobody in who comes from here, in its words. */
export const refused = signal<string | null>(null);
/** What it takes to begin, where nobody is signed in; unknown where the API does not tell. */
export const authState = signal<{ readonly setup: boolean; readonly token: boolean } | null>(null);

export const isAdmin = computed(() => me.value?.role === "admin");
/** No user exists yet: everybody on this machine may change everything. */
export const isOpen = computed(() => me.value?.kind === "unauthenticated");

/** Asks who one is; false: nobody, sign in. */
export async function recognise(): Promise<boolean> {
  refused.value = null;
  try {
    me.value = await call<Me>("GET", "auth/me", { takes401: true });
    sessionBegins();
    return true;
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    me.value = null;
    if (error.status === 403) refused.value = error.message;
    else if (error.status !== 401) throw error;
    return false;
  }
}

/** Asks what there is to sign in with. */
export async function readAuthState(): Promise<void> {
  try {
    authState.value = await call("GET", "auth/state", { takes401: true });
  } catch {
    authState.value = null; // A node that does not tell.
  }
}

export async function signIn(name: string, password: string, code: string): Promise<void> {
  token.value = null; // One that is good no more would be asked for before the session.
  await call("POST", "auth/login", {
    body: { name, password, ...(code !== "" && { code }) },
    takes401: true,
  });
  await recognise();
}

export async function signInByRecovery(
  name: string,
  password: string,
  recoveryCode: string,
): Promise<void> {
  token.value = null;
  await call("POST", "auth/recovery", {
    body: { name, password, recovery_code: recoveryCode },
    takes401: true,
  });
  await recognise();
}

/** @throws {ApiError} 401, where it is not the token. */
export async function signInByToken(text: string): Promise<void> {
  token.value = text.trim();
  if (await recognise()) return;
  token.value = null;
  throw new ApiError(401, "unauthorized", "");
}

export async function signOut(): Promise<void> {
  const hadToken = token.value !== null;
  sessionEnds();
  token.value = null;
  me.value = null;
  if (!hadToken) await call("POST", "auth/logout", { takes401: true }).catch(() => undefined);
}
