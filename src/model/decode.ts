import * as z from "zod";
import { formatRdata, parseRdata, Qtype } from "../dns/mod.ts";
import {
  findRegexProblem,
  LINE_LENGTH_MAX,
  normaliseName,
  parseRule,
  SKIP_TEXTS,
} from "../filter/mod.ts";
import { findListUrlProblem } from "./list_url.ts";
import { parseWith, PROBLEMS_MAX, type SpecProblem, type SpecProblems } from "./problems.ts";
import {
  type Collection,
  RULES_BATCH_MAX,
  RulesBatch,
  SettingsSpec,
  SPEC_BYTES_MAX,
  type SpecOf,
  SPECS,
} from "./resources.ts";
import { jsonBytes } from "./result.ts";
import type { Settings } from "./settings.ts";
import { findNameProblem, holdsUnseen } from "./text.ts";

/** What reading a spec came to. A refused one says all that is wrong with it. */
export type Decoded<S> =
  | { readonly ok: true; readonly spec: S }
  | { readonly ok: false; readonly problems: SpecProblems };

/** Notes what is wrong with a field. */
type Report = (path: string, message: string) => void;

/**
 * What a spec means beyond its shape: returns what of it gets another form. A field whose shape is
 * bad is left out, so that what the others mean is told all the same.
 */
type Refine<S> = (spec: Partial<S>, report: Report) => Partial<S>;

const REFINE: { readonly [C in Collection]: Refine<SpecOf<C>> } = {
  lists: refineList,
  rules: refineRule,
  records: refineRecord,
  groups: refineName,
  clients: refineClient,
  schedules: refineName,
};

const SCHEMAS: { readonly [C in Collection]: z.ZodType<SpecOf<C>> } = SPECS;

/**
 * Reads the spec of a resource: fields, unknown ones refused, and what they mean. Rules are trimmed,
 * names become lower-case A-labels, addresses get their canonical form.
 */
export function decodeSpec<C extends Collection>(
  collection: C,
  json: unknown,
): Decoded<SpecOf<C>> {
  const decoded = decodeShape(collection, json);
  const refine: Refine<SpecOf<C>> = REFINE[collection];
  const found: SpecProblem[] = decoded.ok ? [] : [...decoded.problems];
  const readable = decoded.ok ? decoded.spec : readableFields(collection, json);
  const refined = refine(readable, (path, message) => found.push({ path, message }));
  if (!decoded.ok || found.length > 0) return refused(found);
  return withinLimit({ ...decoded.spec, ...refined });
}

/** Reads a spec by its shape alone: whatever has it can be stored and read again. */
export function decodeShape<C extends Collection>(
  collection: C,
  json: unknown,
): Decoded<SpecOf<C>> {
  return decode<SpecOf<C>>(SCHEMAS[collection], json);
}

/** The frame of a batch: its rules are read one by one. */
const BATCH_FRAME = RulesBatch.extend({ add: z.array(z.unknown()).default([]) });

/** Most regular expressions of a batch: to look at a bad one takes milliseconds. */
export const REGEX_BATCH_MAX = 200;
const REGEX = /^\s*(?:@@)?\//;

function isRegex(spec: unknown): boolean {
  const { rule } = (spec ?? {}) as { readonly rule?: unknown };
  return typeof rule === "string" && REGEX.test(rule);
}

/** Reads rules that are to come and go; the paths of bad ones have their index: `add[17].rule`. */
export function decodeRulesBatch(json: unknown): Decoded<RulesBatch> {
  // Counted first: each item that is none takes memory to be complained of.
  const parts = Object.values(typeof json === "object" && json !== null ? json : {});
  const count = parts.reduce((sum, part) => sum + (Array.isArray(part) ? part.length : 0), 0);
  if (count > RULES_BATCH_MAX) {
    const message = `it has ${count} rules, and one change takes ${RULES_BATCH_MAX}: send several`;
    return refused([{ path: "", message }]);
  }
  const frame = decode(BATCH_FRAME, json);
  if (!frame.ok) return frame;
  const regexes = frame.spec.add.filter(isRegex).length;
  if (regexes > REGEX_BATCH_MAX) {
    const message = `it has ${regexes} regular expressions, and one change takes ` +
      `${REGEX_BATCH_MAX}: send several`;
    return refused([{ path: "", message }]);
  }
  const found: SpecProblem[] = [];
  const add: SpecOf<"rules">[] = [];
  for (const [i, given] of frame.spec.add.entries()) {
    const decoded = decodeSpec("rules", given);
    if (decoded.ok) add.push(decoded.spec);
    else if (found.length < PROBLEMS_MAX) found.push(...placedAt(`add[${i}]`, decoded.problems));
  }
  const { remove } = frame.spec;
  const first = new Map<string, number>();
  for (const [i, id] of remove.entries()) {
    const before = first.get(id);
    if (before === undefined) first.set(id, i);
    else found.push({ path: `remove[${i}]`, message: `it is remove[${before}] again` });
  }
  if (found.length > 0) return refused(found.slice(0, PROBLEMS_MAX));
  return { ok: true, spec: { add, remove } };
}

