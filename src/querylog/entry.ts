/**
 * Entries of the query log, as they come, are stored and are shown: for who has no use for SQLite.
 * Scope: none. @module
 */
import { DNSSEC_NAMES, OUTCOME_NAMES, PROTOCOL_NAMES, TEXT_SEPARATOR } from "../logqueue/mod.ts";
import { type KeptText, NO_TEXT } from "./byte_texts.ts";

export type OutcomeName = typeof OUTCOME_NAMES[number];
export type ProtocolName = typeof PROTOCOL_NAMES[number];

/** An entry of the query log, as the API shows it but for the node's name. */
export interface LogEntry extends ShownEntry {
  /** Its number, which grows from entry to entry. */
  readonly id: number;
}

/** What is logged of a query. */
export interface ShownEntry {
  /** RFC 3339, to the millisecond: when the query was answered. */
  readonly time: string;
  /** The client's address; `null` where nobody said. */
  readonly client: string | null;
  /** The name of the client that the service knows it as. */
  readonly client_name: string | null;
  /** The client ID that came with the query. */
  readonly client_id: string | null;
  /** The ID of the client's group. */
  readonly group: string | null;
  readonly protocol: ProtocolName;
  /** In lower case, without the dot at its end. */
  readonly name: string;
  readonly type: string;
  readonly outcome: OutcomeName;
  readonly rcode: string;
  readonly rule: string | null;
  readonly list: string | null;
  /** RDATA in presentation form, in the response's order. */
  readonly answers: readonly string[];
  readonly upstream: string | null;
  readonly cached: boolean;
  readonly dnssec: "secure" | "insecure" | "bogus" | null;
  /** Why that is not secure; `null` where it is, and of answers that were cached. */
  readonly dnssec_reason: string | null;
  readonly duration_us: number;
}

/** Which entries are asked for; what is left out holds for all. */
export interface LogFilter {
  readonly outcomes?: readonly OutcomeName[];
  /** The name of a type of records. */
  readonly type?: string;
  readonly protocol?: ProtocolName;
  /** The ID of a group. */
  readonly group?: string;
  /** What the entry's `list` says. */
  readonly list?: string;
  /** As configured. */
  readonly upstream?: string;
  /** An address; or the name or the client ID of a client. */
  readonly client?: string;
  /** Any of these; a network among them. */
  readonly clients?: readonly string[];
  /** Text anywhere in the name, letters in either case. */
  readonly name?: string;
  /** Milliseconds since 1970: after then, and before then. */
  readonly sinceMs?: number;
  readonly untilMs?: number;
  /** Behind the entry with this number. */
  readonly afterId?: number;
}

/** An entry as it is stored: what repeats from entry to entry is one text a kind. */
export interface StoredEntry {
  readonly timeMs: number;
  readonly durationUs: number;
  /** Its number. */
  readonly outcome: number;
  readonly name: string;
  /** See `clientText`. */
  readonly client: string;
  /** See `kindText`. */
  readonly kind: string;
  /** `list TAB rule`, or "". */
  readonly rule: string;
  /** A line each. */
  readonly answers: string;
}

/** An entry as it comes. */
export interface TakenEntry extends StoredEntry {
  /** What is known of its name, client, kind, rule and answers. */
  readonly texts: KeptText[];
  /** False: it is kept nowhere, and nobody is told of it. */
  readonly isLogged: boolean;
  /** False: statistics leave it out. */
  readonly isCounted: boolean;
  /** What it was read from, without what is not to be kept of the address; `null`: nobody wants it. */
  readonly record: Uint32Array | null;
}

/** One that may be filled again: what of it goes on is copied. */
export type Fillable<T> = { -readonly [K in keyof T]: T[K] };

export function emptyEntry(): Fillable<TakenEntry> {
  return {
    texts: [NO_TEXT, NO_TEXT, NO_TEXT, NO_TEXT, NO_TEXT],
    isLogged: false,
    isCounted: false,
    record: null,
    timeMs: 0,
    durationUs: 0,
    outcome: 0,
    name: "",
    client: "",
    kind: "",
    rule: "",
    answers: "",
  };
}

/** Texts of which what was made is kept ready. */
const KEPT_MAX = 4_096;

