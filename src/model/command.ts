import type { AuditAction, AuditedAction } from "./audit_words.ts";
import type {
  Credential,
  CredentialKind,
  CredentialSecret,
  CredentialSpec,
  RestoredCredential,
} from "./credentials.ts";
import type { Collection, Envelope, SpecOf } from "./resources.ts";
import type { Settings } from "./settings.ts";

/** Who asked for a change; `kind` may get new values. */
export interface Actor {
  readonly kind: "token" | "user" | "unauthenticated" | "cli" | "replication" | "system";
  readonly name: string | null;
  readonly address: string | null;
}

export type Role = "admin" | "viewer";

/** A user as it is stored. What is secret never leaves the store but for a check. */
export interface StoredUser {
  readonly id: string;
  readonly revision: number;
  readonly created_at: string;
  readonly updated_at: string;
  readonly name: string;
  readonly role: Role;
  readonly disabled: boolean;
  /** Argon2id, PHC string. */
  readonly password_hash: string;
  /** Base32; `active` once a code has confirmed it. */
  readonly otp: {
    readonly secret: string;
    readonly active: boolean;
    /** Last time step a code was taken for: a code is good once (RFC 6238 §5.2). */
    readonly last_step: number;
    /** SHA-256 of those not used yet, in hexadecimal. */
    readonly recovery: readonly string[];
  } | null;
  /** SHA-256 of the token of an open reset link, and when it ends. */
  readonly reset: { readonly token_sha256: string; readonly expires_at: string } | null;
  /** Grows whenever sessions made before are to end. */
  readonly session_epoch: number;
}

/** A user of a backup. */
export type RestoredUser =
  & Omit<StoredUser, "password_hash" | "otp" | "reset" | "session_epoch">
  & {
    /** `null`: the backup was made or is read without. */
    readonly secrets: Pick<StoredUser, "password_hash" | "otp"> | null;
  };

