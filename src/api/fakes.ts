/** Stands for what surrounds the API in tests: a store without a disk, users without Argon2. */
import assert from "node:assert/strict";
import type { Delivery } from "../webhooks/mod.ts";
import { type Identity, LockedError, sessionFor, userOf } from "../auth/mod.ts";
import { SvcError } from "../errors.ts";
import { adguardAnswer, fakeAsk, PASSWORD, USER } from "../migrate/fakes.ts";
import { readSource } from "../migrate/mod.ts";
import {
  type Actor,
  apply,
  type AuditEntry,
  type Change,
  DEFAULT_SETTINGS,
  emptyState,
  type LiveState,
  type NewAuditEntry,
  type Note,
  noteEntry,
  type Session,
  type Settled,
  type StoredUser,
} from "../model/mod.ts";
import type { AuditPage, AuditQuery } from "../store/mod.ts";
import { aloneReport } from "./alone.ts";
import { NO_LATENCY, noCounts } from "./empty_logs.ts";
import { EventFeed } from "./event_feed.ts";
import type {
  Accounts,
  ApiDeps,
  ClusterPort,
  EventsPort,
  ExplainQuestion,
  ListsPort,
  LogsPort,
  MigrationPort,
  NodePort,
} from "./ports.ts";
import { ClientSeries, ClientsSeen } from "./schemas/clients_seen.ts";
import { exampleOf } from "./schemas/common.ts";
import { Profile } from "./schemas/profiles.ts";
import { StatusEvent } from "./schemas/events.ts";
import type { QuerylogEntry } from "./schemas/logs.ts";

export const NODE = "node-1";
export const LOOPBACK = "127.0.0.1";
export const NOW_MS = Date.UTC(2026, 0, 2, 3, 4, 5, 678);
/** What a user named `locked` is told to wait. */
export const RETRY_SECONDS = 300;
const SYSTEM: Actor = { kind: "system", name: null, address: null };
/** May make a viewer of the first user. */
const OPERATOR: Actor = { kind: "cli", name: null, address: null };
/** Stands in every place where something secret is kept. */
export const SECRET = "do-not-show-this";

/** A store whose changes hold at once, made by the real `apply`. */
export class FakeStore {
  state: LiveState = emptyState();
  readonly entries: AuditEntry[] = [];
  readonly sessions = new Map<string, Session>();
  /** Set: no change can be made. */
  failure: Error | null = null;

  constructor() {
    this.#apply(
      { type: "seed", lists: [], rules: [], settings: DEFAULT_SETTINGS, first: true },
      SYSTEM,
    );
  }

  propose(change: Change, actor: Actor): Promise<Settled> {
    if (this.failure !== null) return Promise.reject(this.failure);
    return Promise.resolve(this.#apply(change, actor));
  }

  #apply(change: Change, actor: Actor): Settled {
    const at = new Date(NOW_MS + this.entries.length).toISOString();
    const applied = apply(this.state, { change, actor, at, node: NODE });
    if (applied.kind === "refused") return applied.settled;
    this.state = applied.state;
    this.#keep(applied.audit);
    return applied.settled;
  }

  note(note: Note, actor: Actor): Promise<void> {
    if (this.failure !== null) return Promise.reject(this.failure);
    const at = new Date(NOW_MS + this.entries.length).toISOString();
    this.#keep(noteEntry(note, { actor, at, node: NODE }));
    return Promise.resolve();
  }

  #keep(entry: NewAuditEntry): void {
    const id = this.entries.length.toString(16).padStart(16, "0");
    this.entries.unshift({ id, ...entry });
  }

  subscribe(): () => void {
    return () => undefined;
  }
  audit({ limit }: AuditQuery): Promise<AuditPage> {
    return Promise.resolve({ entries: this.entries.slice(0, limit), next: null });
  }
  putSession(session: Session): Promise<void> {
    this.sessions.set(session.sha256, session);
    return Promise.resolve();
  }
  sessionsOf(userId: string): Promise<readonly Session[]> {
    return Promise.resolve([...this.sessions.values()].filter((one) => one.userId === userId));
  }
  session(sha256: string): Promise<Session | null> {
    return Promise.resolve(this.sessions.get(sha256) ?? null);
  }
  deleteSession(sha256: string): Promise<void> {
    this.sessions.delete(sha256);
    return Promise.resolve();
  }

  /** Adds a user, and returns the `Cookie` header of a session of theirs. */
  async signIn(name: string, role: "admin" | "viewer"): Promise<string> {
    const user = await addUser(this, { name, role, disabled: false });
    const { session, value } = sessionFor(user, NOW_MS);
    await this.putSession(session);
    return `svc_session=${value}`;
  }
}

