import type { z } from "zod";
import { formatIp, parseIp } from "../addr/mod.ts";
import { LINE_LENGTH_MAX, normaliseName, parseRule, SKIP_TEXTS } from "../filter/mod.ts";
import { findListUrlProblem } from "./list_url.ts";
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

/** What reading a spec came to. A refused one says which field is bad: `lists[2].list`. */
export type Decoded<S> =
  | { readonly ok: true; readonly spec: S }
  | {
    readonly ok: false;
    /** From the spec; empty for the whole of it. */
    readonly path: string;
    readonly message: string;
  };

type Bad = Extract<Decoded<never>, { ok: false }>;

const SCHEMAS: { readonly [C in Collection]: z.ZodType<SpecOf<C>> } = SPECS;

/** What a spec means beyond its shape: it is returned with its texts in their one form. */
type Refine<S> = (spec: S) => S | Bad;

const REFINE: { readonly [C in Collection]?: Refine<SpecOf<C>> } = {
  lists: refineList,
  rules: refineRule,
  records: refineRecord,
  clients: refineClient,
};

/**
 * Reads the spec of a resource: fields, unknown ones refused, and what they mean. Rules are trimmed,
 * names become lower-case A-labels, addresses get their canonical form.
 */
export function decodeSpec<C extends Collection>(
  collection: C,
  json: unknown,
): Decoded<SpecOf<C>> {
  const decoded = decodeShape(collection, json);
  if (!decoded.ok) return decoded;
  const refine: Refine<SpecOf<C>> | undefined = REFINE[collection];
  const spec = refine === undefined ? decoded.spec : refine(decoded.spec);
  return isBad(spec) ? spec : withinLimit(spec);
}

/** Reads a spec by its shape alone: whatever has it can be stored and read again. */
export function decodeShape<C extends Collection>(
  collection: C,
  json: unknown,
): Decoded<SpecOf<C>> {
  return decode<SpecOf<C>>(SCHEMAS[collection], json);
}

/** Reads rules that are to come and go; the path of a bad one has its index: `add[17].rule`. */
export function decodeRulesBatch(json: unknown): Decoded<RulesBatch> {
  // Counted first: each item that is none takes memory to be complained of.
  const parts = Object.values(typeof json === "object" && json !== null ? json : {});
  const count = parts.reduce((sum, part) => sum + (Array.isArray(part) ? part.length : 0), 0);
  if (count > RULES_BATCH_MAX) {
    return bad("", `has ${count} rules, and one change takes ${RULES_BATCH_MAX}: send several`);
  }
  const decoded = decode<RulesBatch>(RulesBatch, json);
  if (!decoded.ok) return decoded;
  const { remove } = decoded.spec;
  const first = new Map<string, number>();
  for (const [i, id] of remove.entries()) {
    const before = first.get(id);
    if (before !== undefined) return bad(`remove[${i}]`, `is remove[${before}] again`);
    first.set(id, i);
  }
  const add: SpecOf<"rules">[] = [];
  for (const [i, given] of decoded.spec.add.entries()) {
    const spec = refineRule(given);
    const taken = isBad(spec) ? spec : withinLimit(spec);
    if (!taken.ok) return bad(`add[${i}]${taken.path && `.${taken.path}`}`, taken.message);
    add.push(taken.spec);
  }
  return { ok: true, spec: { add, remove } };
}

/** Reads settings as PUT sends them. */
export function decodeSettings(json: unknown): Decoded<Settings> {
  const decoded = decode<Settings>(SettingsSpec, json);
  return decoded.ok ? withinLimit(decoded.spec) : decoded;
}

function isBad(value: object): value is Bad {
  return "ok" in value && value.ok === false;
}

function bad(path: string, message: string): Bad {
  return { ok: false, path, message };
}

function withinLimit<S>(spec: S): Decoded<S> {
  if (jsonBytes(spec) <= SPEC_BYTES_MAX) return { ok: true, spec };
  return bad("", `is larger than ${SPEC_BYTES_MAX} bytes as JSON`);
}