/** One change. Everything that is not deterministic was drawn by whoever proposes it. */
export type Change =
  | {
    [C in Collection]: {
      readonly type: "create";
      readonly collection: C;
      readonly id: string;
      readonly spec: SpecOf<C>;
    };
  }[Collection]
  | {
    [C in Collection]: {
      readonly type: "replace";
      readonly collection: C;
      readonly id: string;
      readonly spec: SpecOf<C>;
      readonly ifMatch: number | null;
    };
  }[Collection]
  | {
    readonly type: "delete";
    readonly collection: Collection;
    readonly id: string;
    readonly ifMatch: number | null;
  }
  /** Rules that come and go together, or not at all. */
  | {
    readonly type: "rules_batch";
    readonly add: readonly { readonly id: string; readonly spec: SpecOf<"rules"> }[];
    readonly remove: readonly string[];
  }
  /** Groups get the lists of a preset in place of those of others. */
  | {
    readonly type: "lists_preset";
    /** What the audit log calls it. */
    readonly preset: string;
    /** The lists of the preset; one with the same URL is taken for each. */
    readonly add: readonly { readonly id: string; readonly spec: SpecOf<"lists"> }[];
    /** URLs of lists that go from the groups. */
    readonly without: readonly string[];
    readonly groups: readonly string[];
  }
  | { readonly type: "settings"; readonly spec: Settings; readonly ifMatch: number | null }
  | {
    readonly type: "user_create";
    readonly user: Omit<StoredUser, "revision" | "created_at" | "updated_at">;
  }
  /** Changes the fields that are given; `endSessions` makes sessions made before end. */
  | {
    readonly type: "user_change";
    readonly id: string;
    readonly ifMatch: number | null;
    readonly fields: Partial<
      Pick<StoredUser, "name" | "role" | "disabled" | "password_hash" | "otp" | "reset">
    >;
    readonly endSessions: boolean;
    /** What the audit log calls it: `update`, `password`, `otp_enable`, `reset`, … */
    readonly action: AuditAction;
  }
  | { readonly type: "user_delete"; readonly id: string; readonly ifMatch: number | null }
  | {
    [K in CredentialKind]: {
      readonly type: "credential_create";
      readonly kind: K;
      readonly id: string;
      readonly spec: CredentialSpec<K>;
      readonly secret: CredentialSecret<K>;
    };
  }[CredentialKind]
  /** Of what is secret, what is given changes. */
  | {
    [K in CredentialKind]: {
      readonly type: "credential_replace";
      readonly kind: K;
      readonly id: string;
      readonly ifMatch: number | null;
      readonly spec: CredentialSpec<K>;
      readonly secret: Partial<CredentialSecret<K>>;
    };
  }[CredentialKind]
  | {
    readonly type: "credential_delete";
    readonly kind: CredentialKind;
    readonly id: string;
    readonly ifMatch: number | null;
  }
  /** First start and `svc import`: replaces what came from the configuration file. */
  | {
    readonly type: "seed";
    readonly lists: readonly { readonly id: string; readonly spec: SpecOf<"lists"> }[];
    readonly rules: readonly { readonly id: string; readonly spec: SpecOf<"rules"> }[];
    readonly settings: Settings;
    /** Also makes the default group and the settings where there are none. */
    readonly first: boolean;
  }
  /** What another product has and this one has not: it is added, and nothing that is there changes. */
  | {
    readonly type: "migrate";
    /** What the audit log calls it. */
    readonly from: string;
    /** Those of a collection may refer to those of the collections before it. */
    readonly add: {
      readonly [C in Collection]: readonly { readonly id: string; readonly spec: SpecOf<C> }[];
    };
    /** What groups that are there get beside what they have. */
    readonly join: readonly {
      readonly group: string;
      readonly lists: SpecOf<"groups">["lists"];
      readonly blocked_services: SpecOf<"groups">["blocked_services"];
      /** False: it stays what it is. */
      readonly safe_search: boolean;
    }[];
    /** Settings that are to change; `null`: none. Those at `revision` alone are replaced. */
    readonly settings: { readonly spec: Settings; readonly revision: number } | null;
  }
  /** What a backup has, in the place of all that is there. */
  | {
    readonly type: "restore";
    readonly settings: Settings;
    readonly resources: { readonly [C in Collection]: readonly Envelope<SpecOf<C>>[] };
    readonly users: readonly RestoredUser[];
    /** `null`: the backup is from before there were such, and those that are there stay. */
    readonly credentials:
      | { readonly [K in CredentialKind]: readonly RestoredCredential<K>[] }
      | null;
    /** It has what is secret of them, so that they take the place of all. */
    readonly hasSecrets: boolean;
  };

/** A change with who, when and where: one entry of the log that members agree on. */
export interface Command {
  readonly change: Change;
  readonly actor: Actor;
  /** RFC 3339 in UTC with milliseconds; the proposer's clock. */
  readonly at: string;
  /** The member it came through. */
  readonly node: string;
}

/** What one node did by itself, for its own audit log: pause, resume, refresh, a sign-in. */
export interface Note extends AuditedAction {
  readonly after: unknown;
}

/** An entry of the audit log. */
export interface AuditEntry {
  /** Grows with each entry: 16 hexadecimal digits, so that text order is time order. */
  readonly id: string;
  readonly time: string;
  readonly actor: Actor;
  readonly action: string;
  readonly resource: { readonly type: string; readonly id: string | null };
  readonly before: unknown;
  readonly after: unknown;
  readonly node: string;
}

/** An entry before the store that keeps it gives it its ID. */
export type NewAuditEntry = Omit<AuditEntry, "id">;

/** Everything that members agree on, in memory. Maps are in order of creation. */
export interface State {
  readonly collections: {
    readonly [C in Collection]: ReadonlyMap<string, Envelope<SpecOf<C>>>;
  };
  readonly settings: Envelope<Settings>;
  readonly users: ReadonlyMap<string, StoredUser>;
  readonly credentials: {
    readonly [K in CredentialKind]: ReadonlyMap<string, Credential<K>>;
  };
  /** Number of the last command that was applied. */
  readonly appliedIndex: number;
}

/** What a change came to, decided alike by every member. */
export type Settled =
  | { readonly kind: "done"; readonly value: unknown }
  | {
    readonly kind: "refused";
    readonly code: "conflict" | "invalid" | "not_found" | "revision_mismatch";
    readonly message: string;
  };