/** A value of a change that must not be refused. */
function done(settled: Settled): unknown {
  if (settled.kind === "refused") throw new SvcError(settled.code, settled.message);
  return settled.value;
}

let usersMade = 0;

async function addUser(
  store: FakeStore,
  { name, role, disabled }: Pick<StoredUser, "name" | "role" | "disabled">,
  actor: Actor = OPERATOR,
): Promise<StoredUser> {
  const user = {
    id: `us_${(++usersMade).toString(16).padStart(16, "0")}`,
    name,
    role,
    disabled,
    password_hash: `$argon2id$${SECRET}`,
    otp: {
      secret: SECRET.replace(/[^a-z]/g, "").toUpperCase(),
      active: true,
      last_step: 1,
      recovery: [SECRET],
    },
    reset: { token_sha256: SECRET, expires_at: new Date(NOW_MS).toISOString() },
    session_epoch: 0,
  };
  return done(await store.propose({ type: "user_create", user }, actor)) as StoredUser;
}

/** Accounts that take the password `password` and the code `000000`, and never hash. */
function fakeAccounts(store: FakeStore): Accounts {
  const byName = (name: string) => [...store.state.users.values()].find((u) => u.name === name);
  const signIn = async (name: string, password: string) => {
    if (name === "locked") throw new LockedError(RETRY_SECONDS);
    const user = byName(name);
    if (user === undefined || password !== "password") {
      throw new SvcError("unauthorized", "wrong name, password or code");
    }
    if (user.disabled) throw new SvcError("forbidden", "this account is disabled");
    const { session, value } = sessionFor(user, NOW_MS);
    await store.putSession(session);
    return { user, cookie: value };
  };
  const find = (id: string) => {
    const user = store.state.users.get(id);
    if (user === undefined) throw new SvcError("not_found", `${id}: there is no such user`);
    return user;
  };
  const check = (caller: Identity, password: string) => {
    userOf(caller);
    if (password !== "password") throw new SvcError("unauthorized", "wrong password");
  };
  return {
    login: async ({ name, password, code }) => {
      const made = await signIn(name, password);
      if (code === null) throw new SvcError("otp_required", "code: the second factor is on");
      return made;
    },
    recover: ({ name, password }) => signIn(name, password),
    logout: async ({ session }) => {
      if (session !== null) await store.deleteSession(session.sha256);
    },
    sessions: async (caller) => {
      const user = userOf(caller);
      return await store.sessionsOf(user.id);
    },
    endSession: async (caller) => {
      await userOf(caller);
    },
    endOtherSessions: async (caller) => {
      await userOf(caller);
    },
    changePassword: async (caller, current) => await check(caller, current),
    beginOtp: async (caller, password) => {
      await check(caller, password);
      return { secret: "NEWSECRET", uri: "otpauth://totp/svc:user?secret=NEWSECRET" };
    },
    confirmOtp: async (caller) => {
      await userOf(caller);
      return Array.from({ length: 10 }, (_, i) => `code-${i}`);
    },
    removeOtp: async (caller, password) => await check(caller, password),
    redeemReset: async (token) => {
      await undefined;
      if (token !== "token") throw new SvcError("unauthorized", "this link is over");
    },
    issueReset: async (id) => {
      await find(id);
      return { token: "token", expiresAt: new Date(NOW_MS + 3_600_000).toISOString() };
    },
    disableOtp: async (id, actor) => {
      find(id);
      const change = { type: "user_change", id, ifMatch: null, endSessions: true } as const;
      done(
        await store.propose({ ...change, fields: { otp: null }, action: "otp_disable" }, actor),
      );
    },
    create: (user, actor) => addUser(store, user, actor),
    replace: async (id, { name, role, disabled }, ifMatch, actor) => {
      const fields = { name, role, disabled };
      const change = { type: "user_change", id, ifMatch, endSessions: true } as const;
      return done(
        await store.propose({ ...change, fields, action: "update" }, actor),
      ) as StoredUser;
    },
    remove: async (id, ifMatch, actor) => {
      done(await store.propose({ type: "user_delete", id, ifMatch }, actor));
    },
  };
}

