import type { AccessConfig, Auth, Identity } from "../auth/mod.ts";
import type { Clock } from "../clock/mod.ts";
import type { ListStatus, Refresh } from "../lists/mod.ts";
import type { SourceData, SourceRequest } from "../migrate/mod.ts";
import type { Actor, Role, RuleSpec, Session, StoredUser } from "../model/mod.ts";
import type { LocalStore, Replicator } from "../store/mod.ts";
import type { Webhooks } from "../webhooks/mod.ts";
import type { EventFeed } from "./event_feed.ts";
import type {
  ClientSeries,
  ClientSeriesQuery,
  ClientsSeen,
  ClientsSeenQuery,
} from "./schemas/clients_seen.ts";
import type { ClusterReport } from "./schemas/cluster.ts";
import type {
  LeakTest,
  QuerylogEntry,
  QuerylogFilter,
  QuerylogPage,
  QuerylogQuery,
} from "./schemas/logs.ts";
import type { Profile, ProfileRequest } from "./schemas/profiles.ts";
import type { Statistics, StatisticsQuery } from "./schemas/statistics.ts";
import type {
  Directory,
  DirectoryDetails,
  Explanation,
  Health,
  RecommendedCatalog,
  RecommendedSizes,
  Services,
  Status,
  UpdateCheck,
} from "./schemas/node.ts";
import type { UiFiles } from "./ui_files.ts";

/** A sign-in that went well: the user and the value of the session's cookie. */
export interface SignIn {
  readonly user: StoredUser;
  readonly cookie: string;
}

/** Users, their passwords and second factors. Each throws `SvcError` as the error table says. */
export interface Accounts {
  login(
    input: { readonly name: string; readonly password: string; readonly code: string | null },
    address: string,
  ): Promise<SignIn>;
  recover(
    input: { readonly name: string; readonly password: string; readonly recoveryCode: string },
    address: string,
  ): Promise<SignIn>;
  logout(caller: Identity): Promise<void>;
  /** The caller's own on this node, the oldest first. */
  sessions(caller: Identity): Promise<readonly Session[]>;
  endSession(caller: Identity, id: string): Promise<void>;
  endOtherSessions(caller: Identity): Promise<void>;
  changePassword(caller: Identity, current: string, password: string): Promise<void>;
  beginOtp(caller: Identity, password: string): Promise<{ secret: string; uri: string }>;
  confirmOtp(caller: Identity, code: string): Promise<readonly string[]>;
  removeOtp(caller: Identity, password: string, code: string): Promise<void>;
  redeemReset(token: string, password: string, address: string): Promise<void>;
  issueReset(id: string, actor: Actor): Promise<{ token: string; expiresAt: string }>;
  disableOtp(id: string, actor: Actor): Promise<void>;
  create(user: NewUser, actor: Actor): Promise<StoredUser>;
  replace(
    id: string,
    user: Omit<NewUser, "password"> & { readonly password: string | null },
    ifMatch: number | null,
    actor: Actor,
  ): Promise<StoredUser>;
  remove(id: string, ifMatch: number | null, actor: Actor): Promise<void>;
}

export interface NewUser {
  readonly name: string;
  readonly role: Role;
  readonly disabled: boolean;
  readonly password: string;
}

/** What a query would come to. */
export interface ExplainQuestion {
  readonly name: string;
  readonly type: string;
  /** An address, or the ID of a client; `null`: a client not known. */
  readonly client: string | null;
  /** The ID of the group that the client would be in; `null`: its own. */
  readonly group: string | null;
  /** Rules that there would be, and IDs of rules and lists that there would not be. */
  readonly draft: {
    readonly rules: readonly RuleSpec[];
    readonly without: readonly string[];
  } | null;
  /** Asked anew, with each step told. */
  readonly isTraced: boolean;
}

/** This node: what it is doing and what it can be told. */
export interface NodePort {
  readonly name: string;
  readonly version: string;
  readonly startedAtMs: number;
  health(): Health["status"];
  /** What the API doesn't know by itself. */
  status(): Pick<
    Status,
    | "problems"
    | "problem_items"
    | "listeners"
    | "addresses"
    | "encrypted"
    | "acme"
    | "recursion"
    | "filter"
    | "cache"
    | "forwarding"
    | "dns64"
    | "upstreams"
    | "querylog"
    | "sandbox"
  >;
  pausedUntilMs(): number | null;
  /** Pauses filtering until then, or resumes it; resolves once that holds for the next query. */
  pause(untilMs: number | null): Promise<void>;
  flushCache(): Promise<void>;
  explain(question: ExplainQuestion): Promise<Explanation>;
  checkUpdate(): Promise<UpdateCheck>;
  /** The text exposition for a scraper. */
  metrics(): Promise<string>;
}