/** Makes something of a text once, as long as there are few of them. */
function kept<T>(make: (text: string) => T): (text: string) => T {
  const known = new Map<string, T>();
  return (text) => {
    let made = known.get(text);
    if (made === undefined) {
      if (known.size >= KEPT_MAX) known.clear();
      known.set(text, made = make(text));
    }
    return made;
  };
}

/** Bits of a digit in `kindText`. */
const CACHED = 1;
const NOT_COUNTED = 2;
/** Address, client ID, group and name of a client as one text; an address is found by its start. */
export function clientText(address: string, id: string, group: string, name: string): string {
  return [address, id, group, name].join(TEXT_SEPARATOR);
}

/** What few values of a query's make many entries alike, as one text. */
export function kindText(
  type: string,
  rcode: string,
  protocol: number,
  isCached: boolean,
  dnssec: number,
  upstream: string,
  reason: string,
  isCounted = true,
): string {
  const digit = (isCached ? CACHED : 0) | (isCounted ? 0 : NOT_COUNTED);
  const parts = [type, rcode, protocol, digit, dnssec, upstream];
  // Names in it may hold anything.
  if (reason !== "") parts.push(reason.replaceAll(TEXT_SEPARATOR, " "));
  return parts.join(TEXT_SEPARATOR);
}

/** What counting asks of a kind. */
export interface KindFacts {
  readonly isCounted: boolean;
  /** Of the upstream that was asked, or "". */
  readonly upstream: string;
  readonly isServfail: boolean;
}

export const kindFacts: (kind: string) => KindFacts = kept((kind) => {
  const [, rcode, , digit, , upstream] = kind.split(TEXT_SEPARATOR);
  const isCounted = (Number(digit) & NOT_COUNTED) === 0;
  return { isCounted, upstream: upstream ?? "", isServfail: rcode === "SERVFAIL" };
});

/** The list of an entry's `rule`, or "". */
export const listOf: (rule: string) => string = kept((rule) => {
  const end = rule.indexOf(TEXT_SEPARATOR);
  return end < 0 ? rule : rule.slice(0, end);
});

/** What a stored entry says. */
export function showEntry(stored: StoredEntry): ShownEntry {
  const [client, id, group, ...name] = stored.client.split(TEXT_SEPARATOR);
  const [type, rcode, protocol, cached, dnssec, upstream, reason] = stored.kind.split(
    TEXT_SEPARATOR,
  );
  const [list, ...rule] = stored.rule.split(TEXT_SEPARATOR);
  return {
    time: new Date(stored.timeMs).toISOString(),
    client: orNull(client),
    client_name: orNull(name.join(TEXT_SEPARATOR)),
    client_id: orNull(id),
    group: orNull(group),
    protocol: PROTOCOL_NAMES[Number(protocol)] ?? PROTOCOL_NAMES[0],
    name: stored.name,
    type,
    outcome: OUTCOME_NAMES[stored.outcome],
    rcode,
    rule: orNull(rule.join(TEXT_SEPARATOR)),
    list: orNull(list),
    answers: stored.answers === "" ? [] : stored.answers.split("\n"),
    upstream: orNull(upstream),
    cached: (Number(cached) & CACHED) !== 0,
    dnssec: DNSSEC_NAMES[Number(dnssec)] ?? null,
    dnssec_reason: orNull(reason),
    duration_us: stored.durationUs,
  };
}

/**
 * What clients are counted by: the client ID that came with the query, or else the address, which stay
 * as they are when a client gets a name. Where addresses are cut, its label.
 */
export function clientKey(client: string, isAnonymized: boolean): string {
  return isAnonymized ? clientLabel(client) : ownKey(client);
}

const ownKey = kept((client) => {
  const [address, id] = client.split(TEXT_SEPARATOR, 2);
  return id === "" ? address : id;
});

/** What people know a client by: its name, or else its address. */
export const clientLabel: (client: string) => string = kept((client) => {
  const [address, , , ...name] = client.split(TEXT_SEPARATOR);
  const label = name.join(TEXT_SEPARATOR);
  return label === "" ? address : label;
});

function orNull(text: string | undefined): string | null {
  return text === undefined || text === "" ? null : text;
}