class FakeNode implements NodePort {
  readonly name = NODE;
  readonly version = "0.7.0";
  readonly startedAtMs = NOW_MS;
  pausedMs: number | null = null;
  flushes = 0;
  health() {
    return "ok" as const;
  }
  status() {
    return {
      problems: [],
      problem_items: [],
      listeners: [{ protocol: "udp", address: "127.0.0.1:53" }],
      addresses: [{ protocol: "udp", address: "127.0.0.1:53" }],
      encrypted: null,
      acme: null,
      recursion: { enabled: false, dnssec: true, servers: 0 },
      filter: {
        rules: 3,
        generation: 1,
        built_at: new Date(NOW_MS).toISOString(),
        memory_bytes: 9,
      },
      cache: { entries: 0, bytes: 0, hits: 0, misses: 0 },
      forwarding: { strategy: "order" as const },
      dns64: null,
      upstreams: [{
        address: "192.0.2.1:53",
        name: null,
        groups_only: false,
        healthy: true,
        latency_ms: null,
        failures: 0,
      }],
      querylog: { entries: 0, dropped: 0 },
      sandbox: { user: "svc", capabilities: [], landlock: true, seccomp: true },
    };
  }
  pausedUntilMs() {
    return this.pausedMs;
  }
  pause(untilMs: number | null) {
    this.pausedMs = untilMs;
    return Promise.resolve();
  }
  flushCache() {
    this.flushes++;
    return Promise.resolve();
  }
  explain({ name, type, client }: ExplainQuestion) {
    return Promise.resolve({
      name,
      type,
      client: client === LOOPBACK || client === null ? null : { id: "cl_1", name: client },
      group: { id: "gr_0000000000000000", name: "Default" },
      querylog: true,
      statistics: true,
      outcome: "blocked",
      rule: `||${name}^`,
      list: "rules",
      records: [],
      matches: [{
        rule: `||${name}^`,
        list: "rules",
        list_name: "rules",
        effect: "block",
        lost: null,
      }],
      dnssec: null,
      trace: null,
    });
  }
  checkUpdate() {
    return Promise.resolve({ current: "0.7.0", latest: null, newer: false, url: null });
  }
  metrics() {
    return Promise.resolve("svc_degraded 0\n");
  }
}

function fakeLists(): ListsPort {
  return {
    status: () => ({
      state: "pending",
      message: null,
      rules: 0,
      unsupported: 0,
      refreshed_at: null,
      downloading: null,
    }),
    refresh: () => ({ started: [], loading: [], done: Promise.resolve() }),
    recommended: () => ({
      items: [{
        id: "balanced",
        name: "A list",
        description: "",
        category: "ads",
        url: "https://lists.example/a.txt",
        homepage: null,
        licence: "not stated",
        non_commercial: false,
        presets: ["balanced"],
      }],
      presets: [{ id: "balanced", name: "Balanced", description: "" }],
    }),
    sizes: () => Promise.resolve({ items: [{ id: "balanced", rules: 1, bytes: 2 }] }),
    directory: () => Promise.resolve({ fetched_at: null, items: [] }),
    directoryList: (id) => {
      const url = "https://lists.example/d.txt";
      const list = { id, name: "D", description: "", url, homepage: null, tags: [], urls: [url] };
      return Promise.resolve(list);
    },
    services: () => ({
      items: [{ id: "chat", name: "Chat", group: null, rules: ["||chat.example^"] }],
      status: null,
    }),
  };
}

function fakeLogs(): LogsPort {
  const test = {
    id: "lt_1",
    names: Array.from({ length: 8 }, (_, i) => `${i}.leak.svc.test`),
    created_at: new Date(NOW_MS).toISOString(),
    reached: 1,
    lookups: [{ address: "192.0.2.7", protocol: "doh" as const, client: null }],
  };
  return {
    search: ({ next }) =>
      Promise.resolve(
        next === undefined
          ? { entries: [fakeEntry(2), fakeEntry(1)], next: "1" }
          : { entries: [fakeEntry(0)], next: null },
      ),
    watch: (_, watcher) => {
      watcher.tell([fakeEntry(0), fakeEntry(1)], 3);
      watcher.end();
      return () => undefined;
    },
    statistics: ({ hours, scope, step }) =>
      Promise.resolve({
        hours,
        scope,
        step,
        total: 0,
        outcomes: noCounts(),
        latency: NO_LATENCY,
        previous: { total: 0, outcomes: noCounts(), latency: NO_LATENCY },
        series: [{ time: new Date(NOW_MS).toISOString(), ...noCounts(), latency: NO_LATENCY }],
        top: {
          names: [{ name: "www.example", count: 1 }],
          blocked: [],
          clients: [{ name: "tv", count: 1, client: "cl_1", address: null }],
          blocked_clients: [],
          lists: [],
        },
        upstreams: [],
        nodes: [NODE],
        unreachable: [],
      }),
    clientsSeen: () => Promise.resolve(exampleOf(ClientsSeen)),
    clientSeries: () => Promise.resolve(exampleOf(ClientSeries)),
    startLeakTest: () => test,
    leakTest: (id) => id === test.id ? test : null,
    leakTests: () => [test],
  };
}