/** Problems of a part, with the part's place ahead. */
export function placedAt(place: string, problems: SpecProblems): SpecProblem[] {
  return problems.map(({ path, message }) => ({
    path: path === "" ? place : `${place}.${path}`,
    message,
  }));
}

/** Reads settings as PUT sends them. */
export function decodeSettings(json: unknown): Decoded<Settings> {
  const decoded = decode<Settings>(SettingsSpec, json);
  return decoded.ok ? withinLimit(decoded.spec) : decoded;
}

function refused<S>([first, ...more]: readonly SpecProblem[]): Decoded<S> {
  return { ok: false, problems: [first, ...more] };
}

function withinLimit<S>(spec: S): Decoded<S> {
  if (jsonBytes(spec) <= SPEC_BYTES_MAX) return { ok: true, spec };
  return refused([{ path: "", message: `it is larger than ${SPEC_BYTES_MAX} bytes as JSON` }]);
}

function decode<S>(schema: z.ZodType<S>, json: unknown): Decoded<S> {
  const parsed = parseWith(schema, json);
  return parsed.ok ? { ok: true, spec: parsed.value } : parsed;
}

/** Of a spec that is refused: the fields that are well formed, each by itself. */
function readableFields<C extends Collection>(collection: C, json: unknown): Partial<SpecOf<C>> {
  if (typeof json !== "object" || json === null) return {};
  const fields: Record<string, unknown> = {};
  for (const [name, schema] of Object.entries<z.ZodType>(SPECS[collection].shape)) {
    if (!Object.hasOwn(json, name)) continue;
    const parsed = parseWith(schema, (json as Readonly<Record<string, unknown>>)[name]);
    if (parsed.ok) fields[name] = parsed.value;
  }
  // Each was read by the schema of its own field.
  return fields as Partial<SpecOf<C>>;
}

function refineName<S extends { readonly name: string }>(
  { name }: Partial<S>,
  report: Report,
): Partial<S> {
  const problem = name === undefined ? null : findNameProblem(name);
  if (problem !== null) report("name", problem);
  return {};
}

/** A text of one line: where it is written as one, a second must not follow unseen. */
const CONTROL = /(?!\t)\p{Cc}/u;
const UNSEEN = "it holds a control, direction or invisible character";

function refineList(spec: Partial<SpecOf<"lists">>, report: Report): Partial<SpecOf<"lists">> {
  refineName(spec, report);
  if (spec.path !== undefined && holdsUnseen(spec.path)) report("path", UNSEEN);
  if (spec.url !== undefined) {
    const problem = holdsUnseen(spec.url) ? UNSEEN : findListUrlProblem(spec.url);
    if (problem !== null) report("url", problem);
  }
  return {};
}

const encoder = new TextEncoder();

function refineRule(spec: Partial<SpecOf<"rules">>, report: Report) {
  const { rule: text, expires_at = null, groups = [], clients = [] } = spec;
  reportTwice("groups", groups, report);
  reportTwice("clients", clients, report);
  if (text === undefined) return {};
  const isLimited = expires_at !== null || groups.length > 0 || clients.length > 0;
  if (isLimited && isBadfilter(text)) {
    const message = "a $badfilter holds for everybody: leave out expires_at, groups and clients";
    report("rule", message);
  }
  const rule = text.trim();
  const problem = findRuleProblem(rule);
  if (problem !== null) report("rule", problem);
  return { rule };
}