export interface ListsPort {
  status(id: string): ListStatus;
  /** Downloads every URL list now; done when the rules built of them hold. */
  refresh(): Refresh;
  recommended(): RecommendedCatalog;
  sizes(): Promise<RecommendedSizes>;
  directory(): Promise<Directory>;
  /** A list of the directory with its addresses. */
  directoryList(id: string): Promise<DirectoryDetails>;
  services(): Services;
}

/** Somebody who watches the query log. */
export interface LogWatcher {
  /** `skipped` further entries were too many to tell. */
  tell(entries: readonly QuerylogEntry[], skipped: number): void;
  /** Nothing more will come. */
  end(): void;
}

export interface LogsPort {
  /** `after` is an entry's ID: only newer ones. */
  search(query: QuerylogQuery & { readonly after?: string }): Promise<QuerylogPage>;
  /**
   * Tells of entries that pass as they come. Returns what ends that.
   *
   * @throws {SvcError} `unavailable`, where too many watch already.
   */
  watch(filter: QuerylogFilter, watcher: LogWatcher): () => void;
  statistics(query: StatisticsQuery): Promise<Statistics>;
  clientsSeen(query: ClientsSeenQuery): Promise<ClientsSeen>;
  clientSeries(query: ClientSeriesQuery): Promise<ClientSeries>;
  startLeakTest(): LeakTest;
  leakTest(id: string): LeakTest | null;
  leakTests(): readonly LeakTest[];
}

/** Configuration profiles that devices load. */
export interface ProfilesPort {
  /** @throws {SvcError} `conflict`, where no device could connect. */
  make(request: ProfileRequest): Profile;
  /** The bytes of one that is open; `null`: there is none. */
  read(token: string): Uint8Array<ArrayBuffer> | null;
}

export interface ClusterPort {
  report(): ClusterReport;
  promote(force: boolean, actor: Actor): Promise<void>;
  demote(force: boolean, actor: Actor): Promise<void>;
  removeMember(node: string, actor: Actor): Promise<void>;
}

/** Reads what another product has. */
export interface MigrationPort {
  /** The IANA name of the zone that this machine is in. */
  readonly timeZone: string;
  /** @throws {SvcError} `invalid`, when it does not let in; `unavailable`. */
  read(request: SourceRequest): Promise<SourceData>;
}

/** When named tokens were used on this node; `TokenUses` of auth is one. */
export interface TokenUsesPort {
  used(caller: Identity): void;
  lastUsedMs(id: string): number | null;
}

/** What is sent to webhooks; `Webhooks` is one. Each throws `not_found`. */
export type WebhooksPort = Pick<Webhooks, "deliveries" | "test">;

/** Tells whoever reads it of changes and of the status. */
export type EventsPort = Pick<EventFeed, "read">;

/** Everything the API asks for; it holds no state of its own. */
export interface ApiDeps {
  readonly replicator: Replicator;
  readonly local: Pick<LocalStore, "audit" | "note">;
  /** What says who a request is from. */
  readonly auth: Pick<Auth, "users" | "sessions" | "clock">;
  readonly access: AccessConfig;
  readonly accounts: Accounts;
  readonly tokenUses: TokenUsesPort;
  readonly webhooks: WebhooksPort;
  readonly node: NodePort;
  readonly lists: ListsPort;
  readonly logs: LogsPort;
  readonly cluster: ClusterPort;
  readonly events: EventsPort;
  readonly profiles: ProfilesPort;
  readonly migration: MigrationPort;
  /** Resolves once every change applied so far holds for the next query. */
  readonly inForce: () => Promise<void>;
  readonly clock: Clock;
  /** A new ID: the prefix and 16 hexadecimal digits. */
  readonly newId: (prefix: string) => string;
  /** What an authority is shown at a path, to prove a name; `null`: nothing. */
  readonly proofAt: (path: string) => string | null;
  /** Whether `/api/docs` is served. */
  readonly docs: boolean;
  /** The dashboard; `null`: it is off. */
  readonly ui: UiFiles | null;
  /** The origin of links that people get; `null`: they are paths. */
  readonly publicUrl: string | null;
}