/** An entry of the query log; its name would be a formula in a spreadsheet. */
export function fakeEntry(i: number): QuerylogEntry {
  return {
    id: `e${i}`,
    time: new Date(NOW_MS + i).toISOString(),
    client: "192.0.2.7",
    client_name: 'a "large", old TV',
    client_id: null,
    group: "gr_0000000000000000",
    protocol: "udp",
    name: `=sum(${i}).example`,
    type: "A",
    outcome: "forwarded",
    rcode: "NOERROR",
    rule: null,
    list: null,
    answers: ["cdn.example", `192.0.2.${i}`],
    upstream: "192.0.2.1:53",
    cached: false,
    dnssec: null,
    dnssec_reason: null,
    duration_us: 1_234,
    node: NODE,
  };
}

const DELIVERY: Delivery = {
  ...{ id: "wd_1", event: "test", createdAtMs: NOW_MS, state: "waiting", attempts: 1 },
  ...{ status: 500, durationMs: 12, error: "hook.example: it answers 500", nextTryAtMs: NOW_MS },
};

function fakeCluster(store: FakeStore): ClusterPort {
  const refuse = (force: boolean) => {
    if (!force) throw new SvcError("conflict", "cluster: this node is in none");
    return Promise.resolve();
  };
  return {
    report: () =>
      aloneReport({ node: NODE, version: "0.7.0", appliedIndex: store.state.appliedIndex }),
    promote: async (force) => await refuse(force),
    demote: async (force) => await refuse(force),
    removeMember: async (node) => {
      await undefined;
      throw new SvcError("not_found", `${node}: there is no such member`);
    },
  };
}

/** Events of which there is one, the status. */
function fakeEvents(store: FakeStore): EventsPort {
  return {
    read: () => {
      const feed = new EventFeed({ replicator: store, status: () => exampleOf(StatusEvent) });
      const streamed = feed.read();
      feed.end();
      return streamed;
    },
  };
}

/** An AdGuard Home that lets everybody in who is let ask it. */
const readFakeSource: MigrationPort["read"] = (request) => {
  const { signal } = new AbortController();
  const ask = fakeAsk((asked) => adguardAnswer(asked));
  const user = { user: USER, password: PASSWORD };
  return readSource({ ask, signal, farewell: () => signal }, { ...request, ...user });
};

export interface Fakes {
  readonly deps: ApiDeps;
  readonly store: FakeStore;
  readonly node: FakeNode;
}

/** Everything the API asks for, over one store in memory. */
export function fakeDeps(over: Partial<ApiDeps> = {}): Fakes {
  const store = new FakeStore();
  const node = new FakeNode();
  const clock = { nowMs: () => NOW_MS };
  let ids = 0;
  const deps: ApiDeps = {
    replicator: store,
    local: store,
    auth: { users: store, sessions: store, clock },
    access: { tokenSha256: null, isSecure: false },
    accounts: fakeAccounts(store),
    webhooks: { deliveries: () => [DELIVERY], test: () => Promise.resolve(DELIVERY) },
    tokenUses: { used: () => {}, lastUsedMs: () => null },
    node,
    lists: fakeLists(),
    logs: fakeLogs(),
    cluster: fakeCluster(store),
    events: fakeEvents(store),
    profiles: {
      make: () => exampleOf(Profile),
      read: (token) => token === "x" ? new Uint8Array([60]) : null,
    },
    migration: { timeZone: "Europe/Berlin", read: readFakeSource },
    inForce: () => Promise.resolve(),
    clock,
    newId: (prefix) => prefix + (++ids).toString(16).padStart(16, "0"),
    proofAt: () => null,
    docs: true,
    ui: null,
    publicUrl: null,
    ...over,
  };
  assert.equal(store.state.collections.groups.size, 1, "the default group is there");
  return { deps, store, node };
}