function isBadfilter(text: string): boolean {
  const parsed = parseRule(text);
  return parsed.kind === "rules" && parsed.rules.some(({ badfilter }) => badfilter);
}

function reportTwice(field: string, texts: readonly string[], report: Report): void {
  for (const [i, text] of texts.entries()) {
    if (texts.indexOf(text) < i) report(`${field}[${i}]`, "it is given twice");
  }
}

/** Says why a text without blanks around it is no custom rule, or returns `null`. */
export function findRuleProblem(rule: string): string | null {
  if (CONTROL.test(rule)) return "it is more than one line";
  if (encoder.encode(rule).length > LINE_LENGTH_MAX) {
    return `it is longer than ${LINE_LENGTH_MAX} bytes`;
  }
  const parsed = parseRule(rule);
  if (parsed.kind === "skipped") {
    const { reason, column } = parsed;
    return `it is no rule that is read, from column ${column + 1}: ${SKIP_TEXTS[reason]}`;
  }
  const problem = parsed.rules.map(findRegexProblem).find((reason) => reason !== null);
  if (problem) return `it is no rule that is read: ${SKIP_TEXTS[problem]}`;
  // A list's line may lose a name; whoever writes a rule is told.
  return parsed.leftOut === null
    ? null
    : `it holds a name that is left out: ${SKIP_TEXTS[parsed.leftOut]}`;
}

const WILDCARD = "*.";
/** The service answers these itself, before any record. */
const OWN_NAME = /(^|\.)svc\.test$/;

function refineRecord(
  spec: Partial<SpecOf<"records">>,
  report: Report,
): Partial<SpecOf<"records">> {
  const name = spec.name === undefined ? undefined : recordName(spec.name, report);
  const value = spec.type === undefined || spec.value === undefined
    ? undefined
    : recordValue(spec.type, spec.value, report);
  if (spec.type === "CNAME" && value !== undefined && value === name) {
    report("value", "it is the record's own name");
  }
  if (spec.type === "SOA" && name?.startsWith(WILDCARD)) {
    report("name", "a zone is a name, without *: all below it is in the zone");
  }
  return { ...(name !== undefined && { name }), ...(value !== undefined && { value }) };
}

function recordName(text: string, report: Report): string | undefined {
  const wildcard = text.startsWith(WILDCARD) ? WILDCARD : "";
  const bare = normaliseName(text.slice(wildcard.length));
  const problem = bare === null
    ? "it is no name or *.name"
    : OWN_NAME.test(bare)
    ? "svc.test and all below it are the service's own"
    : null;
  if (problem === null) return wildcard + bare;
  report("name", problem);
  return undefined;
}

function recordValue(
  type: SpecOf<"records">["type"],
  text: string,
  report: Report,
): string | undefined {
  if (type === "CNAME" || type === "PTR") {
    const name = normaliseName(text);
    if (name !== null) return name;
    report("value", `it is no ${VALUE_TEXTS[type]}`);
    return undefined;
  }
  const rdata = parseRdata(Qtype[type], text);
  if (rdata !== null) return formatRdata(rdata, Qtype[type], 0, rdata.length);
  report("value", `it is no ${VALUE_TEXTS[type]}`);
  return undefined;
}

/** What a value is of, and what it may look like. */
const VALUE_TEXTS = {
  A: "IPv4 address",
  AAAA: "IPv6 address",
  CNAME: "name",
  TXT: "text: write words, or strings of 255 bytes in quotes",
  MX: "mail server: write a preference and a name, such as 10 mail.example",
  SRV: "server: write priority, weight, port and a name, such as 0 0 389 ldap.example",
  PTR: "name",
  HTTPS: "service: write a priority, a name and parameters, such as 1 . alpn=h2 port=8443",
  SVCB: "service: write a priority, a name and parameters, such as 1 dns.example alpn=dot",
  CAA: "authority: write flags, a tag and a text, such as 0 issue letsencrypt.org",
  SOA: "zone: write server, mailbox, serial, refresh, retry, expire and minimum, such as " +
    "ns.home.arpa admin.home.arpa 1 3600 600 86400 300",
} as const;

function refineClient(spec: Partial<SpecOf<"clients">>, report: Report) {
  for (const field of ["addresses", "ids"] as const) reportTwice(field, spec[field] ?? [], report);
  return refineName(spec, report);
}
