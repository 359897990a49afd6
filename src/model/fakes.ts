/** Specs, users and changes for tests: small, whole, and told apart by a number. */
import { apply } from "./apply.ts";
import type { Actor, Change, Command, StoredUser } from "./command.ts";
import { CREDENTIAL_PREFIX } from "./credentials.ts";
import { emptyState, type LiveState } from "./live_state.ts";
import { DEFAULT_GROUP_ID } from "./constants.ts";
import { ID_PREFIX, type SpecOf, USER_ID_PREFIX } from "./resources.ts";
import { DEFAULT_SETTINGS } from "./settings.ts";

export const ACTOR: Actor = { kind: "user", name: "ann", address: "192.0.2.1" };
export const AT = "2026-01-02T03:04:05.678Z";

/** 16 hexadecimal digits. */
export function hex(n: number): string {
  return n.toString(16).padStart(16, "0");
}

export const ids = {
  list: (n: number) => ID_PREFIX.lists + hex(n),
  rule: (n: number) => ID_PREFIX.rules + hex(n),
  record: (n: number) => ID_PREFIX.records + hex(n),
  group: (n: number) => ID_PREFIX.groups + hex(n),
  client: (n: number) => ID_PREFIX.clients + hex(n),
  schedule: (n: number) => ID_PREFIX.schedules + hex(n),
  user: (n: number) => USER_ID_PREFIX + hex(n),
  token: (n: number) => CREDENTIAL_PREFIX.tokens + hex(n),
  webhook: (n: number) => CREDENTIAL_PREFIX.webhooks + hex(n),
};

const common = { enabled: true, comment: "", managed_by: "api" };
/** What a rule is that holds for everybody and for good. */
export const UNLIMITED = { expires_at: null, groups: [], clients: [] };

export function listSpec(name: string): SpecOf<"lists"> {
  return { name, url: `https://lists.example/${name}`, ...common };
}

export function ruleSpec(rule: string): SpecOf<"rules"> {
  return { rule, ...common, ...UNLIMITED };
}

export function recordSpec(
  name: string,
  type: "A" | "AAAA" | "CNAME",
  value: string,
  enabled = true,
): SpecOf<"records"> {
  return { name, type, value, ttl: 300, ...common, enabled };
}

export function groupSpec(
  name: string,
  lists: SpecOf<"groups">["lists"] = [],
  services: readonly { readonly service: string; readonly schedule?: string }[] = [],
): SpecOf<"groups"> {
  return {
    name,
    filtering: true,
    safe_search: false,
    lists,
    blocked_services: [...services],
    paused_until: null,
  };
}

export function clientSpec(
  name: string,
  addresses: readonly string[],
  clientIds: readonly string[] = [],
  group: string = DEFAULT_GROUP_ID,
): SpecOf<"clients"> {
  return { name, addresses: [...addresses], ids: [...clientIds], group, paused_until: null };
}

export function scheduleSpec(name: string): SpecOf<"schedules"> {
  const windows: SpecOf<"schedules">["windows"] = [{ days: ["mon"], start: "08:00", end: "24:00" }];
  return { name, time_zone: "Europe/Berlin", windows };
}

export type NewUser = Omit<StoredUser, "revision" | "created_at" | "updated_at">;

/** Its secrets are texts that no other field holds. */
export function newUser(n: number, name: string, fields: Partial<NewUser> = {}): NewUser {
  return {
    id: ids.user(n),
    name,
    role: "admin",
    disabled: false,
    password_hash: `$argon2id$SECRET-hash-${n}`,
    otp: { secret: `SECRET-otp-${n}`, active: true, last_step: 1, recovery: [`SECRET-code-${n}`] },
    reset: { token_sha256: `SECRET-reset-${n}`, expires_at: AT },
    session_epoch: 0,
    ...fields,
  };
}

/** Makes a token; its secret is a text that no other field holds. */
export function newTokenChange(n: number, name: string, expiresAt: string | null = null) {
  return {
    type: "credential_create",
    kind: "tokens",
    id: ids.token(n),
    spec: { name, role: "viewer", expires_at: expiresAt },
    secret: { sha256: n.toString(16).padStart(4, "0").repeat(16) },
  } as const satisfies Change;
}

/** Makes a webhook; what is secret of it says so. */
export function newWebhookChange(n: number, name: string) {
  return {
    type: "credential_create",
    kind: "webhooks",
    id: ids.webhook(n),
    spec: { name, origin: "https://hook.example", events: ["list_failed"], enabled: true },
    secret: { url: `https://hook.example/SECRET-${n}`, key: `SECRET-key-${n}-1234567890` },
  } as const satisfies Change;
}

export function commandOf(change: Change, at = AT): Command {
  return { change, actor: ACTOR, at, node: "node-1" };
}

export const FIRST_SEED: Change = {
  type: "seed",
  lists: [],
  rules: [],
  settings: DEFAULT_SETTINGS,
  first: true,
};

/** A seeded state after `changes`, each of which has to be taken. */
export function stateAfter(...changes: readonly Change[]): LiveState {
  let state = emptyState();
  for (const change of [FIRST_SEED, ...changes]) {
    const applied = apply(state, commandOf(change));
    if (applied.kind === "refused") throw new Error(applied.settled.message);
    state = applied.state;
  }
  return state;
}
