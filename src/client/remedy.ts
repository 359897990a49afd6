/**
 * What allows and blocks a name, for whoever offers that to people: what lifts a block, and the rule
 * that says it. It asks nobody. Scope: none. @module
 */
import type { QuerylogEntry } from "../api/mod.ts";

/** What decided a query: an entry of the query log, or an explanation. */
export type Decided = Pick<QuerylogEntry, "rule" | "list"> & { readonly outcome: string };

/** What no rule lifts, by where it is changed. */
export type Elsewhere = "internet" | "group" | "record" | "settings";

/** What lifts a block: an exception, a pause of a service, or nothing that a rule could say. */
export type Remedy =
  | { readonly kind: "exception"; readonly modifiers: string }
  | { readonly kind: "service"; readonly service: string }
  | { readonly kind: "elsewhere"; readonly what: Elsewhere };

/** What each is, and how it is changed, in words for a terminal. */
export const ELSEWHERE: Readonly<Record<Elsewhere, string>> = {
  internet: "the Internet being off: change the client or its group",
  group: "safe search: switch it off in the group",
  record: "a local record: change it in the dashboard",
  settings: "who may ask: change it in the settings",
};

const WHERE: Readonly<Record<string, Elsewhere>> = {
  safe_search: "group",
  local: "record",
  refused: "settings",
};

export function remedyFor({ outcome, rule, list }: Decided): Remedy {
  if (list?.startsWith("service:")) {
    return { kind: "service", service: list.slice("service:".length) };
  }
  if (list === "off") return { kind: "elsewhere", what: "internet" };
  if (Object.hasOwn(WHERE, outcome)) return { kind: "elsewhere", what: WHERE[outcome] };
  if (outcome === "rewritten") return { kind: "exception", modifiers: "$dnsrewrite" };
  return { kind: "exception", modifiers: rule?.includes("$important") ? "$important" : "" };
}

/** The rule that allows or blocks a name, alone or with all below it. */
export function ruleText(
  action: "allow" | "block",
  { name, isBelow }: { readonly name: string; readonly isBelow: boolean },
  modifiers: string,
): string {
  if (action === "block") return isBelow ? `||${name}^` : `|${name}^`;
  // Rewrites are lifted for a name and all below it.
  const start = isBelow || modifiers === "$dnsrewrite" ? "@@||" : "@@|";
  return `${start}${name}^${modifiers}`;
}