function decode<S>(schema: z.ZodType<S>, json: unknown): Decoded<S> {
  const result = schema.safeParse(json);
  if (result.success) return { ok: true, spec: result.data };
  const issue = result.error.issues[0];
  if (issue.code === "unrecognized_keys") {
    return bad(formatPath([...issue.path, issue.keys[0]]), "unknown field");
  }
  const path = formatPath(issue.path);
  const isMissing = issue.code === "invalid_type" && issue.path.length > 0 &&
    valueAt(json, issue.path) === undefined;
  return bad(path, isMissing ? "is missing" : issue.message);
}

function formatPath(path: readonly PropertyKey[]): string {
  let text = "";
  for (const part of path) {
    if (typeof part === "number") text += `[${part}]`;
    else text += (text === "" ? "" : ".") + String(part);
  }
  return text;
}

function valueAt(json: unknown, path: readonly PropertyKey[]): unknown {
  let value = json;
  for (const part of path) {
    if (typeof value !== "object" || value === null) return undefined;
    value = Object.getOwnPropertyDescriptor(value, part)?.value;
  }
  return value;
}

/** A text of one line: where it is written as one, a second must not follow unseen. */
const CONTROL = /(?!\t)\p{Cc}/u;

function refineList(spec: SpecOf<"lists">): SpecOf<"lists"> | Bad {
  if (spec.path !== undefined) {
    return CONTROL.test(spec.path) ? bad("path", "holds a control character") : spec;
  }
  const problem = findListUrlProblem(spec.url ?? "");
  return problem === null ? spec : bad("url", problem);
}

const encoder = new TextEncoder();

function refineRule(spec: SpecOf<"rules">): SpecOf<"rules"> | Bad {
  const rule = spec.rule.trim();
  if (CONTROL.test(rule)) return bad("rule", "is more than one line");
  if (encoder.encode(rule).length > LINE_LENGTH_MAX) {
    return bad("rule", `is longer than ${LINE_LENGTH_MAX} bytes`);
  }
  const parsed = parseRule(rule);
  if (parsed.kind === "skipped") {
    const { reason, column } = parsed;
    return bad("rule", `is no rule that is read, from column ${column + 1}: ${SKIP_TEXTS[reason]}`);
  }
  // A list's line may lose a name; whoever writes a rule is told.
  if (parsed.leftOut !== null) {
    return bad("rule", `holds a name that is left out: ${SKIP_TEXTS[parsed.leftOut]}`);
  }
  return { ...spec, rule };
}

const WILDCARD = "*.";

function refineRecord(spec: SpecOf<"records">): SpecOf<"records"> | Bad {
  const wildcard = spec.name.startsWith(WILDCARD) ? WILDCARD : "";
  const bare = normaliseName(spec.name.slice(wildcard.length));
  if (bare === null) return bad("name", "is no name or *.name");
  const name = wildcard + bare;
  if (spec.type === "CNAME") {
    const value = normaliseName(spec.value);
    if (value === null) return bad("value", "is no name");
    if (value === name) return bad("value", "is the record's own name");
    return { ...spec, name, value };
  }
  const [family, lengthBytes] = spec.type === "A" ? ["IPv4", 4] : ["IPv6", 16];
  const ip = parseIp(spec.value);
  if (ip?.length !== lengthBytes) return bad("value", `is no ${family} address`);
  return { ...spec, name, value: formatIp(ip) };
}

function refineClient(spec: SpecOf<"clients">): SpecOf<"clients"> | Bad {
  const again = (texts: readonly string[]) => texts.findIndex((text, i) => texts.indexOf(text) < i);
  const [address, id] = [again(spec.addresses), again(spec.ids)];
  if (address >= 0) return bad(`addresses[${address}]`, "is given twice");
  return id >= 0 ? bad(`ids[${id}]`, "is given twice") : spec;
}
