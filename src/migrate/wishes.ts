import type { RecordedSpec, ScheduleSpec, Settings } from "../model/mod.ts";

/** What became of one thing, or would. */
export type Outcome = "added" | "there_already" | "adapted" | "not_possible";

/** What a thing is: a resource, or what is no resource here. */
export type ItemType =
  | "list"
  | "rule"
  | "record"
  | "group"
  | "client"
  | "schedule"
  | "service"
  | "safe_search"
  | "setting"
  | "access"
  | "file";

/** A row of what a migration came to. */
export interface Item {
  readonly type: ItemType;
  readonly name: string;
  readonly outcome: Outcome;
  /** How it was adapted, why it is not possible, or what else there is to say. */
  readonly detail: string | null;
}

/** How a thing had to be changed to be taken; `null`: not at all. */
type Adapted = string | null;

export interface WishedList {
  readonly url: string;
  readonly name: string;
  readonly enabled: boolean;
  /** Its names are let through, not blocked. */
  readonly allows: boolean;
  readonly comment: string;
}

/** What a set of clients gets. */
export interface WishedGroup {
  /** What clients and rules call it by. */
  readonly key: string;
  /** `null`: the default group. */
  readonly name: string | null;
  /** What tells it from the others of its source; the same whenever it is read. */
  readonly identity: string;
  /** People call it so: a group of that name here is the same. */
  readonly isNamed: boolean;
  readonly filtering: boolean;
  readonly safe_search: boolean;
  /** By URL. */
  readonly lists: readonly string[];
  readonly services: readonly WishedService[];
  readonly adapted: Adapted;
  readonly safe_search_adapted: Adapted;
}

export interface WishedService {
  readonly service: string;
  /** `null`: at all times. */
  readonly schedule: ScheduleSpec | null;
  readonly adapted: Adapted;
}

export interface WishedClient {
  readonly name: string;
  readonly addresses: readonly string[];
  readonly ids: readonly string[];
  /** The key of its group. */
  readonly group: string;
  /** What it leaves no trace in. */
  readonly recorded: RecordedSpec;
  readonly adapted: Adapted;
}

export interface WishedRule {
  readonly rule: string;
  readonly enabled: boolean;
  readonly comment: string;
  /** Keys of groups; `null`: everybody. */
  readonly groups: readonly string[] | null;
  /** How it is written there; `null`: alike. */
  readonly name: string | null;
  readonly adapted: Adapted;
}

export interface WishedRecord {
  readonly name: string;
  readonly type: "A" | "AAAA" | "CNAME";
  readonly value: string;
  readonly ttl: number | null;
  readonly enabled: boolean;
  readonly adapted: Adapted;
}

/** One of the settings, but for who may ask. */
export type WishedSetting = {
  [F in Exclude<keyof Settings, "access" | "protection">]: {
    readonly field: F;
    readonly value: Settings[F];
    readonly adapted: Adapted;
  };
}[Exclude<keyof Settings, "access" | "protection">];

/** What another product has, in words of ours; what of it there is here is not looked at. */
export interface Wishes {
  readonly lists: readonly WishedList[];
  /** The default group is among them. */
  readonly groups: readonly WishedGroup[];
  readonly clients: readonly WishedClient[];
  readonly rules: readonly WishedRule[];
  readonly records: readonly WishedRecord[];
  readonly settings: readonly WishedSetting[];
  readonly access: { readonly allowed: readonly string[]; readonly disallowed: readonly string[] };
  /** What belongs into the file, and what can't be taken. */
  readonly items: readonly Item[];
  /** The part of `svc.toml` that is made of it. */
  readonly fragment: string;
}

/** What is known of the place that a source is moved to. */
export interface Place {
  /** IDs of services that can be blocked; `null`: the catalogue is not known. */
  readonly services: ReadonlySet<string> | null;
  /** The IANA name of the zone that this machine is in. */
  readonly timeZone: string;
}

export function lost(type: ItemType, name: string, detail: string): Item {
  return { type, name, outcome: "not_possible", detail };
}

/** What belongs into the file. */
export function inFile(name: string, detail: string | null = null): Item {
  const place = "in the part of svc.toml below";
  return {
    type: "file",
    name,
    outcome: "adapted",
    detail: detail === null ? place : `${place}: ${detail}`,
  };
}

/** Several reasons as one; `null` where there is none. */
export function joined(...reasons: readonly (string | null | undefined | false)[]): string | null {
  const said = reasons.filter((reason) => typeof reason === "string" && reason !== "");
  return said.length === 0 ? null : said.join("; ");
}
