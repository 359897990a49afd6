import type { QuerylogEntry } from "../api/mod.ts";

/** What decided a query. */
export type Decided = Pick<QuerylogEntry, "rule" | "list"> & { readonly outcome: string };

/** What lifts a block: an exception, a pause of a service, or nothing that a rule could say. */
export type Remedy =
  | { readonly kind: "exception"; readonly modifiers: string }
  | { readonly kind: "service"; readonly service: string }
  | { readonly kind: "elsewhere"; readonly where: string };

/** `decided`: an entry of the query log, or an explanation. */
export function remedyFor({ outcome, rule, list }: Decided): Remedy {
  if (list?.startsWith("service:")) {
    return { kind: "service", service: list.slice("service:".length) };
  }
  if (list === "off") return elsewhere("the Internet being off: change the client or its group");
  if (outcome === "safe_search") return elsewhere("safe search: switch it off in the group");
  if (outcome === "local") return elsewhere("a local record: change it in the dashboard");
  if (outcome === "refused") return elsewhere("who may ask: change it in the settings");
  if (outcome === "rewritten") return { kind: "exception", modifiers: "$dnsrewrite" };
  return { kind: "exception", modifiers: rule?.includes("$important") ? "$important" : "" };
}

function elsewhere(where: string): Remedy {
  return { kind: "elsewhere", where };
}
