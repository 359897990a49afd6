/** The API's types, and what it has beside them as far as a page shows it. */
import type {
  ClientSpec,
  Envelope,
  GroupSpec,
  ListSpec,
  QuerylogEntry,
  RecordSpec,
  RuleSpec,
  ScheduleSpec,
  Statistics,
  Status,
  Token,
  Webhook,
} from "../../src/api/mod.ts";

export type {
  ClusterReport,
  Directory,
  DirectoryDetails,
  Explanation,
  LeakTest,
  MigrateBody,
  Migrated,
  RecommendedCatalog,
  RecommendedSizes,
  Restored,
  Services,
  Settings,
  UpdateCheck,
  WebhookDelivery as Delivery,
} from "../../src/api/mod.ts";

type Mutable<T> = T extends readonly (infer U)[] ? Mutable<U>[]
  : T extends object ? { -readonly [K in keyof T]: Mutable<T[K]> }
  : T;

export interface Specs {
  lists: Mutable<ListSpec>;
  rules: Mutable<RuleSpec>;
  records: Mutable<RecordSpec>;
  groups: Mutable<GroupSpec>;
  clients: Mutable<ClientSpec>;
  schedules: Mutable<ScheduleSpec>;
  users: UserSpec;
  tokens: Mutable<TokenSpec>;
  webhooks: Mutable<Webhook["spec"]> & { key?: string };
}
type TokenSpec = Token["spec"];
export interface UserSpec {
  name: string;
  role: "admin" | "viewer";
  disabled: boolean;
  password?: string;
  otp?: boolean;
}
export type Collection = keyof Specs;
export type Resource<C extends Collection> = Envelope<Specs[C]> & { readonly status?: ListStatus };

export interface ListStatus {
  readonly state: "ok" | "pending" | "failed" | "skipped";
  readonly message: string | null;
  readonly rules: number;
  readonly unsupported: number;
  readonly refreshed_at: string | null;
  readonly downloading: { readonly bytes: number; readonly total_bytes: number | null } | null;
}

export type Entry = QuerylogEntry;
export type Outcome = QuerylogEntry["outcome"];
export interface EntryPage {
  readonly entries: readonly Entry[];
  readonly next: string | null;
}
/** The log with one row a name. */
export interface NamePage {
  readonly names: readonly {
    readonly name: string;
    readonly count: number;
    readonly first: string;
    readonly last: string;
  }[];
}

export type Stats = Statistics;
export type NodeStatus = Status;
export type ProblemItem = Status["problem_items"][number];

/** Who has asked lately, by address. */
export interface Seen {
  readonly address: string;
  readonly client: string | null;
  readonly hostname: string | null;
  readonly mac: string | null;
  readonly last_seen: string;
  readonly queries: number;
  readonly blocked: number;
}

export interface Me {
  readonly kind: string;
  readonly name: string | null;
  readonly role: "admin" | "viewer";
  readonly otp: boolean;
}

export interface AuditEntry {
  readonly id: string;
  readonly time: string;
  readonly actor: {
    readonly kind: string;
    readonly name: string | null;
    readonly address: string | null;
  };
  readonly action: string;
  readonly resource: { readonly type: string; readonly id: string | null };
  readonly before: unknown;
  readonly after: unknown;
  readonly node: string;
}
